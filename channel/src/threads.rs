//! The threads of one run and the queues between them: starts them, waits until the coordinator has done its work, then for all others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use binlog::gtids::GtidSet;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use engine::branches::Lookahead;
use engine::failure::{Failure, FailureKind};
use engine::group::GroupId;
use engine::intake::{Intake, Keying};
use engine::policy::{CountsOn, Packets, Setting, XaBranches};
use engine::progress::Mark;
use engine::schedule::pace::{Pace, PacketPace};
use engine::schedule::{CommitOrder, Commits, Config, Grouping, Limits, Scheduler, Signals};

use crate::coordinator::{self, Coordinator, Outcome, Paces, WorkerHandle};
use crate::feeder::{At, Batch, Feeder, SPILL_BYTES};
use crate::flow::budget::Budget;
use crate::flow::handoff::{Handoff, Wake};
use crate::flow::messages::{Fed, News, Order, Report};
use crate::flow::prepared::Prepared;
use crate::flow::slow_groups::SlowGroups;
use crate::flow::spill::Spills;
use crate::flow::stats::Stats;
use crate::housekeeper::{Chore, Housekeeper};
use crate::reading::{self, Reading};
use crate::source::open::OpenSource;
use crate::spec::Spec;
use crate::start;
use crate::until::Until;
use crate::worker::{self, WorkerTask};
use apply::{Opened, Session};

/// Batches of transactions between the feeder and the coordinator.
const FED_MAX: usize = 16;
/// Lock waits that the coordinator may be told of at once.
const NEWS_MAX: usize = 1024;

/// What the threads of a run have in common.
struct Common<'a> {
    spec: &'a Spec,
    opened: &'a Opened,
    stats: &'a Arc<Stats>,
    stop: &'a Arc<AtomicBool>,
    budget: Arc<Budget>,
    reread: Spills,
}

/// The ends of queues that lead to the coordinator, and of that to the housekeeper.
struct Queues {
    fed: Receiver<Fed>,
    reports: Receiver<Report>,
    chores: Sender<Chore>,
    news: Receiver<News>,
}

/// Until the run's end, for whatever reason it ends.
pub fn run(
    spec: &Spec,
    source: OpenSource,
    opened: &Opened,
    stats: &Arc<Stats>,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome> {
    let budget = Arc::new(Budget::new(spec.memory_bytes));
    let common = Common { spec, opened, stats, stop, budget, reread: Spills::default() };
    let sessions = connect_workers(spec)?;
    let (config, paces) = scheduling(spec);
    let (send_fed, fed) = bounded(FED_MAX);
    let (send_reports, reports) = unbounded();
    let (send_chores, chores) = unbounded();
    let (send_news, news) = bounded(NEWS_MAX);
    let queues = Queues { fed, reports, chores: send_chores, news };
    let scheduler = Scheduler::new(config, source.start.mark.clone(), &opened.committed_ranges);
    let handoff = Arc::new(Handoff::new(common.coordinator(scheduler, paces, queues)));
    let wake: Arc<dyn Wake> = Arc::<Handoff<Coordinator>>::clone(&handoff);
    let executed = start::ahead(&opened.executed, &source.start, &source.source_has);
    if !executed.is_empty() {
        tracing::info!("the target has executed {executed}, ahead of the channel: not applied again");
    }
    let feeder = common.feeder(source.until, source.start.mark, executed, send_fed.clone(), &wake)?;

    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut handles = Vec::new();
    for (number, session) in sessions.into_iter().enumerate() {
        let (orders, task) =
            common.worker(number, session, config.commits == Commits::Each, send_reports.clone(), &wake);
        let task = Arc::new(Handoff::new(task));
        handles.push(WorkerHandle { orders, worker: Arc::<Handoff<WorkerTask>>::clone(&task) });
        let reports = send_reports.clone();
        threads.push(spawn(&format!("worker-{number}"), move || worker::run(&task, number, &reports))?);
    }
    handoff.prepare(|coordinator| coordinator.workers = handles);
    drop(send_reports);
    let housekeeper = Housekeeper {
        target: Arc::clone(&spec.target),
        chores,
        news: send_news,
        coordinator: wake,
        reread: common.reread,
        purge: source.purge,
        stats: Arc::clone(stats),
        checkpoints: spec.order.has_gaps(),
    };
    let housekeeper = spawn("housekeeper", move || housekeeper.run())?;
    let reading = Arc::new(Handoff::new(Reading { reader: source.reader, feeder, ended: false }));
    let (own, out) = (Arc::clone(&reading), send_fed.clone());
    threads.push(spawn("feeder", move || reading::run(&own, &out))?);
    let receiving = source.receiver.as_ref().map(|receiver| Arc::clone(&receiver.stop));
    if let Some(receiver) = source.receiver {
        threads.push(spawn("receiver", move || {
            if let Err(failure) = receiver.run(&*reading) {
                // Nobody listens any more when the run is over.
                let _ = send_fed.send(Fed::Failed(failure));
            }
        })?);
    } else {
        drop(send_fed);
    }

    let mut outcome = coordinator::run(&handoff);
    for stop in receiving.iter().chain([stop]) {
        stop.store(true, Ordering::Relaxed);
    }
    for thread in threads {
        join(thread, &mut outcome);
    }
    let chores = housekeeper.join().map_err(|_| anyhow!("the housekeeper thread has panicked"))?;
    if let Err(failure) = chores {
        outcome.failure.get_or_insert(failure);
    }
    Ok(outcome)
}

/// One session on the target for each worker.
fn connect_workers(spec: &Spec) -> Result<Vec<Box<dyn Session>>> {
    (0..spec.workers)
        .map(|number| {
            let connected = spec.target.session(number).map_err(anyhow::Error::new);
            connected
                .with_context(|| format!("worker {} of {}, into {}", number + 1, spec.workers, spec.target.describe()))
        })
        .collect()
}

/// How groups are made and ordered, and how large they are at first.
fn scheduling(spec: &Spec) -> (Config, Paces) {
    let counts_begun = spec.policy.requires.counts_on == CountsOn::BegunCommits && spec.target.locks_rows();
    let one_by_one = spec.grouping == Grouping::Off && !counts_begun && shares_packets(spec);
    let limits = Limits::new(spec.grouping);
    let paces = Paces {
        rows: Pace::new(limits.rows_max),
        statements: Pace::of_statements(limits.statements_max),
        packets: PacketPace::new(limits.packet_max),
    };
    let limits = Limits { rows_max: paces.rows.rows(), statements_max: paces.statements.rows(), ..limits };
    let config = Config {
        lane_groups_max: spec.policy_options.lane_workers_max.unwrap_or(spec.workers),
        signals: if counts_begun { Signals::AppliedFirst } else { Signals::Commit },
        commits: if one_by_one { Commits::Each } else { Commits::Together },
        ..Config::new(spec.workers, spec.order, limits, spec.retries_max)
    };
    (config, paces)
}

/// Whether transactions that commit one by one share packets. In the source's order they do only where they commit one after the other anyway, and where
/// no policy was chosen to see what its parallelism is good for.
fn shares_packets(spec: &Spec) -> bool {
    match spec.order {
        CommitOrder::Relaxed => true,
        CommitOrder::PerLane => false,
        CommitOrder::Preserve => spec.policy.requires.packets == Packets::Shared && !spec.target.syncs_for_several(),
    }
}

/// Whether branches whose end is in the log are applied with it. Only where groups share target transactions, in the source's order: the end comes in the
/// same one, or a later one, and a policy that goes by tags knows nothing of rows that come later than it was told.
fn keeps_branches(spec: &Spec, opened: &Opened) -> bool {
    spec.keeps_branches
        && opened.keeps_branches
        && opened.committed_ranges.is_empty()
        && spec.order == CommitOrder::Preserve
        && spec.policy.requires.xa_branches == XaBranches::Deferred
        && spec.grouping != Grouping::Off
}

impl Common<'_> {
    /// Without its workers.
    fn coordinator(&self, scheduler: Scheduler, paces: Paces, queues: Queues) -> Coordinator {
        Coordinator {
            scheduler,
            fed: queues.fed,
            reports: queues.reports,
            workers: Vec::new(),
            chores: queues.chores,
            news: queues.news,
            budget: Arc::clone(&self.budget),
            stats: Arc::clone(self.stats),
            stop: Arc::clone(self.stop),
            running: vec![None; self.spec.workers],
            paces,
            suspected: (GroupId(0), Duration::ZERO),
            slow: SlowGroups::new(),
            dispatched: Instant::now(),
            low_water: None,
            told: Instant::now(),
            draining: None,
            stopped: false,
            ended: None,
        }
    }

    fn worker(
        &self,
        number: usize,
        session: Box<dyn Session>,
        apart: bool,
        reports: Sender<Report>,
        coordinator: &Arc<dyn Wake>,
    ) -> (Sender<Order>, WorkerTask) {
        let (send_orders, orders) = unbounded();
        let task = WorkerTask {
            number,
            session,
            orders,
            reports,
            coordinator: Arc::clone(coordinator),
            reread: self.reread.clone(),
            merge: self.spec.grouping != Grouping::Off,
            relaxed: self.spec.order.has_gaps(),
            apart,
            stats: Arc::clone(self.stats),
            next: None,
            early: VecDeque::new(),
        };
        (send_orders, task)
    }

    /// `applied`: where it begins. `executed`: of what comes then, what the target has already.
    fn feeder(
        &self,
        until: Until,
        applied: Mark,
        executed: GtidSet,
        out: Sender<Fed>,
        coordinator: &Arc<dyn Wake>,
    ) -> Result<Feeder> {
        let (spec, islands) = (self.spec, &self.opened.committed_ranges);
        let keying = Keying::new(key_seed());
        let keying = match spec.policy.server_sets(&spec.policy_options) {
            Some(generation) => keying.for_tags(generation),
            None => keying,
        };
        Ok(Feeder {
            intake: Intake::new(SPILL_BYTES, keying),
            catalogue: spec.target.catalogue().map_err(anyhow::Error::new)?,
            policy: (spec.policy.make)(&Setting {
                order: spec.order,
                locks_rows: spec.target.locks_rows(),
                options: &spec.policy_options,
            }),
            out,
            coordinator: Arc::clone(coordinator),
            budget: Arc::clone(&self.budget),
            stats: Arc::clone(self.stats),
            reread: self.reread.clone(),
            until,
            islands: islands.clone(),
            executed,
            applied,
            last_seq: spec.fill_gaps.then(|| islands.iter().map(|&(_, last)| last).max().unwrap_or(0)),
            prepared: Prepared::new(self.opened.prepared.iter().cloned()),
            branches: keeps_branches(spec, self.opened).then(Lookahead::default),
            not_from: spec.not_from,
            stop: Arc::clone(self.stop),
            first: None,
            at: At::default(),
            batch: Batch::default(),
            held: None,
        })
    }
}

fn spawn<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).with_context(|| format!("starting thread {name}"))
}

fn join(thread: JoinHandle<()>, outcome: &mut Outcome) {
    let name = thread.thread().name().unwrap_or("thread").to_owned();
    if thread.join().is_err() {
        let failure =
            Failure::new(FailureKind::Refused, format!("thread {name} has panicked: this is a bug in heddle"));
        outcome.failure.get_or_insert(failure);
    }
}

/// Different in each process, so that nobody can choose keys that collide.
fn key_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
