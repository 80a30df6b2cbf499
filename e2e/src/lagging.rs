//! A replica that lags behind a source which is being written, its own replication before and after: what tests of rescues begin and end with.

use std::thread;

use anyhow::{Context, Result, ensure};

use crate::checksum::{assert_equal, contents, differences};
use crate::heddle::{Heddle, Run, heddle};
use crate::native::{configure_by, start_native, statement, stop_applier, wait_caught_up, wait_position};
use crate::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use crate::sysbench::{self, Load};

pub const BEHIND: Load = Load { tables: 4, rows: 500, threads: 4, events: 2500, seconds: 0 };
/// All the while.
pub const MEANWHILE: Load = Load { tables: 4, rows: 500, threads: 2, events: 0, seconds: 8 };

/// How the replica follows its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    Gtid,
    /// File and position, GTIDs on all the same.
    File,
    /// MySQL with gtid_mode=OFF.
    FileOnly,
}

pub const NO_GTIDS: [&str; 2] = ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"];

pub struct Lagging {
    pub source: Server,
    pub replica: Server,
    pub relay: String,
    pub by: By,
}

impl Lagging {
    /// Both servers, with native replication running and sysbench's tables on both.
    pub fn start(kind: Kind, by: By, options: &[&str]) -> Result<Lagging> {
        let lagging = Lagging::empty(kind, by, options)?;
        lagging.fill()?;
        Ok(lagging)
    }

    pub fn fill(&self) -> Result<()> {
        sysbench::prepare(&self.source, "oltp_write_only", BEHIND)?;
        self.caught_up()
    }

    /// The same without any tables.
    pub fn empty(kind: Kind, by: By, options: &[&str]) -> Result<Lagging> {
        let mut common = vec!["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
        if by == By::FileOnly {
            common.extend(NO_GTIDS);
        }
        let replica_options: Vec<&str> = common.iter().chain(options).copied().collect();
        let (source, replica) = Server::start_two((kind, &common), (kind, &replica_options))?;
        let relay = replica.dir().join("heddle-relay").display().to_string();
        let lagging = Lagging { source, replica, relay, by };
        configure_by(&lagging.source, &lagging.replica, by == By::Gtid)?;
        start_native(&lagging.replica)?;
        Ok(lagging)
    }

    pub fn caught_up(&self) -> Result<()> {
        match self.by {
            By::FileOnly => wait_position(&self.source, &self.replica),
            By::Gtid | By::File => wait_caught_up(&self.source, &self.replica),
        }
    }

    /// Puts the replica behind; its applier is stopped.
    pub fn fall_behind(&self, definitions: u32) -> Result<()> {
        stop_applier(&self.replica)?;
        thread::scope(|scope| {
            let defining = scope.spawn(move || define(&self.source, definitions));
            sysbench::run(&self.source, "oltp_write_only", BEHIND)?;
            defining.join().map_err(|_| anyhow::anyhow!("the thread with definitions ended"))?
        })
    }

    pub fn arguments<'a>(&'a self, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec!["rescue", url, "--json", "--relay-dir", &self.relay];
        arguments.extend(more);
        arguments
    }

    pub fn rescue(&self, more: &[&str]) -> Result<Run> {
        heddle(&self.arguments(&self.replica.url(), more))
    }

    pub fn begin(&self, more: &[&str]) -> Result<Heddle> {
        Heddle::start(&self.arguments(&self.replica.url(), more))
    }

    /// Native replication goes on by itself and ends with what the source has; nothing of heddle is left.
    pub fn as_before(&self, settings: &str) -> Result<()> {
        self.caught_up().context("native replication after the hand-back")?;
        same(&self.source, &self.replica)?;
        let left =
            self.replica.scalar("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name='heddle'")?;
        ensure!(left == "0", "heddle's bookkeeping is still there");
        let now = self.settings()?;
        ensure!(now == settings, "native replication's settings were\n{settings}\nand are\n{now}");
        let (theirs, ours) = (gtids(&self.source, Role::Source)?, gtids(&self.replica, Role::Replica)?);
        ensure!(theirs == ours, "the source has the GTIDs {theirs}, the replica {ours}");
        Ok(())
    }

    /// What an administrator has set, as the server's client shows it.
    pub fn settings(&self) -> Result<String> {
        let output = self.replica.client(&["--vertical", "-e", statement(&self.replica, "STATUS")]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let kept = [
            "_Host:",
            "_User:",
            "_Port:",
            "Retry",
            "SSL",
            "Delay:",
            "Auto_Position",
            "Using_Gtid",
            "heartbeat_period",
            "Bind",
        ];
        let mut lines: Vec<String> =
            text.lines().filter(|line| kept.iter().any(|kept| line.contains(kept))).map(str::to_owned).collect();
        lines.retain(|line| !line.contains("Remaining"));
        if !self.replica.kind.is_mariadb() {
            let heartbeat = "SELECT HEARTBEAT_INTERVAL FROM performance_schema.replication_connection_configuration";
            lines.push(self.replica.scalar(heartbeat)?);
            lines.push(self.replica.scalar("SELECT @@global.super_read_only, @@global.read_only")?);
        }
        Ok(lines.join("\n"))
    }
}

pub fn same(source: &Server, replica: &Server) -> Result<()> {
    if [MYSQL_9_7, MARIADB_10_11].contains(&source.kind) {
        return assert_equal(source, replica);
    }
    // Definitions are asked for in SQL that older servers lack.
    let differing = differences(&contents(source)?, &contents(replica)?);
    ensure!(differing.is_empty(), "source and replica differ: {differing:?}");
    Ok(())
}

/// Whose GTIDs are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Source,
    Replica,
}

/// What a server has, by its own account. MariaDB: the last of each domain.
pub fn gtids(server: &Server, role: Role) -> Result<String> {
    let variable = match (server.kind.is_mariadb(), role) {
        (true, Role::Replica) => "@@gtid_slave_pos",
        (true, Role::Source) => "@@gtid_binlog_pos",
        (false, _) => "@@gtid_executed",
    };
    let text = server.scalar(&format!("SELECT {variable}"))?.replace(['\n', ' '], "").replace("\\n", "");
    // MariaDB names the domains in any order.
    let mut all: Vec<&str> = text.split(',').collect();
    all.sort_unstable();
    Ok(all.join(","))
}

/// Definitions beside the rows: none may be lost or run twice.
fn define(server: &Server, rounds: u32) -> Result<()> {
    server.execute("CREATE DATABASE IF NOT EXISTS defs")?;
    for i in 0..rounds {
        server.execute(&format!(
            "CREATE TABLE defs.t{i} (id INT PRIMARY KEY, a INT); INSERT INTO defs.t{i} VALUES (1, {i}); ALTER TABLE defs.t{i} ADD COLUMN b INT DEFAULT {i}; \
             INSERT INTO defs.t{i} VALUES (2, 2, 2); ALTER TABLE defs.t{i} DROP COLUMN a; UPDATE defs.t{i} SET b = b + 1; \
             DROP TABLE IF EXISTS defs.r{i}; RENAME TABLE defs.t{i} TO defs.r{i};"
        ))?;
    }
    Ok(())
}

pub fn outcome(run: &Run) -> Result<String> {
    Ok(run.summary()?.get("outcome").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned())
}
