//! `heddle demo`: generates a workload, replicates it in several ways, compares speeds and states. No server, no set-up.

mod report;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressState, ProgressStyle};
use sim::schema::TableIndex;
use sim::value::Value;
use sim::{LogParams, Params, Workload, mysql_log};

use self::report::{DemoReport, Run, Style};
use super::bar::Bar;
use super::signals::Signals;
use apply::store::{self, StoreTarget, TableSum};
use channel::monitor::Monitor;
use channel::source::Source;
use channel::spec::{ApplySettings, Spec};
use engine::policy;
use engine::schedule::Grouping;
use observe::summary::{self, Summary};
use output::say;
use output::streams::may_colour;

/// Show parallel replication on a generated workload: no server, no set-up
///
/// Concurrent sessions in virtual time, with hot rows, long transactions and group commit, become MySQL 8 binary log files.
/// These are replicated into the embedded store one by one and with several workers, with grouping off and on. The
/// states have to be equal.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Transactions to generate [default: what takes well below a minute here, by a short trial]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    transactions: Option<u64>,
    /// Concurrent sessions of the workload
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sessions: u32,
    /// Percent of the transactions that choose their rows among the hot ones
    #[arg(long, default_value_t = 20, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    hot: u8,
    /// Percent of the transactions that are long
    #[arg(long, default_value_t = 1, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    long: u8,
    /// The same seed and numbers give the same workload
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Numbers of workers to try
    #[arg(long, value_name = "N,…", default_value = "1,2,4,8", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=512))]
    workers: Vec<u16>,
    /// Keep the log and the stores in this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Rows of the table of accounts, at most; there are as many as transactions.
const ACCOUNTS_MAX: u64 = 10_000;
const ACCOUNTS_MIN: u64 = 1_000;
/// Memory for transactions that wait: as `heddle replicate` has it.
const MEMORY_BYTES: u64 = 192 << 20;
const RETRIES_MAX: u32 = 100;

pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    let folder = Folder::make(args.keep.as_deref())?;
    let fsync = measure_fsync(folder.path()).context("measuring an fsync")?;
    let transactions = match args.transactions {
        Some(transactions) => transactions,
        None => transactions_by_trial(args, folder.path())?,
    };
    let log = generate(params(args, transactions), &folder.path().join("log"))?;
    let mut report = DemoReport {
        seed: args.seed,
        sessions: args.sessions,
        transactions: log.transactions,
        rows: log.rows,
        log_files: log.files.len(),
        log_bytes: log.bytes,
        fsync_us: fsync.as_micros() as u64,
        runs: Vec::new(),
        states_equal: true,
    };
    let style = Style { colour: may_colour(&std::io::stdout()) };
    if !args.json {
        say!("{}\n{}", report::introduction(&report), report::header(style));
    }
    let mut serial: Option<(f64, Vec<TableSum>)> = None;
    let plan = plan(&args.workers);
    for (number, &way) in plan.iter().enumerate() {
        let shown = Shown { number: number + 1, of: plan.len(), transactions: log.transactions };
        let path = folder.path().join(way.name());
        let Measured { summary, sums } = measure(way, &log, &path, shown)?;
        if number == 0 {
            report.states_equal &= is_as_predicted(&path, &log.tables)?;
        }
        let (serial_rate, serial_sums) =
            serial.get_or_insert_with(|| (summary.transactions_per_second, sums.first().cloned().unwrap_or_default()));
        let run = Run {
            workers: way.workers,
            grouping: way.grouping,
            repetitions: sums.len(),
            seconds: summary.seconds,
            transactions_per_second: summary.transactions_per_second,
            speedup: summary.transactions_per_second / serial_rate.max(1e-9),
            groups: summary.groups,
            retries: summary.retries,
            state_equal: sums.iter().all(|sums| sums == serial_sums) && summary.transactions == log.transactions,
        };
        report.states_equal &= run.state_equal;
        if !args.json {
            say!("{}", report::line(&run, style));
        }
        report.runs.push(run);
        if args.keep.is_none() {
            remove(&path)?;
        }
    }
    if args.json {
        output::streams::json(&serde_json::to_string(&report)?);
    } else {
        let heddle = std::env::args().next().unwrap_or_else(|| "heddle".to_owned());
        let kept = args.keep.as_ref().map(|dir| dir.display().to_string());
        say!("{}", report::conclusion(&report, &heddle, kept.as_deref(), style).trim_end());
    }
    let code = if report.states_equal { super::exit::EXIT_OK } else { super::exit::EXIT_FAILED };
    Ok(ExitCode::from(code))
}

/// Where the log and the stores are: kept, or gone at the end.
enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn make(keep: Option<&Path>) -> Result<Folder> {
        let Some(dir) = keep else {
            let made = tempfile::Builder::new().prefix("heddle-demo-").tempdir();
            return Ok(Folder::Temporary(made.context("a temporary folder; --keep DIR chooses another place")?));
        };
        std::fs::create_dir_all(dir).with_context(|| format!("--keep {}", dir.display()))?;
        let mut entries = std::fs::read_dir(dir).with_context(|| format!("--keep {}", dir.display()))?;
        if entries.next().is_some() {
            bail!("--keep {}: the folder is not empty; name a new one", dir.display());
        }
        Ok(Folder::Kept(dir.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Kept(path) => path,
            Folder::Temporary(dir) => dir.path(),
        }
    }
}

/// Median time of a small durable write.
fn measure_fsync(dir: &Path) -> Result<Duration> {
    const WRITES: usize = 31;
    let path = dir.join("fsync");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let began = Instant::now();
        file.write_all(&[0x5a; 512])?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    drop(file);
    std::fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times.get(WRITES / 2).copied().unwrap_or_default())
}

fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))
}

/// As many transactions as are applied serially in seven seconds here: all runs together then take half a minute where
/// several workers gain nothing, because the disk is fast and cores are few, and less elsewhere.
fn transactions_by_trial(args: &DemoArgs, dir: &Path) -> Result<u64> {
    const TRIAL_TRANSACTIONS: u64 = 300;
    const SERIAL_SECONDS: f64 = 7.0;
    let (log_dir, store) = (dir.join("trial-log"), dir.join("trial-store"));
    let log = generate(params(args, TRIAL_TRANSACTIONS), &log_dir)?;
    let shown = Shown { number: 0, of: 0, transactions: log.transactions };
    let summary = replicate(SERIAL, &log, &store, shown)?;
    remove(&log_dir)?;
    remove(&store)?;
    Ok(rounded(summary.transactions_per_second * SERIAL_SECONDS))
}

/// Of a sensible size, and a round number.
fn rounded(transactions: f64) -> u64 {
    (transactions as u64 / 100 * 100).clamp(1_000, 20_000)
}

/// A generated log on disk, and what a replica of it must hold.
struct Log {
    files: Vec<PathBuf>,
    bytes: u64,
    transactions: u64,
    rows: u64,
    tables: Vec<Predicted>,
}

/// The rows of a table as lines of text, sorted.
struct Predicted {
    table: String,
    lines: Vec<String>,
}

fn params(args: &DemoArgs, transactions: u64) -> Params {
    Params {
        seed: args.seed,
        transactions,
        sessions: args.sessions,
        accounts: transactions.clamp(ACCOUNTS_MIN, ACCOUNTS_MAX),
        hot_percent: args.hot,
        long_percent: args.long,
        ..Params::default()
    }
}

fn generate(params: Params, dir: &Path) -> Result<Log> {
    let mut workload = Workload::new(params);
    let schema = workload.schema().clone();
    std::fs::create_dir(dir).with_context(|| format!("making {}", dir.display()))?;
    let mut log = Log { files: Vec::new(), bytes: 0, transactions: 0, rows: 0, tables: Vec::new() };
    let mut index = String::new();
    let transactions = workload.by_ref().inspect(|transaction| log.rows += transaction.rows() as u64);
    for file in mysql_log::files(&LogParams::default(), &schema, transactions) {
        let path = dir.join(&file.name);
        std::fs::write(&path, &file.bytes).with_context(|| format!("writing {}", path.display()))?;
        index += &format!("./{}\n", file.name);
        log.bytes += file.bytes.len() as u64;
        log.transactions += file.transactions;
        log.files.push(path);
    }
    std::fs::write(dir.join("binlog.index"), index).context("writing the index file")?;
    log.tables = predict(&workload);
    Ok(log)
}

fn predict(workload: &Workload) -> Vec<Predicted> {
    let predict = |(index, table): (usize, &sim::schema::Table)| {
        let rows = workload.state().rows(TableIndex(index));
        let mut lines: Vec<String> = rows
            .map(|(_, row)| {
                let texts = row.iter().zip(&table.columns).map(|(value, column)| match value {
                    Value::Null => "\\N".to_owned(),
                    value => value.text(column.of),
                });
                texts.collect::<Vec<String>>().join("\t")
            })
            .collect();
        lines.sort_unstable();
        Predicted { table: format!("{}.{}", table.schema, table.name), lines }
    };
    workload.schema().tables().iter().enumerate().map(predict).collect()
}

/// Whether a store holds the rows that the workload ended with.
fn is_as_predicted(path: &Path, tables: &[Predicted]) -> Result<bool> {
    for predicted in tables {
        let mut dumped = Vec::new();
        store::dump(path, &predicted.table, &mut dumped).map_err(anyhow::Error::new)?;
        let text = String::from_utf8_lossy(&dumped);
        // The first line has the columns' names; a table without rows has none.
        let mut lines: Vec<&str> = text.lines().skip(1).collect();
        lines.sort_unstable();
        if lines != predicted.lines {
            tracing::error!("{} does not hold the rows that the workload predicts", predicted.table);
            return Ok(false);
        }
    }
    Ok(true)
}

/// One way to replicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    workers: usize,
    grouping: bool,
}

impl Way {
    fn name(self) -> String {
        format!("store-{}-{}", self.workers, if self.grouping { "grouped" } else { "single" })
    }
}

/// What the others are compared with.
const SERIAL: Way = Way { workers: 1, grouping: false };

/// The serial way first, then the others, each once.
fn plan(workers: &[u16]) -> Vec<Way> {
    let mut numbers: Vec<usize> = workers.iter().map(|number| usize::from(*number)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut plan = vec![SERIAL];
    for grouping in [false, true] {
        let ways = numbers.iter().map(|&workers| Way { workers, grouping });
        plan.extend(ways.filter(|way| *way != SERIAL));
    }
    plan
}

/// One way's outcome: the run of median speed, and the states that all of its runs ended with.
struct Measured {
    summary: Summary,
    sums: Vec<Vec<TableSum>>,
}

/// Runs that are over in no time are run three times, for a number that means something. The last store stays.
fn measure(way: Way, log: &Log, path: &Path, shown: Shown) -> Result<Measured> {
    const SHORT_SECONDS: f64 = 1.5;
    const REPETITIONS: usize = 3;
    let (mut summaries, mut sums): (Vec<Summary>, Vec<Vec<TableSum>>) = (Vec::new(), Vec::new());
    loop {
        let summary = replicate(way, log, path, shown)?;
        let short = summary.seconds < SHORT_SECONDS;
        summaries.push(summary);
        sums.push(store::checksum(path).map_err(anyhow::Error::new)?);
        if !short || summaries.len() == REPETITIONS {
            break;
        }
        remove(path)?;
    }
    summaries.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let summary = summaries.swap_remove(summaries.len() / 2);
    Ok(Measured { summary, sums })
}

fn replicate(way: Way, log: &Log, path: &Path, shown: Shown) -> Result<Summary> {
    let target = StoreTarget::open_path(path, "demo", way.workers).map_err(anyhow::Error::new)?;
    let spec = Spec {
        applying: ApplySettings {
            policy: if way == SERIAL { policy::BASELINE } else { policy::DEFAULT },
            grouping: if way.grouping { Grouping::Auto } else { Grouping::Off },
            memory_bytes: MEMORY_BYTES,
            retries_max: RETRIES_MAX,
            ..ApplySettings::new(way.workers)
        },
        ..Spec::new(Source::Files(log.files.clone()), Arc::new(target), way.workers)
    };
    let (monitor, stop) = (Arc::new(Monitor::default()), Arc::new(AtomicBool::new(false)));
    let signals = Signals::watch(&stop)?;
    let bar = bar(&monitor, way, shown);
    let summary = summary::run(&spec, &monitor, &stop);
    bar.finish();
    drop(signals);
    let summary = summary?;
    if let Some(error) = &summary.error {
        bail!("{}\n  where: {}\n  what to do: {}", error.message, error.place, error.remedy);
    }
    if summary.stopped {
        bail!("stopped by a signal");
    }
    Ok(summary)
}

/// Which run it is, for people; number 0 is the trial.
#[derive(Clone, Copy, Debug)]
struct Shown {
    number: usize,
    of: usize,
    transactions: u64,
}

/// While a run is under way.
fn bar(monitor: &Arc<Monitor>, way: Way, shown: Shown) -> Bar {
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // Nobody to tell when a bar can not be drawn.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    };
    let style = ProgressStyle::with_template("{msg} {bar:30} {percent:>3}% {rate}, {eta} left").ok();
    let grouping = if way.grouping { "on" } else { "off" };
    let workers = if way.workers == 1 { "worker" } else { "workers" };
    let message = match shown.number {
        0 => "a trial, to see how fast this machine is".to_owned(),
        number => format!("{number}/{}: {} {workers}, grouping {grouping}", shown.of, way.workers),
    };
    let monitor = Arc::clone(monitor);
    Bar::start(shown.transactions, style.map(|style| style.with_key("rate", rate)), message, move || {
        monitor.low_water()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_comes_first_and_nothing_twice() {
        let names = |workers: &[u16]| plan(workers).into_iter().map(Way::name).collect::<Vec<_>>();
        assert_eq!(names(&[4, 1, 4]), ["store-1-single", "store-4-single", "store-1-grouped", "store-4-grouped"]);
        assert_eq!(names(&[2]), ["store-1-single", "store-2-single", "store-2-grouped"]);
    }

    #[test]
    fn slow_machines_get_fewer_transactions() {
        for (transactions, shown) in [(0.0, 1_000), (1_999.0, 1_900), (18_765.4, 18_700), (1e9, 20_000)] {
            assert_eq!(rounded(transactions), shown);
        }
    }

    #[test]
    fn every_way_ends_with_the_rows_that_the_workload_predicts() {
        let folder = Folder::make(None).unwrap();
        let dir = folder.path();
        let params = Params { transactions: 150, accounts: 50, hot_percent: 60, long_percent: 5, ..Params::default() };
        let log = generate(params, &dir.join("log")).unwrap();
        let shown = Shown { number: 1, of: 1, transactions: log.transactions };
        for way in plan(&[1, 3]) {
            let path = dir.join(way.name());
            let summary = replicate(way, &log, &path, shown).unwrap();
            assert_eq!(summary.transactions, log.transactions, "{way:?}");
            assert!(is_as_predicted(&path, &log.tables).unwrap(), "{way:?}");
        }
        let first = log.tables.first().unwrap();
        let others = [Predicted { table: first.table.clone(), lines: first.lines[1..].to_vec() }];
        assert!(!is_as_predicted(&dir.join(SERIAL.name()), &others).unwrap());
    }
}
