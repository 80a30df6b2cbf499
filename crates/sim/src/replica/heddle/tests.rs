//! The dispatcher beside the engine's scheduler, with every policy of the list and one more, on random streams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use engine::group::{DeferredPart, GroupId};
use engine::policy::CommitOrder;
use engine::policy::{PolicyOptions, PolicySpec, Setting, WaitUnit};
use engine::progress::Mark;
use engine::schedule::{Config, Grouping, Limits, Output, Run, Scheduler, Signals};
use proptest::prelude::*;

use super::dispatch::{Replica, run_single};
use super::place;
use super::placements::LowWater;
use super::stream::Stream;
use crate::replica::random::{COSTS, ROW_US, specs, trace};
use crate::replica::tests::throwaway;
use crate::replica::trace::Trace;

struct Job {
    id: GroupId,
    number: usize,
    run: Run,
    waits: bool,
    begun: bool,
    applied: bool,
}

/// The engine's scheduler, with workers that take [`ROW_US`] for each transaction; when each was committed.
struct Engine {
    scheduler: Scheduler,
    jobs: Vec<Option<Job>>,
    now: u64,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    done: Vec<f64>,
}

impl Engine {
    fn run(trace: &Trace, policy: &PolicySpec, order: CommitOrder, workers: usize) -> Vec<f64> {
        let signals = match policy.requires.counts_on {
            WaitUnit::BegunCommits => Signals::AppliedFirst,
            WaitUnit::Commits => Signals::Commit,
        };
        let config = Config { signals, ..Config::new(workers, order, Limits::new(Grouping::Off), 0) };
        let mut engine = Self {
            scheduler: Scheduler::new(config, Mark::default(), &[]),
            jobs: (0..workers).map(|_| None).collect(),
            now: 0,
            due: BinaryHeap::new(),
            done: vec![0.0; trace.transactions.len()],
        };
        let options = PolicyOptions::default();
        let mut policy = (policy.make)(&Setting { order, locks_rows: true, options: &options });
        let mut stream = Stream::new(trace);
        let mut low_water = LowWater::default();
        while let Some(transaction) = stream.next_owned() {
            policy.low_water(low_water.before(&transaction));
            let placement = policy.place(&transaction);
            engine.scheduler.enqueue(Arc::new(transaction), placement);
        }
        engine.scheduler.end();
        while !engine.poll() {
            let Some(Reverse((at, worker))) = engine.due.pop() else { panic!("{:?}", engine.scheduler.idle_because()) };
            engine.now = at;
            engine.applied(worker);
        }
        engine.done
    }

    /// Whether all is done.
    fn poll(&mut self) -> bool {
        while let Some(output) = self.scheduler.poll() {
            match output {
                Output::Dispatch { worker, group, run } => {
                    let waits =
                        !run.granted && group.deferred.iter().any(|deferred| *deferred != DeferredPart::Nothing);
                    let number = group.first() as usize - 1;
                    self.jobs[worker] = Some(Job { id: group.id, number, run, waits, begun: false, applied: false });
                    self.begin(worker);
                }
                Output::Release { worker, .. } => {
                    self.job(worker).waits = false;
                    self.begin(worker);
                }
                Output::Grant { worker, .. } => {
                    let job = self.job(worker);
                    (job.waits, job.run.granted) = (false, true);
                    self.begin(worker);
                    self.commit(worker);
                }
                Output::Finished => return true,
                Output::LowWater(_) => {}
                Output::Abort { .. } | Output::Stop(_) => panic!("nothing fails here"),
            }
        }
        false
    }

    fn job(&mut self, worker: usize) -> &mut Job {
        self.jobs[worker].as_mut().unwrap()
    }

    fn begin(&mut self, worker: usize) {
        let job = self.job(worker);
        if !job.waits && !std::mem::replace(&mut job.begun, true) {
            self.due.push(Reverse((self.now + ROW_US, worker)));
        }
    }

    fn applied(&mut self, worker: usize) {
        let job = self.job(worker);
        job.applied = true;
        let (id, signals) = (job.id, job.run.signals);
        if signals == Signals::AppliedFirst {
            self.scheduler.applied(id);
        }
        self.commit(worker);
    }

    fn commit(&mut self, worker: usize) {
        let Some(job) = self.jobs[worker].take_if(|job| job.applied && job.run.granted) else { return };
        self.done[job.number] = self.now as f64;
        self.scheduler.ordered(job.id);
        self.scheduler.committed(job.id);
    }
}

fn dispatched(trace: &Trace, policy: &PolicySpec, order: CommitOrder, workers: usize) -> Vec<f64> {
    let placements = place(trace, policy, order);
    let ordered = order == CommitOrder::Preserve;
    let mut done = Vec::new();
    run_single(&Replica { trace, placements: &placements, costs: &COSTS, workers, ordered }, |_, at| done.push(at));
    done
}

/// Those that the log has what it takes for, with each order that a prediction knows.
fn cases(trace: &Trace) -> Vec<(&'static PolicySpec, CommitOrder)> {
    use engine::policy::SourceTags::{Any, GroupCommits, LogicalClock};
    let suits = |policy: &&PolicySpec| match policy.requires.source {
        Any => true,
        LogicalClock => trace.has_tags,
        GroupCommits => trace.has_groups,
    };
    // What speculation finds out depends on locks, which are not here.
    let policies = throwaway::list().iter().filter(|policy| suits(policy) && !policy.speculates());
    let orders = [CommitOrder::Preserve, CommitOrder::Relaxed];
    policies.flat_map(|policy| orders.map(|order| (policy, order))).collect()
}

proptest! {
    /// With a worker for each transaction the two say the same of each.
    #[test]
    fn transactions_commit_when_the_engine_lets_them(specs in specs(), mariadb: bool) {
        let trace = trace(&specs, mariadb);
        let workers = specs.len();
        for (policy, order) in cases(&trace) {
            let engine = Engine::run(&trace, policy, order, workers);
            prop_assert_eq!(dispatched(&trace, policy, order, workers), engine, "{} {:?}", policy.name, order);
        }
    }

    /// With few workers they differ in whom an idle one takes. Neither leaves a worker idle that could work,
    /// so neither takes twice as long as the other (R. L. Graham, Bounds on Multiprocessing Timing Anomalies, 1969).
    #[test]
    fn with_few_workers_neither_takes_twice_as_long(specs in specs(), mariadb: bool, workers in 1..9_usize) {
        let trace = trace(&specs, mariadb);
        for (policy, order) in cases(&trace) {
            let last = |done: Vec<f64>| done.into_iter().fold(0.0, f64::max);
            let engine = last(Engine::run(&trace, policy, order, workers));
            let ratio = last(dispatched(&trace, policy, order, workers)) / engine;
            prop_assert!((0.5..=2.0).contains(&ratio), "{} {order:?}, {workers} workers: {ratio}", policy.name);
        }
    }
}
