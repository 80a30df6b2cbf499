//! The coordinator as a stage: takes in what has come, has the scheduler decide, carries out its outputs.
//!
//! It runs in its own thread or, for little work, in the thread that has the work. It may then run a worker inline in turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, TryRecvError};
use engine::failure::Failure;
use engine::group::{Group, GroupId};
use engine::policy::Placement;
use engine::progress::Mark;
use engine::schedule::pace::{Pace, PacketPace};
use engine::schedule::{Commits, Output, Scheduler, Worker};
use engine::transaction::Transaction;

use super::lock_suspicion::LockSuspicion;
use super::retried_groups::RetriedGroups;
use super::slow_groups::SlowGroups;
use super::workers::Workers;
use crate::errors::exited_unexpectedly;
use crate::flow::chores::ChoreSender;
use crate::flow::handoff::{Amount, FEW, Handoff, Stage, StageState, Thread};
use crate::flow::measures::SchedulerSample;
use crate::flow::messages::{FeederMessage, News, Report, Staffing, WorkerHandle};
use crate::flow::run_handles::RunHandles;
use crate::outcome::Outcome;

/// Transactions that may wait in the scheduler; the rest waits in the feeder's queue.
const QUEUED_TRANSACTIONS_MAX: usize = 50_000;
/// How far transactions may run ahead of the first that is not committed (relaxed order).
const OUTSTANDING_TRANSACTIONS_MAX: u64 = 1_000_000;
/// A larger group is not sent to the target in a caller's thread: the connection might not take so much at once.
const INLINE_BYTES: u64 = 8 << 10;
const TICK: Duration = Duration::from_millis(10);
/// Transactions gather for one group at most so long while another group is under way: longer than a commit takes, and not long to wait.
const GATHER_MAX: Duration = Duration::from_millis(50);
/// The housekeeper is told the low water at most so often: to wake it with each commit would delay the next one.
const LOW_WATER_EVERY: Duration = Duration::from_millis(100);
/// Reports, and batches from the feeder, that are taken in before the scheduler is asked again.
const REPORTS_MAX: usize = 4096;
const BATCHES_MAX: usize = 64;

pub struct Coordinator {
    scheduler: Scheduler,
    queues: Queues,
    workers: Workers,
    shared: RunHandles,
    paces: Paces,
    lock_suspicion: LockSuspicion,
    slow_groups: SlowGroups,
    retried: RetriedGroups,
    /// When a worker was last given a group.
    dispatched: Instant,
    /// What the housekeeper is still to be told, and when it was last told something.
    low_water: Option<Mark>,
    told: Instant,
    /// Why to end once everything that was read is applied: the log cannot be read on.
    draining: Option<Failure>,
    stopped: bool,
    /// How the run has ended, if it has.
    ended: Option<Result<(), Failure>>,
}

/// How large groups get.
pub struct Paces {
    pub rows: Pace,
    pub statements: Pace,
    pub packets: PacketPace,
}

/// The ends of queues that lead to the coordinator, and of the one to the housekeeper.
pub struct Queues {
    pub fed: Receiver<FeederMessage>,
    pub reports: Receiver<Report>,
    pub news: Receiver<News>,
    /// Nobody, where the number of workers stays.
    pub staffing: Receiver<Staffing>,
    pub chores: ChoreSender,
}

/// The loop of the coordinator's own thread.
pub fn run(coordinator: &Handoff<Coordinator>) -> Outcome {
    let began = Instant::now();
    let (failure, stopped) = match coordinator.run_loop() {
        Some(mut coordinator) => (coordinator.ended.take().and_then(Result::err), coordinator.stopped),
        None => (Some(exited_unexpectedly("the coordinator thread")), false),
    };
    Outcome { failure, stopped, handed_over: false, applying: began.elapsed() }
}

impl Stage for Coordinator {
    fn run_once(&mut self, thread: Thread) -> StageState {
        if self.ended.is_some() {
            return StageState::End;
        }
        if self.shared.is_stopping() && !std::mem::replace(&mut self.stopped, true) {
            self.scheduler.stop();
        }
        match self.take_in() {
            Ok(()) => {
                while let Some(output) = self.scheduler.poll() {
                    self.act(output, thread);
                }
            }
            Err(failure) => self.ended = Some(Err(self.draining.take().unwrap_or(failure))),
        }
        self.publish();
        self.do_what_is_due();
        match self.ended {
            Some(_) => StageState::End,
            None if self.has_more() => StageState::Again,
            None => StageState::Sleep,
        }
    }

    fn tick(&self) -> Duration {
        TICK
    }
}

/// Ends all who wait for the coordinator, also after a panic.
impl Drop for Coordinator {
    fn drop(&mut self) {
        self.tell_low_water();
        self.shared.budget.close();
        self.shared.signals.give_up();
        self.workers.end();
    }
}

impl Coordinator {
    /// Without workers: [`Coordinator::add_worker`] comes before any work.
    pub fn new(scheduler: Scheduler, paces: Paces, queues: Queues, shared: RunHandles) -> Self {
        Self {
            scheduler,
            queues,
            workers: Workers::default(),
            shared,
            paces,
            lock_suspicion: LockSuspicion::new(),
            slow_groups: SlowGroups::new(),
            retried: RetriedGroups::default(),
            dispatched: Instant::now(),
            low_water: None,
            told: Instant::now(),
            draining: None,
            stopped: false,
            ended: None,
        }
    }

    /// One more, with the next number. The scheduler is told of it apart from that.
    pub fn add_worker(&mut self, handle: WorkerHandle) {
        self.workers.add(handle);
        self.shared.measures.work().set_workers(self.workers.count());
    }

    fn act(&mut self, output: Output, thread: Thread) {
        match output {
            Output::Dispatch { worker, group, run } => {
                self.dispatched = Instant::now();
                let inline = thread == Thread::Callers && self.is_soon_sent(&group);
                let amount = if inline { Amount::Little } else { Amount::Much };
                let first = group.first();
                self.shared.measures.work().dispatched(worker, Arc::clone(&group), self.dispatched);
                if let Some(before) = self.workers.dispatch(worker, group, run, self.dispatched, amount) {
                    // The new group has no longer what an isolated run has committed of it.
                    self.free(before.transactions.iter().filter(|transaction| transaction.seq < first));
                }
            }
            Output::Release { worker, group } => self.workers.release(worker, group),
            Output::Grant { worker, group } => self.workers.grant(worker, group),
            Output::Abort { worker, group, attempt } => {
                self.workers.abort(worker, group, attempt);
                self.queues.chores.interrupt(worker);
            }
            Output::LowWater(mark) => {
                self.shared.signals.advance(mark.clone());
                self.low_water = Some(mark);
            }
            Output::Finished => self.ended = Some(self.draining.take().map_or(Ok(()), Err)),
            Output::Stop(failure) => self.ended = Some(Err(failure)),
        }
    }

    /// A small group, and no other is under way: its worker need not be woken first.
    fn is_soon_sent(&self, group: &Group) -> bool {
        self.scheduler.in_flight() == 1
            && group.transactions.len() <= FEW
            && group.transactions.iter().map(|transaction| transaction.bytes).sum::<u64>() <= INLINE_BYTES
    }

    /// For observers.
    fn publish(&self) {
        let scheduled = self.scheduled();
        let idle = self.scheduler.workers().saturating_sub(scheduled.groups_in_flight);
        self.shared.measures.work().idle(Instant::now(), scheduled.idle_because, idle);
        self.shared.measures.set_scheduled(scheduled);
    }

    fn scheduled(&self) -> SchedulerSample {
        let (queued_transactions, queued_bytes) = self.scheduler.queued();
        SchedulerSample {
            counters: self.scheduler.counters(),
            idle_because: self.scheduler.idle_because(),
            queued_transactions,
            queued_bytes,
            groups_in_flight: self.scheduler.in_flight(),
            outstanding_transactions: self.scheduler.outstanding(),
        }
    }

    fn wants_more(&self) -> bool {
        self.draining.is_none()
            && self.scheduler.queued().0 < QUEUED_TRANSACTIONS_MAX
            && self.scheduler.outstanding() < OUTSTANDING_TRANSACTIONS_MAX
    }

    fn has_more(&self) -> bool {
        let Queues { fed, reports, news, staffing, .. } = &self.queues;
        !reports.is_empty() || !news.is_empty() || !staffing.is_empty() || (self.wants_more() && !fed.is_empty())
    }

    /// Takes in everything that has come, or as much as the scheduler should be asked for.
    fn take_in(&mut self) -> Result<(), Failure> {
        for _ in 0..REPORTS_MAX {
            let Some(report) = next(&self.queues.reports, "all workers")? else { break };
            self.report(report)?;
        }
        while let Some(news) = next(&self.queues.news, "the housekeeper thread")? {
            match news {
                News::LockWait { waiting, blocking } => self.lock_wait(waiting, blocking),
                News::Failed(failure) => return Err(failure),
            }
        }
        while let Ok(staffing) = self.queues.staffing.try_recv() {
            match staffing {
                Staffing::Worker(handle) => self.add_worker(handle),
                Staffing::Use(count) => self.scheduler.use_workers(count.min(self.workers.count())),
            }
        }
        if self.wants_more() { self.take_in_fed() } else { Ok(()) }
    }

    fn take_in_fed(&mut self) -> Result<(), Failure> {
        for _ in 0..BATCHES_MAX {
            match self.queues.fed.try_recv() {
                Ok(FeederMessage::Transactions(batch)) => self.enqueue(batch),
                Ok(FeederMessage::End) => self.scheduler.end(),
                Ok(FeederMessage::Failed(failure)) => {
                    self.draining = Some(failure);
                    self.scheduler.end();
                    break;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return self.feeder_is_gone(),
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, batch: Vec<(Arc<Transaction>, Placement)>) {
        for (transaction, placement) in batch {
            let bytes = self.shared.budget.transaction_bytes(&transaction);
            if !self.scheduler.enqueue(transaction, placement) {
                self.shared.budget.release(bytes, 1);
            }
        }
    }

    /// Expected after its last message, or when the run is told to stop.
    fn feeder_is_gone(&mut self) -> Result<(), Failure> {
        self.queues.fed = crossbeam_channel::never();
        let expected = self.scheduler.has_ended() || self.shared.is_stopping();
        if expected { Ok(()) } else { Err(exited_unexpectedly("the feeder thread")) }
    }

    fn report(&mut self, report: Report) -> Result<(), Failure> {
        match report {
            Report::Applied(group) => self.scheduler.applied(group),
            Report::Ordered(group) => self.scheduler.ordered(group),
            Report::Committed(group) => {
                self.finish(group);
                if self.retried.committed(group) {
                    self.shared.measures.set_retried(self.retried.shown().cloned());
                }
                self.scheduler.committed(group);
            }
            Report::Panicked(worker) => return Err(exited_unexpectedly(&format!("worker {worker}"))),
            Report::Failed { group, failure, committed_to } => {
                tracing::debug!(group = group.0, "failed: {failure}");
                self.retried.failed(group, self.workers.group(group), &failure);
                self.shared.measures.set_retried(self.retried.shown().cloned());
                self.scheduler.failed(group, failure, committed_to);
            }
        }
        Ok(())
    }

    fn finish(&mut self, id: GroupId) {
        let Some((worker, group, time)) = self.workers.finish(id) else { return };
        self.shared.measures.work().committed(worker, time);
        let limits = self.scheduler.limits_mut();
        limits.packet_max = self.paces.packets.committed(group.transactions.len(), time);
        if !group.is_barrier() {
            limits.rows_max = self.paces.rows.committed(group.rows(), time);
        } else if group.transactions.first().is_some_and(|first| first.takes_others()) {
            limits.statements_max = self.paces.statements.committed(group.transactions.len(), time);
        }
        self.free(group.transactions.iter());
    }

    fn free<'a>(&self, transactions: impl Iterator<Item = &'a Arc<Transaction>>) {
        let budget = &self.shared.budget;
        let (bytes, count) =
            transactions.fold((0, 0), |(bytes, count), one| (bytes + budget.transaction_bytes(one), count + 1));
        budget.release(bytes, count);
    }

    fn lock_wait(&mut self, waiting: Worker, blocking: Worker) {
        if let (Some(waiter), Some(blocker)) = (self.workers.group_of(waiting), self.workers.group_of(blocking)) {
            self.shared.measures.work().lock_wait();
            self.scheduler.lock_wait(waiter, blocker);
        }
    }

    /// The scheduler has no clock: what is due by time is done here.
    fn do_what_is_due(&mut self) {
        self.suspect_locks();
        self.slow_groups.look(|| self.workers.first());
        if self.slow_groups.take_held() {
            self.queues.chores.look_for_lock_holders();
        }
        if self.told.elapsed() > LOW_WATER_EVERY {
            self.tell_low_water();
        }
        if self.dispatched.elapsed() > GATHER_MAX {
            self.scheduler.overdue();
        }
    }

    fn tell_low_water(&mut self) {
        if let Some(mark) = self.low_water.take() {
            self.queues.chores.low_water(mark);
            self.told = Instant::now();
        }
    }

    /// Has the target asked for its lock information when a group with others behind it takes long.
    fn suspect_locks(&mut self) {
        let chores = &self.queues.chores;
        let may_look = !chores.is_behind() && self.lock_suspicion.may_look(chores.look_took());
        if self.scheduler.in_flight() < 2 || !self.scheduler.aborts_for_locks() || !may_look {
            return;
        }
        let Some((group, time)) = self.workers.oldest() else { return };
        let commits = match self.scheduler.commits() {
            Commits::Each => group.transactions.len(),
            Commits::Together => 1,
        };
        if self.lock_suspicion.is_due(group.id, commits, time) {
            self.queues.chores.look_for_lock_waits();
        }
    }
}

/// What comes next in a queue, if there is anything; the threads that fill it must not be gone.
fn next<T>(queue: &Receiver<T>, who: &str) -> Result<Option<T>, Failure> {
    match queue.try_recv() {
        Ok(item) => Ok(Some(item)),
        Err(TryRecvError::Empty) => Ok(None),
        Err(TryRecvError::Disconnected) => Err(exited_unexpectedly(who)),
    }
}
