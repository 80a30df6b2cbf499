//! Ways to apply what a replica has missed, measured on a fresh copy of the state before it.

use super::stage::{DURABLE, Stage};
use crate::checksum::{contents, differences};
use crate::heddle::Heddle;
use crate::server::{Server, servers_script};
use crate::{native, wait_caught_up};
use anyhow::{Context, Result, ensure};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub enum Contender<'a> {
    /// The server's own replication, with these options on the replica.
    Native(&'a [&'a str]),
    /// The same without receiving, by the replica's own clock; with pages in memory.
    Applier(&'a [&'a str]),
    /// `mysqlbinlog FILES | mysql`
    Client,
    /// Heddle with these arguments.
    Heddle(&'a [&'a str]),
    /// The same, from the source's files, less what a run takes that has nothing to apply; with pages in memory.
    Files(&'a [&'a str]),
}

/// Applying all of a stage once.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub seconds: f64,
    /// Processor time of the target server.
    pub server_cpu: f64,
    /// Heddle's own, and the most memory it had, in bytes.
    pub heddle: Option<(f64, u64)>,
}

/// `options`: of the target, beside those that make it durable.
pub fn measure(stage: &Stage, contender: Contender<'_>, options: &[&str]) -> Result<Measured> {
    let target = target(stage, contender, options)?;
    let cpu_before = server_cpu(&target)?;
    let (time, heddle) = match contender {
        Contender::Native(_) => (with_native(stage, &target)?, None),
        Contender::Applier(_) => (with_applier(stage, &target)?, None),
        Contender::Client => (with_client(stage, &target)?, None),
        Contender::Heddle(more) => with_heddle(stage, &target, more)?,
        Contender::Files(more) => with_files(stage, &target, more)?,
    };
    let server_cpu = server_cpu(&target)? - cpu_before;
    let different = differences(&stage.wanted, &contents(&target)?);
    ensure!(different.is_empty(), "not equal at the end: {different:?}");
    Ok(Measured { seconds: time.as_secs_f64(), server_cpu, heddle })
}

/// A running server with the state before the workload, which knows nothing of the source yet.
pub fn target(stage: &Stage, contender: Contender<'_>, more: &[&str]) -> Result<Server> {
    let kind = stage.source.kind;
    let mut options = DURABLE.to_vec();
    options.extend(more);
    if let Contender::Native(native) | Contender::Applier(native) = contender {
        options.extend(native);
    }
    options.push(if kind.is_mariadb() { "--skip-slave-start" } else { "--skip-replica-start" });
    let target = Server::start_from(kind, &options, Some(&stage.start.data()))?;
    target.execute(if kind.is_mariadb() { "RESET MASTER" } else { "RESET BINARY LOGS AND GTIDS" })?;
    Ok(target)
}

/// Makes the target a native replica that goes on after what it has, and starts it.
pub fn start_native(stage: &Stage, target: &Server) -> Result<()> {
    configure_native(stage, target)?;
    native::start_native(target)
}

fn configure_native(stage: &Stage, target: &Server) -> Result<()> {
    native::configure(&stage.source, target)?;
    let variable = if target.kind.is_mariadb() { "gtid_slave_pos" } else { "gtid_purged" };
    target.execute(&format!("SET GLOBAL {variable} = '{}'", stage.gtids))
}

fn with_native(stage: &Stage, target: &Server) -> Result<Duration> {
    let started = Instant::now();
    start_native(stage, target)?;
    wait_caught_up(&stage.source, target)?;
    Ok(started.elapsed())
}

fn with_applier(stage: &Stage, target: &Server) -> Result<Duration> {
    configure_native(stage, target)?;
    native::receive_all(&stage.source, target)?;
    warm(target)?;
    native::applier_time(&stage.source, target)
}

/// Brings all tables into memory, as a replica that has run for a while has them.
fn warm(target: &Server) -> Result<()> {
    const TABLES: &str = "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables \
        WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', 'heddle')";
    let tables = target.rows(TABLES)?;
    let reads = tables.iter().filter_map(|row| row.first());
    let sql: String =
        reads.map(|table| format!("CHECKSUM TABLE {table} EXTENDED; SELECT COUNT(*) FROM {table};")).collect();
    if sql.is_empty() { Ok(()) } else { target.rows(&sql).map(|_| ()) }
}

fn with_client(stage: &Stage, target: &Server) -> Result<Duration> {
    let kind = target.kind.to_string();
    let mut reader = servers_script(&["run", &kind, "mysqlbinlog"]);
    if !target.kind.is_mariadb() {
        reader.arg("--skip-gtids");
    }
    let started = Instant::now();
    let mut reader = reader.args(&stage.logs).stdout(Stdio::piped()).spawn().context("starting mysqlbinlog")?;
    let events = reader.stdout.take().context("mysqlbinlog's output")?;
    let client = target.client(&["--binary-mode"]).stdin(events).output().context("starting the client")?;
    let elapsed = started.elapsed();
    ensure!(client.status.success(), "mysql: {}", String::from_utf8_lossy(&client.stderr));
    ensure!(reader.wait()?.success(), "mysqlbinlog failed");
    Ok(elapsed)
}

/// The arguments of a heddle that replicates from the stage's source into the target.
pub fn heddle_arguments<'a>(stage: &'a Stage, from: &'a str, to: &'a str, relay: &'a str) -> Vec<&'a str> {
    vec!["replicate", "--from", from, "--to", to, "--json", "--relay-dir", relay, "--start-gtid", &stage.gtids]
}

fn with_heddle(stage: &Stage, target: &Server, more: &[&str]) -> Result<(Duration, Option<(f64, u64)>)> {
    let (from, to, relay) =
        (stage.source.plain_url(), target.plain_url(), target.dir().join("relay").display().to_string());
    let mut line = heddle_arguments(stage, &from, &to, &relay);
    line.push("--until-end");
    line.extend(more);
    timed(&line)
}

fn timed(line: &[&str]) -> Result<(Duration, Option<(f64, u64)>)> {
    let started = Instant::now();
    let run = Heddle::start(line)?.wait()?.successful()?;
    let elapsed = started.elapsed();
    let summary = run.summary()?;
    let cpu = summary.get("cpu_seconds").and_then(serde_json::Value::as_f64).context("cpu_seconds")?;
    Ok((elapsed, Some((cpu, run.number("memory_bytes_max")?))))
}

fn with_files(stage: &Stage, target: &Server, more: &[&str]) -> Result<(Duration, Option<(f64, u64)>)> {
    let first = stage.logs.first().and_then(|path| path.file_name()).context("no log")?.to_string_lossy().into_owned();
    let (from, to, relay) = (
        stage.source.binlog_index().display().to_string(),
        target.plain_url(),
        target.dir().join("relay").display().to_string(),
    );
    let start = format!("{first}:4");
    let mut line = vec!["replicate", "--from", &from, "--to", &to, "--json", "--relay-dir", &relay];
    line.extend(more);
    let (nothing_left, first_time) = (line.clone(), ["--start", &start]);
    line.extend(first_time);
    warm(target)?;
    let (time, usage) = timed(&line)?;
    let nothing = timed(&nothing_left)?.0.min(timed(&nothing_left)?.0);
    let spent = time.checked_sub(nothing).filter(|spent| !spent.is_zero()).with_context(|| {
        format!("a run with nothing to apply took {nothing:?}, one with all of it {time:?}: too short to measure")
    })?;
    Ok((spent, usage))
}

/// Processor time that a server has taken since its start, in seconds: proc(5), `stat`.
fn server_cpu(server: &Server) -> Result<f64> {
    let pid = server.pid().context("the server does not run")?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Behind the name in parentheses comes field 3; user and system time are fields 14 and 15.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at - 3).and_then(|text| text.parse::<f64>().ok()).context("processor time");
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok((ticks(14)? + ticks(15)?) / per_second)
}
