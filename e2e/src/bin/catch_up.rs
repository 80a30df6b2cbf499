//! Catching up: a source makes a workload, then native replicas and heddle apply it in turn, each on a fresh copy of the
//! same start, all fully durable. Prints and writes a table of transactions per second; checks that all hold the same.
//!
//! Arguments: `--transactions N` (default 20000), `--sessions N` (16), `--tables N` (8), `--rows N` (50000),
//! `--script NAME` (sysbench's, default oltp_update_non_index), `--servers NAME,…`, `--only TEXT` (rivals whose name holds
//! it), `--repeat N` (the median counts), `--output FILE`.

use anyhow::{Context, Result, bail, ensure};
use e2e::checksum::{Checksums, contents, differences};
use e2e::heddle::Heddle;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load};
use e2e::{native, wait_caught_up};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A commit that was answered survives a power failure: on every server, native or heddle's.
const DURABLE: [&str; 4] = [
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=1G",
    "--innodb-flush-method=O_DIRECT",
];

/// One way to catch up.
#[derive(Clone, Copy)]
enum Rival {
    /// The server's own replication with these options on the replica.
    Native(&'static [&'static str]),
    /// Heddle with these arguments.
    Heddle(&'static [&'static str]),
}

fn rivals(kind: Kind) -> Vec<(&'static str, Rival)> {
    let mut list: Vec<(&'static str, Rival)> = if kind.is_mariadb() {
        vec![
            ("native, serial", Rival::Native(&["--slave-parallel-threads=0"])),
            (
                "native, conservative, 16 threads",
                Rival::Native(&["--slave-parallel-threads=16", "--slave-parallel-mode=conservative"]),
            ),
            (
                "native, optimistic, 16 threads",
                Rival::Native(&["--slave-parallel-threads=16", "--slave-parallel-mode=optimistic"]),
            ),
            (
                "native, aggressive, 16 threads",
                Rival::Native(&["--slave-parallel-threads=16", "--slave-parallel-mode=aggressive"]),
            ),
        ]
    } else {
        vec![
            ("native, 1 worker", Rival::Native(&["--replica-parallel-workers=1"])),
            ("native, 4 workers", Rival::Native(&["--replica-parallel-workers=4"])),
            ("native, 16 workers", Rival::Native(&["--replica-parallel-workers=16"])),
        ]
    };
    list.push(("heddle, grouping off, 16 workers", Rival::Heddle(&["--grouping", "off", "--workers", "16"])));
    list.push(("heddle, source's GTIDs kept, 16 workers", Rival::Heddle(&["--gtids", "preserve", "--workers", "16"])));
    list.push(("heddle, grouping auto, 1 worker", Rival::Heddle(&["--workers", "1"])));
    list.push(("heddle, grouping auto", Rival::Heddle(&[])));
    list
}

struct Arguments {
    load: Load,
    script: String,
    kinds: Vec<Kind>,
    only: String,
    repeat: usize,
    output: PathBuf,
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        load: Load { tables: 8, rows: 50_000, threads: 16, events: 20_000, seconds: 0 },
        script: "oltp_update_non_index".to_owned(),
        kinds: vec![MYSQL_9_7, MARIADB_10_11],
        only: String::new(),
        repeat: 1,
        output: e2e::repository().join("docs/benchmarks.md"),
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().with_context(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--transactions" => parsed.load.events = value.parse()?,
            "--sessions" => parsed.load.threads = value.parse()?,
            "--tables" => parsed.load.tables = value.parse()?,
            "--rows" => parsed.load.rows = value.parse()?,
            "--script" => parsed.script = value,
            "--servers" => parsed.kinds = value.split(',').map(str::parse).collect::<Result<_>>()?,
            "--only" => parsed.only = value,
            "--repeat" => parsed.repeat = value.parse()?,
            "--output" => parsed.output = value.into(),
            _ => bail!("unknown option {name}"),
        }
    }
    ensure!(parsed.repeat > 0, "--repeat needs at least 1");
    Ok(parsed)
}

/// The state before the workload, and the source after it.
struct Stage {
    source: Server,
    /// Holds the data folder that every rival starts from.
    start: Server,
    /// What a rival has already: for `gtid_purged`, `gtid_slave_pos` or `--start-gtid`.
    gtids: String,
    wanted: Checksums,
}

fn gtids(server: &Server) -> Result<String> {
    let variable = if server.kind.is_mariadb() { "@@gtid_binlog_pos" } else { "@@gtid_executed" };
    Ok(server.scalar(&format!("SELECT {variable}"))?.replace("\\n", "").replace('\n', ""))
}

fn stage(kind: Kind, arguments: &Arguments) -> Result<Stage> {
    let start = Server::start(kind, &DURABLE)?;
    sysbench::prepare(&start, &arguments.script, arguments.load)?;
    let gtids = gtids(&start)?;
    start.stop()?;
    let source = Server::start_from(kind, &DURABLE, Some(&start.data()))?;
    sysbench::run(&source, &arguments.script, arguments.load)?;
    let wanted = contents(&source)?;
    Ok(Stage { source, start, gtids, wanted })
}

/// Seconds from the start of replication to equal ends.
fn measure(stage: &Stage, rival: Rival) -> Result<f64> {
    let kind = stage.source.kind;
    let mut options = DURABLE.to_vec();
    if let Rival::Native(more) = rival {
        options.extend(more);
    }
    options.extend(if kind.is_mariadb() { ["--skip-slave-start"] } else { ["--skip-replica-start"] });
    let target = Server::start_from(kind, &options, Some(&stage.start.data()))?;
    let (reset, start) = if kind.is_mariadb() {
        ("RESET MASTER", "START SLAVE")
    } else {
        ("RESET BINARY LOGS AND GTIDS", "START REPLICA")
    };
    target.execute(reset)?;
    let seconds = match rival {
        Rival::Native(_) => {
            native::configure(&stage.source, &target)?;
            target.execute(&if kind.is_mariadb() {
                format!("SET GLOBAL gtid_slave_pos = '{}'", stage.gtids)
            } else {
                format!("SET GLOBAL gtid_purged = '{}'", stage.gtids)
            })?;
            let started = Instant::now();
            target.execute(start)?;
            wait_caught_up(&stage.source, &target)?;
            started.elapsed()
        }
        Rival::Heddle(more) => catch_up_with_heddle(stage, &target, more)?,
    };
    let different = differences(&stage.wanted, &contents(&target)?);
    ensure!(different.is_empty(), "not equal at the end: {different:?}");
    Ok(seconds.as_secs_f64())
}

fn catch_up_with_heddle(stage: &Stage, target: &Server, more: &[&str]) -> Result<Duration> {
    let (from, to, relay) = (stage.source.url(), target.url(), target.dir().join("relay").display().to_string());
    let mut line = vec![
        "replicate",
        "--from",
        &from,
        "--to",
        &to,
        "--until-end",
        "--json",
        "--relay-dir",
        &relay,
        "--start-gtid",
        &stage.gtids,
    ];
    line.extend(more);
    let started = Instant::now();
    let run = Heddle::start(&line)?.wait()?.successful()?;
    let elapsed = started.elapsed();
    eprintln!("    {}", run.summary()?);
    Ok(elapsed)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn machine() -> String {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let model = text("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned()));
    let memory = text("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cores} cores ({}), {} GiB of memory",
        model.unwrap_or_else(|| "unknown".to_owned()),
        memory.unwrap_or(0) / (1 << 20)
    )
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let load = arguments.load;
    let mut page = format!(
        "# Benchmarks: catching up\n\n\
         How fast a replica that is behind applies what it missed. A source makes {} transactions of sysbench's `{}` on {} × {} rows\n\
         from {} sessions. Each contender then starts from a fresh copy of the state before them and connects to that source; the clock runs\n\
         from the start of replication until the last transaction is committed on the target. Source and targets are durable\n\
         (`sync_binlog=1`, `innodb_flush_log_at_trx_commit=1`), targets write their own binary log, everything shares one machine:\n\
         {}. All rows of all tables are compared at the end; a difference would end the benchmark.\n\n\
         Repeat it with `make bench`, or `bench/catch-up --transactions 200000 --repeat 3` (the median counts) for more than a quick look.\n",
        load.events,
        arguments.script,
        load.tables,
        load.rows,
        load.threads,
        machine()
    );
    for &kind in &arguments.kinds {
        eprintln!("{kind}: preparing");
        let stage = stage(kind, &arguments)?;
        let mut results: Vec<(&str, f64)> = Vec::new();
        for (name, rival) in rivals(kind).into_iter().filter(|(name, _)| name.contains(&arguments.only)) {
            let seconds: Vec<f64> = (0..arguments.repeat)
                .map(|_| measure(&stage, rival))
                .collect::<Result<_>>()
                .with_context(|| name.to_owned())?;
            let rate = load.events as f64 / median(seconds);
            eprintln!("{kind}: {name}: {rate:.0} trx/s");
            results.push((name, rate));
        }
        let best = |prefix: &str| {
            results.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, rate)| *rate).fold(f64::NAN, f64::max)
        };
        let (serial, best_native) = (results.first().map_or(f64::NAN, |(_, rate)| *rate), best("native"));
        writeln!(page, "\n## {}\n", stage.source.scalar("SELECT VERSION()")?)?;
        writeln!(page, "| | transactions/s | × native serial | × best native |\n|---|---:|---:|---:|")?;
        for (name, rate) in &results {
            writeln!(page, "| {name} | {rate:.0} | {:.2} | {:.2} |", rate / serial, rate / best_native)?;
        }
    }
    print!("{page}");
    std::fs::write(&arguments.output, page).with_context(|| arguments.output.display().to_string())
}
