//! `heddle inspect`: what holds a replica back, from binary logs alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use clap::Args;
use engine::survey::totals::Costs;
use engine::survey::{Definitions, Depth, Sink, Totals};

use super::bar::Bar;
use super::connect::{self, End};
use super::headings::EXPERT;
use super::signals::Signals;
use crate::inspect::feed::LogFiles;
use crate::inspect::live::{self, Live};
use crate::inspect::{parquet, pipeline, schema};
use crate::report::inspect::build::Limits;
use crate::report::inspect::{InspectReport, html, text};
use crate::report::out::{may_colour, say};
use channel::source::is_url;
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
    heddle inspect --from mysql://repl@source:3306 --follow\n\n\
    Key columns come from --schema (with --from: from the server), from CREATE TABLE statements in the log, or from table maps (binlog_row_metadata=FULL).\n\n\
    Exit codes: 0 all was read · 1 nothing could be read · 2 the command line was not understood · 4 a part could not be read, and is named")]
pub struct InspectArgs {
    /// Binary log files, a directory, or an index file; - is standard input. Or an archive: s3://bucket/prefix, file:///path
    #[arg(value_name = "PATH", required_unless_present = "from", conflicts_with = "from")]
    paths: Vec<PathBuf>,
    /// A live server, read as a replica reads it: mysql://user@host:port[?…]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Table definitions: the output of mysqldump --no-data --databases …, or mysql://… of a server that has them
    #[arg(long, value_name = "FILE|URL")]
    schema: Option<String>,
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
    #[arg(long, help_heading = EXPERT, value_name = "DIR")]
    parquet: Option<PathBuf>,
    /// Tags and traffic only: no keys, no dependencies; several times as fast
    #[arg(long, help_heading = EXPERT)]
    quick: bool,
    /// With --from: the first file to read; without it the oldest, or with --follow the one that is being written
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
    let depth = if args.quick { Depth::Traffic } else { Depth::Keys };
    let totals = Totals::new(depth, Costs::default());
    let failed = AtomicBool::new(false);
    let mut parquet = match &args.parquet {
        Some(dir) => Some(parquet::Writer::new(dir, &failed)?),
        None => None,
    };
    may_write(args.html.as_deref())?;
    let sink = parquet.as_mut().map(|writer| writer as &mut (dyn Sink + Send));
    let mut found = match &args.from {
        Some(url) => read_live(args, url, totals, sink)?,
        None => {
            let definitions = definitions(args.schema.as_deref())?;
            read_files(&args.paths, definitions, threads(args.threads), totals, sink, &failed)?
        }
    };
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
        crate::report::out::json(&serde_json::to_string_pretty(&report)?);
    } else {
        say!("{}", text::summary(&report, may_colour(&std::io::stdout())).trim_end());
    }
    Ok(ExitCode::from(if partial { super::exit::EXIT_PARTIAL } else { super::exit::EXIT_OK }))
}

fn read_live<'s>(
    args: &InspectArgs,
    url: &str,
    totals: Totals,
    sink: Option<&mut (dyn Sink + Send + 's)>,
) -> Result<pipeline::Found> {
    let mut options = connect::options(End::Source, url, args.source_defaults_file.as_deref())?;
    let definitions = match &args.schema {
        Some(_) => definitions(args.schema.as_deref())?,
        None => schema::read_server(&options).context("reading the server's table definitions")?,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let signals = Signals::watch(&stop)?;
    options.limits.interrupt = Interrupt::new(Arc::clone(&stop));
    let live =
        Live { options, start: args.start.clone(), offset: None, follow: args.follow, server_id: args.server_id };
    let found = live::run(&live, definitions, totals, sink, &stop);
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

/// The files that the paths stand for, on this machine or in an archive, and what is missing of them.
fn discover(paths: &[PathBuf], stop: &Arc<AtomicBool>) -> Result<(LogFiles, Vec<String>)> {
    if let [url] = paths
        && let Some(url) = url.to_str().filter(|url| archive::is_url(url))
    {
        let archived = super::archive::files(url, stop)?;
        let gaps = archived.state().files.iter().skip(1).filter(|file| file.is_behind_gap);
        let gaps = gaps.map(|file| format!("the files before {} were never archived", file.name)).collect();
        return Ok((LogFiles { paths: archived.paths(), archive: Some(archived) }, gaps));
    }
    let (files, missing) = relay::FileSource::discover_all(paths).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok((files.into(), missing.iter().map(ToString::to_string).collect()))
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
) -> Result<pipeline::Found> {
    // As everywhere, and there are names for it wherever this runs.
    let stdin = |path: &PathBuf| if path.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { path.clone() };
    let paths: Vec<PathBuf> = paths.iter().map(stdin).collect();
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
