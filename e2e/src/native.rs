//! The servers' own replication, as the oracle of what a stream of events means and as the benchmark's rival.

use crate::server::{PASSWORD, Server, USER};
use anyhow::{Context, Result, bail};
use std::thread;
use std::time::{Duration, Instant};

/// How long a replica may take to catch up before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(900);
/// The same for one whose applier is waited for on the replica, which does not say that it has stopped.
const APPLIER_STUCK_AFTER: Duration = Duration::from_secs(240);

/// Makes `replica` replicate from the source's first event, by GTID; returns once its threads are started.
pub fn native_replica(source: &Server, replica: &Server) -> Result<()> {
    configure(source, replica)?;
    replica.execute(if replica.kind.is_mariadb() { "START SLAVE" } else { statement(replica, "START") })
}

/// All of `native_replica` but starting it.
pub fn configure(source: &Server, replica: &Server) -> Result<()> {
    let port = source.port;
    if replica.kind.is_mariadb() {
        return replica.execute(&format!(
            "SET GLOBAL gtid_slave_pos = ''; CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='{USER}', \
             master_password='{PASSWORD}', master_use_gtid=slave_pos, master_connect_retry=1{}",
            if takes_ssl_off(replica) { ", master_ssl=0" } else { "" }
        ));
    }
    if is_old_mysql(replica) {
        let key = if is_mysql_5(replica) { "" } else { ", get_master_public_key=1" };
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

/// As `configure`, by GTID or by file and position; with settings that differ from the defaults, so that it shows when they are lost.
pub fn configure_by(source: &Server, replica: &Server, by_gtid: bool) -> Result<()> {
    let (file, offset) = position(source)?;
    let by = match (replica.kind.is_mariadb(), by_gtid) {
        (true, true) => "master_use_gtid=slave_pos".to_owned(),
        (false, true) => "master_auto_position=1".to_owned(),
        (_, false) => at(replica, &file, offset),
    };
    if replica.kind.is_mariadb() {
        replica.execute(&format!("SET GLOBAL gtid_slave_pos = '{}'", gtid_start(source)?))?;
    }
    change_source(source, replica, &by)
}

/// All stays but the port.
pub fn configure_port(replica: &Server, port: u16) -> Result<()> {
    // Naming a port begins anew where no place is named, so the place is named again.
    let status = status(replica)?;
    let of = |names: [&str; 2]| {
        let found = status.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let is_by_gtid = if replica.kind.is_mariadb() {
        of(["Using_Gtid", "Using_Gtid"]) != "No"
    } else {
        of(["Auto_Position", "Auto_Position"]) == "1"
    };
    let mut place = String::new();
    if !is_by_gtid {
        let file = of(["Source_Log_File", "Master_Log_File"]);
        let offset = of(["Read_Source_Log_Pos", "Read_Master_Log_Pos"]);
        place = format!(", master_log_file='{file}', master_log_pos={offset}");
    }
    let old = replica.kind.is_mariadb() || is_old_mysql(replica);
    let no_tls = if takes_ssl_off(replica) || !old { ", master_ssl=0" } else { "" };
    let change = format!("CHANGE MASTER TO master_host='127.0.0.1', master_port={port}{place}{no_tls}");
    replica.execute(&if old {
        change
    } else {
        change.replace("CHANGE MASTER TO", "CHANGE REPLICATION SOURCE TO").replace("master_", "source_")
    })
}

/// As `configure_by`, from a place in the source's log.
pub fn configure_at(source: &Server, replica: &Server, file: &str, offset: u64) -> Result<()> {
    change_source(source, replica, &at(replica, file, offset))
}

fn at(replica: &Server, file: &str, offset: u64) -> String {
    let without_gtids = if replica.kind.is_mariadb() { "master_use_gtid=no" } else { "master_auto_position=0" };
    format!("{without_gtids}, master_log_file='{file}', master_log_pos={offset}")
}

fn change_source(source: &Server, replica: &Server, by: &str) -> Result<()> {
    let account = format!(
        "master_host='127.0.0.1', master_port={}, master_user='{USER}', master_password='{PASSWORD}'",
        source.port
    );
    let others = "master_connect_retry=1, master_heartbeat_period=3.5";
    if replica.kind.is_mariadb() {
        let ssl = if takes_ssl_off(replica) { ", master_ssl=0" } else { "" };
        return replica.execute(&format!("CHANGE MASTER TO {account}, {others}, {by}{ssl}"));
    }
    if is_old_mysql(replica) {
        let key = if is_mysql_5(replica) { "" } else { ", get_master_public_key=1" };
        return replica.execute(&format!("CHANGE MASTER TO {account}, {others}, {by}{key}"));
    }
    let modern = format!("CHANGE MASTER TO {account}, {others}, {by}, get_master_public_key=1, master_retry_count=77");
    replica.execute(&modern.replace("CHANGE MASTER TO", "CHANGE REPLICATION SOURCE TO").replace("master_", "source_"))
}

/// MariaDB: what the source has logged by now.
fn gtid_start(source: &Server) -> Result<String> {
    source.scalar("SELECT @@gtid_binlog_pos")
}

/// Since 11.4 a replica insists on TLS unless told otherwise.
fn takes_ssl_off(replica: &Server) -> bool {
    ["mariadb-11.4", "mariadb-11.8"].contains(&replica.kind.to_string().as_str())
}

/// Where a server's binary log ends.
pub fn position(server: &Server) -> Result<(String, u64)> {
    let rows =
        server.rows(if server.kind.lacks_old_words() { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" })?;
    match rows.first().map(Vec::as_slice) {
        Some([file, offset, ..]) => Ok((file.clone(), offset.parse().context("offset")?)),
        _ => bail!("no binary log on {}", server.kind),
    }
}

/// The GTIDs that a server has logged, in one line.
pub fn gtids(server: &Server) -> Result<String> {
    let variable = if server.kind.is_mariadb() { "@@gtid_binlog_pos" } else { "@@global.gtid_executed" };
    Ok(server.scalar(&format!("SELECT {variable}"))?.replace("\\n", "").replace('\n', ""))
}

fn is_old_mysql(server: &Server) -> bool {
    !server.kind.is_mariadb() && !server.kind.has_new_words()
}

/// Statements about a replica's threads, in the words of its version.
pub fn statement(replica: &Server, what: &str) -> &'static str {
    let old = replica.kind.is_mariadb() || is_old_mysql(replica);
    match (what, old) {
        ("STATUS", _) if replica.kind.is_mariadb() => "SHOW ALL SLAVES STATUS",
        ("STATUS", true) => "SHOW SLAVE STATUS",
        ("STATUS", false) => "SHOW REPLICA STATUS",
        ("STOP", true) => "STOP SLAVE",
        ("STOP", false) => "STOP REPLICA",
        ("STOP APPLIER", true) => "STOP SLAVE SQL_THREAD",
        ("STOP APPLIER", false) => "STOP REPLICA SQL_THREAD",
        ("START APPLIER", true) => "START SLAVE SQL_THREAD",
        ("START APPLIER", false) => "START REPLICA SQL_THREAD",
        ("START RECEIVER", true) => "START SLAVE IO_THREAD",
        ("START RECEIVER", false) => "START REPLICA IO_THREAD",
        (_, true) => "START SLAVE",
        (_, false) => "START REPLICA",
    }
}

pub fn start_native(replica: &Server) -> Result<()> {
    replica.execute(statement(replica, "START"))
}

pub fn stop_applier(replica: &Server) -> Result<()> {
    replica.execute(statement(replica, "STOP APPLIER"))
}

pub fn start_applier(replica: &Server) -> Result<()> {
    replica.execute(statement(replica, "START APPLIER"))
}

/// Starts the receiver of a replica that is configured, and waits until it has all that the source has logged by now.
pub fn receive_all(source: &Server, replica: &Server) -> Result<()> {
    let goal = position(source)?;
    replica.execute(statement(replica, "START RECEIVER"))?;
    let started = Instant::now();
    loop {
        let status = status(replica)?;
        let of = |names: [&str; 2]| {
            let found = status.iter().find(|(name, _)| names.contains(&name.as_str()));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let file = of(["Source_Log_File", "Master_Log_File"]);
        let offset = of(["Read_Source_Log_Pos", "Read_Master_Log_Pos"]);
        if file == goal.0 && offset.parse::<u64>().is_ok_and(|offset| offset >= goal.1) {
            return Ok(());
        }
        let error = of(["Last_IO_Error", "Last_IO_Error"]);
        if !error.is_empty() || started.elapsed() > STUCK_AFTER {
            bail!("{} does not receive the source's log: {error}", replica.kind);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts the applier of a replica that has received all that the source has logged by now, and waits until it has applied that: how long it took by the
/// replica's clock, without the time that clients take.
pub fn applier_time(source: &Server, replica: &Server) -> Result<Duration> {
    let (goal, wait) = if replica.kind.is_mariadb() {
        ("@@gtid_binlog_pos", "MASTER_GTID_WAIT")
    } else {
        ("REPLACE(@@global.gtid_executed, '\\n', '')", "WAIT_FOR_EXECUTED_GTID_SET")
    };
    let goal = source.scalar(&format!("SELECT {goal}"))?;
    let rows = replica.rows(&format!(
        "SELECT SYSDATE(6); {}; SELECT {wait}('{goal}', {}); SELECT SYSDATE(6)",
        statement(replica, "START APPLIER"),
        APPLIER_STUCK_AFTER.as_secs()
    ))?;
    let values: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next()).collect();
    let [began, done, ended] = values.as_slice() else { bail!("{} said {values:?}", replica.kind) };
    if done != "0" {
        let error = last_error(replica)?.unwrap_or_default();
        bail!("{} as native replica does not catch up: {error}", replica.kind);
    }
    let microseconds = replica.scalar(&format!("SELECT TIMESTAMPDIFF(MICROSECOND, '{began}', '{ended}')"))?;
    Ok(Duration::from_micros(microseconds.parse().with_context(|| microseconds.clone())?))
}

/// As `wait_caught_up`, for replicas without GTIDs.
pub fn wait_position(source: &Server, replica: &Server) -> Result<()> {
    let (file, offset) = position(source)?;
    let function =
        if is_old_mysql(replica) || replica.kind.is_mariadb() { "MASTER_POS_WAIT" } else { "SOURCE_POS_WAIT" };
    let started = Instant::now();
    loop {
        // NULL: the applier does not run; -1: not in this time.
        if !matches!(replica.scalar(&format!("SELECT {function}('{file}', {offset}, 1)"))?.as_str(), "NULL" | "-1") {
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

/// Knows no `GET_MASTER_PUBLIC_KEY`.
fn is_mysql_5(server: &Server) -> bool {
    server.kind.to_string().starts_with("mysql-5")
}

/// Waits until the replica has applied everything that the source has logged by now.
pub fn wait_caught_up(source: &Server, replica: &Server) -> Result<()> {
    let mariadb = replica.kind.is_mariadb();
    let goal = source.scalar(if mariadb {
        "SELECT @@gtid_binlog_pos"
    } else {
        "SELECT REPLACE(@@global.gtid_executed, '\\n', '')"
    })?;
    let question = if mariadb {
        format!("SELECT MASTER_GTID_WAIT('{goal}', 0.5)")
    } else if replica.kind.to_string().starts_with("mysql-5.6") {
        format!("SELECT 1 - GTID_SUBSET('{goal}', @@global.gtid_executed)")
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

/// Waits until the replica has stopped with an error. A part of what it failed at may have its GTID by then, so GTIDs do not say.
pub fn wait_stopped(replica: &Server) -> Result<()> {
    let started = Instant::now();
    loop {
        if let Some(error) = last_error(replica)? {
            eprintln!("{} as native replica stopped: {error}", replica.kind);
            return Ok(());
        }
        if started.elapsed() > STUCK_AFTER {
            bail!("{} as native replica does not stop", replica.kind);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// What it has stopped with. A receiver that tries again has not stopped.
fn last_error(replica: &Server) -> Result<Option<String>> {
    let status = status(replica)?;
    let tries_again =
        status.iter().any(|(name, value)| name.ends_with("_IO_Running") && value.eq_ignore_ascii_case("connecting"));
    let error = status.into_iter().find(|(name, value)| {
        (name == "Last_SQL_Error" || (name == "Last_IO_Error" && !tries_again)) && !value.is_empty()
    });
    Ok(error.map(|(_, value)| value))
}

/// Name and value of what the server says about its replication.
fn status(replica: &Server) -> Result<Vec<(String, String)>> {
    let output = replica
        .client(&["--vertical", "-e", statement(replica, "STATUS")])
        .output()
        .context("asking for the replica's state")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs = text.lines().filter_map(|line| line.trim_start().split_once(": "));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
}
