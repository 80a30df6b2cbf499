//! `heddle compare`: whether the target has the source's rows.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use copy::compare::report::{Outcome, ShowValues};
use copy::compare::{Choice, Counters, Pace, Repair, Request, StateRequest, TableName};
use engine::intake::{Decision, Filter, Pattern};
use indicatif::ProgressStyle;

use super::bar::Bar;
use super::connect::{self, End};
use super::exit::{EXIT_DIFFERENT, EXIT_OK, EXIT_PARTIAL};
use super::feed::server_id;
use super::headings::EXPERT;
use super::selection::ComparedArgs;
use super::signals::Ending;
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
struct ColumnPattern {
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

struct Chosen<'a> {
    filter: Option<Arc<Filter>>,
    ignored: &'a [ColumnPattern],
}

impl Choice for Chosen<'_> {
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
    let filter = args.compared.filter();
    let choice = Chosen { filter, ignored: &args.ignore_column };
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
    ending.watch()?;
    let counters = Arc::new(Counters::default());
    let bar = progress(&counters);
    let report = copy::compare::compare(&request, &choice, &counters, &ending.stop);
    bar.finish();
    let report = report?;
    if args.json {
        output::streams::json(&serde_json::to_string(&report).context("the report as JSON")?);
    } else {
        say!("{}", report.text().trim_end());
    }
    Ok(ExitCode::from(match report.outcome {
        Outcome::Equal | Outcome::Repaired => EXIT_OK,
        Outcome::Different => EXIT_DIFFERENT,
        Outcome::Unsettled => EXIT_PARTIAL,
    }))
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
    fn columns_by_patterns() {
        let check = |pattern: &str, column: &str, expected: bool| {
            let ignored = [column_pattern(pattern).unwrap()];
            let choice = Chosen { filter: None, ignored: &ignored };
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
