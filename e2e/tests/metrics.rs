//! `--http`: the metrics of a running channel say what is so: when it keeps up, when the target holds a row, when the source is gone.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::heddle::Heddle;
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, free_port};
use rustix::process::Signal;

const ROWS: u64 = 300;

/// `/metrics`, as Prometheus would read it.
struct Metrics(Vec<(String, f64)>);

impl Metrics {
    fn read(port: u16) -> Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        ensure!(answer.trim_end().ends_with("# EOF"), "cut: {answer}");
        let lines = answer.lines().filter(|line| line.starts_with("heddle_"));
        let value = |line: &str| {
            let (name, value) = line.rsplit_once(' ').context("a line without a value")?;
            Ok((name.to_owned(), value.parse::<f64>().with_context(|| line.to_owned())?))
        };
        Ok(Self(lines.map(value).collect::<Result<_>>()?))
    }

    /// All samples whose name and labels contain these.
    fn sum(&self, name: &str, label: &str) -> Option<f64> {
        let is_it =
            |key: &str| key.strip_prefix(name).is_some_and(|labels| labels.starts_with('{') && labels.contains(label));
        let found: Vec<f64> = self.0.iter().filter(|(key, _)| is_it(key)).map(|(_, value)| *value).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }

    fn one(&self, name: &str) -> Result<f64> {
        self.sum(name, "channel=\"default\"").with_context(|| format!("there is no {name}: {:?}", self.0))
    }
}

/// Until the metrics say so.
fn until(port: u16, what: &str, is_so: impl Fn(&Metrics) -> Result<bool>) -> Result<Metrics> {
    let since = Instant::now();
    loop {
        let metrics = Metrics::read(port)?;
        if is_so(&metrics)? {
            return Ok(metrics);
        }
        ensure!(since.elapsed() < Duration::from_secs(60), "{what}: the metrics never say so: {:?}", metrics.0);
        thread::sleep(Duration::from_millis(50));
    }
}

fn metrics(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT)")?;
    let port = free_port()?;
    let mut running = pair.begin(&["--workers", "3", "--http", &format!("127.0.0.1:{port}")])?;
    running.wait_for_log("metrics at http://")?;
    let inserts: Vec<String> = (0..ROWS).map(|id| format!("INSERT INTO d.t VALUES ({id}, 0)")).collect();
    pair.source.execute(&inserts.join(";"))?;

    let all = ROWS as f64 + 2.0;
    let now = until(port, "all is applied", |now| Ok(now.one("heddle_transactions_total")? >= all))?;
    ensure!(now.one("heddle_transactions_total")? == all, "{:?}", now.0);
    ensure!(now.one("heddle_rows_total")? == ROWS as f64, "{:?}", now.0);
    ensure!(now.sum("heddle_barriers_total", "cause=\"ddl\"") == Some(2.0), "{:?}", now.0);
    ensure!(now.one("heddle_worker_transactions_total")? == all, "the workers' sum: {:?}", now.0);
    ensure!(now.one("heddle_group_transactions_sum")? == all, "the groups' sum: {:?}", now.0);
    ensure!(now.one("heddle_group_seconds_count")? == now.one("heddle_group_transactions_count")?, "{:?}", now.0);
    ensure!(now.one("heddle_workers")? == 3.0 && now.sum("heddle_worker_busy_seconds_total", "worker=\"2\"").is_some());
    ensure!(now.one("heddle_received_bytes_total")? > 0.0 && now.one("heddle_committed_timestamp_seconds")? > 1.7e9);
    if kind.is_mariadb() {
        ensure!(now.one("heddle_source_group_transactions_sum")? >= ROWS as f64, "{:?}", now.0);
    } else {
        ensure!(now.one("heddle_source_tagged_transactions_total")? >= ROWS as f64, "{:?}", now.0);
        ensure!(now.one("heddle_source_amil")? >= 1.0, "{:?}", now.0);
    }
    until(
        port,
        "caught up",
        |now| Ok(now.one("heddle_lag_seconds")? == 0.0 && now.one("heddle_workers_busy")? == 0.0),
    )?;
    until(port, "the relay log is on the disk", |now| Ok(now.one("heddle_relay_sync_seconds_count")? > 0.0))?;
    let idle = |now: &Metrics| now.sum("heddle_workers_idle_seconds_total", "cause=\"nothing_queued\"");
    let before = idle(&Metrics::read(port)?);
    until(port, "idle workers get older", |now| Ok(idle(now) > before))?;

    // A client of the target holds a row.
    let mut client = pair.target.connect()?;
    client.execute("BEGIN")?;
    client.execute("SELECT * FROM d.t WHERE id = 7 FOR UPDATE")?;
    pair.source.execute("UPDATE d.t SET n = 1 WHERE id = 7")?;
    let held = until(port, "a worker waits", |now| {
        Ok(now.sum("heddle_worker_group_age_seconds", "worker").is_some_and(|age| age > 1.0))
    })?;
    ensure!(held.one("heddle_workers_busy")? == 1.0 && held.one("heddle_behind_transactions")? == 1.0, "{:?}", held.0);
    ensure!(held.one("heddle_lag_seconds")? > 0.0, "{:?}", held.0);
    client.execute("ROLLBACK")?;
    until(port, "caught up again", |now| Ok(now.one("heddle_lag_seconds")? == 0.0))?;
    pair.assert_equal()?;

    stages(&pair, port, &running)?;

    pair.source.stop()?;
    let lost = until(port, "the source is gone", |now| Ok(now.one("heddle_source_lost_seconds")? > 0.0))?;
    ensure!(lost.sum("heddle_lag_seconds", "").is_none(), "a lag that nobody can know: {:?}", lost.0);
    if kind.is_mariadb() {
        // The line that comes every 10 s says the trouble.
        running.wait_for_log("next try in ")?;
        let log = running.log();
        let line = log.lines().find(|line| line.contains("next try in ")).context("the line")?;
        ensure!(line.contains("WARN") && line.contains("The source can not be reached since "), "{line}");
    }
    running.terminate()?;
    running.wait()?.successful()?;
    ensure!(TcpStream::connect(("127.0.0.1", port)).is_err(), "somebody still listens");
    Ok(())
}

/// What has not passed a stage is what the source has sent less what has passed it, whatever the source's files are called.
fn stages(pair: &Pair, port: u16, running: &Heddle) -> Result<()> {
    const BEHIND: &str = "heddle_stage_behind_transactions";
    const STAGES: [&str; 3] = ["scheduled", "applied", "committed"];
    let stage = |now: &Metrics, stage: &str| {
        now.sum(BEHIND, &format!("stage=\"{stage}\"")).with_context(|| format!("no {stage}: {:?}", now.0))
    };
    let change = |ids: std::ops::Range<u32>| -> Result<()> {
        let changes: Vec<String> =
            ids.map(|id| format!("UPDATE d.t SET n = n + 1 WHERE id = {}", u64::from(id) % ROWS)).collect();
        pair.source.execute(&changes.join(";"))
    };
    pair.source.execute("FLUSH BINARY LOGS")?;
    let before = Metrics::read(port)?.one("heddle_received_transactions_total")?;
    running.signal(Signal::USR1)?;
    until(port, "paused", |now| Ok(now.one("heddle_paused")? == 1.0))?;
    change(0..20)?;
    pair.source.execute("FLUSH BINARY LOGS")?;
    change(20..57)?;
    let received = |now: &Metrics| Ok(now.one("heddle_received_transactions_total")? == before + 57.0);
    let paused = until(port, "57 are received", received)?;
    for name in STAGES {
        ensure!(stage(&paused, name)? == 57.0, "{name}: {:?}", paused.0);
    }
    ensure!(paused.one("heddle_lag_seconds")? >= 0.0, "{:?}", paused.0);
    running.signal(Signal::USR2)?;
    let none = |now: &Metrics| STAGES.iter().try_fold(true, |none, name| Ok(none && stage(now, name)? == 0.0));
    until(port, "nothing is behind", none)?;

    thread::scope(|scope| -> Result<()> {
        let load = scope.spawn(|| (0..8).try_for_each(|round| change(round * 500..(round + 1) * 500)));
        while !load.is_finished() {
            let now = Metrics::read(port)?;
            let left = now.one("heddle_received_transactions_total")? - now.one("heddle_transactions_total")?;
            let (scheduled, committed) = (stage(&now, "scheduled")?, stage(&now, "committed")?);
            // What is counted at one moment was counted some groups apart.
            ensure!((committed - left).abs() < 300.0 && scheduled <= committed, "{left} are left: {:?}", now.0);
            thread::sleep(Duration::from_millis(20));
        }
        load.join().expect("the load")
    })?;
    let rest = until(port, "nothing is behind again", none)?;
    ensure!(rest.one("heddle_caught_up_in_seconds")? == 0.0, "{:?}", rest.0);
    Ok(())
}

#[test]
fn mariadb_metrics() -> Result<()> {
    metrics(MARIADB_10_11)
}

#[test]
fn mysql_metrics() -> Result<()> {
    metrics(MYSQL_9_7)
}
