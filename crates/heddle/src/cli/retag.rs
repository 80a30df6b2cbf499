//! `heddle retag`: copies of binary log files that unmodified replicas apply in parallel.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use anyhow::Result;
use clap::Args;
use engine::retag::{Cause, NewTag, Options};
use serve::retag::{Job, retag};

use super::bar::Bar;
use super::byte_size::parse_bytes;
use super::headings::EXPERT;
use super::inspect::definitions;
use super::signals::Signals;
use insight::retag::{Line, Report};
use output::say;
use output::streams::json;

/// Memory of a key that is remembered, about.
const KEY_BYTES: u64 = 64;
/// A transaction with more bytes is not looked into.
const TRANSACTION_BYTES_MAX: u64 = 64 << 20;

/// Tag binary log files anew, from exact write sets, so that native replicas apply them in parallel
///
/// Writes copies in which last_committed (MySQL) says what each transaction really has to follow, and transactions without a common key share a commit id
/// (MariaDB). Names and GTIDs stay; with MySQL sizes and positions, too. A tag is never above the source's; where a table's keys are not surely known, it is the source's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    heddle retag /var/lib/mysql/binlog.0000* --schema schema.sql --out /srv/retagged\n  \
    heddle retag /backup/binlogs --out /srv/retagged --explain | less\n\n\
    Keys come from CREATE TABLE statements in the log, or from --schema. A table that a statement of these files changes is known from its next CREATE TABLE on.\n\n\
    Exit codes: 0 done · 1 failed, and no copy stays · 2 the command line was not understood")]
pub struct RetagArgs {
    /// Binary log files, a directory, or an index file
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// A new or an empty folder for the copies
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Table definitions: output of mysqldump --no-data --databases …, or mysql://… of a server that has them
    #[arg(long, value_name = "FILE|URL")]
    schema: Option<String>,
    /// Say for each transaction what it waits for: a key, a table, a definition
    #[arg(long)]
    explain: bool,
    /// Machine-readable output; with --explain one object a line, the summary last
    #[arg(long)]
    json: bool,
    /// Transactions of one session keep their order, as with WRITESET_SESSION
    #[arg(long)]
    keep_session_order: bool,
    /// Memory for keys of earlier transactions; forgotten keys are waited for
    #[arg(long, help_heading = EXPERT, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes)]
    history: u64,
}

/// `history`: bytes for keys.
pub fn options(history: u64) -> Options {
    Options {
        keys_max: (history / KEY_BYTES).max(1) as usize,
        keep_session_order: false,
        explain: false,
        transaction_bytes_max: TRANSACTION_BYTES_MAX,
    }
}

pub fn run(args: &RetagArgs) -> Result<ExitCode> {
    let files = relay::FileSource::discover(&args.paths)?;
    let definitions = definitions(args.schema.as_deref())?;
    let total: u64 = files.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|metadata| metadata.len()).sum();
    let passes = if definitions.is_empty() { 1 } else { 2 };
    let job = Job {
        files,
        out: args.out.clone(),
        definitions,
        options: Options {
            keep_session_order: args.keep_session_order,
            explain: args.explain,
            ..options(args.history)
        },
    };
    let (read, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let signals = Signals::watch(&stop)?;
    let bar = Bar::of_bytes(passes * total, &read);
    let mut unknown = BTreeMap::new();
    let mut on_tag = |file: &str, tag: &NewTag| {
        if tag.cause == Cause::Unknown
            && let Some(table) = &tag.why
        {
            *unknown.entry(table.clone()).or_default() += 1;
        }
        if args.explain {
            let line = Line::new(file, tag);
            match serde_json::to_string(&line) {
                Ok(line) if args.json => json(&line),
                _ => say!("{}", line.text()),
            }
        }
    };
    let done = retag(job, &mut on_tag, &read, &stop);
    bar.finish();
    drop(signals);
    let report = Report::new(&done?, unknown);
    if args.json {
        json(&if args.explain { serde_json::to_string(&report)? } else { serde_json::to_string_pretty(&report)? });
    } else {
        say!("{}", report.text());
    }
    Ok(ExitCode::SUCCESS)
}
