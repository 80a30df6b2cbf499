//! `heddle archive`: what is in an archive, whether it is whole, what may go.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};
use archive::prune::{self, Retention};
use archive::state::{File, State};
use archive::verify::{Depth, verify};
use archive::{ArchiveError, ArchiveFs, Manifest, Store};
use binlog::gtids::GtidState;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;

use super::byte_size::parse_bytes;
use super::exit::{EXIT_OK, EXIT_PARTIAL, Usage};
use super::signals::Signals;
use output::numbers;
use output::{complain, say};

/// List, verify and prune an archive of binary logs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle archive ls s3://bucket/shop
  heddle archive ls s3://bucket/shop --since '2026-11-20 00:00:00' --json
  heddle archive verify s3://bucket/shop
  heddle archive prune s3://bucket/shop --keep-days 90
  heddle archive prune s3://bucket/shop --keep-days 90 --yes

Credentials come from the environment and the vendors' own files: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, AWS_PROFILE; GOOGLE_APPLICATION_CREDENTIALS; AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY.")]
pub struct ArchiveArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Ls(LsArgs),
    Verify(VerifyArgs),
    Prune(PruneArgs),
}

/// List the files of an archive, with their times and GTIDs
#[derive(Debug, Args)]
struct LsArgs {
    /// s3://bucket/prefix, file:///path, gs://…, az://…
    #[arg(value_name = "URL")]
    url: String,
    /// Only files with events at or after this time (UTC, by the source's clock)
    #[arg(long, value_name = "TIME", value_parser = super::time::parse_time)]
    since: Option<u64>,
    /// Only files with events before this time
    #[arg(long, value_name = "TIME", value_parser = super::time::parse_time)]
    until: Option<u64>,
    /// Only files with one of these transactions
    #[arg(long, value_name = "GTIDS")]
    gtid: Option<GtidState>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// Check that everything that the manifest names is there and whole
///
/// Exit codes: 0 it is · 1 there is no archive, or the store can not be read · 4 something is missing or damaged, and is named
#[derive(Debug, Args)]
struct VerifyArgs {
    /// s3://bucket/prefix, file:///path, gs://…, az://…
    #[arg(value_name = "URL")]
    url: String,
    /// Only that every object is there with its size: nothing is fetched
    #[arg(long)]
    quick: bool,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// Remove the oldest files, and objects that a crash has left. Says what would go, unless --yes
#[derive(Debug, Args)]
struct PruneArgs {
    /// s3://bucket/prefix, file:///path, gs://…, az://…
    #[arg(value_name = "URL")]
    url: String,
    /// Remove files in which everything is older, by the source's clock
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u32>,
    /// Remove the oldest files when all objects are larger than this, such as 500G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep_bytes: Option<u64>,
    /// Do it
    #[arg(long)]
    yes: bool,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ArchiveArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let _signals = Signals::watch(&stop)?;
    match &args.action {
        Action::Ls(args) => ls(args, &stop),
        Action::Verify(args) => check(args, &stop),
        Action::Prune(args) => remove(args, &stop),
    }
}

/// The place that a URL names; an error names the URL.
pub fn store(url: &str, stop: &Arc<AtomicBool>) -> Result<Store> {
    if !archive::is_url(url) {
        bail!(Usage(format!(
            "{:?} is not an archive: s3://bucket/prefix, file:///path, gs://…, az://…",
            wire::redacted(url)
        )));
    }
    let opened = Store::open(url).map_err(|error| match error {
        archive::StoreError::NotFound => ArchiveError::Nothing,
        other => other.into(),
    });
    Ok(opened.with_context(|| format!("archive {}", wire::redacted(url)))?.until(stop))
}

fn open(url: &str, stop: &Arc<AtomicBool>) -> Result<Manifest> {
    let store = store(url, stop)?;
    Manifest::open(&store).map_err(|error| anyhow::Error::new(serve::archive::of_archive(&store, &error)))
}

/// For who reads binary log files: those of the archive, and where they are read from.
pub fn files(url: &str, stop: &Arc<AtomicBool>) -> Result<ArchiveFs> {
    let store = store(url, stop)?;
    let opened =
        ArchiveFs::open(&store).map_err(|error| anyhow::Error::new(serve::archive::of_archive(&store, &error)))?;
    ensure!(!opened.state().files.is_empty(), "archive {url}: nothing has been archived yet");
    Ok(opened)
}

/// A file as it is listed.
#[derive(Serialize)]
struct Listed<'a> {
    file: &'a str,
    /// Of the log.
    bytes: u64,
    /// Of its objects.
    stored: u64,
    complete: bool,
    first_time: Option<String>,
    last_time: Option<String>,
    gtids: &'a str,
    /// GTIDs of everything before it, where that is known by itself.
    #[serde(skip_serializing_if = "str::is_empty")]
    gtids_before: &'a str,
    /// Files before it were never archived.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    behind_gap: bool,
}

fn time(seconds: u32) -> Option<String> {
    (seconds > 0).then(|| Timestamp::from_second(i64::from(seconds)).ok().map(|time| time.to_string())).flatten()
}

/// Those that were asked for.
fn chosen<'a>(args: &LsArgs, state: &'a State) -> Vec<&'a File> {
    let mut before = GtidState::None;
    let mut chosen = Vec::new();
    for file in &state.files {
        if !file.before.is_empty() {
            before = archive::state::parsed(&file.before);
        }
        let own = archive::state::parsed(&file.gtids);
        let has_gtid = args.gtid.as_ref().is_none_or(|wanted| has_some(&own, &before, wanted));
        let is_late = args.since.is_none_or(|since| u64::from(file.times.last) * 1_000_000 >= since);
        let is_early = args.until.is_none_or(|until| u64::from(file.times.first) * 1_000_000 < until);
        if has_gtid && is_late && is_early {
            chosen.push(file);
        }
        before = before.then(&own);
    }
    chosen
}

/// Whether one of the wanted transactions is among a file's own. MariaDB: a domain's number is reached in it.
fn has_some(own: &GtidState, before: &GtidState, wanted: &GtidState) -> bool {
    match (own, wanted) {
        (GtidState::MySql(own), GtidState::MySql(wanted)) => {
            let mut rest = wanted.clone();
            rest.subtract(own);
            rest != *wanted
        }
        (GtidState::MariaDb(own), GtidState::MariaDb(wanted)) => wanted.iter().any(|gtid| {
            let came_before = matches!(before, GtidState::MariaDb(before) if before.contains(gtid));
            own.contains(gtid) && !came_before
        }),
        _ => false,
    }
}

fn ls(args: &LsArgs, stop: &Arc<AtomicBool>) -> Result<ExitCode> {
    let manifest = open(&args.url, stop)?;
    let files = chosen(args, manifest.state());
    let listed = files.iter().map(|file| Listed {
        file: &file.name,
        bytes: file.size,
        stored: file.stored,
        complete: file.is_complete,
        first_time: time(file.times.first),
        last_time: time(file.times.last),
        gtids: &file.gtids,
        gtids_before: &file.before,
        behind_gap: file.is_behind_gap,
    });
    let listed: Vec<Listed<'_>> = listed.collect();
    if args.json {
        output::streams::json(&serde_json::to_string_pretty(&listed)?);
        return Ok(ExitCode::from(EXIT_OK));
    }
    let width = listed.iter().map(|file| file.file.len()).max().unwrap_or(4);
    say!("{:width$}  {:>12}  {:>12}  {:20}  {:20}  GTIDs", "file", "bytes", "stored", "first", "last");
    for file in &listed {
        if file.behind_gap {
            say!("(files before {} were never archived)", file.file);
        }
        let [first, last] = [&file.first_time, &file.last_time].map(|time| time.as_deref().unwrap_or("-"));
        let more = if file.complete { "" } else { " (goes on)" };
        let Listed { file, bytes, stored, gtids, .. } = file;
        say!("{file:width$}  {bytes:>12}  {stored:>12}  {first:20}  {last:20}  {gtids}{more}");
    }
    let sum = |of: fn(&Listed<'_>) -> u64| numbers::bytes(listed.iter().map(of).sum());
    say!("{} files, {} of the log in {}", listed.len(), sum(|file| file.bytes), sum(|file| file.stored));
    for folder in manifest.store().folders().unwrap_or_default() {
        if folder.starts_with("source-") {
            say!("another source took its place: {}/{folder}", args.url.trim_end_matches('/'));
        }
    }
    Ok(ExitCode::from(EXIT_OK))
}

fn check(args: &VerifyArgs, stop: &Arc<AtomicBool>) -> Result<ExitCode> {
    let manifest = open(&args.url, stop)?;
    let depth = if args.quick { Depth::Sizes } else { Depth::Contents };
    let verified = verify(&manifest, depth, |_| !stop.load(Ordering::Relaxed));
    let verified =
        verified.map_err(|error| anyhow::Error::new(serve::archive::of_archive(manifest.store(), &error)))?;
    if args.json {
        output::streams::json(&serde_json::to_string_pretty(&verified)?);
    } else {
        for problem in &verified.problems {
            complain!("{problem}");
        }
        for gap in &verified.gaps {
            say!("files before {gap} were never archived");
        }
        say!(
            "{} files, {} segments, {} of the log in {}: {}",
            verified.files,
            verified.segments,
            numbers::bytes(verified.bytes),
            numbers::bytes(verified.stored),
            match verified.problems.len() {
                0 if args.quick => "everything is there".to_owned(),
                0 => "everything is there and whole".to_owned(),
                count => format!("{count} problems"),
            }
        );
        if verified.orphans > 0 {
            let bytes = numbers::bytes(verified.orphan_bytes);
            say!(
                "{} objects ({bytes}) belong to no file: what was interrupted. `heddle archive prune` removes old ones",
                verified.orphans
            );
        }
    }
    Ok(ExitCode::from(if verified.problems.is_empty() { EXIT_OK } else { EXIT_PARTIAL }))
}

fn remove(args: &PruneArgs, stop: &Arc<AtomicBool>) -> Result<ExitCode> {
    const DAY_SECONDS: u64 = 86_400;
    let mut manifest = open(&args.url, stop)?;
    let keep = Retention { seconds: args.keep_days.map(|days| u64::from(days) * DAY_SECONDS), bytes: args.keep_bytes };
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    let store = manifest.store().clone();
    let pruned = if args.yes { prune::prune(&mut manifest, keep, now) } else { prune::plan(&manifest, keep, now) };
    let pruned = pruned.map_err(|error| anyhow::Error::new(serve::archive::of_archive(&store, &error)))?;
    if args.json {
        output::streams::json(&serde_json::to_string_pretty(&pruned)?);
        return Ok(ExitCode::from(EXIT_OK));
    }
    let done = if args.yes { "removed" } else { "would go" };
    for file in &pruned.files {
        say!("{file}: {done}");
    }
    say!(
        "{} files ({}) and {} objects of no file ({}) {done}; the oldest file {} {}",
        pruned.files.len(),
        numbers::bytes(pruned.bytes),
        pruned.orphans,
        numbers::bytes(pruned.orphan_bytes),
        if args.yes { "is" } else { "would be" },
        pruned.first.as_deref().unwrap_or("-")
    );
    if !args.yes && (!pruned.files.is_empty() || pruned.orphans > 0) {
        say!("nothing was changed; --yes removes it");
    }
    Ok(ExitCode::from(EXIT_OK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_of_a_file() {
        let state = |text: &str| text.parse::<GtidState>().unwrap();
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let mysql = state(&format!("{uuid}:5-9"));
        assert!(has_some(&mysql, &GtidState::None, &state(&format!("{uuid}:9-20"))));
        assert!(!has_some(&mysql, &GtidState::None, &state(&format!("{uuid}:1-4"))));
        let (before, own) = (state("0-1-10"), state("0-1-20,1-1-3"));
        assert!(has_some(&own, &before, &state("0-1-15")) && has_some(&own, &before, &state("1-1-1")));
        assert!(!has_some(&own, &before, &state("0-1-10")) && !has_some(&own, &before, &state("0-1-21")));
    }
}
