//! `heddle simulate`: how fast which replica would apply a log, with how many workers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::Args;
use engine::intake::Selection;
use engine::policy::{self, SourceTags, WriteSets};
use engine::quality::ExactModel;
use engine::survey::totals::Costs as PathCosts;
use engine::survey::{Depth, Totals};
use sim::replica::{Costs, Model, Tags, Trace};

use super::connect::{self, End};
use super::headings::EXPERT;
use super::inspect::{definitions, may_write, read_files, threads};
use super::selection::PartArgs;
use insight::inspect::pipeline::LogSurvey;
use insight::inspect::report::InspectReport;
use insight::inspect::report::build::Limits;
use insight::simulate::report::{PolicyReport, SimulateReport, SourceRate, Verdict, page, text, verdict};
use insight::simulate::trace::Collector;
use insight::simulate::{calibrate, run as runs};
use output::say;

/// Numbers of transactions have to fit into 32 bits, with room.
const TRANSACTIONS_MAX: i64 = u32::MAX as i64 / 4;
/// Of times, in microseconds, and of processors.
const MICROSECONDS_MAX: f64 = 1e9;
const CORES_MAX: u16 = 4_096;

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
    /// Binary log files, a directory, or an index file; - is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Numbers of workers
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4,8,16,32,64,128,256",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    workers: Vec<u16>,
    /// Policies, or all; without it, those that people choose among
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = policy_name)]
    policy: Vec<String>,
    /// Table definitions: output of mysqldump --no-data --databases …, or mysql://… of a server that has them
    #[arg(long, value_name = "FILE|URL")]
    schema: Option<String>,
    #[command(flatten)]
    part: PartArgs,
    /// Also write the report with plots into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    /// Processors of the replica; without it, of this machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(CORES_MAX)))]
    cores: Option<u16>,
    /// Measure the costs on this server (makes and drops the schema heddle_calibration)
    #[arg(long, value_name = "URL")]
    calibrate: Option<String>,
    /// Costs as an earlier run had them: the file that its --json went into
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    costs: Option<PathBuf>,
    /// With --calibrate: also write the server's binary log, as a replica with log_replica_updates does. Only for a server that nobody
    /// replicates from
    #[arg(long, help_heading = EXPERT, requires = "calibrate")]
    calibrate_logged: bool,
    /// A durable commit's sync of the engine's log, in microseconds; 0: not durable
    #[arg(long, help_heading = EXPERT, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    sync_us: Option<f64>,
    /// The sync of the binary log that comes after it, in microseconds; 0: none
    #[arg(long, help_heading = EXPERT, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    log_sync_us: Option<f64>,
    /// Heddle: extra cost of a transaction by itself, beside the server's own applier, in microseconds
    #[arg(long, help_heading = EXPERT, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    heddle_us: Option<f64>,
    /// Heddle: from statements to their answer, in microseconds
    #[arg(long, help_heading = EXPERT, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    round_trip_us: Option<f64>,
    /// Processor time of a transaction without rows, in microseconds
    #[arg(long, help_heading = EXPERT, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    transaction_us: Option<f64>,
    /// Processor time of a row, in microseconds
    #[arg(long, help_heading = EXPERT, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    row_us: Option<f64>,
    /// Share of rows whose page is not cached, 0 to 1
    #[arg(long, help_heading = EXPERT, value_name = "SHARE", allow_negative_numbers = true, value_parser = share)]
    miss_share: Option<f64>,
    /// Reading such a page, in microseconds
    #[arg(long, help_heading = EXPERT, value_name = "US", allow_negative_numbers = true, value_parser = microseconds)]
    miss_us: Option<f64>,
    /// Transactions to simulate, from the start of the log (about 120 bytes of memory each, and 8 for each key)
    #[arg(long, help_heading = EXPERT, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=TRANSACTIONS_MAX))]
    transactions: u32,
    /// Threads
    #[arg(long, help_heading = EXPERT, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

pub fn run(args: &SimulateArgs) -> Result<ExitCode> {
    let asked = Asked::new(&args.policy);
    let calibrated = args.calibrate.as_deref().map(|url| connect::options(End::Target, url, None)).transpose()?;
    if let Some(options) = &calibrated {
        calibrate::reach(options)?;
    }
    may_write(args.html.as_deref())?;
    let definitions = definitions(args.schema.as_deref())?;
    let full = AtomicBool::new(false);
    let mut collector = Collector::new(args.transactions as usize, asked.write_sets(), &full);
    let mut totals = Totals::with_exact(Depth::Keys, PathCosts::default(), ExactModel::new(usize::MAX, usize::MAX));
    totals.selection = Selection::everything().filtered(args.part.filter());
    let found = read_files(&args.paths, definitions, threads(args.threads), totals, Some(&mut collector), &full)?;
    let trace = collector.trace;
    if trace.transactions.is_empty() {
        match found.troubles.first() {
            Some(trouble) => bail!("{trouble}"),
            None => bail!("there are no transactions in these files"),
        }
    }
    let (costs, calibration) = costs(args, calibrated.as_ref(), shape(&found.totals))?;
    let models = asked.of(&trace)?;
    let mut workers: Vec<usize> = args.workers.iter().map(|&number| number.into()).collect();
    workers.sort_unstable();
    workers.dedup();
    let serial = Model::Serial.run(&trace, &costs, 1).seconds;
    let outcomes = runs::all(&trace, &costs, &models, &workers, threads(args.threads));
    let problems = problems(&found);
    let (notes, source) = of_source(found);
    let mut report = SimulateReport {
        verdict: Verdict::default(),
        transactions: trace.transactions.len() as u64,
        rows: trace.transactions.iter().map(|applied| u64::from(applied.rows)).sum(),
        serial_transactions_per_second: if serial > 0.0 { trace.transactions.len() as f64 / serial } else { 0.0 },
        workers: workers.clone(),
        truncated: full.load(Ordering::Relaxed),
        costs,
        costs_from: match (&calibration, &args.costs) {
            (Some(_), _) => "calibration",
            (None, Some(_)) => "file",
            (None, None) => "defaults",
        },
        calibration,
        assumptions: Model::ASSUMPTIONS.to_vec(),
        notes,
        policies: outcomes
            .iter()
            .map(|(model, outcomes)| PolicyReport::new(*model, outcomes, serial, &source))
            .collect(),
        source,
        problems,
    };
    report.verdict = verdict(&report);
    if let Some(path) = &args.html {
        std::fs::write(path, page(&report)).with_context(|| format!("--html {}", path.display()))?;
    }
    if args.json {
        output::streams::json(&serde_json::to_string_pretty(&report)?);
    } else {
        say!("{}", text(&report).trim_end());
    }
    let partial = !report.problems.is_empty();
    Ok(ExitCode::from(if partial { super::exit::EXIT_PARTIAL } else { super::exit::EXIT_OK }))
}

/// What could not be read.
fn problems(found: &LogSurvey) -> Vec<String> {
    let mut problems: Vec<String> = found.troubles.iter().map(ToString::to_string).collect();
    if found.more_troubles > 0 {
        problems.push(format!("and {} more", found.more_troubles));
    }
    problems
}

/// What makes the predictions worse than they need be, and what the log's times are worth; and how fast the source was.
fn of_source(found: LogSurvey) -> (Vec<String>, SourceRate) {
    let report = InspectReport::new(found, Limits { hot_keys: 0, tables: usize::MAX });
    (report.notes.iter().cloned().chain(unknown_keys(&report)).collect(), SourceRate::new(&report))
}

/// Tables whose keys are not known are taken as one row each.
fn unknown_keys(report: &InspectReport) -> Option<String> {
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
    fn new(names: &[String]) -> Self {
        if names.is_empty() {
            return Self::Usual;
        }
        if names.iter().any(|name| name == ALL) {
            return Self::All;
        }
        Self::These(names.iter().filter_map(|name| Model::by_name(name, policy::ALL)).collect())
    }

    /// What the trace has to have beside our own keys.
    fn write_sets(&self) -> WriteSets {
        let wants = |model: &Model| match model {
            Model::Heddle { policy, .. } => policy.requires.write_sets,
            _ => WriteSets::Heddle,
        };
        match self {
            Self::Usual => WriteSets::Heddle,
            Self::All => WriteSets::Server,
            Self::These(models) if models.iter().any(|model| wants(model) == WriteSets::Server) => WriteSets::Server,
            Self::These(_) => WriteSets::Heddle,
        }
    }

    fn of(self, trace: &Trace) -> Result<Vec<Model>> {
        let known = runs::applicable(trace, policy::ALL);
        match self {
            Self::Usual => Ok(known.into_iter().filter(|model| model.is_usual()).collect()),
            Self::All => Ok(known),
            Self::These(models) => {
                if let Some(model) = models.iter().find(|model| !known.contains(model)) {
                    let (name, needs) = (model.name(), needs(*model));
                    bail!("--policy {name} is for {needs}; `--policy all` is every one that goes with this log");
                }
                Ok(models)
            }
        }
    }
}

/// What a log has to have for a model.
fn needs(model: Model) -> &'static str {
    let source = match model {
        Model::MariaDb { .. } => SourceTags::GroupCommits,
        Model::LogicalClock { tags: Tags::Source, .. } => SourceTags::LogicalClock,
        Model::Heddle { policy, .. } => policy.requires.source,
        _ => SourceTags::Any,
    };
    match source {
        SourceTags::GroupCommits => "logs of MariaDB",
        SourceTags::LogicalClock => "logs with logical clock tags (MySQL 5.7 and later)",
        SourceTags::Any => "logs of MySQL",
    }
}

/// Every policy that goes with the log.
const ALL: &str = "all";

fn policy_name(name: &str) -> Result<String, String> {
    if name == ALL || Model::by_name(name, policy::ALL).is_some() {
        return Ok(name.to_owned());
    }
    let known: Vec<String> = Model::all(policy::ALL).into_iter().map(Model::name).collect();
    Err(format!("known are {ALL}, {}", known.join(", ")))
}

fn microseconds(text: &str) -> Result<f64, String> {
    within(text, MICROSECONDS_MAX)
}

fn share(text: &str) -> Result<f64, String> {
    within(text, 1.0)
}

fn within(text: &str, max: f64) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=max).contains(&value) { Ok(value) } else { Err(format!("{value} is not in 0..={max}")) }
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
        // The last word of a name is its unit.
        let max = if name.ends_with("_share") { 1.0 } else { MICROSECONDS_MAX };
        if !value.as_f64().is_some_and(|value| (0.0..=max).contains(&value)) {
            bail!("{name} is {value}: 0 to {max}");
        }
    }
    if !(1..=usize::from(CORES_MAX)).contains(&costs.cores) {
        bail!("cores is {}: 1 to {CORES_MAX}", costs.cores);
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
) -> Result<(Costs, Option<calibrate::Calibration>)> {
    let cores = args.cores.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let mut costs = Costs { cores, ..Costs::default() };
    let mut calibration = None;
    if let Some(path) = &args.costs {
        costs = earlier(path).with_context(|| format!("--costs {}", path.display()))?;
        costs.cores = args.cores.map_or(costs.cores, usize::from);
    }
    if let Some(options) = calibrated {
        let (measured, report) = calibrate::measure(options, &costs, shape, args.calibrate_logged)?;
        (costs, calibration) = (measured, Some(report));
    }
    for (asked, slot) in [
        (args.sync_us, &mut costs.sync_us),
        (args.log_sync_us, &mut costs.log_sync_us),
        (args.heddle_us, &mut costs.heddle_us),
        (args.round_trip_us, &mut costs.round_trip_us),
        (args.transaction_us, &mut costs.transaction_us),
        (args.row_us, &mut costs.row_us),
        (args.miss_share, &mut costs.miss_share),
        (args.miss_us, &mut costs.miss_us),
    ] {
        *slot = asked.unwrap_or(*slot);
    }
    Ok((costs, calibration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: SimulateArgs,
    }

    #[test]
    fn nonsense_on_the_command_line_is_refused() {
        for (line, part) in [
            ("--miss-share 1.5", "1.5 is not in 0..=1"),
            ("--miss-share -0.1", "-0.1 is not in 0..=1"),
            ("--row-us -5", "-5 is not in 0..="),
            ("--row-us NaN", "NaN is not in 0..="),
            ("--sync-us inf", "inf is not in 0..="),
            ("--sync-us 1e30", "is not in 0..="),
            ("--transaction-us some", "not a number"),
            ("--cores 0", "0 is not in 1..=4096"),
            ("--cores 5000", "5000 is not in 1..=4096"),
            ("--workers 0", "0 is not in 1..=4096"),
            ("--workers 1,,2", "invalid value ''"),
            ("--transactions 0", "0 is not in 1..="),
            ("--policy heddle,foo", "known are all, serial, mysql-database"),
            ("--policy all,foo", "known are all, serial, mysql-database"),
            ("--policy heddle-optimistic-unordered", "known are all"),
        ] {
            let words = ["simulate", "log.000001"].into_iter().chain(line.split(' '));
            let error = Line::try_parse_from(words).expect_err(line).to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn costs_that_make_no_sense_are_refused() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let read = |name: &str, value: serde_json::Value| {
            let mut costs = serde_json::to_value(Costs::default()).expect("costs");
            costs[name] = value;
            let report = serde_json::json!({ "costs": costs, "workers": [1] });
            std::fs::write(file.path(), report.to_string()).expect("written");
            earlier(file.path()).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(read("row_us", 7.5.into()).map(|costs| costs.row_us), Ok(7.5));
        for (name, value, part) in [
            ("miss_share", 1.5.into(), "miss_share is 1.5: 0 to 1"),
            ("feed_share", 2.into(), "feed_share is 2.0: 0 to 1"),
            ("row_us", (-1).into(), "row_us is -1.0: 0 to 1000000000"),
            ("sync_us", 1e300.into(), "sync_us is 1e+300"),
            ("cores", 0.into(), "cores is 0: 1 to 4096"),
            ("cores", 100_000.into(), "cores is 100000: 1 to 4096"),
            ("cores", 2.5.into(), "not what simulate --json writes"),
            ("row_us", "a".into(), "not what simulate --json writes"),
            ("row_us", serde_json::Value::Null, "not what simulate --json writes"),
        ] {
            let error = read(name, value).expect_err(name);
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_policy_that_the_log_has_nothing_for_is_refused() {
        let named = |name: &str| Asked::new(&[name.to_owned()]);
        let (plain, tagged, groups) = (
            Trace::default(),
            Trace { has_tags: true, ..Trace::default() },
            Trace { has_groups: true, ..Trace::default() },
        );
        for (name, trace, refused) in [
            ("mysql-logical-clock", &plain, Some("logical clock tags")),
            ("mysql-logical-clock", &tagged, None),
            ("heddle-logical-clock", &groups, Some("logical clock tags")),
            ("mariadb-optimistic", &tagged, Some("logs of MariaDB")),
            ("mariadb-optimistic", &groups, None),
            ("heddle-domain", &plain, Some("logs of MariaDB")),
            ("mysql-writeset", &groups, Some("logs of MySQL")),
            ("heddle", &plain, None),
            ("serial", &groups, None),
        ] {
            let error = named(name).of(trace).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), refused.is_some(), "{name}: {error:?}");
            assert!(refused.is_none_or(|part| error.is_some_and(|error| error.contains(part))), "{name}");
        }
    }
}
