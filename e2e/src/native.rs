//! The servers' own replication, as the oracle of what a stream of events means and as the benchmark's rival.

use crate::server::{PASSWORD, Server, USER};
use anyhow::{Context, Result, bail};
use std::thread;
use std::time::{Duration, Instant};

/// How long a replica may take to catch up before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(900);

/// Makes `replica` replicate from the source's first event, by GTID; returns once its threads are started.
pub fn native_replica(source: &Server, replica: &Server) -> Result<()> {
    configure(source, replica)?;
    replica.execute(if replica.kind.is_mariadb() { "START SLAVE" } else { start_statement(replica) })
}

/// All of `native_replica` but starting it.
pub fn configure(source: &Server, replica: &Server) -> Result<()> {
    let port = source.port;
    if replica.kind.is_mariadb() {
        return replica.execute(&format!(
            "SET GLOBAL gtid_slave_pos = ''; CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='{USER}', \
             master_password='{PASSWORD}', master_use_gtid=slave_pos, master_connect_retry=1"
        ));
    }
    if says_master(replica) {
        let key = if replica.kind.to_string().starts_with("mysql-5") { "" } else { ", get_master_public_key=1" };
        return replica.execute(&format!(
            "CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='{USER}', master_password='{PASSWORD}', \
             master_auto_position=1{key}"
        ));
    }
    replica.execute(&format!(
        "CHANGE REPLICATION SOURCE TO source_host='127.0.0.1', source_port={port}, source_user='{USER}', source_password='{PASSWORD}', \
         source_auto_position=1, get_source_public_key=1, source_connect_retry=1"
    ))
}

/// Older than 8.0.22.
fn says_master(server: &Server) -> bool {
    ["mysql-5.6.14", "mysql-5.7.22", "mysql-8.0.15"].contains(&server.kind.to_string().as_str())
}

fn start_statement(replica: &Server) -> &'static str {
    if says_master(replica) { "START SLAVE" } else { "START REPLICA" }
}

/// Waits until the replica has applied everything that the source has logged by now.
pub fn wait_caught_up(source: &Server, replica: &Server) -> Result<()> {
    let mariadb = replica.kind.is_mariadb();
    let goal = source.scalar(if mariadb {
        "SELECT @@gtid_binlog_pos"
    } else {
        "SELECT REPLACE(@@gtid_executed, '\\n', '')"
    })?;
    let question = if mariadb {
        format!("SELECT MASTER_GTID_WAIT('{goal}', 0.5)")
    } else {
        format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{goal}', 0.5)")
    };
    let started = Instant::now();
    loop {
        if replica.scalar(&question)? == "0" {
            return Ok(());
        }
        if let Some(error) = last_error(replica)? {
            bail!("{} as native replica stopped: {error}", replica.kind);
        }
        if started.elapsed() > STUCK_AFTER {
            bail!("{} as native replica does not catch up", replica.kind);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn last_error(replica: &Server) -> Result<Option<String>> {
    let statement =
        if replica.kind.is_mariadb() || says_master(replica) { "SHOW SLAVE STATUS" } else { "SHOW REPLICA STATUS" };
    let output = replica.client(&["--vertical", "-e", statement]).output().context("asking for the replica's state")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = text
        .lines()
        .filter_map(|line| line.trim().split_once(": "))
        .find(|(name, value)| (*name == "Last_SQL_Error" || *name == "Last_IO_Error") && !value.is_empty());
    Ok(error.map(|(_, value)| value.to_owned()))
}
