//! `heddle inspect`: what holds a replica back, from binary logs alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use clap::Args;
use engine::intake::Selection;
use engine::survey::search::Pattern;
use engine::survey::totals::Costs;
use engine::survey::{Definitions, Depth, Sink, Totals};

use super::bar::Bar;
use super::connect::{self, End};
use super::exit::Usage;
use super::headings::EXPERT;
use super::log_files::{discover, with_stdin};
use super::search;
use super::selection::PartArgs;
use super::signals::Signals;
use channel::source::is_url;
use insight::inspect::live_server::{self, LiveServer};
#[cfg(feature = "parquet")]
use insight::inspect::parquet;
use insight::inspect::report::build::Limits;
use insight::inspect::report::{InspectReport, html, text};
use insight::inspect::{pipeline, schema};
use output::say;
use output::streams::may_colour;
use wire::Interrupt;

/// Show what holds a replica back: parallelism, barriers, hot rows, traffic
///
/// Reads binary log files of any supported server version, or those of a live server. Applies nothing. Tells how parallel the source's tags are (AMIL,
/// group sizes), how parallel WRITESET and exact dependencies would be, what the critical path waits for, and what to do about it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    heddle inspect /var/lib/mysql/binlog.0000*\n  \
    heddle inspect /backup/binlogs --schema schema.sql --html report.html\n  \
    heddle inspect s3://bucket/shop\n  \
    heddle inspect binlog.index --json | jq .findings\n  \
    heddle inspect --from mysql://repl@source:3306 --follow\n  \
    heddle inspect /backup/binlogs --find 'delete shop.orders' --where id=7\n\n\
    Key columns come from --schema (with --from: from the server), from CREATE TABLE statements in the log, or from table maps (binlog_row_metadata=FULL).\n\n\
    Exit codes: 0 all was read · 1 nothing could be read · 2 the command line was not understood · 4 a part could not be read, and is named · 5 --find: all was read, nothing was found")]
pub struct InspectArgs {
    /// Binary log files, a directory, or an index file; - is standard input. Or an archive: s3://bucket/prefix, file:///path
    #[arg(value_name = "PATH", required_unless_present = "from", conflicts_with = "from")]
    paths: Vec<PathBuf>,
    /// A live server, read as a replica reads it: mysql://user@host:port[?…]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Table definitions: output of mysqldump --no-data --databases …, or mysql://… of a server that has them
    #[arg(long, value_name = "FILE|URL")]
    schema: Option<String>,
    /// Only look for a change: insert, update, delete, create, alter, truncate, drop or any, and SCHEMA.TABLE; each name may have *
    ///
    /// Prints GTID, position, time, the rows' keys, and the command that restores to just before it.
    #[arg(long, value_name = "'KIND TABLE'", conflicts_with_all = ["html", "quick", "threads"])]
    find: Option<String>,
    /// With --find: only rows with this value, before or after the change; @1=7 by number if names are not known. Can be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "find")]
    conditions: Vec<String>,
    /// With --find: end after so many transactions
    #[arg(long, value_name = "N", requires = "find", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    #[command(flatten)]
    part: PartArgs,
    /// Also write the report with plots into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    /// With --from: go on until a signal, then report
    #[arg(long, requires = "from")]
    follow: bool,
    /// Tables and hot rows to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    top: usize,
    /// Option file for --from, groups [client] and [heddle]
    #[arg(long, value_name = "FILE", requires = "from")]
    source_defaults_file: Option<PathBuf>,
    /// Also write one row a transaction into Parquet files in this new or empty folder, for DuckDB, Spark, ClickHouse
    #[cfg(feature = "parquet")]
    #[arg(long, help_heading = EXPERT, value_name = "DIR", conflicts_with = "find")]
    parquet: Option<PathBuf>,
    /// Tags and traffic only: no keys, no dependencies; several times as fast
    #[arg(long, help_heading = EXPERT)]
    quick: bool,
    /// With --from: the first file to read; default: the oldest, with --follow the one that is being written
    #[arg(long, help_heading = EXPERT, value_name = "NAME", requires = "from")]
    start: Option<String>,
    /// With --from: this reader's number, different from every replica's
    #[arg(long, help_heading = EXPERT, value_name = "N", requires = "from", default_value_t = 0x6865_6464)]
    server_id: u32,
    /// Threads that read; the result is the same with any number
    #[arg(long, help_heading = EXPERT, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

/// Finds out before hours of reading, not after them.
pub fn may_write(html: Option<&Path>) -> Result<()> {
    let Some(path) = html else { return Ok(()) };
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(|_| ()).with_context(|| format!("--html {}", path.display()))
}

pub fn run(args: &InspectArgs) -> Result<ExitCode> {
    if let Some(find) = &args.find {
        return find_changes(args, find);
    }
    let depth = if args.quick { Depth::Traffic } else { Depth::Keys };
    let mut totals = Totals::new(depth, Costs::default());
    totals.selection = Selection::everything().filtered(args.part.filter());
    let failed = AtomicBool::new(false);
    #[cfg(feature = "parquet")]
    let mut parquet = args.parquet.as_deref().map(|dir| parquet::Writer::new(dir, &failed)).transpose()?;
    may_write(args.html.as_deref())?;
    #[cfg(feature = "parquet")]
    let sink = parquet.as_mut().map(|writer| writer as &mut (dyn Sink + Send));
    #[cfg(not(feature = "parquet"))]
    let sink = None;
    let mut found = match &args.from {
        Some(url) => read_live(args, url, totals, sink)?,
        None => {
            let definitions = definitions(args.schema.as_deref())?;
            read_files(&args.paths, definitions, threads(args.threads), totals, sink, &failed)?
        }
    };
    #[cfg(feature = "parquet")]
    if let Some(parquet) = parquet {
        parquet.finish()?;
    }
    let nothing = found.totals.events == 0;
    if nothing && let Some(trouble) = found.troubles.first() {
        bail!("{trouble}");
    }
    let partial = !found.troubles.is_empty() || found.more_troubles > 0;
    found.troubles.sort_by(|a, b| (&a.file, a.problem.offset).cmp(&(&b.file, b.problem.offset)));
    let report = InspectReport::new(found, Limits { hot_keys: args.top, tables: args.top });
    if let Some(path) = &args.html {
        std::fs::write(path, html::page(&report)).with_context(|| format!("--html {}", path.display()))?;
    }
    if args.json {
        output::streams::json(&serde_json::to_string_pretty(&report)?);
    } else {
        say!("{}", text::summary(&report, may_colour(&std::io::stdout())).trim_end());
    }
    Ok(ExitCode::from(if partial { super::exit::EXIT_PARTIAL } else { super::exit::EXIT_OK }))
}

/// `--find`
fn find_changes(args: &InspectArgs, find: &str) -> Result<ExitCode> {
    let pattern = Pattern::parse(find, &args.conditions).map_err(|what| Usage(format!("--find: {what}")))?;
    let request = search::Request { pattern, limit: args.limit, json: args.json };
    let Some(url) = &args.from else {
        return search::in_files(&args.paths, definitions(args.schema.as_deref())?, request);
    };
    let (live, definitions) = live_server(args, url)?;
    search::in_server(live, wire::redacted(url), definitions, request)
}

/// What there is to read of a live server, and its tables' definitions.
fn live_server(args: &InspectArgs, url: &str) -> Result<(LiveServer, Definitions)> {
    let options = connect::options(End::Source, url, args.source_defaults_file.as_deref())?;
    let definitions = match &args.schema {
        Some(_) => definitions(args.schema.as_deref())?,
        None => schema::read_server(&options).context("reading the server's table definitions")?,
    };
    let live =
        LiveServer { options, start: args.start.clone(), offset: None, follow: args.follow, server_id: args.server_id };
    Ok((live, definitions))
}

fn read_live<'s>(
    args: &InspectArgs,
    url: &str,
    totals: Totals,
    sink: Option<&mut (dyn Sink + Send + 's)>,
) -> Result<pipeline::LogSurvey> {
    let (mut live, definitions) = live_server(args, url)?;
    let stop = Arc::new(AtomicBool::new(false));
    let signals = Signals::watch(&stop)?;
    live.options.limits.interrupt = Interrupt::new(Arc::clone(&stop));
    let found = live_server::run(&live, definitions, totals, sink, &stop);
    drop(signals);
    found
}

/// `--schema`
pub fn definitions(schema: Option<&str>) -> Result<Definitions> {
    match schema {
        None => Ok(Definitions::default()),
        Some(url) if is_url(url) => schema::read_server(&connect::options(End::Source, url, None)?).context("--schema"),
        Some(path) => schema::read(Path::new(path)),
    }
}

/// As many as there are processors, unless somebody says.
pub fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(pipeline::threads_by_default, usize::from)
}

/// Reads what the paths stand for, with a progress bar; SIGINT, or
/// `enough`, ends with what was read so far.
pub fn read_files(
    paths: &[PathBuf],
    definitions: Definitions,
    threads: usize,
    totals: Totals,
    sink: Option<&mut (dyn Sink + Send)>,
    enough: &AtomicBool,
) -> Result<pipeline::LogSurvey> {
    let paths = with_stdin(paths);
    let (read, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (files, missing) = discover(&paths, &stop)?;
    let bar = Bar::of_bytes(files.total_bytes(), &read);
    let signals = Signals::watch(&stop)?;
    let first = files.paths.first().cloned().unwrap_or_default();
    let mut found = pipeline::run(files, definitions, threads, totals, sink, &read, &[&stop, enough]);
    drop(signals);
    bar.finish();
    for error in missing {
        found.troubles.push(pipeline::trouble(PathBuf::new(), error));
    }
    found.troubles.extend(pipeline::mixed(&found.files));
    if stop.load(Ordering::Relaxed) {
        found.troubles.push(pipeline::trouble(first, "stopped by a signal before the end".to_owned()));
    }
    Ok(found)
}
