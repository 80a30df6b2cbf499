//! Every policy with several numbers of workers: one workload, each run on a fresh copy of the same start, contents compared at
//! the end. Writes transactions per second, and how many times that is of one worker that applies serially, into docs/benchmarks.md.
//!
//! Arguments: `--transactions N` (default 20000), `--sessions N` (16), `--tables N` (8), `--rows N` (20000), `--script NAME`
//! (sysbench's, default oltp_update_non_index), `--servers NAME,…`, `--policies NAME,…` (all that suit), `--workers N,…`
//! (1,2,4,8,16,32,64), `--orders preserve,relaxed`, `--grouping off|auto`, `--disks durable,slow,careless` (slow: durable, and each fsync takes 2 ms
//! longer; careless: neither log is synced), `--domains N` (MariaDB: the
//! sessions' work is spread over so many, default 1), `--output FILE`.

use anyhow::{Context, Result, ensure};
use e2e::bench::arguments::{each, line, list, load};
use e2e::bench::page::Page;
use e2e::bench::{machine, slow_disk, version};
use e2e::checksum::{Checksums, contents, differences};
use e2e::heddle::heddle;
use e2e::native;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load};
use std::fmt::Write;
use std::path::PathBuf;

const DURABLE: [&str; 2] = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
const FAST: [&str; 2] = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"];

/// (name, only for MariaDB or MySQL, whether commits may overtake each other)
const POLICIES: [(&str, Option<bool>, bool); 13] = [
    ("serial", None, true),
    ("database", None, true),
    ("logical-clock", Some(false), true),
    ("logical-clock-unblocked", Some(false), true),
    ("commit-order", None, true),
    ("writeset-tags", None, true),
    ("writeset-session", None, true),
    ("writeset", None, true),
    ("domain", Some(true), true),
    ("minimal", None, true),
    ("conservative", Some(true), true),
    ("optimistic", None, false),
    ("aggressive", None, false),
];

struct Arguments {
    load: Load,
    script: String,
    kinds: Vec<Kind>,
    policies: Vec<String>,
    workers: Vec<u32>,
    orders: Vec<String>,
    grouping: String,
    disks: Vec<Disk>,
    domains: u32,
    output: PathBuf,
}

/// What a commit on the target waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    Durable,
    /// As durable, and each fsync takes longer.
    Slow,
    Careless,
}

impl Disk {
    const ALL: [(&'static str, Disk); 3] =
        [("durable", Disk::Durable), ("slow", Disk::Slow), ("careless", Disk::Careless)];

    fn parse(name: &str) -> Result<Disk> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, disk)| disk).with_context(|| format!("unknown disk {name}"))
    }

    fn text(self) -> String {
        match self {
            Disk::Durable => "durable".to_owned(),
            Disk::Slow => format!("durable, each fsync {} ms longer", slow_disk::FSYNC_MS),
            Disk::Careless => "not durable".to_owned(),
        }
    }
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        load: Load { tables: 8, rows: 20_000, threads: 16, events: 20_000, seconds: 0 },
        script: "oltp_update_non_index".to_owned(),
        kinds: vec![MYSQL_9_7, MARIADB_10_11],
        policies: POLICIES.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        workers: vec![1, 2, 4, 8, 16, 32, 64],
        orders: vec!["preserve".to_owned(), "relaxed".to_owned()],
        grouping: "off".to_owned(),
        disks: vec![Disk::Durable, Disk::Slow, Disk::Careless],
        domains: 1,
        output: e2e::repository().join("docs/benchmarks.md"),
    };
    each(|name, value| {
        match name {
            "--script" => parsed.script = value.to_owned(),
            "--servers" => parsed.kinds = list(value)?,
            "--policies" => parsed.policies = list(value)?,
            "--workers" => parsed.workers = list(value)?,
            "--orders" => parsed.orders = list(value)?,
            "--grouping" => parsed.grouping = value.to_owned(),
            "--disks" => parsed.disks = value.split(',').map(Disk::parse).collect::<Result<_>>()?,
            "--output" => parsed.output = value.into(),
            "--domains" => parsed.domains = value.parse()?,
            _ => return load(&mut parsed.load, name, value),
        }
        Ok(true)
    })?;
    ensure!(!parsed.workers.is_empty(), "--workers needs a number");
    ensure!(parsed.domains > 0, "--domains needs at least 1");
    for name in &parsed.policies {
        ensure!(POLICIES.iter().any(|(known, ..)| known == name), "unknown policy {name}");
    }
    Ok(parsed)
}

/// A source with a workload in its log, and what a target holds before it.
struct Stage {
    source: Server,
    start: Server,
    position: String,
    held: Checksums,
}

fn stage(kind: Kind, arguments: &Arguments) -> Result<Stage> {
    // The source waits for its disk, so that its sessions commit in groups.
    let (source, start) = Server::start_two((kind, &DURABLE), (kind, &FAST))?;
    sysbench::prepare(&source, &arguments.script, arguments.load)?;
    let (file, offset) = native::position(&source)?;
    let from = source.binlog_index().display().to_string();
    heddle(&["replicate", "--from", &from, "--to", &start.url(), "--until-end"])?.successful()?;
    start.execute("DROP DATABASE heddle")?;
    start.stop()?;
    let share = Load {
        threads: arguments.load.threads.div_ceil(arguments.domains),
        events: arguments.load.events / u64::from(arguments.domains),
        ..arguments.load
    };
    for domain in 0..arguments.domains {
        if kind.is_mariadb() {
            source.execute(&format!("SET GLOBAL gtid_domain_id = {domain}"))?;
        }
        sysbench::run(&source, &arguments.script, share)?;
    }
    let held = contents(&source)?;
    Ok(Stage { source, start, position: format!("{file}:{offset}"), held })
}

struct Measured {
    rate: f64,
    retries: u64,
    /// Commits for each write of the target's binary log, as MariaDB counts them.
    commits_in_group: Option<f64>,
}

fn measure(
    stage: &Stage,
    policy: &str,
    order: &str,
    workers: u32,
    options: &[&str],
    grouping: &str,
) -> Result<Measured> {
    let target = Server::start_from(stage.source.kind, options, Some(&stage.start.data()))?;
    let (from, to, workers) = (stage.source.binlog_index().display().to_string(), target.url(), workers.to_string());
    let run = heddle(&[
        "replicate",
        "--from",
        &from,
        "--to",
        &to,
        "--json",
        "--start",
        &stage.position,
        "--policy",
        policy,
        "--commit-order",
        order,
        "--workers",
        &workers,
        "--grouping",
        grouping,
    ])?
    .successful()?;
    let summary = run.summary()?;
    let rate = summary["transactions_per_second"].as_f64().context("no rate in the summary")?;
    let count = |name: &str| -> Result<f64> {
        let rows = target.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        Ok(rows.first().and_then(|row| row.get(1)).and_then(|value| value.parse().ok()).unwrap_or(0.0))
    };
    let commits_in_group = match stage.source.kind.is_mariadb() {
        true => Some(count("Binlog_commits")? / count("Binlog_group_commits")?.max(1.0)),
        false => None,
    };
    let different = differences(&stage.held, &contents(&target)?);
    ensure!(different.is_empty(), "{policy} {order} {workers}: {different:?}");
    Ok(Measured { rate, retries: run.number("retries")?, commits_in_group })
}

fn table(stage: &Stage, arguments: &Arguments, disk: Disk, slow: &str) -> Result<String> {
    let workers: Vec<String> = arguments.workers.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "\n### {}, {}, grouping {}\n\n| policy | commit order | {} | retries | commits in a group |\n|---|---|{}---:|---:|\n",
        version(&stage.source)?,
        disk.text(),
        arguments.grouping,
        workers.join(" | "),
        "---:|".repeat(workers.len())
    );
    let options: Vec<&str> = match disk {
        Disk::Durable => DURABLE.to_vec(),
        Disk::Slow => [DURABLE.as_slice(), &[slow]].concat(),
        Disk::Careless => FAST.to_vec(),
    };
    let serial = measure(stage, "serial", "preserve", 1, &options, &arguments.grouping)?.rate;
    writeln!(text, "| serial | preserve | {serial:.0} (1.0) |{} | |", " |".repeat(workers.len() - 1))?;
    for (policy, only, overtakes) in POLICIES {
        if policy == "serial"
            || !arguments.policies.iter().any(|name| name == policy)
            || only.is_some_and(|mariadb| mariadb != stage.source.kind.is_mariadb())
        {
            continue;
        }
        for order in arguments.orders.iter().filter(|order| overtakes || *order == "preserve") {
            let mut line = format!("| {policy} | {order} |");
            let (mut retries, mut grouped) = (0, None);
            for &count in &arguments.workers {
                let measured = measure(stage, policy, order, count, &options, &arguments.grouping)?;
                line += &format!(" {:.0} ({:.1}) |", measured.rate, measured.rate / serial.max(1e-9));
                (retries, grouped) = (measured.retries, measured.commits_in_group);
            }
            let grouped = grouped.map_or("–".to_owned(), |grouped| format!("{grouped:.1}"));
            eprintln!("{line} {retries} | {grouped} |");
            writeln!(text, "{line} {retries} | {grouped} |")?;
        }
    }
    Ok(text)
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let dir = tempfile::tempdir()?;
    let slow = slow_disk::option(dir.path())?;
    let mut page = Page::open(arguments.output.clone())?;
    let load = arguments.load;
    let mut text = format!(
        "## Policies\n\nEvery policy on one input, transactions/s (times serial) by number of workers: {} transactions of sysbench's `{}` from {} sessions, {} tables \
         of {} rows, from binary log files. Retries and commits in a group (commits for each write of the target's binary log) are of the last column.\n",
        load.events, arguments.script, load.threads, load.tables, load.rows
    );
    for &kind in &arguments.kinds {
        let stage = stage(kind, &arguments)?;
        for &disk in &arguments.disks {
            text += &table(&stage, &arguments, disk, &slow)?;
        }
    }
    write!(text, "\nMeasured on {}, with `bench/policies {}`.\n\n", machine(), line())?;
    page.write("policies", &text)
}
