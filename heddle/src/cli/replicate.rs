//! `heddle replicate`: the main job.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use binlog::LogPosition;
use binlog::gtids::GtidState;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use engine::policy::{self, PolicyOptions, PolicySpec};
use engine::schedule::{CommitOrder, Grouping};
use engine::tags::Generation;

use super::connect::{self, End};
use super::exit::Usage;
use super::feed::{FeedArgs, Workers, server_id, workers_that_group};
use super::headings::EXPERT;
use super::signals::Ending;
use crate::backup;
use crate::observe::http::ahead::Asks;
use crate::observe::http::{Http, Shown};
use crate::observe::progress::{Kind, Progress};
use crate::observe::view::ahead::Applies;
use crate::report::out::{complain, say};
use crate::report::summary::{self, Summary};
use apply::mysql::{self, MySqlTarget};
use apply::retry::until_reached;
use apply::store::StoreTarget;
use apply::{CHANNEL_BYTES_MAX, Target};
use channel::monitor::Monitor;
use channel::source::Source;
use channel::spec::{Applying, RelaySpec, Replica, Span, Spec};
use channel::start::wrong::WrongStart;
use channel::start::{RelayContents, StartAt};
use channel::until::Until;
use relay::RealFs;
use relay::fs::Fs;

/// Replicate from a server or binary log files into a server or the embedded store
///
/// Progress lives on the target, written in the same transaction as the rows: the same command again goes on where it was.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle replicate --from mysql://repl@source:3306 --to mysql://heddle@replica:3306
  heddle replicate --from /backup/binlog.0000* --to mysql://heddle@restore:3306 --until-time '2026-11-20 03:14:00'
  heddle replicate --from s3://bucket/shop --to mysql://heddle@restore:3306 --start binlog.000001:977 --until-time '2026-11-20 03:14:00'
  heddle replicate --from /var/lib/mysql/binlog.index --to store:/tmp/copy

Passwords: HEDDLE_SOURCE_PASSWORD and HEDDLE_TARGET_PASSWORD, option files, or a prompt.")]
pub struct ReplicateArgs {
    /// mysql://user@host:port[?socket=PATH&ssl-mode=MODE…], or binary log files, a directory or an index file, or an archive: s3://bucket/prefix, file:///path
    #[arg(long, required = true, num_args = 1.., value_name = "SOURCE")]
    from: Vec<String>,
    /// mysql://user@host:port[?…] (MySQL or MariaDB), or store:PATH
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Check both ends and say what would happen; change nothing. Exit code 1 if there are problems
    #[arg(long)]
    dry_run: bool,
    /// Name of the channel: progress is kept by it. Up to 50 characters: letters, digits, dots, - and _
    #[arg(long, value_name = "NAME", default_value = "default")]
    channel: String,
    /// A new channel: start at this position of the source's binary log
    #[arg(long, value_name = "FILE:POS", conflicts_with = "start_gtid")]
    start: Option<LogPosition>,
    /// A new channel: what the target has already (MySQL: a GTID set, UUID:1-100; MariaDB: a position, 0-1-100)
    #[arg(long, value_name = "GTIDS")]
    start_gtid: Option<GtidState>,
    /// A new channel: start where this copy of the source was made: a dump, mydumper's metadata, xtrabackup_binlog_info, the clone plugin's status
    #[arg(long, value_name = "FILE", conflicts_with_all = ["start", "start_gtid"])]
    start_from: Option<PathBuf>,
    /// A new channel: start although the target's rows, or its other channels, do not fit that place
    #[arg(long)]
    start_anyway: bool,
    /// Stop at the end that the source has now (files: they end at their end anyway)
    #[arg(long)]
    until_end: bool,
    /// Stop before the first transaction committed at or after this time: 2026-11-20T03:14:00Z, '2026-11-20 03:14:00' (UTC), or
    /// seconds since 1970, fractions allowed
    #[arg(long, value_name = "TIME", value_parser = super::time::parse_time)]
    until_time: Option<u64>,
    /// Stop before the first transaction that starts at or after this position
    #[arg(long, value_name = "FILE:POS")]
    until_position: Option<LogPosition>,
    /// Stop once these are applied. Live: one that the source never has is waited for
    #[arg(long, value_name = "SET")]
    until_gtid: Option<GtidState>,
    /// Print a summary as JSON on standard output at the end; with --dry-run the report
    #[arg(long)]
    json: bool,
    /// What may run in parallel: see `heddle policies`
    #[arg(long, value_name = "NAME", help_heading = EXPERT, value_parser = super::policies::parser(policy::ALL), default_value = policy::DEFAULT.name)]
    policy: &'static PolicySpec,
    #[arg(long, value_name = "ORDER", help_heading = EXPERT, value_parser = commit_order_parser(), default_value = CommitOrder::Preserve.as_str(), help = commit_order_help())]
    commit_order: CommitOrder,
    /// Consecutive transactions in one target transaction: auto (as many as wait), off, or at most N
    ///
    /// auto takes up to 10,000 transactions, 40,000 rows or 8 MiB.
    #[arg(long, value_name = "N", help_heading = EXPERT, default_value = "auto", value_parser = parse_grouping)]
    grouping: Grouping,
    /// local: the target gives its own GTIDs · preserve: the source's
    ///
    /// preserve: a group commits under the GTID of its last transaction. MySQL 8.0 and later: the others' are added to gtid_purged at once; MariaDB: a group is of
    /// one domain and server. One target transaction for each, which is slow: into MySQL 5.6 and 5.7, with --replicas-below, --grouping off or another
    /// --commit-order, and where MySQL has replicas at the start. The schema heddle then reaches the target's own replicas, made under a few GTIDs of the
    /// target's own (--commit-order relaxed: one more for each checkpoint and each DDL). Not between MySQL and MariaDB.
    #[arg(long, value_name = "KIND", help_heading = EXPERT, value_enum, default_value = "local")]
    gtids: Gtids,
    /// With --gtids preserve: the target has replicas of its own, or will have, and each GTID has to reach them: one target transaction for each
    #[arg(long, help_heading = EXPERT)]
    replicas_below: bool,
    /// strict: a table that is there already stops the channel, as one that is gone · idempotent: it is replaced, or passed over (MariaDB)
    ///
    /// A table that a CREATE finds may be another's, with rows. idempotent is what MariaDB's own replicas do (slave_ddl_exec_mode=IDEMPOTENT).
    #[arg(long, value_name = "KIND", help_heading = EXPERT, value_enum, default_value = "strict")]
    ddl: DdlMode,
    /// Statements about users, roles and privileges: apply (never to heddle's own account; an account that is there stays as it is) · skip: leave them out
    #[arg(long, value_name = "KIND", help_heading = EXPERT, value_enum, default_value = "apply")]
    account_statements: AccountMode,
    #[arg(long, value_name = "N", help_heading = EXPERT, help = lane_workers_help(), value_parser = clap::value_parser!(u16).range(1..))]
    domain_workers_max: Option<u16>,
    #[arg(long, value_name = "N", help_heading = EXPERT, help = history_help(), default_value_t = 25_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    writeset_history: u32,
    /// Whose rules these policies go by: they have changed
    #[arg(long, help_heading = EXPERT, value_parser = rules_parser(), default_value = Generation::Mysql84.as_str(), value_name = "VERSION")]
    writeset_rules: Generation,
    /// Only complete what an earlier run that was cut off has left out (commit order relaxed or per-lane), then end
    #[arg(long, help_heading = EXPERT, conflicts_with_all = ["until_end", "until_gtid", "until_position", "until_time", "start", "start_gtid", "start_from"])]
    fill_gaps: bool,
    #[command(flatten)]
    feed: FeedArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Gtids {
    Preserve,
    Local,
}

/// What becomes of a table that a `CREATE` finds, or a `DROP` does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DdlMode {
    Strict,
    Idempotent,
}

/// What becomes of the source's statements about accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AccountMode {
    Apply,
    Skip,
}

fn commit_order_parser() -> impl TypedValueParser<Value = CommitOrder> {
    PossibleValuesParser::new(CommitOrder::ALL.map(CommitOrder::as_str))
        .map(|name| CommitOrder::ALL.into_iter().find(|order| order.as_str() == name).unwrap_or(CommitOrder::Preserve))
}

fn commit_order_help() -> String {
    format!(
        "preserve: readers see only states that the source had · per-lane: as the source in each lane (policies {}) · relaxed: commit as soon as possible",
        super::policies::with_lanes(policy::ALL)
    )
}

fn lane_workers_help() -> String {
    format!(
        "The most workers that one lane may have, with a policy that has lanes ({})",
        super::policies::lanes(policy::ALL)
    )
}

fn history_help() -> String {
    format!(
        "Policies {}: hashes to remember, binlog_transaction_dependency_history_size",
        super::policies::with_server_sets(policy::ALL)
    )
}

fn rules_parser() -> impl TypedValueParser<Value = Generation> {
    let values = Generation::ALL.map(|rules| match rules.about() {
        "" => PossibleValue::new(rules.as_str()),
        about => PossibleValue::new(rules.as_str()).help(about),
    });
    PossibleValuesParser::new(values)
        .map(|name| Generation::ALL.into_iter().find(|rules| rules.as_str() == name).unwrap_or(Generation::Mysql84))
}

fn parse_grouping(text: &str) -> Result<Grouping, String> {
    match text {
        "auto" => Ok(Grouping::Auto),
        "off" => Ok(Grouping::Off),
        text => match text.parse() {
            Ok(0) | Err(_) => Err("auto, off, or the most transactions in a group".to_owned()),
            Ok(1) => Ok(Grouping::Off),
            Ok(most) => Ok(Grouping::UpTo(most)),
        },
    }
}

pub fn run(args: &ReplicateArgs) -> Result<ExitCode> {
    check(args)?;
    let ending = Ending::default();
    let (source, log_fs) = source(args, &ending)?;
    let Opened { target, on_target, address, grouping } = target(args, &ending)?;
    let workers = workers(args, grouping);
    let relay_dir = match &source {
        Source::Live(_) => args.feed.relay_dir(&args.channel, &address)?,
        // They are read in place.
        Source::Files(_) => args.feed.relay_dir.clone().unwrap_or_default(),
    };
    let spec = Spec {
        source,
        log_fs,
        target,
        on_target,
        span: span(args)?,
        applying: applying(args, workers, grouping),
        relay: RelaySpec {
            dir: relay_dir,
            contents: RelayContents::Nothing,
            bytes_max: args.feed.relay_max_bytes,
            sync: args.feed.relay_sync,
        },
        replica: Replica {
            server_id: args.feed.server_id(&args.channel, &address),
            not_from: None,
            retry_for: args.feed.connect_retry(),
        },
    };
    if args.dry_run {
        return crate::preflight::run(&spec, args.json);
    }
    let monitor = Arc::new(Monitor::default());
    let shown =
        || Shown { channel: args.channel.clone(), monitor: Arc::clone(&monitor), asks: asks(args, &spec, &address) };
    let http = args.feed.http()?.map(|listen| Http::start(listen, shown())).transpose()?;
    ending.watch()?;
    Ending::watch_pause(&monitor.pause_flag())?;
    tracing::info!(
        "target: {}; {} workers, policy {}",
        spec.target.describe(),
        spec.applying.workers,
        spec.applying.policy.name
    );
    let kind = match spec.source {
        Source::Live(_) => Kind::Live,
        Source::Files(_) => Kind::Files,
    };
    let progress = Progress::start(&monitor, kind);
    let summary = summary::run(&spec, &monitor, &ending.stop);
    progress.finish();
    if let Some(http) = &http {
        http.end(summary.as_ref().map_or_else(|error| Some(summary::stopped(error)), Summary::stopped));
    }
    finish(&summary?, args.json)
}

/// What reading the log ahead needs to know.
fn asks(args: &ReplicateArgs, spec: &Spec, target: &str) -> Option<Asks> {
    let Source::Live(source) = &spec.source else { return None };
    let applies = Applies {
        policy: args.policy,
        workers: spec.applying.workers,
        groups: spec.applying.grouping != Grouping::Off,
        ordered: args.commit_order == CommitOrder::Preserve,
    };
    let server_id = server_id(&format!("{} ahead", args.channel), target);
    Some(Asks { source: (**source).clone(), server_id, applies })
}

/// From where to where.
fn span(args: &ReplicateArgs) -> Result<Span> {
    let start = match (&args.start, &args.start_gtid, &args.start_from) {
        (Some(position), _, _) => StartAt::Position(position.clone()),
        (None, Some(gtids), _) => StartAt::Gtids(gtids.clone()),
        (None, None, Some(file)) => backup::start_from(file)?,
        (None, None, None) => StartAt::Default,
    };
    Ok(Span {
        start,
        wrong_start: if args.start_anyway { WrongStart::Accept } else { WrongStart::Refuse },
        until: Until {
            position: args.until_position.clone(),
            gtids: args.until_gtid.clone(),
            time_us: args.until_time,
            ends_anyway: args.until_end,
            ..Until::default()
        },
        end: match (args.fill_gaps, args.until_end) {
            (true, _) => channel::spec::End::GapsFilled,
            (false, true) => channel::spec::End::AtSourceEnd,
            (false, false) => channel::spec::End::AsAsked,
        },
    })
}

/// How to order and apply.
fn applying(args: &ReplicateArgs, workers: usize, grouping: Grouping) -> Applying {
    Applying {
        workers,
        more_workers: matches!(args.feed.workers, Workers::Auto),
        policy: args.policy,
        policy_options: PolicyOptions {
            history_max: args.writeset_history as usize,
            generation: args.writeset_rules,
            lane_workers_max: args.domain_workers_max.map(usize::from),
        },
        order: args.commit_order,
        grouping,
        defers_branches: true,
        memory_bytes: args.feed.memory,
        retries_max: args.feed.retries,
    }
}

/// What is wrong whatever source and target are.
fn check(args: &ReplicateArgs) -> Result<(), Usage> {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if args.channel.is_empty() || args.channel.len() > CHANNEL_BYTES_MAX || !args.channel.chars().all(valid) {
        return Err(Usage(format!(
            "--channel {:?}: up to {CHANNEL_BYTES_MAX} letters, digits, '-', '_' and '.'",
            args.channel
        )));
    }
    if args.domain_workers_max.is_some()
        && (args.commit_order == CommitOrder::Preserve || args.policy.requires.lane.is_none())
    {
        return Err(Usage(format!(
            "--domain-workers-max is for --policy {} with --commit-order per-lane or relaxed",
            super::policies::with_lanes(policy::ALL)
        )));
    }
    if args.replicas_below && args.gtids != Gtids::Preserve {
        return Err(Usage("--replicas-below is for --gtids preserve".to_owned()));
    }
    if args.replicas_below && matches!(args.grouping, Grouping::UpTo(_)) {
        return Err(Usage(
            "--replicas-below needs one target transaction for each of the source's: leave --grouping out".to_owned(),
        ));
    }
    match args.to.strip_prefix("store:") {
        Some("") => Err(Usage("--to store: needs the path of a folder behind it: store:PATH".to_owned())),
        None if !channel::source::is_url(&args.to) => {
            Err(Usage(format!("--to {:?}: expected mysql://… or store:PATH", wire::redacted(&args.to))))
        }
        _ => Ok(()),
    }
}

/// And where its files are, if it has files.
fn source(args: &ReplicateArgs, ending: &Ending) -> Result<(Source, Arc<dyn Fs>)> {
    if let [url] = args.from.as_slice()
        && archive::is_url(url)
    {
        let archived = super::archive::files(url, &ending.stop).context("--from")?;
        let paths = match &args.start_gtid {
            Some(gtids) => archived.paths_behind(gtids),
            None => archived.paths(),
        };
        return Ok((Source::Files(paths), Arc::new(archived)));
    }
    let (source, _) = Source::parse(&args.from)?;
    match (source, args.from.first()) {
        (Source::Live(_), Some(url)) => {
            let mut options = connect::options(End::Source, url, args.feed.source_defaults_file.as_deref())?;
            options.limits.interrupt = ending.interrupt();
            Ok((Source::Live(Box::new(options)), Arc::new(RealFs)))
        }
        (files, _) => Ok((files, Arc::new(RealFs))),
    }
}

/// The target, and how many transactions may share one of its own.
struct Opened {
    target: Arc<dyn Target>,
    /// The GTIDs that it has executed.
    on_target: GtidState,
    address: String,
    grouping: Grouping,
}

/// With `--gtids preserve`: why each source transaction gets a target transaction of its own, whatever the target is.
fn asked_one_by_one(args: &ReplicateArgs) -> Option<&'static str> {
    if args.replicas_below {
        Some("--replicas-below")
    } else if args.grouping == Grouping::Off {
        Some("--grouping off")
    } else if args.commit_order != CommitOrder::Preserve {
        Some("--commit-order is not preserve")
    } else {
        None
    }
}

fn target(args: &ReplicateArgs, ending: &Ending) -> Result<Opened> {
    if let Some(path) = args.to.strip_prefix("store:") {
        if args.gtids == Gtids::Preserve {
            bail!("--gtids preserve: the store keeps the source's GTIDs as a set, there is nothing to preserve");
        }
        let grouping = args.grouping;
        let workers = workers(args, grouping);
        let target =
            StoreTarget::open_path(std::path::Path::new(path), &args.channel, workers).map_err(anyhow::Error::new)?;
        return Ok(Opened { target: Arc::new(target), on_target: GtidState::None, address: args.to.clone(), grouping });
    }
    let mut options = connect::options(End::Target, &args.to, args.feed.target_defaults_file.as_deref())?;
    options.limits.interrupt = ending.interrupt();
    let address = options.address();
    let asked = asked_one_by_one(args);
    let gtids = match args.gtids {
        Gtids::Preserve if asked.is_none() => mysql::Gtids::PreserveGrouped,
        Gtids::Preserve => mysql::Gtids::Preserve,
        Gtids::Local => mysql::Gtids::Local,
    };
    // Whoever only wants to know is told at once.
    let limit = if args.dry_run { Duration::ZERO } else { args.feed.connect_retry() };
    let target = until_reached(limit, || MySqlTarget::connect(options.clone(), &args.channel, gtids))
        .map_err(anyhow::Error::new)
        .with_context(|| format!("target {address}"))?;
    target.set_reconnect_for(args.feed.connect_retry());
    let ddl = match args.ddl {
        DdlMode::Strict => mysql::Ddl::Strict,
        DdlMode::Idempotent => mysql::Ddl::Idempotent,
    };
    target.set_ddl(ddl).map_err(anyhow::Error::new)?;
    target.set_account_statements(match args.account_statements {
        AccountMode::Apply => mysql::AccountStatements::Apply,
        AccountMode::Skip => mysql::AccountStatements::Skip,
    });
    let on_target = target.executed_gtids().map_err(anyhow::Error::new)?;
    let grouping = match (args.gtids, asked, target.why_one_by_one()) {
        (Gtids::Preserve, Some(why), _) => {
            tracing::info!("--gtids preserve: one target transaction for each of the source's ({why})");
            Grouping::Off
        }
        (Gtids::Preserve, None, Some(why)) => {
            tracing::warn!(
                "--gtids preserve: one target transaction for each of the source's, which is slow, because {why}"
            );
            Grouping::Off
        }
        _ => args.grouping,
    };
    Ok(Opened { target: Arc::new(target), on_target, address, grouping })
}

/// Groups overlap on few connections; single transactions need many to share the target's fsyncs, where their commits may overlap.
fn workers(args: &ReplicateArgs, grouping: Grouping) -> usize {
    match (args.feed.workers, grouping) {
        (Workers::Number(number), _) => number,
        (Workers::Auto, Grouping::Off) if args.commit_order == CommitOrder::Relaxed => 32,
        (Workers::Auto, Grouping::Off) => 16,
        (Workers::Auto, Grouping::Auto | Grouping::UpTo(_)) => workers_that_group(),
    }
}

fn finish(summary: &Summary, json: bool) -> Result<ExitCode> {
    if json {
        crate::report::out::json(&serde_json::to_string(summary)?);
    } else {
        say!("{}", summary.text());
    }
    let Some(error) = &summary.error else { return Ok(ExitCode::from(super::exit::EXIT_OK)) };
    complain!("heddle: the channel stopped: {}", error.message);
    if !error.place.is_empty() {
        complain!("  where: {}", error.place);
    }
    if !error.remedy.is_empty() {
        complain!("  what to do: {}", error.remedy);
    }
    Ok(ExitCode::from(super::exit::of_failure(error.failure_kind)))
}
