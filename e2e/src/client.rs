//! SQL through the servers' own command-line client: scripts with DELIMITER, and queries with plain answers. Single queries go without the client, whose start takes ten
//! times as long: tests ask again and again until something has happened.

use crate::patience::until;
use crate::server::{PASSWORD, Server, USER, servers_script};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use wire::{ConnectOptions, Connection};

/// The client of a server's tree. What runs it is found out once: a test asks many questions.
fn client_program(tree: &'static str, program: &'static str) -> Command {
    static KNOWN: Mutex<BTreeMap<(&str, &str), Vec<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let words = known.entry((tree, program)).or_insert_with(|| {
        let found = servers_script(&["words", tree, program]).output();
        let found = found.ok().filter(|output| output.status.success()).map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&found).lines().map(str::to_owned).collect()
    });
    match words.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        // Says what is missing when it is run.
        None => servers_script(&["run", tree, program]),
    }
}

/// What becomes of a script behind a statement that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    Fatal,
    Allowed,
}

impl Server {
    /// The stock client, connected to this instance; the caller gives it input and takes its output.
    pub fn client(&self, arguments: &[&str]) -> Command {
        let mut command = client_program(self.kind.client_tree(), "mysql");
        command
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.socket().display()))
            .args([&format!("--user={USER}"), "--default-character-set=utf8mb4", "--max-allowed-packet=1G"])
            .args(arguments)
            // Since 9.4 the client knows `connect` and its like in scripts only when told to.
            .args((self.kind.client_tree() == "mysql-9.7").then_some("--commands"))
            .env("MYSQL_PWD", PASSWORD);
        command
    }

    /// Another program of the server's tree, as this account; the caller says where to connect.
    pub fn program(&self, name: &'static str) -> Command {
        let mut command = client_program(self.kind.client_tree(), name);
        command.args(["--no-defaults", &format!("--user={USER}")]).env("MYSQL_PWD", PASSWORD);
        command
    }

    /// A connection of our own, for what has to stay open, or to be fast.
    pub fn connect(&self) -> Result<Connection> {
        let mut options = ConnectOptions {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            user: USER.to_owned(),
            password: Some(PASSWORD.to_owned().into()),
            ..ConnectOptions::default()
        };
        options.password_options.get_server_public_key = true;
        Connection::connect(&options).with_context(|| format!("connecting to {}", self.kind))
    }

    /// A session of somebody else in an open transaction, with all that `sql` locks, until it is dropped.
    pub fn hold(&self, sql: &str) -> Result<Connection> {
        let mut session = self.connect()?;
        session.query(format!("START TRANSACTION; {sql}")).with_context(|| shortened(sql))?;
        Ok(session)
    }

    /// Runs a script as a file given to the client is run: statement by statement, the first error ends it.
    /// Returns the statements' output, rows with tabs between columns, without headings.
    pub fn run_script(&self, sql: &[u8]) -> Result<String> {
        self.run_script_as(None, sql, Errors::Fatal)
    }

    /// As `run_script`, by an account with the password `secret`.
    pub fn run_script_as(&self, account: Option<&str>, sql: &[u8], errors: Errors) -> Result<String> {
        let mut client = self.client(&["--batch", "--skip-column-names", "--comments", "--raw"]);
        if let Some(account) = account {
            client.arg(format!("--user={account}")).env("MYSQL_PWD", "secret");
        }
        if errors == Errors::Allowed {
            client.arg("--force");
        }
        let mut child = client
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting the client")?;
        let mut stdin = child.stdin.take().context("the client's input")?;
        let output = thread::scope(|scope| {
            // An early error closes the pipe: the client's own message is the one to show.
            scope.spawn(move || drop(stdin.write_all(sql)));
            child.wait_with_output()
        })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let goes_on = output.status.success() || errors == Errors::Allowed;
        ensure!(goes_on, "{}: {}", self.kind, String::from_utf8_lossy(&output.stderr).trim());
        Ok(text)
    }

    /// Runs statements for their effect.
    pub fn execute(&self, sql: &str) -> Result<()> {
        self.run_script(sql.as_bytes()).map(drop).with_context(|| shortened(sql))
    }

    /// Runs statements and returns all their rows, columns as text. Whatever the server's `max_join_size` is.
    pub fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        let text = match self.answer(sql) {
            Some(text) => text,
            None => {
                let free = format!("SET sql_big_selects=1; {sql}");
                self.run_script(free.as_bytes()).with_context(|| shortened(sql))?
            }
        };
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }

    /// What the client would print, for a single query. `None`: it is none, or it has failed; the client has the words for that.
    fn answer(&self, sql: &str) -> Option<String> {
        let query = sql.trim().trim_end_matches(';');
        let verb = query.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        if !["SELECT", "SHOW"].iter().any(|known| verb.eq_ignore_ascii_case(known)) || query.contains(';') {
            return None;
        }
        // A session of its own, as the client has: none is left for anybody to see, or to kill.
        let options = ConnectOptions {
            socket: Some(self.socket()),
            user: USER.to_owned(),
            password: Some(PASSWORD.to_owned().into()),
            ..ConnectOptions::default()
        };
        let mut session = Connection::connect(&options).ok()?;
        session.execute("SET NAMES utf8mb4, SESSION sql_big_selects=1").ok()?;
        let mut text = Vec::new();
        for row in session.rows(query).ok()? {
            for column in 0..row.columns().len() {
                if column > 0 {
                    text.push(b'\t');
                }
                text.extend_from_slice(row.get(column).unwrap_or(b"NULL"));
            }
            text.push(b'\n');
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// `count`: a query; until it says something else than 0.
    pub fn wait_until(&self, count: &str) -> Result<()> {
        until(count, || Ok(self.scalar(count)? != "0"))
    }

    /// The first column of the first row.
    pub fn scalar(&self, sql: &str) -> Result<String> {
        let text = match self.answer(sql) {
            Some(text) => text,
            None => self.run_script(sql.as_bytes()).with_context(|| shortened(sql))?,
        };
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// The binary log files that the server lists, oldest first.
    pub fn binary_logs(&self) -> Result<Vec<PathBuf>> {
        let rows = self.rows("SHOW BINARY LOGS")?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next()).map(|name| self.data().join(name)).collect())
    }

    /// The one that it writes.
    pub fn current_log(&self) -> Result<PathBuf> {
        self.binary_logs()?.pop().context("no binary log")
    }

    /// Closes the current binary log file and starts the next.
    pub fn rotate(&self) -> Result<()> {
        self.execute("FLUSH BINARY LOGS")
    }

    /// Purges all binary logs before the current one. MariaDB keeps, without a word, what a connection reads, and notices late that it has gone.
    pub fn purge_all_but_last(&self) -> Result<()> {
        let last =
            self.rows("SHOW BINARY LOGS")?.pop().and_then(|row| row.into_iter().next()).context("no binary log")?;
        until("the old binary logs are gone", || {
            self.execute(&format!("PURGE BINARY LOGS TO '{last}'"))?;
            Ok(self.rows("SHOW BINARY LOGS")?.len() == 1)
        })
    }
}

fn shortened(sql: &str) -> String {
    sql.chars().take(300).collect()
}
