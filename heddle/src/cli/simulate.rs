//! `heddle simulate`: how fast which replica would apply a log, with how many workers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::Args;
use engine::quality::Exact;
use engine::survey::totals::Costs as PathCosts;
use engine::survey::{Depth, Totals};
use sim::replica::{Costs, Model, Trace};

use super::connect::{self, End};
use super::inspect::{definitions, read_files, threads};
use crate::inspect::pipeline::Found;
use crate::report::inspect::InspectReport;
use crate::report::inspect::model::Limits;
use crate::report::out::say;
use crate::report::simulate::{PolicyReport, SimulateReport, page, text};
use crate::simulate::trace::Collector;
use crate::simulate::{calibrate, run as runs};

/// Predict how fast native replicas and heddle would apply binary logs, by number of workers
///
/// Takes the dependencies that are in the logs and a model of costs; applies nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    heddle simulate /var/lib/mysql/binlog.0000* --workers 1,4,16,64\n  \
    heddle simulate binlog.index --schema schema.sql --calibrate mysql://root@replica:3306 --cores 16 --html speedups.html\n\n\
    Policies: serial, mysql-database, mysql-logical-clock[-unordered], mysql-writeset[-unordered], mysql-writeset-session[-unordered], \
    mariadb-minimal, mariadb-conservative, mariadb-optimistic, mariadb-aggressive, heddle[-POLICY][-grouping|-unordered] with any policy of heddle policies \
    (without one, writeset); or all that the log has what it takes for.\n\n\
    Exit codes: as heddle inspect")]
pub struct SimulateArgs {
    /// Binary log files, a directory, or an index file
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Numbers of workers
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8,16,32,64,128,256",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    workers: Vec<u16>,
    /// Policies, or all; without it, those that people choose among
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policy: Vec<String>,
    /// Table definitions: the output of mysqldump --no-data --databases …, or mysql://… of a server that has them
    #[arg(long, value_name = "FILE|URL")]
    schema: Option<String>,
    /// Measure the costs on this server (makes and drops the schema heddle_calibration)
    #[arg(long, value_name = "URL")]
    calibrate: Option<String>,
    /// Costs as an earlier run had them: the file that its --json went into
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    costs: Option<PathBuf>,
    /// With --calibrate: let the server write its binary log meanwhile, as a replica with log_replica_updates does. The transactions stay in it: only for a
    /// server that nobody replicates from
    #[arg(long, requires = "calibrate")]
    calibrate_logged: bool,
    /// Processors of the replica; without it, of this machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    cores: Option<u16>,
    /// A durable commit's sync of the engine's log, in microseconds; 0: not durable
    #[arg(long, value_name = "US")]
    sync_us: Option<f64>,
    /// The sync of the binary log that comes after it, in microseconds; 0: none
    #[arg(long, value_name = "US")]
    log_sync_us: Option<f64>,
    /// Heddle: what a transaction by itself costs more than by the server's own applier, in microseconds
    #[arg(long, value_name = "US")]
    heddle_us: Option<f64>,
    /// Heddle: from statements to their answer, in microseconds
    #[arg(long, value_name = "US")]
    round_trip_us: Option<f64>,
    /// Processor time of a transaction without rows, in microseconds
    #[arg(long, value_name = "US")]
    transaction_us: Option<f64>,
    /// Processor time of a row, in microseconds
    #[arg(long, value_name = "US")]
    row_us: Option<f64>,
    /// Share of rows whose page is not cached, 0 to 1
    #[arg(long, value_name = "SHARE")]
    miss_share: Option<f64>,
    /// Reading such a page, in microseconds
    #[arg(long, value_name = "US")]
    miss_us: Option<f64>,
    /// Transactions to simulate, from the start of the log (about 100 bytes of memory each)
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    transactions: usize,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    /// Also write the report with plots into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

pub fn run(args: &SimulateArgs) -> Result<ExitCode> {
    let asked = asked(&args.policy)?;
    let calibrated = args.calibrate.as_deref().map(|url| connect::options(End::Target, url, None)).transpose()?;
    if let Some(options) = &calibrated {
        calibrate::reach(options)?;
    }
    let definitions = definitions(args.schema.as_deref())?;
    let full = AtomicBool::new(false);
    let limit = args.transactions.clamp(1, u32::MAX as usize / 4);
    let mut collector = Collector::new(limit, &full);
    let totals = Totals::with_exact(Depth::Keys, PathCosts::default(), Exact::new(usize::MAX, usize::MAX));
    let found = read_files(&args.paths, definitions, threads(args.threads), totals, Some(&mut collector), &full)?;
    let trace = collector.trace;
    if trace.transactions.is_empty() {
        match found.troubles.first() {
            Some(trouble) => bail!("{trouble}"),
            None => bail!("there are no transactions in these files"),
        }
    }
    let (costs, calibration) = costs(args, calibrated.as_ref(), shape(&found.totals))?;
    let models = asked.of(&trace);
    let mut workers: Vec<usize> = args.workers.iter().map(|&number| number.into()).collect();
    workers.sort_unstable();
    workers.dedup();
    let serial = Model::Serial.run(&trace, &costs, 1).seconds;
    let outcomes = runs::all(&trace, &costs, &models, &workers, threads(args.threads));
    let problems = found.troubles.iter().map(ToString::to_string).collect();
    let notes = unknown_keys(found).into_iter().collect();
    let report = SimulateReport {
        transactions: trace.transactions.len() as u64,
        rows: trace.transactions.iter().map(|applied| u64::from(applied.rows)).sum(),
        serial_transactions_per_second: if serial > 0.0 { trace.transactions.len() as f64 / serial } else { 0.0 },
        workers: workers.clone(),
        truncated: full.load(Ordering::Relaxed),
        costs,
        calibration,
        assumptions: Model::ASSUMPTIONS.to_vec(),
        notes,
        policies: outcomes.iter().map(|(model, outcomes)| PolicyReport::new(*model, outcomes, serial)).collect(),
        problems,
    };
    if let Some(path) = &args.html {
        std::fs::write(path, page(&report)).with_context(|| format!("--html {}", path.display()))?;
    }
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        say!("{}", text(&report).trim_end());
    }
    let partial = !report.problems.is_empty();
    Ok(ExitCode::from(if partial { super::EXIT_PARTIAL } else { super::EXIT_OK }))
}

/// Tables whose keys are not known are taken as one row each.
fn unknown_keys(found: Found) -> Option<String> {
    let report = InspectReport::new(found, Limits { hot_keys: 0, tables: usize::MAX });
    let tables = report.tables.iter();
    let unknown = |cause: Option<&str>| matches!(cause, Some("keys_unknown" | "definition_differs"));
    let names: Vec<String> = tables
        .filter(|table| unknown(table.ordered_as_a_whole))
        .map(|table| format!("{}.{}", table.schema, table.table))
        .collect();
    let shown: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the keys of {} tables are not known ({}{}): what goes by exact dependencies (heddle; MariaDB's optimistic and aggressive) takes \
             each as one row and comes out too slow; give their definitions with --schema",
            names.len(),
            shown.join(", "),
            if names.len() > 3 { ", …" } else { "" }
        )
    })
}

/// Which policies are asked for.
enum Asked {
    /// Of those that the log has what it takes for, what people choose among.
    Usual,
    All,
    These(Vec<Model>),
}

impl Asked {
    fn of(self, trace: &Trace) -> Vec<Model> {
        match self {
            Self::Usual => runs::applicable(trace).into_iter().filter(|model| model.is_usual()).collect(),
            Self::All => runs::applicable(trace),
            Self::These(models) => models,
        }
    }
}

fn asked(names: &[String]) -> Result<Asked> {
    match names {
        [] => return Ok(Asked::Usual),
        names if names.iter().any(|name| name == "all") => return Ok(Asked::All),
        _ => {}
    }
    let find = |name: &String| {
        Model::by_name(name).with_context(|| {
            let known: Vec<String> = Model::all().into_iter().map(Model::name).collect();
            format!("--policy {name}: known are all, {}", known.join(", "))
        })
    };
    names.iter().map(find).collect::<Result<Vec<Model>>>().map(Asked::These)
}

/// The costs of a report.
fn earlier(path: &Path) -> Result<Costs> {
    #[derive(serde::Deserialize)]
    struct Report {
        costs: Costs,
    }
    let report: Report = serde_json::from_slice(&std::fs::read(path)?).context("not what simulate --json writes")?;
    let costs = report.costs;
    let all = serde_json::to_value(costs)?;
    let numbers = all.as_object().into_iter().flat_map(|costs| costs.iter());
    for (name, value) in numbers {
        if !value.as_f64().is_some_and(|value| (0.0..=1e9).contains(&value)) {
            bail!("{name} is {value}: 0 to 1000000000");
        }
    }
    if costs.cores == 0 {
        bail!("cores is 0");
    }
    Ok(costs)
}

/// What the log's rows are like.
fn shape(totals: &Totals) -> calibrate::Shape {
    let traffic = &totals.traffic;
    let bytes = totals.tables.values().map(|table| table.traffic.bytes).sum();
    calibrate::Shape::new(traffic.inserts, traffic.updates, traffic.deletes, bytes)
}

fn costs(
    args: &SimulateArgs,
    calibrated: Option<&wire::ConnectOptions>,
    shape: calibrate::Shape,
) -> Result<(Costs, Option<calibrate::Measured>)> {
    let cores = args.cores.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let mut costs = Costs { cores, ..Costs::default() };
    let mut calibration = None;
    if let Some(path) = &args.costs {
        costs = earlier(path).with_context(|| format!("--costs {}", path.display()))?;
        costs.cores = args.cores.map_or(costs.cores, usize::from).max(1);
    }
    if let Some(options) = calibrated {
        let (measured, report) = calibrate::measure(options, &costs, shape, args.calibrate_logged)?;
        (costs, calibration) = (measured, Some(report));
    }
    for (flag, asked, slot, max) in [
        ("--sync-us", args.sync_us, &mut costs.sync_us, 1e9),
        ("--log-sync-us", args.log_sync_us, &mut costs.log_sync_us, 1e9),
        ("--heddle-us", args.heddle_us, &mut costs.heddle_us, 1e9),
        ("--round-trip-us", args.round_trip_us, &mut costs.round_trip_us, 1e9),
        ("--transaction-us", args.transaction_us, &mut costs.transaction_us, 1e9),
        ("--row-us", args.row_us, &mut costs.row_us, 1e9),
        ("--miss-share", args.miss_share, &mut costs.miss_share, 1.0),
        ("--miss-us", args.miss_us, &mut costs.miss_us, 1e9),
    ] {
        let Some(value) = asked else { continue };
        if !(0.0..=max).contains(&value) {
            bail!("{flag} {value}: 0 to {max}");
        }
        *slot = value;
    }
    Ok((costs, calibration))
}
