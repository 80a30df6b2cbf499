//! Every policy with several numbers of workers: stretches of one long log, each policy applying for a few seconds where the one before
//! it ended. Whenever the log ends, and at the end of each table, the contents are compared with the source's, and the next goes on with a fresh copy of the
//! start. Writes transactions per second, and how many times that is of one worker that applies serially, into bench/results/benchmarks.md.
//!
//! Arguments: `--transactions N` (in the log; default 200000), `--seconds N` (of each stretch, default 1.5), `--sessions N` (16), `--tables N` (8), `--rows N` (20000),
//! `--script NAME` (sysbench's, default oltp_update_non_index), `--servers NAME,…`, `--policies NAME,…` (all that suit), `--workers N,…`
//! (1,2,4,8,16,32,64), `--orders preserve,relaxed`, `--grouping off,auto`, `--disks durable,slow,careless` (slow: durable, and each fsync takes 2 ms
//! longer; careless: neither log is synced), `--domains N` (MariaDB: the
//! sessions' work is spread over so many, default 1), `--output FILE`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "says what it does")]

use anyhow::{Context, Result, bail, ensure};
use e2e::bench::arguments::{each, line, list, load};
use e2e::bench::page::Page;
use e2e::bench::{machine, slow_disk, version};
use e2e::checksum::{Checksums, contents, differences};
use e2e::heddle::{Heddle, Run, heddle};
use e2e::native;
use e2e::policies::suits;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load};
use engine::policy;
use std::fmt::Write;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

const DURABLE: [&str; 2] = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
const FAST: [&str; 2] = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"];

/// What a start takes before anything is applied, about.
const CONNECTING: Duration = Duration::from_millis(100);
const CONNECTING_EACH: Duration = Duration::from_millis(4);

struct Arguments {
    load: Load,
    script: String,
    kinds: Vec<Kind>,
    policies: Vec<String>,
    workers: Vec<u32>,
    orders: Vec<String>,
    grouping: Vec<String>,
    disks: Vec<Disk>,
    domains: u32,
    stretch: Duration,
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
        load: Load { tables: 8, rows: 20_000, threads: 16, events: 200_000, seconds: 0 },
        script: "oltp_update_non_index".to_owned(),
        kinds: vec![MYSQL_9_7, MARIADB_10_11],
        policies: policy::ALL.iter().map(|policy| policy.name.to_owned()).collect(),
        workers: vec![1, 2, 4, 8, 16, 32, 64],
        orders: vec!["preserve".to_owned(), "relaxed".to_owned()],
        grouping: vec!["off".to_owned(), "auto".to_owned()],
        disks: vec![Disk::Durable, Disk::Slow, Disk::Careless],
        domains: 1,
        stretch: Duration::from_millis(1500),
        output: e2e::repository().join("bench/results/benchmarks.md"),
    };
    each(|name, value| {
        match name {
            "--script" => value.clone_into(&mut parsed.script),
            "--servers" => parsed.kinds = list(value)?,
            "--policies" => parsed.policies = list(value)?,
            "--workers" => parsed.workers = list(value)?,
            "--orders" => parsed.orders = list(value)?,
            "--grouping" => parsed.grouping = list(value)?,
            "--disks" => parsed.disks = value.split(',').map(Disk::parse).collect::<Result<_>>()?,
            "--output" => parsed.output = value.into(),
            "--domains" => parsed.domains = value.parse()?,
            "--seconds" => parsed.stretch = Duration::try_from_secs_f64(value.parse()?)?,
            _ => return load(&mut parsed.load, name, value),
        }
        Ok(true)
    })?;
    ensure!(!parsed.workers.is_empty(), "--workers needs a number");
    ensure!(parsed.domains > 0, "--domains needs at least 1");
    for name in &parsed.policies {
        policy::ALL.named(name)?;
    }
    Ok(parsed)
}

/// The source's sessions commit together although it does not wait for a disk: only then do MariaDB's commit ids and MySQL's clock
/// say that anything may run side by side.
fn grouping_source(kind: Kind, sessions: u32) -> [String; 4] {
    let [delay, count] = if kind.is_mariadb() {
        ["binlog-commit-wait-usec", "binlog-commit-wait-count"]
    } else {
        ["binlog-group-commit-sync-delay", "binlog-group-commit-sync-no-delay-count"]
    };
    let [sync, flush] = FAST.map(str::to_owned);
    [sync, flush, format!("--{delay}=2000"), format!("--{count}={sessions}")]
}

/// A source with a workload in its log, and what a target holds before it.
struct Stage {
    source: Server,
    start: Server,
    position: String,
    held: Checksums,
}

fn stage(kind: Kind, arguments: &Arguments) -> Result<Stage> {
    let options = grouping_source(kind, arguments.load.threads);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (source, start) = Server::start_two((kind, &options), (kind, &FAST))?;
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

/// One cell of a table.
#[derive(Clone, Copy)]
struct Setting<'a> {
    policy: &'a str,
    order: &'a str,
    workers: u32,
    grouping: &'a str,
}

#[derive(Clone, Copy)]
struct Measured {
    rate: f64,
    retries: u64,
    /// Commits for each write of the target's binary log, as MariaDB counts them.
    commits_in_group: Option<f64>,
}

/// A target that goes through the log, each time with another setting.
struct Replica<'a> {
    stage: &'a Stage,
    options: &'a [&'a str],
    target: Server,
    has_begun: bool,
}

impl<'a> Replica<'a> {
    fn new(stage: &'a Stage, options: &'a [&'a str]) -> Result<Self> {
        let target = Server::start_from(stage.source.kind, options, Some(&stage.start.data()))?;
        Ok(Self { stage, options, target, has_begun: false })
    }

    /// Applies from where the last one ended, until `stretch` is over (without: to the log's end).
    fn apply(&mut self, setting: Setting<'_>, stretch: Option<Duration>) -> Result<Run> {
        let (from, to) = (self.stage.source.binlog_index().display().to_string(), self.target.url());
        let workers = setting.workers.to_string();
        let mut line = vec!["replicate", "--from", &from, "--to", &to, "--json", "--workers", &workers];
        line.extend(["--policy", setting.policy, "--commit-order", setting.order, "--grouping", setting.grouping]);
        if !std::mem::replace(&mut self.has_begun, true) {
            line.extend(["--start", &self.stage.position]);
        }
        let mut running = Heddle::start(&line)?;
        if let Some(stretch) = stretch {
            let until = Instant::now() + stretch + CONNECTING + CONNECTING_EACH * setting.workers;
            while Instant::now() < until && !running.has_ended()? {
                sleep(Duration::from_millis(10));
            }
            if !running.has_ended()? {
                running.terminate()?;
            }
        }
        running.wait()?.successful()
    }

    fn status(&self, name: &str) -> Result<f64> {
        let rows = self.target.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        Ok(rows.first().and_then(|row| row.get(1)).and_then(|value| value.parse().ok()).unwrap_or(0.0))
    }

    fn commits(&self) -> Result<Option<(f64, f64)>> {
        if !self.stage.source.kind.is_mariadb() {
            return Ok(None);
        }
        Ok(Some((self.status("Binlog_commits")?, self.status("Binlog_group_commits")?)))
    }

    fn measure(&mut self, setting: Setting<'_>, stretch: Duration) -> Result<Measured> {
        // A log that ends too soon is followed by a fresh start, and that is enough for any stretch.
        for _ in 0..2 {
            let before = self.commits()?;
            let run = self.apply(setting, Some(stretch))?;
            let (summary, after) = (run.summary()?, self.commits()?);
            let number = |name: &str| {
                summary
                    .get(name)
                    .and_then(serde_json::Value::as_f64)
                    .with_context(|| format!("no {name} in the summary"))
            };
            let (transactions, seconds) = (number("transactions")?, number("applying_seconds")?);
            let measured = Measured {
                rate: transactions / seconds.max(1e-9),
                retries: run.number("retries")?,
                commits_in_group: before
                    .zip(after)
                    .map(|(before, after)| (after.0 - before.0) / (after.1 - before.1).max(1.0)),
            };
            if run.was_stopped()? {
                return Ok(measured);
            }
            self.begin_anew()?;
            if seconds > stretch.as_secs_f64() / 2.0 {
                return Ok(measured);
            }
        }
        bail!("{}: the log is shorter than a stretch of {stretch:?}: give more --transactions", setting.policy)
    }

    fn compare(&self) -> Result<()> {
        let different = differences(&self.stage.held, &contents(&self.target)?);
        ensure!(different.is_empty(), "not equal at the log's end: {different:?}");
        Ok(())
    }

    fn begin_anew(&mut self) -> Result<()> {
        self.compare()?;
        *self = Self::new(self.stage, self.options)?;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.apply(Setting { policy: policy::DEFAULT.name, order: "preserve", workers: 4, grouping: "auto" }, None)?;
        self.compare()
    }
}

fn table(stage: &Stage, arguments: &Arguments, disk: Disk, slow: &str, grouping: &str) -> Result<String> {
    let workers: Vec<String> = arguments.workers.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "\n### {}, {}, grouping {grouping}\n\n| policy | commit order | {} | retries | commits in a group |\n|---|---|{}---:|---:|\n",
        version(&stage.source)?,
        disk.text(),
        workers.join(" | "),
        "---:|".repeat(workers.len())
    );
    let options: Vec<&str> = match disk {
        Disk::Durable => DURABLE.to_vec(),
        Disk::Slow => [DURABLE.as_slice(), &[slow]].concat(),
        Disk::Careless => FAST.to_vec(),
    };
    let mut replica = Replica::new(stage, &options)?;
    // The first of a server finds nothing in its buffers: it is not counted.
    let serial = Setting { policy: policy::BASELINE.name, order: "preserve", workers: 1, grouping: "off" };
    replica.measure(serial, arguments.stretch)?;
    let serial = replica.measure(serial, arguments.stretch * 2)?.rate;
    eprintln!("{}, {}: serial {serial:.0}", stage.source.kind, disk.text());
    writeln!(text, "| serial, grouping off | preserve | {serial:.0} (1.0) |{} | |", " |".repeat(workers.len() - 1))?;
    for spec in policy::ALL.iter() {
        let policy = spec.name;
        if (spec == policy::BASELINE && grouping == "off")
            || !arguments.policies.iter().any(|name| name == policy)
            || !suits(spec, stage.source.kind)
        {
            continue;
        }
        let allowed = |order: &&String| spec.requires.orders.iter().any(|known| known.as_str() == order.as_str());
        for order in arguments.orders.iter().filter(allowed) {
            let mut line = format!("| {policy} | {order} |");
            let (mut retries, mut grouped) = (0, None);
            for &workers in &arguments.workers {
                let measured = replica.measure(Setting { policy, order, workers, grouping }, arguments.stretch)?;
                line += &format!(" {:.0} ({:.1}) |", measured.rate, measured.rate / serial.max(1e-9));
                (retries, grouped) = (measured.retries, measured.commits_in_group);
            }
            let grouped = grouped.map_or("–".to_owned(), |grouped| format!("{grouped:.1}"));
            eprintln!("{line} {retries} | {grouped} |");
            writeln!(text, "{line} {retries} | {grouped} |")?;
        }
    }
    replica.finish()?;
    Ok(text)
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let dir = tempfile::tempdir()?;
    let slow = slow_disk::option(dir.path())?;
    let mut page = Page::open(arguments.output.clone())?;
    let mut sections: Vec<(&str, String)> =
        arguments.grouping.iter().map(|grouping| (grouping.as_str(), opening(&arguments, grouping))).collect();
    for &kind in &arguments.kinds {
        let stage = stage(kind, &arguments)?;
        for (grouping, text) in &mut sections {
            for &disk in &arguments.disks {
                *text += &table(&stage, &arguments, disk, &slow, grouping)?;
            }
        }
    }
    for (grouping, mut text) in sections {
        write!(text, "\nMeasured on {}, with `bench/policies {}`.\n\n", machine(), line())?;
        page.write(if grouping == "off" { "policies" } else { "policies-grouped" }, &text)?;
    }
    Ok(())
}

/// How a section of the page begins.
fn opening(arguments: &Arguments, grouping: &str) -> String {
    let load = arguments.load;
    let heading = if grouping == "off" { "Policies" } else { "Policies, with grouping" };
    format!(
        "## {heading}\n\nEvery policy on one input, transactions/s (times serial without grouping) by number of workers: stretches of {:.1} s of one log of {} transactions of \
         sysbench's `{}` from {} sessions, {} tables of {} rows, from binary log files; contents compared at the log's end. Retries and commits in a group (commits for each \
         write of the target's binary log) are of the last column.\n",
        arguments.stretch.as_secs_f64(),
        load.events,
        arguments.script,
        load.threads,
        load.tables,
        load.rows
    )
}
