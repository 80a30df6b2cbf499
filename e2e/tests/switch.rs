//! `heddle switch`: applications that write go from a source to its target and back without losing a write; whatever ends a switch before that leaves the source as it was.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, Run};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, USER};
use e2e::until;
use rustix::process::Signal;
use wire::{ConnectOptions, Connection};

const GTIDS: [&str; 2] = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];

const SWITCHED: i32 = 0;
const REFUSED: i32 = 1;
const UNFINISHED: i32 = 3;
const DIFFERENT: i32 = 5;
const TRY_AGAIN: i32 = 75;

const SCHEMA: &str = "CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
    CREATE TABLE d.t (id BIGINT PRIMARY KEY, v INT NOT NULL);
    CREATE TABLE d.counters (id INT PRIMARY KEY, n BIGINT NOT NULL);
    INSERT INTO d.counters VALUES (1, 0), (2, 0);
    CREATE TABLE d.slow (id INT PRIMARY KEY, v INT);
    CREATE TABLE d.gone (id INT PRIMARY KEY);
    CREATE EVENT d.daily ON SCHEDULE EVERY 1 DAY STARTS '2038-01-01 00:00:00' DO DELETE FROM d.gone;
    CREATE EVENT d.off ON SCHEDULE EVERY 1 DAY STARTS '2038-01-01 00:00:00' DISABLE DO DELETE FROM d.gone";

/// Applications: they write whatever is not read-only, and may nothing else.
const ACCOUNTS: &str = "SET sql_log_bin = 0; CREATE USER app@'%' IDENTIFIED BY 'secret'; GRANT SELECT, INSERT, UPDATE, DELETE ON d.* TO app@'%'";

/// A source, a target that was copied from it, and the channel that keeps it up.
struct Shop {
    pair: Pair,
    channel: Option<Heddle>,
    rows: Vec<&'static str>,
}

impl Shop {
    fn open(source: Kind, target: Kind) -> Result<Shop> {
        let options = |kind: Kind| if kind.is_mariadb() { &[][..] } else { &GTIDS[..] };
        let pair = Pair::start_two((source, options(source)), (target, options(target)))?;
        pair.source.execute(SCHEMA)?;
        for server in [&pair.source, &pair.target] {
            server.execute(ACCOUNTS)?;
        }
        let rows = if source.is_mariadb() == target.is_mariadb() { vec![] } else { vec!["--rows", "sql"] };
        let mut channel = pair.begin(&[&["--copy"], rows.as_slice()].concat())?;
        channel.wait_for_log("workers, policy")?;
        ensure!(!channel.has_ended()?, "{}", channel.log());
        let shop = Shop { pair, channel: Some(channel), rows };
        shop.wait_until_equal()?;
        Ok(shop)
    }

    fn channel(&self) -> Result<&Heddle> {
        self.channel.as_ref().context("the channel was ended")
    }

    /// It was asked to end by somebody, and has without an error.
    fn end_of_channel(&mut self) -> Result<()> {
        let run = self.channel.take().context("the channel was ended")?.wait()?.successful()?;
        ensure!(run.was_stopped()?, "{run}");
        Ok(())
    }

    fn start_channel(&mut self) -> Result<()> {
        self.channel = Some(self.pair.begin(&self.rows)?);
        self.wait_for_state("\"running\": true")
    }

    /// What `heddle status --json` says of the channel.
    fn wait_for_state(&self, text: &str) -> Result<()> {
        let ends = self.ends();
        until(format!("the channel is {text}"), || {
            let status = Heddle::start(&["status", "--to", &ends[3], "--json"])?.wait()?.successful()?;
            Ok(status.stdout.contains(text))
        })
    }

    /// Nothing writes to the source.
    fn wait_until_equal(&self) -> Result<()> {
        until("source and target are equal", || Ok(self.pair.assert_same_rows().is_ok()))
    }

    fn ends(&self) -> [String; 4] {
        ["--from".to_owned(), self.pair.from.clone(), "--to".to_owned(), self.pair.target.url()]
    }

    fn begin(&self, more: &[&str]) -> Result<Heddle> {
        let ends = self.ends();
        let mut arguments = vec!["switch"];
        arguments.extend(ends.iter().map(String::as_str));
        arguments.extend(more);
        Heddle::start(&arguments)
    }

    /// A switch to its end, which must be this one.
    fn switch(&self, more: &[&str], exits: i32) -> Result<Run> {
        ended(self.begin(more)?, exits)
    }

    fn is_read_only(&self) -> Result<bool> {
        Ok(self.pair.source.scalar("SELECT @@global.read_only")? != "0")
    }

    /// As before any switch: it takes writes, and nothing is recorded.
    fn is_as_before(&self) -> Result<()> {
        ensure!(!self.is_read_only()?, "the source is read-only");
        ensure!(self.recorded()? == 0, "a switch is recorded");
        self.pair.source.execute("REPLACE INTO d.gone VALUES (1)")
    }

    fn recorded(&self) -> Result<u64> {
        let there =
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'heddle' AND TABLE_NAME = 'switches'";
        if self.pair.target.scalar(there)? == "0" {
            return Ok(0);
        }
        Ok(self.pair.target.scalar("SELECT COUNT(*) FROM heddle.switches")?.parse()?)
    }

    /// A switch whose source is closed, and whose target lacks the last transaction: the channel is paused. It ends by its time limit or from outside.
    fn stuck(&self, more: &[&str]) -> Result<Heddle> {
        // The statement begins before the switch, and keeps the source from becoming read-only until the channel is paused.
        let mut slow = self.pair.source.connect()?;
        self.pair.source.execute("DELETE FROM d.slow")?;
        let statement = thread::spawn(move || slow.query("INSERT INTO d.slow SELECT 1, SLEEP(6)").map(drop));
        self.pair.source.wait_until(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO d.slow SELECT%'",
        )?;
        let mut switch = self.begin(more)?;
        switch.wait_for_log("becomes read-only once these statements have ended")?;
        ensure!(!switch.has_ended()?, "{}{}", switch.stdout_so_far(), switch.log());
        self.channel()?.signal(Signal::USR1)?;
        self.wait_for_state("\"state\": \"paused\"")?;
        statement.join().expect("no panic")?;
        until("the source is read-only", || self.is_read_only())?;
        Ok(switch)
    }

    fn resume(&self) -> Result<()> {
        self.channel()?.signal(Signal::USR2)?;
        self.wait_for_state("\"state\": \"idle\"")
    }
}

fn ended(heddle: Heddle, exits: i32) -> Result<Run> {
    let run = heddle.wait()?;
    ensure!(run.status.code() == Some(exits), "not {exits}: {run}");
    ensure!(!run.stderr.contains("panicked"), "{run}");
    Ok(run)
}

/// Sessions of applications: each remembers what it was told is committed.
struct Applications {
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Result<Vec<u64>>>>,
}

fn app(server: &Server) -> Result<Connection> {
    let options = ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        user: "app".to_owned(),
        password: Some("secret".to_owned().into()),
        ..ConnectOptions::default()
    };
    Connection::connect(&options).context("the application's login")
}

impl Applications {
    fn start(server: &Server, sessions: u64) -> Result<Self> {
        let (stop, committed, refused) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut threads = Vec::new();
        for session in 0..sessions {
            let mut connection = app(server)?;
            let (stop, committed, refused) = (Arc::clone(&stop), Arc::clone(&committed), Arc::clone(&refused));
            threads.push(thread::spawn(move || {
                let mut told = Vec::new();
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = session * 1_000_000_000 + number;
                    // A transaction, or a statement by itself.
                    let statements = match number % 3 {
                        0 => format!("INSERT INTO d.t VALUES ({id}, 1)"),
                        _ => format!("BEGIN; INSERT INTO d.t VALUES ({id}, 2); UPDATE d.counters SET n = n + 1 WHERE id = {}; COMMIT", 1 + number % 2),
                    };
                    match connection.query(statements) {
                        Ok(_) => {
                            told.push(id);
                            committed.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) if error.code().is_some() && !error.is_connection_lost() => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            connection.query("ROLLBACK")?;
                        }
                        Err(error) => return Err(error.into()),
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(told)
            }));
        }
        Ok(Self { stop, committed, refused, threads })
    }

    fn wait_for(&self, committed: u64) -> Result<()> {
        until("the applications write", || Ok(self.committed.load(Ordering::Relaxed) >= committed))
    }

    /// All that they were told is committed.
    fn stop(self) -> Result<Vec<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut told = Vec::new();
        for thread in self.threads {
            told.extend(thread.join().expect("no panic")?);
        }
        told.sort_unstable();
        Ok(told)
    }
}

fn ids(server: &Server) -> Result<Vec<u64>> {
    let rows = server.rows("SELECT id FROM d.t ORDER BY id")?;
    rows.iter().map(|row| Ok(row[0].parse()?)).collect()
}

fn event(server: &Server, name: &str) -> Result<String> {
    server.scalar(&format!("SELECT STATUS FROM information_schema.EVENTS WHERE EVENT_NAME = '{name}'"))
}

/// The words of a command as a shell takes it, behind the program's name.
fn words(command: &str) -> Result<Vec<String>> {
    let (program, rest) = command.split_once(' ').context("a command")?;
    ensure!(program == "heddle", "{command}");
    let output =
        Command::new("sh").args(["-c", &format!("for word in {rest}; do printf '%s\\n' \"$word\"; done")]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The channel back, as it was printed.
fn begin_way_back(shop: &Shop, command: &str, more: &[&str]) -> Result<Heddle> {
    let mut arguments = words(command)?;
    let relay = shop.pair.source.dir().join("back").display().to_string();
    arguments.extend(["--json", "--relay-dir", &relay].map(str::to_owned));
    arguments.extend(shop.rows.iter().chain(more).map(|word| (*word).to_owned()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Heddle::start(&arguments)
}

/// To the present end of the target's log.
fn way_back(shop: &Shop, command: &str) -> Result<Run> {
    ended(begin_way_back(shop, command, &["--until-end"])?, SWITCHED)
}

/// Applications go back to the source.
fn switch_back(shop: &Shop, command: &str) -> Result<()> {
    let mut channel = begin_way_back(shop, command, &[])?;
    channel.wait_for_log("workers, policy")?;
    let ends = [shop.pair.target.url(), shop.pair.source.url()];
    until("the channel back runs", || {
        let status = Heddle::start(&["status", "--to", &ends[1], "--json"])?.wait()?.successful()?;
        Ok(status.stdout.contains("\"running\": true") || channel.has_ended()?)
    })?;
    let more = ["--channel", "default-back", "--target-writable", "--enable-events"];
    let switch = [&["switch", "--from", &ends[0], "--to", &ends[1]], &more[..]].concat();
    ended(Heddle::start(&switch)?, SWITCHED)?;
    channel.wait()?.successful()?;
    ensure!(!shop.is_read_only()? && shop.pair.target.scalar("SELECT @@global.read_only")? == "1");
    ensure!(event(&shop.pair.source, "daily")? == "ENABLED");
    shop.pair.assert_same_rows()?;
    app(&shop.pair.source)?.query("INSERT INTO d.t VALUES (-2, 2)").map(drop).context("the source takes writes")
}

/// The whole way under load, and back.
fn no_write_is_lost(source: Kind, target: Kind) -> Result<()> {
    let mut shop = Shop::open(source, target)?;
    let definer = "SELECT CONCAT(DEFINER, ' ', SQL_MODE, ' ', TIME_ZONE) FROM information_schema.EVENTS WHERE EVENT_NAME = 'daily'";
    let before = shop.pair.target.scalar(definer)?;
    ensure!(!["ENABLED", "DISABLED"].contains(&event(&shop.pair.target, "daily")?.as_str()));
    shop.pair.target.execute("SET GLOBAL read_only = ON")?;
    let applications = Applications::start(&shop.pair.source, 3)?;
    applications.wait_for(300)?;
    let dry = shop.switch(&["--dry-run"], SWITCHED)?;
    ensure!(
        dry.stdout.contains("nothing was changed")
            && dry.stdout.contains("stays it")
            && dry.stdout.contains("`daily` ENABLE"),
        "{dry}"
    );
    ensure!(shop.recorded()? == 0 && !shop.is_read_only()?);
    let run = shop.switch(&["--json", "--compare", "--target-writable", "--enable-events", "--reverse"], SWITCHED)?;
    until("the applications are refused", || Ok(applications.refused.load(Ordering::Relaxed) > 0))?;
    let told = applications.stop()?;
    ensure!(told.len() > 300);
    // No write is lost, and none came from elsewhere.
    ensure!(ids(&shop.pair.target)? == told, "the target has other rows than those that were committed");
    shop.pair.assert_same_rows()?;
    let report = run.summary()?;
    ensure!(report["outcome"] == "switched" && report["comparison"]["outcome"] == "equal", "{run}");
    ensure!(shop.is_read_only()?);
    shop.end_of_channel()?;
    // The target takes writes, and its events are as they were.
    ensure!(shop.pair.target.scalar("SELECT @@global.read_only")? == "0");
    ensure!(event(&shop.pair.target, "daily")? == "ENABLED" && event(&shop.pair.target, "off")? == "DISABLED");
    let after = shop.pair.target.scalar(definer)?;
    ensure!(after == before, "the event has changed: {before} {after}");
    let mut connection = app(&shop.pair.target)?;
    connection.query("INSERT INTO d.t VALUES (-1, 1)")?;
    // The channel must not be started again.
    let again = shop.pair.begin(&shop.rows)?.wait()?;
    ensure!(again.status.code() == Some(REFUSED) && again.stderr.contains("was switched"), "{again}");
    // The same command says the same again.
    let same = shop.switch(&["--json"], SWITCHED)?.summary()?;
    ensure!(same["switched"]["return_command"] == report["switched"]["return_command"], "{same} {report}");
    let late = shop.switch(&["--undo"], REFUSED)?;
    ensure!(late.stderr.contains("was written to since"), "{late}");
    // And back, by the command that was printed.
    let command = report["switched"]["return_command"].as_str().context("a way back")?;
    way_back(&shop, command)?;
    shop.pair.assert_same_rows()?;
    ensure!(shop.pair.source.scalar("SELECT COUNT(*) FROM d.t WHERE id = -1")? == "1");
    ensure!(shop.is_read_only()? && event(&shop.pair.source, "daily")? != "ENABLED");
    connection.query("UPDATE d.t SET v = 7 WHERE id = -1; DELETE FROM d.t WHERE id = 1")?;
    way_back(&shop, command)?;
    shop.pair.assert_same_rows()?;
    switch_back(&shop, command)
}

/// A channel that does not go on.
fn a_channel_that_stands(kind: Kind) -> Result<()> {
    let mut shop = Shop::open(kind, kind)?;
    let switch = shop.stuck(&["--timeout", "10s"])?;
    let other = shop.switch(&["--undo"], REFUSED)?;
    ensure!(other.stderr.contains("another heddle switches this channel") && shop.is_read_only()?, "{other}");
    let late = ended(switch, TRY_AGAIN)?;
    ensure!(late.stderr.contains("has not applied all within 10 s") && late.stderr.contains("is paused"), "{late}");
    ensure!(late.stdout.contains("set back  the source is writable"), "{late}");
    shop.is_as_before()?;
    let refused = shop.switch(&[], REFUSED)?;
    ensure!(refused.stdout.contains("is paused"), "{refused}");
    shop.resume()?;
    shop.wait_until_equal()?;
    shop.channel()?.terminate()?;
    shop.end_of_channel()?;
    for more in [&[][..], &["--dry-run"]] {
        let refused = shop.switch(more, REFUSED)?;
        ensure!(
            refused.stdout.contains("does not run: start it") && refused.stdout.contains("nothing was changed"),
            "{refused}"
        );
        shop.is_as_before()?;
    }
    shop.start_channel()?;
    let switched = shop.switch(&[], SWITCHED)?;
    ensure!(switched.stdout.contains("point the applications to the target"), "{switched}");
    // Nothing was written there since.
    let undone = shop.switch(&["--undo"], SWITCHED)?;
    ensure!(undone.stdout.contains("the source is writable again"), "{undone}");
    shop.is_as_before()?;
    shop.start_channel()?;
    shop.wait_until_equal()
}

fn signals_and_kills(kind: Kind) -> Result<()> {
    let shop = Shop::open(kind, kind)?;
    for signal in [Signal::TERM, Signal::INT] {
        let switch = shop.stuck(&["--timeout", "90s"])?;
        switch.signal(signal)?;
        switch.signal(signal)?;
        let stopped = ended(switch, TRY_AGAIN)?;
        ensure!(stopped.stdout.contains("set back  the source is writable"), "{stopped}");
        shop.is_as_before()?;
        shop.resume()?;
        shop.wait_until_equal()?;
    }
    // While the server still waits to become read-only.
    let mut slow = shop.pair.source.connect()?;
    let statement = thread::spawn(move || slow.query("REPLACE INTO d.slow SELECT 2, SLEEP(6)").map(drop));
    shop.pair.source.wait_until(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'REPLACE INTO d.slow SELECT%'",
    )?;
    let switch = shop.begin(&[])?;
    shop.pair
        .source
        .wait_until("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SET GLOBAL%read_only=ON'")?;
    switch.terminate()?;
    ended(switch, TRY_AGAIN)?;
    statement.join().expect("no panic")?;
    thread::sleep(Duration::from_secs(2));
    shop.is_as_before()?;
    shop.wait_until_equal()?;
    // Nobody sets anything back then.
    let switch = shop.stuck(&["--timeout", "90s"])?;
    switch.kill()?;
    switch.wait()?;
    ensure!(shop.is_read_only()? && shop.recorded()? == 1);
    let shown = shop.switch(&["--dry-run"], REFUSED)?;
    ensure!(shown.stdout.contains("has come to: closing"), "{shown}");
    let refused = shop.switch(&[], UNFINISHED)?;
    ensure!(refused.stdout.contains("--undo sets it back"), "{refused}");
    ensure!(shop.is_read_only()?);
    shop.switch(&["--undo"], SWITCHED)?;
    shop.is_as_before()?;
    let nothing = shop.switch(&["--undo"], SWITCHED)?;
    ensure!(nothing.stdout.contains("nothing was changed"), "{nothing}");
    shop.resume()?;
    shop.wait_until_equal()?;
    // Or the same command goes on; and knows what the source was.
    let switch = shop.stuck(&["--timeout", "90s"])?;
    switch.kill()?;
    switch.wait()?;
    shop.resume()?;
    let switched = shop.switch(&[], SWITCHED)?;
    shop.pair.assert_same_rows()?;
    ensure!(shop.is_read_only()?, "{switched}");
    shop.switch(&["--undo"], SWITCHED)?;
    shop.is_as_before()
}

/// The target goes away in the middle.
fn a_target_that_is_lost(kind: Kind) -> Result<()> {
    let mut shop = Shop::open(kind, kind)?;
    let switch = shop.stuck(&["--timeout", "90s"])?;
    shop.pair.target.kill()?;
    let lost = ended(switch, TRY_AGAIN)?;
    ensure!(lost.stdout.contains("set back  the source is writable"), "{lost}");
    ensure!(!shop.is_read_only()?);
    shop.pair.target.restart(&[])?;
    shop.channel()?.kill()?;
    shop.start_channel()?;
    // What is recorded is so already.
    shop.switch(&["--undo"], SWITCHED)?;
    shop.is_as_before()?;
    shop.switch(&[], SWITCHED)?;
    shop.pair.assert_same_rows()
}

/// The source goes away in the middle: nothing can be set back, which is said. A restart makes it writable, and that is what it was.
fn a_source_that_is_lost(kind: Kind) -> Result<()> {
    let mut shop = Shop::open(kind, kind)?;
    let switch = shop.stuck(&["--timeout", "90s"])?;
    shop.pair.source.kill()?;
    let lost = ended(switch, UNFINISHED)?;
    ensure!(lost.stdout.contains("THE SOURCE MAY STILL BE READ-ONLY"), "{lost}");
    ensure!(shop.recorded()? == 1);
    shop.pair.source.restart(&[])?;
    shop.switch(&["--undo"], SWITCHED)?;
    shop.is_as_before()?;
    // The one that is paused would wait longer before it connects again.
    shop.channel()?.kill()?;
    shop.start_channel()?;
    shop.wait_until_equal()
}

/// What stands in the way: rows that differ, XA transactions that are prepared.
fn what_stands_in_the_way(kind: Kind) -> Result<()> {
    let shop = Shop::open(kind, kind)?;
    shop.pair.source.execute("INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3)")?;
    shop.wait_until_equal()?;
    shop.pair.target.execute("SET sql_log_bin = 0; UPDATE d.t SET v = 9 WHERE id = 2")?;
    let different = shop.switch(&["--compare"], DIFFERENT)?;
    ensure!(different.stdout.contains("d.t id=2: v is") && different.stdout.contains("set back"), "{different}");
    shop.is_as_before()?;
    shop.pair.target.execute("SET sql_log_bin = 0; UPDATE d.t SET v = 2 WHERE id = 2")?;
    let mut branch = shop.pair.source.connect()?;
    branch.query("XA START 'x'; INSERT INTO d.t VALUES (4, 4); XA END 'x'; XA PREPARE 'x'")?;
    let refused = shop.switch(&["--compare"], REFUSED)?;
    ensure!(refused.stdout.contains("1 prepared XA transaction on the source"), "{refused}");
    shop.is_as_before()?;
    branch.query("XA COMMIT 'x'")?;
    shop.switch(&["--compare"], SWITCHED)?;
    shop.pair.assert_same_rows()?;
    let forget = ["channel", "forget", "default", "--yes", "--to", &shop.pair.target.url()];
    ended(Heddle::start(&forget)?, SWITCHED)?;
    ensure!(shop.recorded()? == 0);
    Ok(())
}

/// An account that may read and not close: the user does it.
fn the_user_closes(kind: Kind) -> Result<()> {
    let mut shop = Shop::open(kind, kind)?;
    let grants = if kind.is_mariadb() {
        "REPLICATION SLAVE, BINLOG MONITOR, EVENT, PROCESS"
    } else {
        "REPLICATION SLAVE, REPLICATION CLIENT, EVENT, PROCESS"
    };
    shop.pair.source.execute(&format!(
        "SET sql_log_bin = 0; CREATE USER mover@'%' IDENTIFIED BY 'heddle'; GRANT {grants} ON *.* TO mover@'%'"
    ))?;
    shop.pair.from = shop.pair.from.replace(USER, "mover");
    let late = shop.switch(&["--timeout", "2s"], TRY_AGAIN)?;
    ensure!(late.stderr.contains("was not made read-only within 2 s"), "{late}");
    shop.is_as_before()?;
    let applications = Applications::start(&shop.pair.source, 2)?;
    applications.wait_for(50)?;
    let mut switch = shop.begin(&[])?;
    until("the switch waits", || {
        Ok(switch.stdout_so_far().contains("waiting   execute on the source: SET GLOBAL") || switch.has_ended()?)
    })?;
    ensure!(!switch.has_ended()?, "{}", switch.stdout_so_far() + &switch.log());
    shop.pair.source.execute("SET GLOBAL read_only = ON")?;
    let switched = ended(switch, SWITCHED)?;
    let told = applications.stop()?;
    ensure!(ids(&shop.pair.target)? == told, "{switched}");
    // The user's own doing stays.
    let undone = shop.switch(&["--undo"], SWITCHED)?;
    ensure!(shop.is_read_only()? && undone.stdout.contains("made read-only by you"), "{undone}");
    shop.pair.source.execute("SET GLOBAL read_only = OFF")?;
    shop.is_as_before()?;
    shop.start_channel()?;
    // Nobody writes, and nothing is read-only.
    shop.switch(&["--writes-stopped"], SWITCHED)?;
    ensure!(!shop.is_read_only()?);
    shop.pair.assert_same_rows()
}

/// A channel that takes a part, under other names; what it leaves out comes last in the log, which then begins a new file.
fn a_part(kind: Kind) -> Result<()> {
    let options = ["--log-bin=binlog"];
    let pair = Pair::start_with(kind, &options, &options)?;
    pair.source.execute(&format!("{SCHEMA}; CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY)"))?;
    let part = ["--only", "d", "--rename", "d=store"];
    let mut channel = pair.begin(&[&["--copy"][..], &part].concat())?;
    channel.wait_for_log("workers, policy")?;
    let shop = Shop { pair, channel: Some(channel), rows: vec![] };
    shop.pair.source.execute("INSERT INTO d.t VALUES (1, 1); INSERT INTO other.t VALUES (1); FLUSH BINARY LOGS")?;
    let run = shop.switch(&[&["--compare", "--json"][..], &part].concat(), SWITCHED)?;
    let report = run.summary()?;
    ensure!(report["comparison"]["outcome"] == "equal", "{run}");
    ensure!(report["findings"]["notes"].to_string().contains("takes a part of the source"), "{run}");
    ensure!(shop.pair.target.scalar("SELECT COUNT(*) FROM store.t")? == "1");
    shop.switch(&["--undo"], SWITCHED)?;
    shop.is_as_before()
}

/// Somebody writes although the source is read_only: an account with all rights.
fn somebody_writes_on() -> Result<()> {
    let shop = Shop::open(MARIADB_10_11, MARIADB_10_11)?;
    let (stop, mut connection) = (Arc::new(AtomicBool::new(false)), shop.pair.source.connect()?);
    let stopped = Arc::clone(&stop);
    let writer = thread::spawn(move || -> Result<()> {
        while !stopped.load(Ordering::Relaxed) {
            connection.query("UPDATE d.counters SET n = n + 1 WHERE id = 1")?;
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    });
    let late = shop.switch(&["--timeout", "5s"], TRY_AGAIN)?;
    ensure!(
        late.stderr.contains("has not stood still for 5 s") && late.stderr.contains(&format!("'{USER}'@")),
        "{late}"
    );
    shop.is_as_before()?;
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("no panic")?;
    shop.switch(&[], SWITCHED)?;
    shop.pair.assert_same_rows()
}

/// Two processes for the channel: the one that waits does not take it over from the one that a switch ends.
fn with_a_standby(kind: Kind) -> Result<()> {
    let mut shop = Shop::open(kind, kind)?;
    let first = shop.channel.take().context("the channel")?;
    first.terminate()?;
    first.wait()?;
    let relay = |name: &str| shop.pair.target.dir().join(name).display().to_string();
    let begin = |name: &str| {
        let (ends, relay) = (shop.ends(), relay(name));
        let mut arguments = vec!["replicate", "--standby", "--relay-dir", &relay];
        arguments.extend(ends.iter().map(String::as_str));
        Heddle::start(&arguments)
    };
    let mut active = begin("relay-1")?;
    active.wait_for_log("workers, policy")?;
    let mut waiting = begin("relay-2")?;
    waiting.wait_for_log("receives the source's log and waits")?;
    let run = shop.switch(&[], SWITCHED)?;
    ensure!(!run.stdout.contains("runs still"), "{run}");
    let ended = waiting.wait()?;
    ensure!(ended.status.code() == Some(REFUSED) && ended.stderr.contains("was switched"), "{ended}");
    active.wait()?;
    // Nothing of the two is in the way of the way back.
    shop.switch(&["--undo"], SWITCHED)?;
    Ok(())
}

e2e::tests! {
    with_a_standby_mysql: with_a_standby(MYSQL_9_7);
    with_a_standby_mariadb: with_a_standby(MARIADB_10_11);
    no_write_is_lost_mysql: no_write_is_lost(MYSQL_9_7, MYSQL_9_7);
    no_write_is_lost_mariadb: no_write_is_lost(MARIADB_10_11, MARIADB_10_11);
    no_write_is_lost_mysql_to_mariadb: no_write_is_lost(MYSQL_9_7, MARIADB_10_11);
    a_channel_that_stands_mysql: a_channel_that_stands(MYSQL_9_7);
    a_channel_that_stands_mariadb: a_channel_that_stands(MARIADB_10_11);
    signals_and_kills_mysql: signals_and_kills(MYSQL_9_7);
    signals_and_kills_mariadb: signals_and_kills(MARIADB_10_11);
    a_target_that_is_lost_mysql: a_target_that_is_lost(MYSQL_9_7);
    a_target_that_is_lost_mariadb: a_target_that_is_lost(MARIADB_10_11);
    a_source_that_is_lost_mysql: a_source_that_is_lost(MYSQL_9_7);
    a_source_that_is_lost_mariadb: a_source_that_is_lost(MARIADB_10_11);
    what_stands_in_the_way_mysql: what_stands_in_the_way(MYSQL_9_7);
    what_stands_in_the_way_mariadb: what_stands_in_the_way(MARIADB_10_11);
    the_user_closes_mysql: the_user_closes(MYSQL_9_7);
    the_user_closes_mariadb: the_user_closes(MARIADB_10_11);
    a_part_mysql: a_part(MYSQL_9_7);
    a_part_mariadb: a_part(MARIADB_10_11);
    writes_that_go_on: somebody_writes_on();
    #[ignore = "another version: scripts/nightly"]
    no_write_is_lost_mysql_5_7_to_9_7: no_write_is_lost("mysql-5.7.22".parse().expect("a server"), MYSQL_9_7);
    #[ignore = "another version: scripts/nightly"]
    no_write_is_lost_mariadb_to_11_4: no_write_is_lost(MARIADB_10_11, "mariadb-11.4".parse().expect("a server"));
}
