//! `heddle replicate`: the main job.

mod added_tables;
mod channel_run;
mod ends;
mod first_copy;
mod target;
mod turns;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use apply::mysql::progress::SCHEMA;
use binlog::LogPosition;
use binlog::gtids::GtidState;
use clap::Args;
use engine::intake::Changes;
use engine::policy::{self, CommitOrder, PolicyOptions, PolicySpec};
use engine::schedule::Grouping;
use engine::tags::Generation;

use self::added_tables::{AddedTables, copy_beside};
use self::channel_run::{ProgressDisplay, route, run_channel};
use self::ends::{Ends, EndsRequest, Moves};
use self::first_copy::FirstCopy;
use self::target::{OpenTarget, Purpose, Request, TargetArgs, workers};
use self::turns::{PreparedRun, Turns};
use self::values::{
    DdlMode, Gtids, UnsafeMode, commit_order_help, commit_order_parser, history_help, lane_workers_help, rules_parser,
};
use super::exit::Usage;
use super::feed::{FeedArgs, Workers};
use super::headings::EXPERT;
use super::selection::SelectionArgs;
use super::signals::Ending;
use crate::backup;
use apply::CHANNEL_BYTES_MAX;
use channel::source::Source;
use channel::spec::{ApplySettings, RelaySpec, Replica, Span, Spec, UnsafeResponse};
use channel::start::wrong_start::{StartOrigin, WrongStart};
use channel::start::{RelayContents, StartRequest};
use channel::stop_condition::StopCondition;
use copy::{CopyEnd, CopyLimits, CopyPlace};
use observe::summary::Summary;
use output::{complain, say};
use relay::RealFs;
use relay::fs::Fs;
use wire::Nodes;

/// For so long a node of a source is tried before another one is.
const SOURCE_NODE_RETRY: Duration = Duration::from_secs(3);

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
    /// mysql://user@host:port[,host:port…][?socket=PATH&ssl-mode=MODE…], or binary log files, a directory or an index file, or an archive: s3://bucket/prefix, file:///path
    #[arg(long, required = true, num_args = 1.., value_name = "SOURCE")]
    from: Vec<String>,
    /// mysql://user@host:port[,host:port…][?…] (MySQL or MariaDB; several: the nodes of a cluster), or store:PATH
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Check both ends and say what would happen; change nothing. Exit code 1 if there are problems
    #[arg(long)]
    dry_run: bool,
    /// Name of the channel. Up to 50 characters: letters, digits, dots, - and _
    #[arg(long, value_name = "NAME", default_value = "default")]
    channel: String,
    /// Copy the source's tables into the target first, from the running source, without locks and without writes there
    ///
    /// Of a channel that has begun: the tables that its selection takes now and did not take before. It goes on meanwhile. The target must not have the tables yet. A copy that was interrupted goes on with the same command; so does the channel afterwards. docs/copy.md
    /// has what it needs and what it leaves out.
    #[arg(long, conflicts_with_all = ["start", "start_gtid", "start_from", "start_anyway", "fill_gaps"])]
    copy: bool,
    /// With --copy: read the rows from this server: a replica of --from, which is spared, or the source of the binary log server that --from is. Both need GTIDs
    ///
    /// It has the source's account and password, unless the URL names others.
    #[arg(long, value_name = "URL", requires = "copy")]
    rows_from: Option<String>,
    /// One of two or more processes, each on its own machine with the same options: one has the channel, the others receive the source's log and wait. docs/high-availability.md
    ///
    /// The first one takes the channel. Another one takes it over within seconds when that process, its machine or its network is gone, when it ends, and when it is asked
    /// to (heddle channel takeover). A process that has lost the channel waits again.
    #[arg(long, conflicts_with_all = ["copy", "fill_gaps", "server_id"])]
    standby: bool,
    /// With --copy: wait while the source or the target has more threads running
    #[arg(long, value_name = "THREADS", requires = "copy")]
    max_load: Option<u64>,
    /// With --copy: wait while one of the --replica servers is further behind
    #[arg(long, value_name = "SECONDS", requires_all = ["copy", "replica"])]
    max_lag: Option<u64>,
    /// With --max-lag: replicas of either end, which have the target's account and password. One that does not say how far it is counts as too far
    #[arg(long, value_name = "URL", num_args = 1.., requires = "max_lag")]
    replica: Vec<String>,
    /// A new channel: start at this position of the source's binary log. Ignored once the channel has passed it
    #[arg(long, value_name = "FILE:POS", conflicts_with = "start_gtid")]
    start: Option<LogPosition>,
    /// A new channel: GTIDs that the target has already (MySQL: a set, UUID:1-100; MariaDB: a position, 0-1-100). Ignored once the channel has
    /// passed them
    #[arg(long, value_name = "GTIDS")]
    start_gtid: Option<GtidState>,
    /// A new channel: start where this copy of the source was made: a dump, mydumper's metadata, xtrabackup_binlog_info, the clone plugin's
    /// status. Ignored once the channel has passed it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["start", "start_gtid"])]
    start_from: Option<PathBuf>,
    /// A new channel: start although the target's rows or other channels do not fit that place
    #[arg(long)]
    start_anyway: bool,
    /// Stop at the present end of the source's log (files always do)
    #[arg(long)]
    until_end: bool,
    /// Stop before the first transaction committed at or after this time: 2026-11-20T03:14:00Z, '2026-11-20 03:14:00' (UTC), or
    /// seconds since 1970, fractions allowed
    #[arg(long, value_name = "TIME", value_parser = super::time::parse_time)]
    until_time: Option<u64>,
    /// Stop before the first transaction that starts at or after this position
    #[arg(long, value_name = "FILE:POS")]
    until_position: Option<LogPosition>,
    /// Stop once these are applied. Live: waits for a GTID that the source does not have yet
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
    #[command(flatten)]
    writing: TargetArgs,
    /// Statements that may change other rows on the target (UUID(), LIMIT without ORDER BY, …). warn: once for each kind · stop: the channel ends before them
    #[arg(long, value_name = "KIND", help_heading = EXPERT, value_enum, default_value = "warn")]
    unsafe_statements: UnsafeMode,
    #[arg(long, value_name = "N", help_heading = EXPERT, help = lane_workers_help(), value_parser = clap::value_parser!(u16).range(1..))]
    domain_workers_max: Option<u16>,
    #[arg(long, value_name = "N", help_heading = EXPERT, help = history_help(), default_value_t = 25_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    writeset_history: u32,
    /// Whose rules these policies go by: they have changed
    #[arg(long, help_heading = EXPERT, value_parser = rules_parser(), default_value = Generation::Mysql84.as_str(), value_name = "VERSION")]
    writeset_rules: Generation,
    /// Only fill the gaps of an interrupted run (commit order relaxed or per-lane), then end
    #[arg(long, help_heading = EXPERT, conflicts_with_all = ["until_end", "until_gtid", "until_position", "until_time", "start", "start_gtid", "start_from"])]
    fill_gaps: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    feed: FeedArgs,
}

pub fn run(args: &ReplicateArgs) -> Result<ExitCode> {
    check(args)?;
    let ending = Ending::default();
    let request = EndsRequest {
        from: &args.from,
        to: &args.to,
        feed: &args.feed,
        copy: args.copy,
        gtids: args.writing.gtids,
        order: args.commit_order,
    };
    let ends = Ends::read(&request, &ending)?;
    if args.standby && !args.dry_run {
        let turns = Turns {
            channel: &args.channel,
            feed: &args.feed,
            ending: &ending,
            prepare: &|| prepare(args, &ending, &ends),
            run: &|prepared| run_at_nodes(args, &ending, &ends, prepared),
        };
        return turns.run()?.map_or_else(|| Ok(stopped_waiting(args.json)), |summary| finish(&summary, args.json));
    }
    let rows = args.rows_from.as_ref().map(|url| first_copy::rows_server(url, &args.feed, &ending)).transpose()?;
    let lag = first_copy::lag_gate(args.max_lag, &args.replica, &args.feed)?;
    let prepared = prepare(args, &ending, &ends)?;
    let spec = &*prepared.spec;
    let added = if args.copy { AddedTables::find(&args.channel, spec, changes(args))? } else { None };
    let first = FirstCopy {
        channel: added.as_ref().map_or(&args.channel, |added| &added.channel),
        rows: rows.as_ref(),
        already: added.as_ref().map(|added| &*added.already),
        writing: &args.writing,
        feed: &args.feed,
        limits: CopyLimits { threads_running_max: args.max_load, lag: lag.as_ref() },
        target: prepared.options.as_ref(),
        address: &prepared.address,
        stop: &ending.stop,
    };
    if args.dry_run {
        let plan = args.copy.then(|| first.plan(spec)).transpose()?;
        return crate::preflight::run(spec, plan, args.json);
    }
    ending.watch()?;
    if let Some(added) = &added {
        if let Some(failed) = add_tables(args, &ending, &ends, &first, added, &prepared)? {
            return finish(&failed?, args.json);
        }
    } else if args.copy && first.run(spec, None)? == CopyEnd::Copied {
        tracing::info!("copy: all rows are there; the channel goes on");
    }
    finish(&run_at_nodes(args, &ending, &ends, prepared)?, args.json)
}

/// Copies them while the channel goes on as it was. Returns the channel's run, if that has failed.
fn add_tables(
    args: &ReplicateArgs,
    ending: &Ending,
    ends: &Ends,
    first: &FirstCopy<'_>,
    added: &AddedTables,
    prepared: &PreparedRun,
) -> Result<Option<Result<Summary>>> {
    let run = |until: Option<&CopyPlace>, stop: &Arc<AtomicBool>| {
        let as_it_was = |spec: &mut Spec| {
            spec.part = Some(Arc::clone(&added.already));
            spec.span = Span { until: until.map(first_copy::stop_at).unwrap_or_default(), ..Span::default() };
        };
        let prepared = prepare_with(args, ending, ends, as_it_was)?;
        run_channel(&args.channel, &args.feed, stop, &prepared, ProgressDisplay::OfCopy)
    };
    let Some(options) = &prepared.options else { return Err(first_copy::only_servers().into()) };
    tracing::info!("copy: tables are added to channel {}: it goes on as it was until they are there", args.channel);
    let failed = copy_beside(&run, &ending.stop, first, &prepared.spec)?;
    if failed.is_none() {
        let selection = prepared.spec.part_text();
        added.become_part_of(&args.channel, options, selection.as_deref(), first.logged())?;
        first_copy::remove_relay_log(&prepared.spec);
        tracing::info!("copy: all rows are there; channel {} takes the added tables from here on", args.channel);
    }
    Ok(failed)
}

/// Until the end of the channel, or of this process's turn: one run after the other, each at one node of either end.
fn run_at_nodes(args: &ReplicateArgs, ending: &Ending, ends: &Ends, first: PreparedRun) -> Result<Summary> {
    let mut moves = Moves::new(ends, args.feed.connect_retry());
    let mut prepared = first;
    loop {
        let began = Instant::now();
        let run = run_channel(&args.channel, &args.feed, &ending.stop, &prepared, ProgressDisplay::Own);
        // Its connections hold the channel's lock.
        drop(prepared);
        if ending.interrupt().is_asked() {
            return run;
        }
        let Some(pause) = moves.after(&run, began.elapsed()) else { return run };
        ending.go_on();
        std::thread::sleep(pause);
        prepared = prepare(args, ending, ends)?;
    }
}

/// Nothing was applied since it waited last.
fn stopped_waiting(json: bool) -> ExitCode {
    if json {
        output::streams::json("{\"standby\":true,\"stopped\":true}");
    }
    ExitCode::from(super::exit::EXIT_OK)
}

fn prepare(args: &ReplicateArgs, ending: &Ending, ends: &Ends) -> Result<PreparedRun> {
    prepare_with(args, ending, ends, |_| {})
}

/// With another specification than the arguments say.
fn prepare_with(
    args: &ReplicateArgs,
    ending: &Ending,
    ends: &Ends,
    change: impl FnOnce(&mut Spec),
) -> Result<PreparedRun> {
    let (source, log_fs) = source(args, ending, ends)?;
    let OpenTarget { target, on_target, address, grouping, options } = open_target(args, ends)?;
    let workers = workers(args.feed.workers, args.commit_order, grouping);
    let relay_dir = match &source {
        Source::Live(_) => args.feed.relay_dir(&args.channel, &address)?,
        // They are read in place.
        Source::Files(_) => args.feed.relay_dir.clone().unwrap_or_default(),
    };
    let server_id = if args.standby {
        turns::server_id(&args.channel, &address, &relay_dir)
    } else {
        args.feed.server_id(&args.channel, &address)
    };
    let part = args.selection.filter(changes(args), SCHEMA.name())?;
    let mut spec = Spec {
        part,
        part_changed: args.selection.selection_changed,
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
            server_id,
            not_from: None,
            retry_for: retry_source_for(args, ends),
            has_other_nodes: ends.source.as_ref().is_some_and(Nodes::are_several),
        },
    };
    change(&mut spec);
    let route = route(&spec.source, &address);
    Ok(PreparedRun { spec: Arc::new(spec), address, route, options })
}

/// Where there are others, a source that is gone is left for one of them.
fn retry_source_for(args: &ReplicateArgs, ends: &Ends) -> Duration {
    let limit = args.feed.connect_retry();
    if ends.source.as_ref().is_some_and(Nodes::are_several) { limit.min(SOURCE_NODE_RETRY) } else { limit }
}

/// What is not applied whatever its tables are.
fn changes(args: &ReplicateArgs) -> Changes {
    Changes { no_definitions: args.writing.ddl == DdlMode::Skip, left_out: args.selection.left_out() }
}

/// From where to where.
fn span(args: &ReplicateArgs) -> Result<Span> {
    let start = match (&args.start, &args.start_gtid, &args.start_from) {
        (Some(position), _, _) => StartRequest::Position(position.clone()),
        (None, Some(gtids), _) => StartRequest::Gtids(gtids.clone()),
        (None, None, Some(file)) => backup::start_from(file)?,
        (None, None, None) => StartRequest::Default,
    };
    Ok(Span {
        start,
        origin: if args.start_from.is_some() { StartOrigin::Backup } else { StartOrigin::Typed },
        wrong_start: if args.start_anyway { WrongStart::Accept } else { WrongStart::Refuse },
        until: StopCondition {
            position: args.until_position.clone(),
            gtids: args.until_gtid.clone(),
            time_us: args.until_time,
            ends_anyway: args.until_end,
            ..StopCondition::default()
        },
        of_copy: false,
        end: match (args.fill_gaps, args.until_end) {
            (true, _) => channel::spec::End::GapsFilled,
            (false, true) => channel::spec::End::AtSourceEnd,
            (false, false) => channel::spec::End::AsAsked,
        },
    })
}

/// How to order and apply.
fn applying(args: &ReplicateArgs, workers: usize, grouping: Grouping) -> ApplySettings {
    ApplySettings {
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
        unsafe_statements: match args.unsafe_statements {
            UnsafeMode::Warn => UnsafeResponse::Warn,
            UnsafeMode::Stop => UnsafeResponse::Stop,
        },
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
    if args.standby && (args.to.starts_with("store:") || !args.from.iter().all(|from| channel::source::is_url(from))) {
        return Err(Usage("--standby: from a live source into a server, mysql://… both".to_owned()));
    }
    if args.writing.ddl == DdlMode::Idempotent {
        args.selection.may_be_replaced()?;
    }
    if args.writing.replicas_below && args.writing.gtids != Gtids::Preserve {
        return Err(Usage("--replicas-below is for --gtids preserve".to_owned()));
    }
    if args.writing.replicas_below && matches!(args.writing.grouping, Grouping::UpTo(_)) {
        return Err(Usage(
            "--replicas-below needs one target transaction for each of the source's: leave --grouping out".to_owned(),
        ));
    }
    match args.to.strip_prefix("store:") {
        Some("") => Err(Usage("--to store: needs the path of a folder behind it: store:PATH".to_owned())),
        Some(_) => args.selection.may_be_stored(),
        None if !channel::source::is_url(&args.to) => {
            Err(Usage(format!("--to {:?}: expected mysql://… or store:PATH", wire::redacted(&args.to))))
        }
        _ => Ok(()),
    }
}

/// And where its files are, if it has files.
fn source(args: &ReplicateArgs, ending: &Ending, ends: &Ends) -> Result<(Source, Arc<dyn Fs>)> {
    if let Some(nodes) = &ends.source {
        let limit = if args.dry_run { Duration::ZERO } else { args.feed.connect_retry() };
        let options = channel::source::node::choose(nodes, limit, &ending.stop)?;
        return Ok((Source::Live(Box::new(options)), Arc::new(RealFs)));
    }
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
    let (files, _) = Source::parse(&args.from)?;
    Ok((files, Arc::new(RealFs)))
}

fn open_target(args: &ReplicateArgs, ends: &Ends) -> Result<OpenTarget> {
    let request = Request {
        to: &args.to,
        nodes: ends.target.as_ref(),
        channel: &args.channel,
        order: args.commit_order,
        feed: &args.feed,
        purpose: if args.dry_run { Purpose::Check } else { Purpose::Run },
        leftovers: args.selection.leftovers(),
    };
    target::open(&request, &args.writing)
}

fn finish(summary: &Summary, json: bool) -> Result<ExitCode> {
    if json {
        output::streams::json(&serde_json::to_string(summary)?);
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
