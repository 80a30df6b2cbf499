//! `heddle compare`: whether the target has the source's rows.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use copy::compare::report::{Outcome, Report, ShowValues};
use copy::compare::watch::{Board, watch};
use copy::compare::{Choice, Counters, Pace, Repair, Request, StateRequest, TableName};
use engine::intake::{Decision, Filter, Pattern};
use indicatif::ProgressStyle;

use super::bar::Bar;
use super::connect::{self, End};
use super::exit::{EXIT_DIFFERENT, EXIT_OK, EXIT_PARTIAL, Usage};
use super::feed::server_id;
use super::headings::EXPERT;
use super::http::HttpArgs;
use super::selection::ComparedArgs;
use super::signals::Ending;
use observe::http::Http;
use observe::http::endpoint::Endpoint;
use output::say;

/// Compare the rows of a source and its replica while changes are applied. Without --repair it writes and locks nothing
///
/// Reads both in chunks, compares digests, and looks again at each row that differs. A row that the source's binary log has changed meanwhile is not reported: it is looked at
/// again until it is equal or at rest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle compare --from mysql://heddle@source:3306 --to mysql://heddle@replica:3306
  heddle compare --from mysql://heddle@source:3306 --to mysql://heddle@replica:3306 --only shop --ignore 'shop.log_*' --show-values
  heddle compare --from mysql://heddle@source:3306 --to mysql://heddle@replica:3306 --rename shop=store --ignore-column '*.*.updated_at' --json
  heddle compare --from mysql://heddle@source:3306 --to mysql://heddle@replica:3306 --watch 24h --http 127.0.0.1:9190

--repair needs INSERT, UPDATE, DELETE on the target. The target may be fed by heddle or by native replication, running or stopped. Use the --only, --ignore and --rename of the channel.
Account on the source: SELECT on the tables, REPLICATION SLAVE, REPLICATION CLIENT (MariaDB: BINLOG MONITOR). On the target: SELECT, and REPLICATION CLIENT for a native
replica (MariaDB: REPLICA MONITOR). Passwords: HEDDLE_SOURCE_PASSWORD, HEDDLE_TARGET_PASSWORD, option files, or a prompt.

Exit codes: 0 equal, or repaired · 5 different · 4 nothing differs, but some rows were changed at each look · 1 failed · 75 a server is away: try again")]
pub struct CompareArgs {
    /// The source, mysql://user@host:port[?…]
    #[arg(long, value_name = "SOURCE")]
    from: String,
    /// The replica, mysql://user@host:port[?…]
    #[arg(long, value_name = "TARGET")]
    to: String,
    #[command(flatten)]
    compared: ComparedArgs,
    /// Not these columns: schema.table.column by the source's names, with * and ?; repeat it for more
    #[arg(long, value_name = "PATTERN", value_parser = column_pattern)]
    ignore_column: Vec<ColumnPattern>,
    /// Print values that differ; without it only how long they are. Keys are printed in any case
    #[arg(long)]
    show_values: bool,
    /// Write what differs on the target, row by row, and look again. Tables without a key, and with triggers on the target, are left
    #[arg(long)]
    repair: bool,
    /// With --repair: print the statements, write nothing
    #[arg(long)]
    dry_run: bool,
    /// Keep how far it is in this file. After an interruption the same command goes on from there. The file is removed at the end
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Go round for ever, a round in this time: 24h, 90m, 30s. Exit code when it is told to end: of the last round
    #[arg(long, value_name = "DURATION", value_parser = period, conflicts_with_all = ["state", "repair", "dry_run"])]
    watch: Option<Duration>,
    #[command(flatten)]
    http: HttpArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Wait while the source or the target has more threads running
    #[arg(long, value_name = "THREADS")]
    max_load: Option<u64>,
    /// Rows of one table that are named. The rest of a table with more is not compared
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_differences: usize,
    /// The channel that feeds the target: heddle's, or a native one; default: the only one
    #[arg(long, value_name = "NAME", help_heading = EXPERT)]
    channel: Option<String>,
    /// What the query of a chunk should take, in seconds
    #[arg(long, value_name = "SECONDS", help_heading = EXPERT, default_value_t = 0.5, value_parser = chunk_time)]
    chunk_time: f64,
    /// Server id under which the source's log is read, and the next one: must differ from every replica's; default: made from both addresses
    // The next one has to be a number, too.
    #[arg(long, value_name = "N", help_heading = EXPERT, value_parser = clap::value_parser!(u32).range(1..i64::from(u32::MAX)))]
    server_id: Option<u32>,
    /// Option file for the source, groups [client] and [heddle]
    #[arg(long, value_name = "FILE", help_heading = EXPERT)]
    source_defaults_file: Option<PathBuf>,
    /// Option file for the target
    #[arg(long, value_name = "FILE", help_heading = EXPERT)]
    target_defaults_file: Option<PathBuf>,
}

/// `schema.table.column`.
#[derive(Clone, Debug)]
pub(super) struct ColumnPattern {
    table: Pattern,
    /// A pattern of one name, as patterns of schemas are.
    column: Pattern,
}

fn column_pattern(text: &str) -> Result<ColumnPattern, String> {
    let (table, column) =
        text.rsplit_once('.').filter(|(table, _)| table.contains('.')).ok_or("write schema.table.column")?;
    let parse = |text: &str| text.parse::<Pattern>().map_err(|error| error.to_string());
    Ok(ColumnPattern { table: parse(table)?, column: parse(column)? })
}

fn chunk_time(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds, such as 0.5".to_owned())?;
    if (0.01..=60.0).contains(&seconds) { Ok(seconds) } else { Err("from 0.01 to 60 seconds".to_owned()) }
}

/// `24h`, `90m`, `30s`, `7d`, or seconds.
pub(super) fn period(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no duration: write 24h, 90m or 30s");
    let units = [("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("", 1.0)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, unit) = found.ok_or_else(bad)?;
    let seconds = number.parse::<f64>().map_err(|_| bad())? * unit;
    if (1.0..=366.0 * 86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("from 1s to 366d".to_owned())
    }
}

/// The tables and columns that were asked for.
pub(super) struct TableChoice<'a> {
    filter: Option<Arc<Filter>>,
    ignored: &'a [ColumnPattern],
}

impl<'a> TableChoice<'a> {
    pub(super) fn new(filter: Option<Arc<Filter>>, ignored: &'a [ColumnPattern]) -> Self {
        Self { filter, ignored }
    }
}

impl Choice for TableChoice<'_> {
    fn target(&self, source: &TableName) -> Result<Option<TableName>, String> {
        let Some(filter) = &self.filter else { return Ok(Some(source.clone())) };
        match filter.decide(&source.schema, &source.table) {
            Decision::LeftOut => Ok(None),
            Decision::Taken { schema, table } => Ok(Some(TableName::new(schema, table))),
            Decision::Collides(rename) => {
                Err(format!("{source}: its new name by --rename {rename} is that of another table"))
            }
        }
    }

    fn is_ignored(&self, source: &TableName, column: &str) -> bool {
        self.ignored
            .iter()
            .any(|one| one.table.matches(&source.schema, &source.table) && one.column.matches(column, ""))
    }
}

pub fn run(args: &CompareArgs) -> Result<ExitCode> {
    let ending = Ending::default();
    let mut source = connect::options(End::Source, &args.from, args.source_defaults_file.as_deref())?;
    let mut target = connect::options(End::Target, &args.to, args.target_defaults_file.as_deref())?;
    source.limits.interrupt = ending.interrupt();
    target.limits.interrupt = ending.interrupt();
    let choice = TableChoice::new(args.compared.filter(), &args.ignore_column);
    let request = Request {
        server_id: args
            .server_id
            .unwrap_or_else(|| server_id("compare", &format!("{} {}", source.address(), target.address()))),
        source,
        target,
        channel: args.channel.clone(),
        pace: Pace { chunk_time: Duration::from_secs_f64(args.chunk_time), threads_running_max: args.max_load },
        differences_max: args.max_differences,
        repair: args.repair.then_some(if args.dry_run { Repair::Shown } else { Repair::Written }),
        state: args.state.clone().map(|path| StateRequest { path, options: options_of(args) }),
        show_values: if args.show_values { ShowValues::Shown } else { ShowValues::Masked },
    };
    let listen = args.http.listen().map_err(Usage)?;
    if let Some(period) = args.watch {
        return go_round(args, &request, &choice, period, listen, &ending);
    }
    if listen.is_some() {
        return Err(Usage("--http shows a comparison that goes round: give --watch, too".to_owned()).into());
    }
    ending.watch()?;
    let counters = Arc::new(Counters::default());
    let bar = progress(&counters);
    let report = copy::compare::compare(&request, &choice, &counters, None, &ending.stop);
    bar.finish();
    let report = report?;
    show(&report, args.json)?;
    Ok(ExitCode::from(exit_code(report.outcome)))
}

fn go_round(
    args: &CompareArgs,
    request: &Request,
    choice: &TableChoice<'_>,
    period: Duration,
    listen: Option<Endpoint>,
    ending: &Ending,
) -> Result<ExitCode> {
    let board = Arc::new(Board::new(period));
    let _http = listen.map(|listen| Http::start_compare(listen, Arc::clone(&board))).transpose()?;
    ending.watch()?;
    let last = watch(request, choice, &board, &ending.stop, |report| show(report, args.json))?;
    // Without a whole round nothing is known of a part.
    Ok(ExitCode::from(last.map_or(EXIT_PARTIAL, exit_code)))
}

fn show(report: &Report, is_json: bool) -> Result<()> {
    if is_json {
        output::streams::json(&serde_json::to_string(report).context("the report as JSON")?);
    } else {
        say!("{}", report.text().trim_end());
    }
    Ok(())
}

fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Equal | Outcome::Repaired => EXIT_OK,
        Outcome::Different => EXIT_DIFFERENT,
        Outcome::Unsettled => EXIT_PARTIAL,
    }
}

/// What has to be the same for going on: all that changes what is compared, or what the report has.
fn options_of(args: &CompareArgs) -> String {
    let CompareArgs { compared, ignore_column, show_values, repair, dry_run, max_differences, channel, .. } = args;
    format!("{:?}", (compared, ignore_column, show_values, repair, dry_run, max_differences, channel))
}

fn progress(counters: &Arc<Counters>) -> Bar {
    let style = ProgressStyle::with_template(
        "{bar:40} {percent:>3}%  {human_pos} of about {human_len} rows  {per_sec}  {eta} left",
    );
    let (done, length) = (Arc::clone(counters), Arc::clone(counters));
    Bar::growing(
        move || length.rows_estimate.load(Ordering::Relaxed),
        style.ok(),
        move || done.rows.load(Ordering::Relaxed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(period(text).ok().map(|period| period.as_secs()), seconds, "{text}");
        };
        check("24h", Some(86_400));
        check("1.5m", Some(90));
        check("7d", Some(604_800));
        check("30s", Some(30));
        check("45", Some(45));
        for bad in ["", "h", "0", "-1h", "1w", "400d", "nan", "1 h"] {
            check(bad, None);
        }
    }

    #[test]
    fn columns_by_patterns() {
        let check = |pattern: &str, column: &str, expected: bool| {
            let ignored = [column_pattern(pattern).unwrap()];
            let choice = TableChoice { filter: None, ignored: &ignored };
            assert_eq!(choice.is_ignored(&TableName::new("shop", "orders"), column), expected, "{pattern} {column}");
        };
        check("shop.orders.at", "at", true);
        check("shop.orders.at", "AT", true);
        check("*.*.updated_*", "updated_at", true);
        check("shop.items.at", "at", false);
        check("shop.orders.a", "at", false);
        assert!(column_pattern("orders.at").is_err());
    }
}
