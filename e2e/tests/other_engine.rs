//! Another engine that speaks the protocol, with its tables in memory, as the target of rows as SQL: what it does otherwise than MySQL is found out at the start, not by lost rows.
//! `scripts/tools fetch go-mysql-server` builds it.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::process::{Child, Command};

use anyhow::{Context, Result, ensure};
use e2e::heddle::replicate;
use e2e::refusal::refused_with_remedy;
use e2e::repository;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port};
use e2e::until;
use wire::{ConnectOptions, Connection};

/// The engine, until it is dropped: its tables go with it.
struct Engine {
    child: Child,
    port: u16,
}

impl Engine {
    fn start() -> Result<Self> {
        let port = free_port()?;
        let child = Command::new(repository().join("scripts/tools"))
            .args(["run", "go-mysql-server", &format!("127.0.0.1:{port}")])
            .spawn()
            .context("scripts/tools")?;
        let mut engine = Self { child, port };
        until("the engine listens (scripts/tools fetch go-mysql-server)", || {
            ensure!(engine.child.try_wait()?.is_none(), "the engine has ended");
            Ok(engine.connect().is_ok())
        })?;
        Ok(engine)
    }

    fn connect(&self) -> Result<Connection> {
        let options = ConnectOptions {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            user: USER.to_owned(),
            password: Some(PASSWORD.to_owned().into()),
            ..ConnectOptions::default()
        };
        Ok(Connection::connect(&options)?)
    }

    fn url(&self) -> String {
        format!("mysql://{USER}@127.0.0.1:{}", self.port)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Behind a statement that fails it goes on with the rest of the packet, so that `COMMIT` would be reached: a row that is missing would pass unseen. Heddle finds that out and changes nothing.
fn refused(kind: Kind) -> Result<()> {
    let (source, engine) = (Server::start(kind, &[])?, Engine::start()?);
    source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(40)); INSERT INTO d.t VALUES (1, 'a')",
    )?;
    let relay = source.dir().join("relay").display().to_string();
    for (rows, words) in
        [("sql", "what comes behind a statement that failed is executed there"), ("binlog", "it takes no row events")]
    {
        let more = ["--rows", rows, "--workers", "1", "--until-end", "--json", "--relay-dir", &relay];
        refused_with_remedy(
            &replicate(&source.url(), &engine.url(), &more)?,
            &["is neither MySQL nor MariaDB", words],
        )?;
    }
    let made = engine
        .connect()?
        .scalar("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN ('d', 'heddle')")?;
    ensure!(made.as_deref() == Some("0"), "something was made: {made:?}");
    Ok(())
}

e2e::tests! {
    #[ignore = "scripts/nightly"] refused_from_mysql: refused(MYSQL_9_7);
    #[ignore = "scripts/nightly"] refused_from_mariadb: refused(MARIADB_10_11);
}
