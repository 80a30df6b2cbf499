//! Scheduler, workers and a locking target in virtual time. First with mishaps, then without, and then it has to end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;

use super::source::{Source, Xa};
use super::target::{ApplyStop, Database};
use crate::Seq;
use crate::compact::{Batch, plan};
use crate::failure::{Failure, FailureKind};
use crate::group::Group;
use crate::policy::CommitOrder;
use crate::policy::{Lane, Policy};
use crate::progress::Mark;
use crate::schedule::{Config, Grouping, Limits, Output, Run as HowToRun, Scheduler, Signals, Worker};
use crate::testing::{RowChange, TestTable, change_of};

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub order: CommitOrder,
    pub grouping: Grouping,
    pub workers: usize,
    pub signals: Signals,
    pub lane_groups_max: usize,
    pub ahead_rows_min: usize,
}

struct Job {
    group: Arc<Group>,
    run: HowToRun,
    /// Changes to apply, the last first.
    free: Vec<(usize, RowChange)>,
    held: Vec<(usize, RowChange)>,
    granted: bool,
    released: bool,
    /// It is to roll back, and hears of it when it waits for its grant.
    aborted: bool,
    /// What it executed was ended as well.
    interrupted: bool,
    announced: bool,
    failed: bool,
    /// Its place is taken.
    ordered: bool,
    blocked_by: Option<Worker>,
}

pub struct World<'a> {
    source: &'a Source,
    setting: Run,
    scheduler: Scheduler,
    policy: Box<dyn Policy>,
    next: usize,
    jobs: Vec<Option<Job>>,
    pub database: Database,
    pub committed: BTreeSet<Seq>,
    lanes: BTreeMap<Seq, Lane>,
    last_of_lane: BTreeMap<Lane, Seq>,
    pub finished: bool,
    pub retries: u64,
    pub aborts: u64,
}

/// Chances in a thousand.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub fail: u32,
}

const RETRIES_MAX: u32 = 500;
/// The feeder waits when so many wait in the scheduler, or are above the low water.
const QUEUED_MAX: usize = 20;
const OUTSTANDING_MAX: u64 = 40;

impl<'a> World<'a> {
    /// `database` holds what is in `committed`, and nothing that is open.
    pub fn new(
        source: &'a Source,
        setting: Run,
        policy: Box<dyn Policy>,
        database: Database,
        committed: BTreeSet<Seq>,
    ) -> Self {
        let low_water = (1..).take_while(|seq| committed.contains(seq)).last().unwrap_or(0);
        let ranges: Vec<(Seq, Seq)> = committed.range(low_water + 1..).map(|&seq| (seq, seq)).collect();
        let limits = Limits { ahead_rows_min: setting.ahead_rows_min, ..Limits::new(setting.grouping) };
        let config = Config {
            signals: setting.signals,
            lane_groups_max: setting.lane_groups_max,
            ..Config::new(setting.workers, setting.order, limits, RETRIES_MAX)
        };
        let scheduler = Scheduler::new(config, Mark { seq: low_water, ..Mark::default() }, &ranges);
        Self {
            source,
            setting,
            scheduler,
            policy,
            next: low_water as usize,
            jobs: (0..setting.workers).map(|_| None).collect(),
            database,
            committed,
            lanes: BTreeMap::new(),
            last_of_lane: BTreeMap::new(),
            finished: false,
            retries: 0,
            aborts: 0,
        }
    }

    fn feed(&mut self) {
        if self.scheduler.queued().0 >= QUEUED_MAX || self.scheduler.outstanding() >= OUTSTANDING_MAX {
            return;
        }
        let Some(transaction) = self.source.transactions.get(self.next) else { return self.scheduler.end() };
        self.policy.low_water(self.scheduler.committed_set().low_water());
        self.policy.accepts(transaction).unwrap();
        let placement = self.policy.place(transaction);
        self.lanes.insert(transaction.seq, placement.lane);
        assert_eq!(placement.barrier, transaction.barrier);
        self.scheduler.enqueue(Arc::clone(transaction), placement);
        self.next += 1;
    }

    fn poll(&mut self) {
        while let Some(output) = self.scheduler.poll() {
            match output {
                Output::Dispatch { worker, group, run } => self.dispatch(worker, group, run),
                Output::Release { worker, group } => {
                    self.job(worker, group).released = true;
                }
                Output::Grant { worker, group } => {
                    self.job(worker, group).granted = true;
                }
                Output::Abort { worker, group, .. } => {
                    self.aborts += 1;
                    let job = self.job(worker, group);
                    job.aborted = true;
                    // One that comes between two statements, or before the first, hits nothing.
                    job.interrupted |= job.blocked_by.is_some();
                }
                Output::LowWater(mark) => assert!((1..=mark.seq).all(|seq| self.committed.contains(&seq))),
                Output::Finished => self.finished = true,
                Output::Stop(failure) => panic!("the channel stopped: {failure}"),
            }
        }
    }

    fn job(&mut self, worker: Worker, group: crate::group::GroupId) -> &mut Job {
        let job = self.jobs[worker].as_mut().expect("an order for a worker without a group");
        assert_eq!(job.group.id, group);
        job
    }

    fn changes(&self, batches: &[Batch<'_>]) -> Vec<(usize, RowChange)> {
        let tables = &self.source.tables;
        let index =
            |batch: &Batch<'_>| tables.iter().position(|t: &TestTable| t.def.id == batch.table.unwrap().id).unwrap();
        let changes = batches.iter().flat_map(|batch| {
            let table = index(batch);
            batch.rows.iter().map(move |images| (table, change_of(batch, images)))
        });
        let mut changes: Vec<_> = changes.collect();
        changes.reverse();
        changes
    }

    fn dispatch(&mut self, worker: Worker, group: Arc<Group>, run: HowToRun) {
        assert!(!run.isolate, "nothing differs, yet a failure was taken for more than a conflict");
        assert!(self.jobs[worker].as_ref().is_none_or(|job| job.failed));
        self.retries += u64::from(run.attempt > 1);
        let plan = plan(&group, self.setting.grouping != Grouping::Off);
        let (free, held) = (self.changes(&plan.independent), self.changes(&plan.deferred));
        drop(plan);
        self.jobs[worker] = Some(Job {
            group,
            run,
            free,
            held,
            granted: run.granted,
            released: false,
            aborted: false,
            interrupted: false,
            announced: false,
            failed: false,
            ordered: false,
            blocked_by: None,
        });
    }

    fn fail(&mut self, worker: Worker, kind: FailureKind) {
        self.database.rollback(worker);
        self.unblock(worker);
        let job = self.jobs[worker].as_mut().unwrap();
        job.failed = true;
        job.blocked_by = None;
        let group = job.group.id;
        self.scheduler.failed(group, Failure::new(kind, "in the simulation"), 0);
    }

    /// Its locks are gone.
    fn unblock(&mut self, worker: Worker) {
        for job in self.jobs.iter_mut().flatten() {
            job.blocked_by = job.blocked_by.filter(|&other| other != worker);
        }
    }

    /// Who waits for whom comes back to the worker: the target ends one of them.
    fn is_deadlocked(&self, worker: Worker) -> bool {
        let mut at = worker;
        for _ in 0..self.jobs.len() {
            match self.jobs.get(at).and_then(Option::as_ref).and_then(|job| job.blocked_by) {
                Some(next) if next == worker => return true,
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }

    /// One step of one worker.
    fn step(&mut self, worker: Worker, mishap: bool) {
        let Some(job) = self.jobs[worker].as_mut().filter(|job| !job.failed) else { return };
        if job.ordered {
            let group = job.group.id;
            self.jobs[worker] = None;
            return self.scheduler.committed(group);
        }
        if mishap || (job.interrupted && !job.granted) {
            return self.fail(worker, FailureKind::Conflict);
        }
        let from_held = job.free.is_empty() && (job.granted || job.released);
        let next = if from_held { job.held.last() } else { job.free.last() };
        if let Some((table, change)) = next.cloned() {
            let tables = &self.source.tables;
            let done = self.database.apply(tables, worker, &tables[table], &change);
            job.blocked_by = None;
            match done {
                Ok(()) if from_held => drop(job.held.pop()),
                Ok(()) => drop(job.free.pop()),
                Err(ApplyStop::Blocked(other)) => {
                    job.blocked_by = Some(other);
                    if self.is_deadlocked(worker) {
                        self.fail(worker, FailureKind::Conflict);
                    }
                }
                Err(ApplyStop::Refused) => self.fail(worker, FailureKind::Divergence),
            }
            return;
        }
        if job.aborted && !job.granted {
            return self.fail(worker, FailureKind::Conflict);
        }
        if job.held.is_empty()
            && job.run.signals == Signals::AppliedFirst
            && !std::mem::replace(&mut job.announced, true)
        {
            let group = job.group.id;
            return self.scheduler.applied(group);
        }
        if job.granted {
            job.ordered = true;
            let group = Arc::clone(&job.group);
            self.commit(worker, &group);
            self.scheduler.ordered(group.id);
        }
    }

    fn commit(&mut self, worker: Worker, group: &Group) {
        let xa = group.transactions.iter().find_map(|transaction| self.source.xa.get(&transaction.seq));
        assert!(xa.is_none() || group.transactions.len() == 1, "an XA transaction in a group");
        match xa {
            Some(Xa::Prepare(number)) => self.database.prepare(worker, *number),
            Some(Xa::Commit(number)) => self.database.end_xa(*number, true),
            Some(Xa::Rollback(number)) => self.database.end_xa(*number, false),
            None => self.database.commit(worker),
        }
        self.unblock(worker);
        for transaction in &group.transactions {
            let seq = transaction.seq;
            assert!(self.committed.insert(seq), "{seq} is applied twice");
            let last = self.last_of_lane.entry(self.lanes[&seq]).or_default();
            assert!(self.setting.order == CommitOrder::Relaxed || *last < seq, "{seq} after {last} of its lane");
            *last = seq;
        }
        if self.setting.order == CommitOrder::Preserve {
            let last = group.last();
            assert!((1..=last).all(|seq| self.committed.contains(&seq)), "{last} before others");
            if !self.committed.contains(&(last + 1)) {
                assert_eq!(
                    self.database.visible(),
                    self.source.states[last as usize],
                    "no state of the source after {last}"
                );
            }
        }
    }

    /// The target tells who waits for whom.
    fn monitor(&mut self) {
        for worker in 0..self.jobs.len() {
            let Some(job) = &self.jobs[worker] else { continue };
            let blocker = job.blocked_by.and_then(|other| self.jobs.get(other)?.as_ref());
            if let Some(blocker) = blocker {
                let (waiting, blocking) = (job.group.id, blocker.group.id);
                self.scheduler.lock_wait(waiting, blocking);
                self.poll();
            }
        }
    }

    /// Mishaps, for so many steps.
    pub fn shake(&mut self, random: &mut StdRng, steps: usize, faults: Faults) {
        for step in 0..steps {
            if self.finished {
                return;
            }
            if step % 16 == 0 {
                self.scheduler.overdue();
            }
            match random.random_range(0..10) {
                0..3 => self.feed(),
                3 => self.monitor(),
                _ => {
                    let worker = random.random_range(0..self.jobs.len());
                    self.step(worker, random.random_range(0..1000) < faults.fail);
                }
            }
            self.poll();
        }
    }

    /// No more mishaps: it has to come to its end.
    pub fn heal(&mut self, random: &mut StdRng) {
        for round in 0.. {
            assert!(round < 20_000, "no end: {:?}", self.scheduler.idle_because());
            self.feed();
            self.poll();
            if self.finished {
                return;
            }
            let first = random.random_range(0..self.jobs.len());
            for worker in 0..self.jobs.len() {
                self.step((worker + first) % self.setting.workers, false);
                self.poll();
            }
            self.monitor();
        }
    }

    /// The process is gone: what was not committed is rolled back.
    pub fn crash(mut self) -> (Database, BTreeSet<Seq>) {
        (0..self.jobs.len()).for_each(|session| self.database.rollback(session));
        (self.database, self.committed)
    }
}
