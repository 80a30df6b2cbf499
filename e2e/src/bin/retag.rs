//! A native replica catches up from the source, then from `heddle serve`, side by side, each from the same state. Replicas are durable. With `--retag` also what making the tags costs: a
//! mirror of the same log with and without them.
//!
//! retag-bench [--stream retag|group] [--source mysql-8.0.15] [--replica mysql-8.0.15] [--sessions 1] [--transactions 200000] [--rounds 3] [--workers 8,16,32] [--disk slow] [--mode conservative] [--hot 0] [--load updates|parents|SCRIPT]
//!
//! `--stream`: what `heddle serve` does, `--retag writeset` or `--group auto`. `--disk slow`: each fsync of the replica takes 2 ms longer. `--mode`: slave_parallel_mode of a MariaDB replica. `--hot 30`: so many of a
//! hundred transactions are on four rows. `--load parents`: the tables are parents of foreign keys, for which a source's own write sets do not hold; `--load oltp_write_only`: a script of
//! sysbench, or a file. Prints rows for bench/results/benchmarks.md: medians.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::bench::{median, slow_disk};
use e2e::checksum::{contents, differences};
use e2e::heddle::heddle;
use e2e::native::{statement, wait_caught_up};
use e2e::served::{Ask, By, Served, attach};
use e2e::server::{Kind, Server, USER, free_port};
use e2e::sysbench;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const TABLES: u32 = 8;
const ROWS: u32 = 50_000;
/// Statements that are sent at once.
const AT_ONCE: usize = 10_000;

/// What is changed.
#[derive(Clone, PartialEq)]
enum Load {
    Updates,
    /// A source that tags by write sets takes their order of commit.
    Parents,
    /// Of sysbench.
    Script(String),
}

#[derive(Clone, Copy, PartialEq)]
enum Stream {
    Retag,
    Group,
}

impl Stream {
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Retag => &["--retag", "writeset"],
            Self::Group => &["--group", "auto"],
        }
    }
}

struct Arguments {
    stream: Stream,
    sessions: usize,
    source: Kind,
    replica: Kind,
    transactions: usize,
    rounds: usize,
    workers: Vec<u32>,
    is_slow: bool,
    mode: String,
    hot: u32,
    load: Load,
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        stream: Stream::Retag,
        sessions: 1,
        source: "mysql-8.0.15".parse()?,
        replica: "mysql-8.0.15".parse()?,
        transactions: 200_000,
        rounds: 3,
        workers: vec![8, 16, 32],
        is_slow: false,
        mode: "conservative".to_owned(),
        hot: 0,
        load: Load::Updates,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().with_context(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--stream" if value == "retag" => parsed.stream = Stream::Retag,
            "--stream" if value == "group" => parsed.stream = Stream::Group,
            "--sessions" => parsed.sessions = value.parse()?,
            "--source" => parsed.source = value.parse()?,
            "--replica" => parsed.replica = value.parse()?,
            "--transactions" => parsed.transactions = value.parse()?,
            "--rounds" => parsed.rounds = value.parse()?,
            "--workers" => parsed.workers = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--mode" => parsed.mode = value,
            "--hot" => parsed.hot = value.parse()?,
            "--load" if value == "updates" => parsed.load = Load::Updates,
            "--load" if value == "parents" => parsed.load = Load::Parents,
            "--load" => parsed.load = Load::Script(value),
            "--disk" if value == "slow" => parsed.is_slow = true,
            _ => bail!("{name} {value}: see bench/retag --help"),
        }
    }
    Ok(parsed)
}

fn fill(source: &Server, arguments: &Arguments) -> Result<()> {
    if let Load::Script(name) = &arguments.load {
        return sysbench::prepare(source, name, sysbench_load(arguments));
    }
    source.execute("CREATE DATABASE shop")?;
    for table in 1..=TABLES {
        source.execute(&format!(
            "CREATE TABLE shop.t{table} (id INT PRIMARY KEY, k INT NOT NULL, v CHAR(100) NOT NULL)"
        ))?;
        let mut sql = String::new();
        for first in (1..=ROWS).step_by(5_000) {
            let rows: Vec<String> = (first..first + 5_000).map(|id| format!("({id},{id},'row {id}')")).collect();
            write!(sql, "INSERT INTO shop.t{table} VALUES {};", rows.join(","))?;
        }
        source.execute(&sql)?;
        if arguments.load == Load::Parents {
            source.execute(&format!(
                "CREATE TABLE shop.c{table} (id INT PRIMARY KEY, t INT NOT NULL, FOREIGN KEY (t) REFERENCES shop.t{table} (id))"
            ))?;
        }
    }
    Ok(())
}

fn sysbench_load(arguments: &Arguments) -> sysbench::Load {
    let (threads, events) = (arguments.sessions as u32, arguments.transactions as u64);
    sysbench::Load { tables: TABLES, rows: ROWS, threads, events, seconds: 0 }
}

/// What the replica is behind by.
fn load(source: &Server, arguments: &Arguments) -> Result<()> {
    match &arguments.load {
        Load::Script(name) => sysbench::run(source, name, sysbench_load(arguments)),
        Load::Updates | Load::Parents => update(source, arguments),
    }
}

/// Single rows, each in a transaction.
fn update(source: &Server, arguments: &Arguments) -> Result<()> {
    let each = arguments.transactions / arguments.sessions;
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..arguments.sessions)
            .map(|session| scope.spawn(move || update_in_session(source, session, each, arguments.hot)))
            .collect();
        sessions
            .into_iter()
            .try_for_each(|session| session.join().map_err(|_| anyhow::anyhow!("a session panicked"))?)
    })
}

fn update_in_session(source: &Server, session: usize, transactions: usize, hot: u32) -> Result<()> {
    let mut random = StdRng::seed_from_u64(7 + session as u64);
    for first in (0..transactions).step_by(AT_ONCE) {
        let mut sql = String::new();
        for number in first..transactions.min(first + AT_ONCE) {
            let (mut table, mut id) = (random.random_range(1..=TABLES), random.random_range(1..=ROWS));
            if random.random_range(0..100) < hot {
                (table, id) = (1, random.random_range(1..=4));
            }
            write!(sql, "UPDATE shop.t{table} SET v = 'change {number}' WHERE id = {id};")?;
        }
        source.execute(&sql)?;
    }
    Ok(())
}

/// How long a replica takes that begins with this state.
fn catch_up(arguments: &Arguments, source: &Server, state: &Path, port: u16, options: &[&str]) -> Result<Duration> {
    let replica = Server::start_from(arguments.replica, options, Some(state))?;
    let began = Instant::now();
    attach(&replica, Ask::new(port, By::Gtid))?;
    wait_caught_up(source, &replica).with_context(|| replica.error_log())?;
    let time = began.elapsed();
    let differences = differences(&contents(source)?, &contents(&replica)?);
    ensure!(differences.is_empty(), "{differences:?}");
    Ok(time)
}

fn parallel(arguments: &Arguments, workers: u32) -> Vec<String> {
    if arguments.replica.is_mariadb() {
        let mode = format!("--slave-parallel-mode={}", arguments.mode);
        return vec![format!("--slave-parallel-threads={workers}"), mode];
    }
    if arguments.replica.to_string().starts_with("mysql-9") {
        return vec![format!("--replica-parallel-workers={workers}")];
    }
    vec![format!("--slave-parallel-workers={workers}"), "--slave-parallel-type=LOGICAL_CLOCK".to_owned()]
}

fn median_seconds(times: Vec<Duration>) -> f64 {
    median(times.into_iter().map(|time| time.as_secs_f64()))
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let is_retag = arguments.stream == Stream::Retag;
    let hasty = &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"];
    let (source, first) = Server::start_two((arguments.source, hasty), (arguments.replica, &[]))?;
    fill(&source, &arguments)?;
    attach(&first, Ask::new(source.port, By::Gtid))?;
    wait_caught_up(&source, &first)?;
    first.execute(statement(&first, "STOP"))?;
    first.stop()?;
    // What makes the tables is not what is measured.
    source.execute("FLUSH BINARY LOGS")?;
    let dir = tempfile::tempdir_in(std::env::var("HEDDLE_E2E_DIR").context("HEDDLE_E2E_DIR")?)?;
    let before = is_retag.then(|| mirroring(&arguments, &source, dir.path())).transpose()?;
    let began = Instant::now();
    load(&source, &arguments)?;
    source.execute("FLUSH BINARY LOGS")?;
    eprintln!("{} transactions in {:?}", arguments.transactions, began.elapsed());
    if let Some(before) = before {
        print_costs(before, mirroring(&arguments, &source, dir.path())?);
    }

    let stream = arguments.stream.options();
    let served = Served::start(source.port, &dir.path().join("served"), free_port()?, stream)?;
    let slow = arguments.is_slow.then(|| slow_disk::option(dir.path())).transpose()?;
    println!(
        "| replica | from the source | from `heddle serve {}` | times as fast |\n|---|---:|---:|---:|",
        stream.join(" ")
    );
    for workers in &arguments.workers {
        let parallel = parallel(&arguments, *workers);
        let mut options = vec!["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
        options.extend(parallel.iter().map(String::as_str));
        options.extend(slow.as_deref());
        let [mut direct, mut retagged] = [Vec::new(), Vec::new()];
        for round in 0..arguments.rounds {
            direct.push(catch_up(&arguments, &source, &first.data(), source.port, &options)?);
            retagged.push(catch_up(&arguments, &source, &first.data(), served.port, &options)?);
            eprintln!("{workers} workers, round {round}: {:?} {:?}", direct.last(), retagged.last());
        }
        let (direct, retagged) = (median_seconds(direct), median_seconds(retagged));
        println!(
            "| {}, {workers} workers | {direct:.1} s | {retagged:.1} s | {:.1} |",
            arguments.replica,
            direct / retagged
        );
    }
    served.kill().map(drop)
}

/// Seconds that a mirror of all that the source has takes, without and with tags.
fn mirroring(arguments: &Arguments, source: &Server, dir: &Path) -> Result<[f64; 2]> {
    let [mut plain, mut tagged] = [Vec::new(), Vec::new()];
    for round in 0..arguments.rounds {
        for (more, times) in [(&[][..], &mut plain), (&["--retag", "writeset"][..], &mut tagged)] {
            let folder = dir.join(format!("mirror-{round}-{}", more.len())).display().to_string();
            let (from, listen) = (source.plain_url(), format!("127.0.0.1:{}", free_port()?));
            let base = [
                "serve",
                "--from",
                &from,
                "--dir",
                &folder,
                "--listen",
                &listen,
                "--replica-user",
                USER,
                "--until-end",
            ];
            let began = Instant::now();
            heddle(&[&base[..], more].concat())?.successful()?;
            times.push(began.elapsed());
            std::fs::remove_dir_all(&folder)?;
        }
    }
    Ok([median_seconds(plain), median_seconds(tagged)])
}

/// What starting takes, and what is before the load, is in both.
fn print_costs(before: [f64; 2], after: [f64; 2]) {
    let [plain, tagged] = [after[0] - before[0], after[1] - before[1]];
    println!(
        "Mirroring it: {:.2} s; with tags: {:.2} s. Without what comes before it, {:.2} and {:.2} s: {plain:.2} and {tagged:.2} s, {:.0} % more.\n",
        after[0],
        after[1],
        before[0],
        before[1],
        (tagged / plain - 1.0) * 100.0
    );
}
