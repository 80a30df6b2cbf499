//! `heddle inspect --find`: which transaction has changed these rows, for point-in-time recovery.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, bail};
use binlog::text::escape;
use engine::survey::Definitions;
use engine::survey::search::{Hit, Pattern, Search};
use serde::Serialize;
use wire::Interrupt;

use super::bar::Bar;
use super::exit::{EXIT_NOT_FOUND, EXIT_OK, EXIT_PARTIAL};
use super::log_files::{discover, with_stdin};
use super::signals::Signals;
use insight::inspect::live_server::LiveServer;
use insight::inspect::pipeline;
use insight::inspect::report::search::HitReport;
use insight::inspect::search::{self as reading, Outcome};
use output::shell::shell_quoted;
use output::streams::json;
use output::{complain, say};

/// Problems that are told one by one.
const PROBLEMS_TOLD: usize = 20;
/// Files that the command to restore with names one by one.
const FILES_NAMED: usize = 4;

/// What to look for, and how to say it.
pub struct Request {
    pub pattern: Pattern,
    pub limit: u64,
    pub json: bool,
}

/// All of it, as JSON.
#[derive(Serialize)]
struct Report {
    hits: Vec<HitReport>,
    /// `--limit` was reached: the rest was not read.
    more: bool,
    problems: Vec<String>,
    problems_not_listed: u64,
    unknown_columns: Vec<String>,
    tables_without_column_names: Vec<String>,
}

/// Binary log files, or an archive.
pub fn in_files(paths: &[PathBuf], definitions: Definitions, request: Request) -> Result<ExitCode> {
    let logs = named(paths);
    let (read, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (files, missing) = discover(&with_stdin(paths), &stop)?;
    let bar = Bar::of_bytes(files.total_bytes(), &read);
    let signals = Signals::watch(&stop)?;
    let mut hits = Hits::new(logs, request.json);
    let search = Search::new(request.pattern);
    let mut outcome =
        reading::files(files, definitions, search, request.limit, &read, &stop, &mut |file, hit| hits.add(file, hit));
    drop(signals);
    bar.finish();
    outcome.troubles.extend(missing.into_iter().map(|what| pipeline::trouble(PathBuf::new(), what)));
    if stop.load(Ordering::Relaxed) {
        let what = "stopped by a signal before the end".to_owned();
        outcome.troubles.push(pipeline::trouble(PathBuf::new(), what));
    }
    hits.finish(outcome)
}

/// A live server's logs. `url`: as it may be shown.
pub fn in_server(mut live: LiveServer, url: String, definitions: Definitions, request: Request) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let signals = Signals::watch(&stop)?;
    live.options.limits.interrupt = Interrupt::new(Arc::clone(&stop));
    let mut hits = Hits::new(shell_quoted(&url), request.json);
    let search = Search::new(request.pattern);
    let outcome =
        reading::server(&live, definitions, search, request.limit, &stop, &mut |file, hit| hits.add(file, hit))?;
    drop(signals);
    hits.finish(outcome)
}

/// The logs as `heddle replicate --from` takes them.
fn named(paths: &[PathBuf]) -> String {
    let all = |paths: &[PathBuf]| {
        let quoted = paths.iter().map(|path| shell_quoted(&path.display().to_string()));
        quoted.collect::<Vec<_>>().join(" ")
    };
    let folder = paths.first().and_then(|path| path.parent()).filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if paths.len() > FILES_NAMED && paths.iter().all(|path| path.parent() == Some(folder)) => {
            all(&[folder.to_owned()])
        }
        _ if paths.len() > FILES_NAMED || paths.iter().any(|path| path.as_os_str() == "-") => "LOGS".to_owned(),
        _ => all(paths),
    }
}

/// Says each hit as it comes, or keeps them for the JSON.
struct Hits {
    logs: String,
    kept: Option<Vec<HitReport>>,
}

impl Hits {
    fn new(logs: String, json: bool) -> Self {
        Self { logs, kept: json.then(Vec::new) }
    }

    fn add(&mut self, file: &str, hit: &Hit) {
        let report = HitReport::new(file, hit, &self.logs);
        match &mut self.kept {
            Some(kept) => kept.push(report),
            None => say!("{}", report.text()),
        }
    }

    fn finish(self, outcome: Outcome) -> Result<ExitCode> {
        if !outcome.has_read
            && let Some(trouble) = outcome.troubles.first()
        {
            bail!("{trouble}");
        }
        let is_partial =
            !outcome.troubles.is_empty() || outcome.more_troubles > 0 || !outcome.nameless_tables.is_empty();
        let found = outcome.hits;
        match self.kept {
            Some(hits) => {
                let report = Report {
                    hits,
                    more: outcome.is_enough,
                    problems: outcome.troubles.iter().map(ToString::to_string).collect(),
                    problems_not_listed: outcome.more_troubles,
                    unknown_columns: outcome.unknown_columns,
                    tables_without_column_names: outcome.nameless_tables,
                };
                json(&serde_json::to_string_pretty(&report)?);
            }
            None => say_outcome(&outcome),
        }
        Ok(ExitCode::from(if is_partial {
            EXIT_PARTIAL
        } else if found == 0 {
            EXIT_NOT_FOUND
        } else {
            EXIT_OK
        }))
    }
}

fn say_outcome(outcome: &Outcome) {
    if outcome.is_enough {
        say!("There are more, and the rest was not read: --limit {} was reached", outcome.hits);
    } else if outcome.hits == 0 {
        say!("Nothing was found");
    }
    for table in &outcome.nameless_tables {
        complain!(
            "heddle: rows of {} were not judged, because its columns have no names here: give --schema, or name columns by number (--where @1=7)",
            escape(table)
        );
    }
    if outcome.hits == 0 && outcome.nameless_tables.is_empty() {
        for column in &outcome.unknown_columns {
            complain!("heddle: no table with such changes has a column {}", escape(column));
        }
    }
    for trouble in outcome.troubles.iter().take(PROBLEMS_TOLD) {
        complain!("heddle: not read: {}", escape(&trouble.to_string()));
    }
    let more = outcome.troubles.len().saturating_sub(PROBLEMS_TOLD) as u64 + outcome.more_troubles;
    if more > 0 {
        complain!("heddle: and {more} more problems");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_as_a_command_names_them() {
        let named = |paths: &[&str]| named(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["saved"]), "saved");
        assert_eq!(named(&["s3://bucket/shop"]), "s3://bucket/shop");
        assert_eq!(named(&["my logs/a.1", "my logs/a.2"]), "'my logs/a.1' 'my logs/a.2'");
        assert_eq!(named(&["x/a.1", "x/a.2", "x/a.3", "x/a.4", "x/a.5"]), "x");
        assert_eq!(named(&["-"]), "LOGS");
    }
}
