//! `heddle watch`: why native replicas lag, and what to do about it.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use wire::ConnectOptions;

use super::connect::{self, End};
use super::exit::Usage;
use super::feed::server_id;
use super::headings::EXPERT;
use super::http::HttpArgs;
use super::signals::Ending;
use observe::http::Http;
use output::say;
use watch::board::Board;
use watch::readers::discovery;
use watch::report::Report;
use watch::report::text;
use watch::rules;
use watch::rules::finding::{Limits, Severity};
use watch::run::{self, Pace, ReportedFindings, WatchedReplica};

/// With --once; as monitoring plugins have them.
const EXIT_WARNING: u8 = 1;
const EXIT_CRITICAL: u8 = 2;
const EXIT_UNKNOWN: u8 = 3;

/// Look at native replicas: how far behind, where they wait, why, and which statement helps. Changes nothing
///
/// Asks the replica's own statistics and samples its threads, at most 20 queries a second.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle watch mysql://heddle@replica:3306
  heddle watch mysql://heddle@replica:3306 --source mysql://heddle@source:3306
  heddle watch mysql://heddle@replica:3306 --once --warn 60 --critical 600
  heddle watch --replicas-of mysql://heddle@source:3306 --json
  heddle watch --replicas-of mysql://heddle@source:3306 --http 127.0.0.1:9189

Passwords: HEDDLE_TARGET_PASSWORD for the replicas, HEDDLE_SOURCE_PASSWORD for the source, option files, or a prompt. Exit codes of --once: 0 ok · \
1 warning · 2 critical · 3 unknown: a replica could not be asked")]
pub struct WatchArgs {
    /// Replicas, mysql://user@host:port[?…]
    #[arg(value_name = "REPLICA", required_unless_present_any = ["replicas_of", "rules"])]
    replicas: Vec<String>,
    /// The source of the replicas: its tags, what write sets would give, hot rows, from its binary log
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Also the replicas that are registered with this source, and their replicas, with the same account
    #[arg(long, value_name = "SOURCE")]
    replicas_of: Option<String>,
    /// One report, then end; the exit code says how bad it is
    #[arg(long)]
    once: bool,
    /// One line of JSON for each channel and look
    #[arg(long)]
    json: bool,
    /// From one look to the next, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=3600))]
    interval: u16,
    /// Warn from this lag on, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    warn: u32,
    /// Critical from this lag on, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    critical: u32,
    #[command(flatten)]
    http: HttpArgs,
    /// Only this replication channel (MariaDB: connection)
    #[arg(long, help_heading = EXPERT, value_name = "NAME")]
    channel: Option<String>,
    /// List the rules: what each looks at, and what it advises
    #[arg(long, help_heading = EXPERT, exclusive = true)]
    rules: bool,
    /// Write the last look into this file as JSON, for a report of a problem. It has statements and GTIDs
    #[arg(long, help_heading = EXPERT, value_name = "FILE", requires = "once")]
    record: Option<PathBuf>,
    /// Option file for the replicas, groups [client] and [heddle]
    #[arg(long, help_heading = EXPERT, value_name = "FILE")]
    target_defaults_file: Option<PathBuf>,
    /// Option file for the source
    #[arg(long, help_heading = EXPERT, value_name = "FILE")]
    source_defaults_file: Option<PathBuf>,
}

impl WatchArgs {
    fn limits(&self) -> Limits {
        Limits { warn_s: self.warn.into(), critical_s: self.critical.into() }
    }
}

/// States of threads a second: of one report, and of a watch that goes on.
const SAMPLES_ONCE: u32 = 10;
const SAMPLES: u32 = 2;

pub fn run(args: &WatchArgs) -> Result<ExitCode> {
    if args.rules {
        say!("| Rule | Looks at | Advises |\n|---|---|---|\n{}", rules::table().trim_end());
        return Ok(ExitCode::from(super::exit::EXIT_OK));
    }
    if args.warn > args.critical {
        return Err(Usage(format!("--warn {} is more than --critical {}", args.warn, args.critical)).into());
    }
    let listen = args.http.listen().map_err(Usage)?;
    if listen.is_some() && args.once {
        return Err(Usage("--http shows a watch that goes on: without --once".to_owned()).into());
    }
    let ending = Ending::default();
    let watched = watched(args, &ending)?;
    let pace = Pace {
        period: Duration::from_secs(args.interval.into()),
        sample: Duration::from_secs(1) / if args.once { SAMPLES_ONCE } else { SAMPLES },
        once: args.once,
        limits: args.limits(),
    };
    let board = Arc::new(Board::default());
    let http = listen.map(|listen| Http::start_watch(listen, Arc::clone(&board))).transpose()?;
    ending.watch()?;
    let (send, told) = crossbeam_channel::bounded(watched.len());
    std::thread::scope(|scope| {
        for (at, one) in watched.iter().enumerate() {
            let (send, pace, stop) = (send.clone(), &pace, &ending.stop);
            // Connections to many servers at the same moment would be a load of their own.
            let begin = Duration::from_millis(20 * at as u64);
            scope.spawn(move || {
                std::thread::sleep(begin);
                run::run(at, one, pace, stop, &send);
            });
        }
        drop(send);
        show(args, &told, watched.len(), http.is_some().then_some(&*board))
    })
}

fn watched(args: &WatchArgs, ending: &Ending) -> Result<Vec<WatchedReplica>> {
    let file = args.target_defaults_file.as_deref();
    let source = match &args.source {
        Some(url) => Some(connect::options(End::Source, url, args.source_defaults_file.as_deref())?),
        None => None,
    };
    let mut replicas: Vec<(ConnectOptions, Option<u32>)> = Vec::new();
    for url in &args.replicas {
        let mut options = connect::options(End::Target, url, file)?;
        // One prompt, not one for each.
        if let Some((first, _)) = replicas.first().filter(|_| options.password.is_none()) {
            options.password.clone_from(&first.password);
        }
        replicas.push((options, None));
    }
    if let Some(url) = &args.replicas_of {
        let options = connect::options(End::Source, url, args.source_defaults_file.as_deref())?;
        let reach = |host: String, port: u16| {
            let mut replica = ConnectOptions { host, port, socket: None, ..options.clone() };
            if let Ok(password) = std::env::var("HEDDLE_TARGET_PASSWORD") {
                replica.password = Some(wire::Secret::new(password));
            }
            replica
        };
        let found = discovery::replicas_of(&options, &reach)?;
        replicas.extend(found.into_iter().map(|one| (one.options, Some(one.depth))));
    }
    let all = replicas.into_iter().map(|(mut replica, depth)| {
        replica.limits.interrupt = ending.interrupt();
        let name = format!("mysql://{}", replica.address());
        WatchedReplica {
            server_id: server_id("watch", &name),
            name,
            source: source.clone(),
            depth,
            channel: args.channel.clone(),
            replica,
        }
    });
    Ok(all.collect())
}

/// Shows what comes until all threads have ended. `board`: who looks over HTTP has it from there; then a log has no screens in it, only what has changed.
fn show(
    args: &WatchArgs,
    told: &crossbeam_channel::Receiver<ReportedFindings>,
    count: usize,
    board: Option<&Board>,
) -> Result<ExitCode> {
    let mut last: BTreeMap<usize, Vec<Report>> = BTreeMap::new();
    let on_screen = std::io::stdout().is_terminal() && !args.once && !args.json;
    for ReportedFindings { at, reports, period } in told {
        if let (Some(path), Some(period)) = (&args.record, &period) {
            let text = serde_json::to_string(period)?;
            std::fs::write(path, text).with_context(|| format!("--record {}", path.display()))?;
        }
        if args.json {
            for report in &reports {
                output::streams::json(&serde_json::to_string(report)?);
            }
        }
        if let Some(board) = board {
            board.take(at, &reports);
            if !on_screen && !args.json {
                say_changes(last.get(&at), &reports);
            }
        }
        last.insert(at, reports);
        if args.json || args.once || last.len() < count || (board.is_some() && !on_screen) {
            continue;
        }
        if on_screen {
            // Home, clear; what follows is drawn anew.
            output::streams::clear();
        }
        say!("{}", screen_of(&last).trim_end());
    }
    if !args.once {
        return Ok(ExitCode::from(super::exit::EXIT_OK));
    }
    let all: Vec<&Report> = last.values().flatten().collect();
    let (worst, code) = worst(all.iter().map(|report| report.severity));
    if !args.json {
        say!("{}", text::plugin_line(&all, worst, args.limits()));
        match all.as_slice() {
            [one] => say!("{}", text::text_below(one).trim_end()),
            _ => say!("{}", screen_of(&last).trim_end()),
        }
    }
    Ok(ExitCode::from(code))
}

/// A line of the log for each channel whose severity is another one than before.
fn say_changes(before: Option<&Vec<Report>>, now: &[Report]) {
    for report in now {
        let was = before.and_then(|before| before.iter().find(|was| was.identity.channel == report.identity.channel));
        if was.is_some_and(|was| was.severity == report.severity) {
            continue;
        }
        let (who, verdict) = (&report.identity.replica, &report.verdict);
        match report.severity {
            Severity::Ok => tracing::info!("{who}: {verdict}"),
            Severity::Warning | Severity::Critical | Severity::Unknown => tracing::warn!("{who}: {verdict}"),
        }
    }
}

fn screen_of(last: &BTreeMap<usize, Vec<Report>>) -> String {
    let all: Vec<&Report> = last.values().flatten().collect();
    match all.as_slice() {
        [one] => text::text(one),
        all => {
            // In whole where something is wrong.
            let bad = all.iter().filter(|report| report.severity != Severity::Ok);
            let details: String = bad.map(|report| format!("\n{}", text::text(report))).collect();
            text::overview(all) + &details
        }
    }
}

/// Of the worst: critical before unknown before warning, as plugins of monitoring systems rank them.
fn worst(severities: impl Iterator<Item = Severity>) -> (Severity, u8) {
    let rank = |severity: Severity| match severity {
        Severity::Ok => (0, super::exit::EXIT_OK),
        Severity::Warning => (1, EXIT_WARNING),
        Severity::Unknown => (2, EXIT_UNKNOWN),
        Severity::Critical => (3, EXIT_CRITICAL),
    };
    let worst = severities.max_by_key(|severity| rank(*severity)).unwrap_or(Severity::Unknown);
    (worst, rank(worst).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_replica_is_the_exit_code() {
        let check = |all: &[Severity], expected| assert_eq!(worst(all.iter().copied()).1, expected, "{all:?}");
        check(&[Severity::Ok, Severity::Ok], 0);
        check(&[Severity::Ok, Severity::Warning], 1);
        check(&[Severity::Unknown, Severity::Warning], 3);
        check(&[Severity::Unknown, Severity::Critical, Severity::Ok], 2);
        check(&[], 3);
    }
}
