//! The threads of one run and the queues between them: starts them, waits until the coordinator has done its work, then for all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use apply::retry::until_reached;
use apply::{ChannelRecord, ProgressRecord, Session};
use crossbeam_channel::{Sender, bounded};
use engine::failure::{Failure, FailureKind};
use engine::intake::{Intake, Keying};
use engine::policy::CommitOrder;
use engine::policy::{Packets, WaitUnit, XaBranches};
use engine::schedule::pace::{Pace, PacketPace};
use engine::schedule::{Commits, Config, Grouping, Limits, Origins, Scheduler, Signals};

use crate::coordinator::{self, Coordinator, Paces, Queues};
use crate::feeder::{
    self, EventIntake, Extent, Feeder, FeederStage, InitialProgress, Output, PreparedBranches, UnsafeStatements,
};
use crate::flow::chores::chores;
use crate::flow::handoff::{Handoff, Wake};
use crate::flow::messages::{FeederMessage, Report};
use crate::flow::run_handles::RunHandles;
use crate::housekeeper::{Checkpoints, CoordinatorLink, Housekeeper};
use crate::monitor::Monitor;
use crate::outcome::Outcome;
use crate::source::open::OpenSource;
use crate::source::receiver::Receiver;
use crate::spawn::spawn;
use crate::spec::{End, Spec};
use crate::start;
use crate::worker::Mode;
use crate::workforce::{Maker, Workforce};

/// Batches of transactions between the feeder and the coordinator. If they are full, the feeder waits.
const FED_MAX: usize = 16;
/// Lock waits that the housekeeper has seen. If they are full, the housekeeper waits.
const NEWS_MAX: usize = 1024;
/// Workers that come, and how many are used. If they are full, who decides on them waits.
const STAFFING_MAX: usize = 64;
/// Reports of one worker. They are never full, so a worker never waits: of an attempt it reports at most twice that all is applied, then that the
/// commit has its place, and that it is committed or has failed. The next attempt comes after the coordinator has taken the last of these. Once
/// it reports that it has panicked.
const REPORTS_MAX: usize = 5;

/// What the threads of a run have in common.
struct Common<'a> {
    spec: &'a Spec,
    opened: &'a ChannelRecord,
    shared: RunHandles,
    coordinator: Arc<dyn Wake>,
}

/// Threads that end when the coordinator has ended.
#[derive(Default)]
struct Threads(Vec<JoinHandle<()>>);

/// Until the run's end, for whatever reason it ends.
pub fn run(
    spec: &Spec,
    source: OpenSource,
    opened: &ChannelRecord,
    monitor: &Monitor,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome> {
    let OpenSource { reader, live, until, start, source_has, .. } = source;
    let (signals, measures) = (Arc::clone(monitor.signals()), Arc::clone(monitor.measures()));
    let shared = RunHandles::new(signals, measures, spec.event_memory(), spec.selection(), Arc::clone(stop));
    monitor.watch_budget(Arc::clone(&shared.budget));
    let sessions = connect_workers(spec)?;
    let (config, paces) = scheduling(spec);
    let (send_fed, fed) = bounded(FED_MAX);
    let most = spec.most_workers();
    let (send_reports, reports) = bounded(REPORTS_MAX * most);
    let (send_news, news) = bounded(NEWS_MAX);
    let (send_chores, chores) = chores(most);
    let (send_staffing, staffing) = bounded(STAFFING_MAX);
    let queues = Queues { fed, reports, news, staffing, chores: send_chores };
    let scheduler = Scheduler::new(config, start.mark.clone(), &opened.committed_ranges);
    let coordinator = Arc::new(Handoff::new(Coordinator::new(scheduler, paces, queues, shared.clone())));
    let wake: Arc<dyn Wake> = Arc::<Handoff<Coordinator>>::clone(&coordinator);
    let common = Common { spec, opened, shared, coordinator: wake };
    let executed = start::ahead(&opened.executed, &start, &source_has);
    if !executed.is_empty() {
        tracing::info!("the target has executed {executed}, ahead of the channel: not applied again");
    }
    let known = InitialProgress { applied: start.mark, committed_ranges: opened.committed_ranges.clone(), executed };
    let feeder = common
        .feeder(Extent::new(until, known, spec.replica.not_from).without(opened.skips.clone()), send_fed.clone())?;

    let mut threads = Threads::default();
    let maker = common.maker(config.commits, send_reports);
    for (number, session) in sessions.into_iter().enumerate() {
        let (handle, thread) = maker.make(number, session)?;
        coordinator.prepare(|coordinator| coordinator.add_worker(handle));
        threads.0.push(thread);
    }
    let (running, ended) = bounded::<()>(0);
    if most > spec.applying.workers {
        let (target, workers) = (Arc::clone(&spec.target), spec.applying.workers);
        let workforce = Workforce { maker, target, staffing: send_staffing, ended, workers };
        threads.start("workforce", move || workforce.run())?;
    } else {
        drop((maker, send_staffing, ended));
    }
    let (receiver, relay) = live.map(|live| (live.receiver, live.relay)).unzip();
    let checkpoints = if spec.applying.order.has_gaps() { Checkpoints::ByHousekeeper } else { Checkpoints::WithRows };
    let to_coordinator = CoordinatorLink { news: send_news, wake: Arc::clone(&common.coordinator) };
    let target = Arc::clone(&spec.target);
    let housekeeper = Housekeeper::new(target, chores, to_coordinator, relay, common.shared.clone(), checkpoints);
    let housekeeper = spawn("housekeeper", move || housekeeper.run())?;
    let reading = Arc::new(Handoff::new(FeederStage::new(reader, feeder)));
    let receiving = receiver.as_ref().map(Receiver::stop_flag);
    threads.start_reading(&reading, receiver, send_fed)?;

    let mut outcome = coordinator::run(&coordinator);
    for stop in receiving.iter().chain([stop]) {
        stop.store(true, Ordering::Relaxed);
    }
    drop(running);
    threads.join(&mut outcome);
    let chores = housekeeper.join().map_err(|_| anyhow!("the housekeeper thread has panicked"))?;
    if let Err(failure) = chores {
        outcome.failure.get_or_insert(failure);
    }
    Ok(outcome)
}

/// One session on the target for each worker. A target that is lost meanwhile is waited for, as later; one that answers with an error (too many connections, a shutdown) is not.
fn connect_workers(spec: &Spec) -> Result<Vec<Box<dyn Session>>> {
    (0..spec.applying.workers)
        .map(|number| {
            let session = || spec.target.session(number);
            let connected = match session() {
                Err(lost) if lost.kind == FailureKind::ConnectionLost && lost.code.is_none() => {
                    until_reached(spec.target.reconnect_for(), session)
                }
                other => other,
            };
            connected.map_err(anyhow::Error::new).with_context(|| {
                format!("worker {} of {}, into {}", number + 1, spec.applying.workers, spec.target.describe())
            })
        })
        .collect()
}

/// How groups are made and ordered, and how large they are at first.
fn scheduling(spec: &Spec) -> (Config, Paces) {
    let counts_begun = spec.applying.policy.requires.counts_on == WaitUnit::BegunCommits && spec.target.locks_rows();
    let one_by_one = spec.applying.grouping == Grouping::Off && !counts_begun && shares_packets(spec);
    let limits = Limits::new(spec.applying.grouping);
    let paces = Paces {
        rows: Pace::new(limits.rows_max),
        statements: Pace::of_statements(limits.statements_max),
        packets: PacketPace::new(limits.packet_max),
    };
    let limits = Limits { rows_max: paces.rows.rows(), statements_max: paces.statements.rows(), ..limits };
    let config = Config {
        lane_groups_max: spec.applying.policy_options.lane_workers_max.unwrap_or(spec.applying.workers),
        signals: if counts_begun { Signals::AppliedFirst } else { Signals::Commit },
        commits: if one_by_one { Commits::Each } else { Commits::Together },
        has_other_nodes: spec.target.has_other_nodes(),
        origins: if spec.target.groups_by_origin() { Origins::One } else { Origins::Any },
        ..Config::new(spec.applying.workers, spec.applying.order, limits, spec.applying.retries_max)
    };
    (config, paces)
}

/// Whether transactions that commit one by one share packets. In the source's order they do so only where they commit one after the other
/// anyway, and where the policy was not chosen for its parallelism.
fn shares_packets(spec: &Spec) -> bool {
    match spec.applying.order {
        CommitOrder::Relaxed => true,
        CommitOrder::PerLane => false,
        CommitOrder::Preserve => {
            spec.applying.policy.requires.packets == Packets::Shared && !spec.target.syncs_for_several()
        }
    }
}

/// Whether XA branches whose end is in the log are applied with their end. Only where groups share target transactions, in the source's order: the
/// end comes in the same group or a later one. A policy that goes by tags does not know of rows that come later than the tags say.
fn keeps_branches(spec: &Spec, opened: &ChannelRecord) -> bool {
    spec.applying.defers_branches
        && opened.keeps_branches
        && opened.committed_ranges.is_empty()
        && spec.applying.order == CommitOrder::Preserve
        && spec.applying.policy.requires.xa_branches == XaBranches::Deferred
        && spec.applying.grouping != Grouping::Off
}

impl Common<'_> {
    fn maker(&self, commits: Commits, reports: Sender<Report>) -> Maker {
        let has_gaps = self.spec.applying.order.has_gaps();
        let recorded_as = if has_gaps { ProgressRecord::CommittedRange } else { ProgressRecord::LowWater };
        let mode = Mode {
            merges_rows: self.spec.applying.grouping != Grouping::Off,
            recorded_as,
            commits,
            reconnect_for: self.spec.target.reconnect_for(),
        };
        Maker { shared: self.shared.clone(), coordinator: Arc::clone(&self.coordinator), reports, mode }
    }

    fn feeder(&self, extent: Extent, out: Sender<FeederMessage>) -> Result<Feeder> {
        let spec = self.spec;
        let keying = Keying::new(key_seed());
        let keying = match spec.applying.policy.server_sets(&spec.applying.policy_options) {
            Some(generation) => keying.for_tags(generation),
            None => keying,
        };
        let catalogue = spec.target.catalogue().map_err(anyhow::Error::new)?;
        let events = self.shared.events;
        let intake = Intake::new(events.spill_bytes(), keying)
            .inflating_at_most(events.event_bytes_max())
            .selecting(spec.selection())
            .finding_unsafe();
        let intake = EventIntake::new(intake, catalogue, events);
        let extent = if spec.span.end == End::GapsFilled { extent.only_gaps() } else { extent };
        let policy = (spec.applying.policy.make)(&spec.setting());
        let output = Output::new(out, Arc::clone(&self.coordinator), self.shared.clone());
        let prepared = PreparedBranches::new(self.opened.prepared.iter().cloned());
        let unsafe_statements = UnsafeStatements::new(spec.applying.unsafe_statements, self.shared.clone());
        let feeder = Feeder::new(intake, extent, policy, output, prepared, unsafe_statements, self.shared.clone());
        Ok(if keeps_branches(spec, self.opened) { feeder.defers_branches() } else { feeder })
    }
}

impl Threads {
    fn start(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.0.push(spawn(name, run)?);
        Ok(())
    }

    /// Starts the feeder and, for a live source, the receiver.
    fn start_reading(
        &mut self,
        reading: &Arc<Handoff<FeederStage>>,
        receiver: Option<Receiver>,
        out: Sender<FeederMessage>,
    ) -> Result<()> {
        let (own, own_out) = (Arc::clone(reading), out.clone());
        self.start("feeder", move || feeder::run(&own, &own_out))?;
        let Some(receiver) = receiver else { return Ok(()) };
        let reading = Arc::clone(reading);
        self.start("receiver", move || {
            if let Err(failure) = receiver.run(&*reading) {
                // If the coordinator is gone, it does not need to know.
                let _ = out.send(FeederMessage::Failed(failure));
            }
        })
    }

    fn join(self, outcome: &mut Outcome) {
        for thread in self.0 {
            join(thread, outcome);
        }
    }
}

fn join(thread: JoinHandle<()>, outcome: &mut Outcome) {
    let name = thread.thread().name().unwrap_or("thread").to_owned();
    if thread.join().is_err() {
        let failure =
            Failure::new(FailureKind::Refused, format!("thread {name} has panicked: this is a bug in heddle"));
        outcome.failure.get_or_insert(failure);
    }
}

/// Different in each process, so that no one can choose keys that collide.
fn key_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
