//! One run of one channel: opens both ends, starts the threads, waits for the end, sums up.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use crossbeam_channel::{bounded, unbounded};
use engine::assemble::Assembler;
use engine::failure::{Failure, FailureKind};
use engine::group::{GroupId, Grouping, Limits};
use engine::gtid::GtidState;
use engine::keying::Keying;
use engine::pace::Pace;
use engine::policy::{PolicyName, PolicyOptions};
use engine::scheduler::{CommitOrder, Config, Scheduler};
use relay::{FileOptions, FilesReader, LogReader, RealFs, RelayLog};

use super::budget::Budget;
use super::coordinator::{self, Coordinator, Outcome, Seat};
use super::desk::Desk;
use super::feeder::{At, Batch, Feeder, SPILL_BYTES};
use super::feeding::{self, Feeding};
use super::housekeeper::{Housekeeper, Purge};
use super::reread::{Reread, relay_position};
use super::start::{self, Start, StartAt};
use super::stats::Stats;
use super::until::Until;
use super::worker::{self, WorkerTask};
use crate::report::summary::Summary;
use crate::source::Source;
use crate::source::live::{Receiver, reader_start};
use crate::source::state::SourceState;
use crate::source::sync::RelaySync;
use crate::target::{Opened, Target};

/// Everything that a run depends on, checked as far as it can be without the servers.
pub struct Spec {
    pub source: Source,
    pub target: Arc<dyn Target>,
    /// GTIDs that the target has executed, for where a new channel starts.
    pub on_target: engine::gtid::GtidState,
    pub workers: usize,
    pub policy: PolicyName,
    pub policy_options: PolicyOptions,
    pub order: CommitOrder,
    pub grouping: Grouping,
    pub until: Until,
    /// Only what an earlier run with relaxed order has left out below what it had committed.
    pub fill_gaps: bool,
    /// Live: end where the source was when the run began.
    pub until_end: bool,
    pub start: StartAt,
    pub relay_dir: PathBuf,
    /// The relay log holds what comes next already, and the source may have it no more. Otherwise a new channel begins it anew.
    pub relay_filled: bool,
    pub relay_bytes_max: u64,
    /// What is received is on the disk before it is applied. Without it a crash of the machine may cost the end of the relay log, never more: what is
    /// applied is known by the target alone.
    pub relay_sync: RelaySync,
    /// Replica number towards the source.
    pub server_id: u32,
    /// The target's own number, when transactions that began there must not come back to it.
    pub not_from: Option<u32>,
    pub memory_bytes: u64,
    pub retries_max: u32,
    /// How long to try to reach a source that is gone.
    pub source_retry: Duration,
}

impl Spec {
    /// A run of our own from the beginning, without a relay log: what a caller wants to be different it says.
    pub fn new(source: Source, target: Arc<dyn Target>, workers: usize) -> Self {
        const MEMORY_BYTES: u64 = 256 << 20;
        const RETRIES_MAX: u32 = 10;
        Self {
            source,
            target,
            on_target: engine::gtid::GtidState::None,
            workers,
            policy: PolicyName::Writeset,
            policy_options: PolicyOptions::default(),
            order: CommitOrder::Preserve,
            grouping: Grouping::Auto,
            until: Until::default(),
            fill_gaps: false,
            until_end: false,
            start: StartAt::Default,
            relay_dir: PathBuf::new(),
            relay_filled: false,
            relay_bytes_max: 0,
            relay_sync: RelaySync::Never,
            server_id: 0,
            not_from: None,
            memory_bytes: MEMORY_BYTES,
            retries_max: RETRIES_MAX,
            source_retry: Duration::ZERO,
        }
    }
}

/// Batches of transactions between the feeder and the coordinator.
const FED_MAX: usize = 16;
/// Lock waits that the coordinator may be told of at once.
const NEWS_MAX: usize = 1024;

/// Where the events come from in this run.
struct Feed {
    reader: Box<dyn LogReader>,
    receiver: Option<Receiver>,
    purge: Option<Purge>,
    until: Until,
    start: Start,
    identity: String,
    /// What a live source has executed.
    source_has: GtidState,
}

/// Runs until the end that was asked for, a signal, or a failure. The summary says how far it came in any case.
pub fn run(spec: &Spec, stats: &Arc<Stats>, stop: &Arc<AtomicBool>) -> Result<Summary> {
    let began = Instant::now();
    let target = Arc::clone(&spec.target);
    // A source that can not be used must not leave a channel behind on the target.
    let live = match &spec.source {
        Source::Live(options) => Some(live_state(options)?),
        Source::Files(_) => None,
    };
    if let Some(source) = &live {
        start::two_servers(source, target.machine().map_err(anyhow::Error::new)?.as_deref())?;
    }
    spec.policy.check(spec.order, target.locks_rows())?;
    let opened = target.open().map_err(anyhow::Error::new)?;
    if let Some(intent) = &opened.intent {
        tracing::info!(
            "the last run ended while a statement that commits by itself was under way ({intent}): finding out what became of it"
        );
    }
    let feed = match (&spec.source, live) {
        (Source::Live(options), Some(_)) => {
            // Anew: a predecessor may have applied more until it gave the channel up.
            let source = live_state(options)?;
            live_feed(spec, options, source, &opened, stats, stop)?
        }
        (Source::Live(_), None) => bail!("the state of the live source was not read"),
        (Source::Files(files), _) => files_feed(spec, files, &opened)?,
    };
    if feed.start.is_new {
        let text = start::source_text(&feed.identity, feed.start.by_gtid);
        target.start_at(&feed.start.mark, &text).map_err(anyhow::Error::new)?;
    }
    stats.set_mark(feed.start.mark.clone());
    let first_seq = feed.start.mark.seq;
    let outcome = run_threads(spec, feed, &opened, stats, stop)?;
    target.close();
    Ok(Summary::new(spec, stats, first_seq, began.elapsed(), outcome))
}

fn files_feed(spec: &Spec, files: &[PathBuf], opened: &Opened) -> Result<Feed> {
    let names = start::names(files)?;
    let (start, at) = start::files(opened, &names, &spec.start)?;
    let reader = FilesReader::open_with(Arc::new(RealFs), files.to_vec(), at, FileOptions::default())?;
    Ok(Feed {
        reader: Box::new(reader),
        receiver: None,
        purge: None,
        // A channel that reads files from their beginning has noted all of theirs; one that began at a position has not.
        until: Until { gtids_incomplete: true, ..spec.until.clone() },
        start,
        identity: "files".to_owned(),
        source_has: GtidState::None,
    })
}

fn live_state(options: &wire::ConnectOptions) -> Result<SourceState> {
    let mut connection = wire::Connection::connect(options).context("source")?;
    let source = SourceState::read(&mut connection).context("source")?;
    connection.close();
    Ok(source)
}

fn live_feed(
    spec: &Spec,
    options: &wire::ConnectOptions,
    source: SourceState,
    opened: &Opened,
    stats: &Arc<Stats>,
    stop: &Arc<AtomicBool>,
) -> Result<Feed> {
    let start = start::live(opened, &source, &spec.start, spec.on_target.clone(), spec.relay_filled)?;
    let mut until = Until { gtids_incomplete: !start.by_gtid, ..spec.until.clone() };
    if spec.until_end {
        until.no_further_than(&source.end);
        if start.by_gtid && !source.executed.is_empty() {
            until.source_end = Some(source.executed.clone());
        }
    }
    let (writer, shared) = open_relay(spec, &source, &start)?;
    let reader = shared.reader(match shared.first() {
        Some(_) => reader_start(start.mark.position.as_ref()),
        None => relay::Start::Beginning,
    })?;
    let receiver = Receiver {
        options: options.clone(),
        flavour: source.flavour,
        identity: source.identity.clone(),
        by_gtid: start.by_gtid,
        start: start.stream.clone(),
        server_id: spec.server_id,
        writer,
        relay_sync: spec.relay_sync,
        stats: Arc::clone(stats),
        stop: Arc::clone(stop),
        retry_for: spec.source_retry,
    };
    let purge: Purge = Box::new(move |mark| {
        if let Some(position) = &mark.position
            && let Err(error) = shared.purge(&relay_position(position))
        {
            tracing::warn!("purging the relay log: {error}");
        }
    });
    Ok(Feed {
        reader: Box::new(reader),
        receiver: Some(receiver),
        purge: Some(purge),
        until,
        identity: source.identity,
        source_has: source.executed,
        start,
    })
}

/// `gtids`: what is applied before a new relay log begins.
pub fn relay_options(identity: &str, bytes_max: u64, gtids: &engine::gtid::GtidState) -> relay::Options {
    relay::Options {
        source: identity.to_owned(),
        relay_bytes_max: bytes_max,
        segment_bytes_max: (bytes_max / 8).clamp(1 << 20, 256 << 20),
        gtids: gtids.to_string(),
    }
}

/// The relay log, emptied when it does not hold what comes next.
fn open_relay(spec: &Spec, source: &SourceState, start: &Start) -> Result<(relay::RelayWriter, relay::RelayShared)> {
    let options = relay_options(&source.identity, spec.relay_bytes_max, &start.mark.gtids);
    let open = |options| RelayLog::open(Arc::new(RealFs), &spec.relay_dir, options).context("relay log");
    let opened = match RelayLog::open(Arc::new(RealFs), &spec.relay_dir, options.clone()) {
        Err(relay::Error::OtherSource { .. }) if start.is_new => None,
        other => Some(other.context("relay log")?),
    };
    if let Some((writer, shared)) = opened {
        let position = start.mark.position.as_ref().map(relay_position);
        let covered = match (&position, shared.first(), shared.durable()) {
            _ if start.is_new && !spec.relay_filled => false,
            (None, Some(_), Some(_)) => spec.relay_filled,
            (Some(position), Some(first), Some(durable)) => first <= *position && *position <= durable,
            _ => false,
        };
        if covered || shared.first().is_none() && !spec.relay_filled {
            return Ok((writer, shared));
        }
        if spec.relay_filled {
            bail!(
                "the relay log in {} does not hold what comes next, and the source has it no more",
                spec.relay_dir.display()
            );
        }
        tracing::info!("the relay log in {} does not hold what comes next; it begins anew", spec.relay_dir.display());
    }
    RelayLog::clear(&RealFs, &spec.relay_dir).context("relay log")?;
    open(options)
}

/// How groups are made and ordered, and how large they are at first.
fn scheduling(spec: &Spec) -> (Config, Pace) {
    let announce = spec.policy.uses_begun_commits() && spec.target.locks_rows();
    let limits = Limits::new(spec.grouping);
    let pace = Pace::new(limits.rows_max);
    let config = Config {
        lane_groups_max: spec.policy_options.lane_workers_max.unwrap_or(spec.workers),
        announce,
        apart: spec.grouping == Grouping::Off && spec.order == CommitOrder::Relaxed && !announce,
        ..Config::new(spec.workers, spec.order, Limits { rows_max: pace.rows(), ..limits }, spec.retries_max)
    };
    (config, pace)
}

fn run_threads(
    spec: &Spec,
    feed: Feed,
    opened: &Opened,
    stats: &Arc<Stats>,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome> {
    let target = Arc::clone(&spec.target);
    let relaxed = spec.order.has_gaps();
    let (config, pace) = scheduling(spec);
    let islands = &opened.islands;
    let executed = start::ahead(&opened.executed, &feed.start, &feed.source_has);
    if !executed.is_empty() {
        tracing::info!("the target has executed {executed}, ahead of the channel: not applied again");
    }
    let reread = Reread::default();
    let budget = Arc::new(Budget::new(spec.memory_bytes));
    let (send_fed, fed) = bounded(FED_MAX);
    let (send_reports, reports) = unbounded();
    let (send_chores, chores) = unbounded();
    let (send_news, news) = bounded(NEWS_MAX);
    // The receiver ends when the run does, for whatever reason.
    let receiving = Arc::new(AtomicBool::new(false));

    let sessions: Vec<_> =
        (0..spec.workers).map(|number| target.session(number)).collect::<Result<_, _>>().map_err(anyhow::Error::new)?;
    let catalogue = target.catalogue().map_err(anyhow::Error::new)?;
    let desk = Arc::new(Desk::new(Coordinator {
        scheduler: Scheduler::new(config, feed.start.mark.clone(), islands),
        fed,
        reports,
        running: vec![None; spec.workers],
        pace,
        suspected: (GroupId(0), Duration::ZERO),
        dispatched: Instant::now(),
        low_water: None,
        told: Instant::now(),
        draining: None,
        stopped: false,
        ended: None,
        workers: Vec::new(),
        chores: send_chores,
        news,
        budget: Arc::clone(&budget),
        stats: Arc::clone(stats),
        stop: Arc::clone(stop),
    }));
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut seats = Vec::new();
    for (number, session) in sessions.into_iter().enumerate() {
        let (send_orders, orders) = unbounded();
        let task = WorkerTask {
            number,
            session,
            orders,
            reports: send_reports.clone(),
            desk: Arc::clone(&desk),
            reread: reread.clone(),
            merge: spec.grouping != Grouping::Off,
            relaxed,
            apart: config.apart,
            stats: Arc::clone(stats),
            next: None,
        };
        let task = Arc::new(Desk::new(task));
        seats.push(Seat { orders: send_orders, desk: Arc::clone(&task) });
        let reports = send_reports.clone();
        threads.push(spawn(&format!("worker-{number}"), move || worker::run(&task, number, &reports))?);
    }
    desk.prepare(|coordinator| coordinator.workers = seats);
    drop(send_reports);
    let housekeeper = Housekeeper {
        target: Arc::clone(&target),
        chores,
        news: send_news,
        desk: Arc::clone(&desk),
        reread: reread.clone(),
        purge: feed.purge,
        checkpoints: relaxed,
    };
    let housekeeper = spawn("housekeeper", move || housekeeper.run())?;
    let feeder = Feeder {
        assembler: Assembler::new(SPILL_BYTES),
        keying: match spec.policy.server_sets(&spec.policy_options) {
            Some(generation) => Keying::new(key_seed()).for_tags(generation),
            None => Keying::new(key_seed()),
        },
        catalogue,
        policy: spec.policy.make(spec.order, target.locks_rows(), &spec.policy_options),
        out: send_fed.clone(),
        desk: Arc::clone(&desk),
        budget,
        stats: Arc::clone(stats),
        reread,
        until: feed.until,
        islands: islands.clone(),
        executed,
        applied: feed.start.mark,
        last_seq: spec.fill_gaps.then(|| islands.iter().map(|&(_, last)| last).max().unwrap_or(0)),
        not_from: spec.not_from,
        stop: Arc::clone(stop),
        first: None,
        at: At::default(),
        batch: Batch::default(),
        held: None,
    };
    let feeding = Arc::new(Desk::new(Feeding { reader: feed.reader, feeder, ended: false }));
    let (own, out) = (Arc::clone(&feeding), send_fed.clone());
    threads.push(spawn("feeder", move || feeding::run(&own, &out))?);
    let receiver = match feed.receiver {
        Some(receiver) => {
            let receiver = Receiver { stop: Arc::clone(&receiving), ..receiver };
            let failed = send_fed.clone();
            Some(spawn("receiver", move || {
                if let Err(failure) = receiver.run(&feeding) {
                    // Nobody listens any more when the run is over.
                    let _ = failed.send(super::feeder::Fed::Failed(failure));
                }
            })?)
        }
        None => None,
    };
    drop(send_fed);

    let mut outcome = coordinator::run(&desk);
    receiving.store(true, Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    for thread in threads.into_iter().chain(receiver) {
        join(thread, &mut outcome)?;
    }
    let chores = housekeeper.join().map_err(|_| anyhow!("the housekeeper thread has panicked"))?;
    if let Err(failure) = chores {
        outcome.failure.get_or_insert(failure);
    }
    Ok(outcome)
}

fn spawn<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).with_context(|| format!("starting thread {name}"))
}

fn join(thread: JoinHandle<()>, outcome: &mut Outcome) -> Result<()> {
    let name = thread.thread().name().unwrap_or("thread").to_owned();
    if thread.join().is_err() {
        let failure =
            Failure::new(FailureKind::Refused, format!("thread {name} has panicked: this is a bug in heddle"));
        outcome.failure.get_or_insert(failure);
    }
    Ok(())
}

/// Different in each process, so that nobody can choose keys that collide.
fn key_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
