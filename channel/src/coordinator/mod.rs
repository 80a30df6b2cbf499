//! The shell around the engine's scheduler: channels in, channels out. Decides nothing itself, and never waits: whoever has something for
//! it may run it (`desk`), and may then see to it that a worker's order is carried out, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use engine::failure::Failure;
use engine::group::{Group, GroupId};
use engine::policy::Placement;
use engine::progress::Mark;
use engine::schedule::pace::{Pace, PacketPace};
use engine::schedule::{Commits, Output, Scheduler};
use engine::transaction::Transaction;

use crate::errors::exited_unexpectedly;
use crate::flow::budget::{Budget, transaction_bytes};
use crate::flow::handoff::{Amount, FEW, Handoff, Stage, Then, Thread, Wake};
use crate::flow::messages::{Fed, News, Order, Report};
use crate::flow::slow_groups::SlowGroups;
use crate::flow::stats::Stats;
use crate::housekeeper::Chore;

/// Transactions that may wait in the scheduler; the rest waits in the feeder's queue.
const QUEUED_TRANSACTIONS_MAX: usize = 50_000;
/// How far transactions may run ahead of the first that is not committed (relaxed order).
const OUTSTANDING_TRANSACTIONS_MAX: u64 = 1_000_000;
/// A group of more is not handed to the target by whoever brings it: its connection might not take so much at once.
const INLINE_BYTES: u64 = 8 << 10;
const TICK: Duration = Duration::from_millis(10);
/// A group that takes longer than this may be waiting for a lock.
const SUSPECT_AFTER: Duration = Duration::from_millis(10);
/// So long transactions gather for one group at most, while another is under way: longer than a commit takes, and not long to wait.
const GATHER_MAX: Duration = Duration::from_millis(50);
/// The housekeeper is told how far everything is committed so often at most: waking it with each commit would be on the way of the next.
const LOW_WATER_EVERY: Duration = Duration::from_millis(100);
/// The longest between two looks at the locks for one group.
const SUSPECT_AGAIN_MAX: Duration = Duration::from_millis(200);
/// Taken from the queue of reports, and batches from the feeder's, before the scheduler is asked again.
const REPORTS_MAX: usize = 4096;
const BATCHES_MAX: usize = 64;

pub struct Coordinator {
    pub scheduler: Scheduler,
    pub fed: Receiver<Fed>,
    pub reports: Receiver<Report>,
    pub workers: Vec<WorkerHandle>,
    pub chores: Sender<Chore>,
    pub news: Receiver<News>,
    pub budget: Arc<Budget>,
    pub stats: Arc<Stats>,
    pub stop: Arc<AtomicBool>,
    /// What each worker runs, and since when.
    pub running: Vec<Option<(Arc<Group>, Instant)>>,
    pub paces: Paces,
    /// The group that may be waiting for a lock, and from when on to look (again), counted from its dispatch.
    pub suspected: (GroupId, Duration),
    pub slow: SlowGroups,
    /// When a group was last handed to a worker.
    pub dispatched: Instant,
    /// What the housekeeper is still to be told, and when it last was told something.
    pub low_water: Option<Mark>,
    pub told: Instant,
    /// Why to end once everything that is there is applied: the log can not be read on.
    pub draining: Option<Failure>,
    pub stopped: bool,
    /// How the run has ended, if it has.
    pub ended: Option<Result<(), Failure>>,
}

/// How large groups get.
pub struct Paces {
    pub rows: Pace,
    pub statements: Pace,
    pub packets: PacketPace,
}

/// Where one worker gets its orders.
pub struct WorkerHandle {
    pub orders: Sender<Order>,
    pub worker: Arc<dyn Wake>,
}

/// How the run ended, with everything dispatched either committed or rolled back.
pub struct Outcome {
    pub failure: Option<Failure>,
    pub stopped: bool,
    /// With sessions that were ready, until the last of them had done its work.
    pub applying: Duration,
}

/// The coordinator's own thread.
pub fn run(handoff: &Handoff<Coordinator>) -> Outcome {
    let began = Instant::now();
    let (failure, stopped) = match handoff.run_loop() {
        Some(mut coordinator) => (coordinator.ended.take().and_then(Result::err), coordinator.stopped),
        None => (Some(exited_unexpectedly("the coordinator thread")), false),
    };
    Outcome { failure, stopped, applying: began.elapsed() }
}

impl Stage for Coordinator {
    fn run_once(&mut self, thread: Thread) -> Then {
        if self.ended.is_some() {
            return Then::End;
        }
        if self.stop.load(Ordering::Relaxed) && !std::mem::replace(&mut self.stopped, true) {
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
        self.stats.set_counters(self.scheduler.counters(), self.scheduler.idle_because().as_str());
        self.keep_time();
        match self.ended {
            Some(_) => Then::End,
            None if self.has_more() => Then::Again,
            None => Then::Sleep,
        }
    }

    fn tick(&self) -> Duration {
        TICK
    }
}

/// Lets everybody go who waits for it, also after a panic.
impl Drop for Coordinator {
    fn drop(&mut self) {
        self.tell_low_water();
        self.budget.close();
        self.stats.give_up();
        for WorkerHandle { orders, worker } in self.workers.drain(..) {
            // A worker that is woken and has no sender of orders any more ends.
            drop(orders);
            worker.wake();
        }
    }
}

impl Coordinator {
    fn act(&mut self, output: Output, thread: Thread) {
        match output {
            Output::Dispatch { worker, group, run } => {
                self.dispatched = Instant::now();
                let slot = self.running.get_mut(worker);
                let before = slot.and_then(|slot| slot.replace((Arc::clone(&group), self.dispatched)));
                if let Some((before, _)) = before {
                    // What an isolated run has committed is not in it any more.
                    self.free(before.transactions.iter().filter(|transaction| transaction.seq < group.first()));
                }
                let inline = thread == Thread::Callers && self.is_soon_sent(&group);
                let amount = if inline { Amount::Little } else { Amount::Much };
                self.order(worker, Order::Run { group, run }, amount);
            }
            Output::Release { worker, group } => self.order(worker, Order::Release(group), Amount::Much),
            Output::Grant { worker, group } => self.order(worker, Order::Grant(group), Amount::Much),
            Output::Abort { worker, group, attempt } => {
                self.order(worker, Order::Abort { group, attempt }, Amount::Much);
                // The housekeeper ends only with this coordinator.
                let _ = self.chores.send(Chore::Interrupt(worker));
            }
            Output::LowWater(mark) => self.low_water(mark),
            Output::Finished => self.ended = Some(self.draining.take().map_or(Ok(()), Err)),
            Output::Stop(failure) => self.ended = Some(Err(failure)),
        }
    }

    fn low_water(&mut self, mark: Mark) {
        self.stats.set_mark(mark.clone());
        self.low_water = Some(mark);
    }

    fn tell_low_water(&mut self) {
        if let Some(mark) = self.low_water.take() {
            let _ = self.chores.send(Chore::LowWater(mark));
            self.told = Instant::now();
        }
    }

    fn order(&self, worker: usize, order: Order, amount: Amount) {
        let Some(handle) = self.workers.get(worker) else { panic!("there is no worker {worker}") };
        if handle.orders.send(order).is_err() {
            // A worker ends only when its orders do: it has panicked, and its thread's end is reported.
            tracing::error!("worker {worker} is gone");
        }
        handle.worker.hand_over(amount);
    }

    /// A little one, and nobody else has anything to do: its worker need not be woken first.
    fn is_soon_sent(&self, group: &Group) -> bool {
        self.scheduler.in_flight() == 1
            && group.transactions.len() <= FEW
            && group.transactions.iter().map(|transaction| transaction.bytes).sum::<u64>() <= INLINE_BYTES
    }

    fn wants_more(&self) -> bool {
        self.draining.is_none()
            && self.scheduler.queued().0 < QUEUED_TRANSACTIONS_MAX
            && self.scheduler.outstanding() < OUTSTANDING_TRANSACTIONS_MAX
    }

    fn has_more(&self) -> bool {
        !self.reports.is_empty() || !self.news.is_empty() || (self.wants_more() && !self.fed.is_empty())
    }

    /// Everything that has come; or so much that the scheduler should be asked.
    fn take_in(&mut self) -> Result<(), Failure> {
        for _ in 0..REPORTS_MAX {
            let Some(report) = next(&self.reports, "all workers")? else { break };
            self.report(report)?;
        }
        while let Some(news) = next(&self.news, "the housekeeper thread")? {
            match news {
                News::LockWait { waiting, blocking } => self.lock_wait(waiting, blocking),
                News::Failed(failure) => return Err(failure),
            }
        }
        if self.wants_more() { self.take_in_fed() } else { Ok(()) }
    }

    fn take_in_fed(&mut self) -> Result<(), Failure> {
        for _ in 0..BATCHES_MAX {
            match self.fed.try_recv() {
                Ok(Fed::Transactions(batch)) => self.enqueue(batch),
                Ok(Fed::End) => self.scheduler.end(),
                Ok(Fed::Failed(failure)) => {
                    self.draining = Some(failure);
                    self.scheduler.end();
                    break;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return self.feeder_has_gone(),
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, batch: Vec<(Arc<Transaction>, Placement)>) {
        for (transaction, placement) in batch {
            let bytes = transaction_bytes(&transaction);
            if !self.scheduler.enqueue(transaction, placement) {
                self.budget.release(bytes, 1);
            }
        }
    }

    /// After its last word, or because it is told to stop, that is as it should be.
    fn feeder_has_gone(&mut self) -> Result<(), Failure> {
        self.fed = crossbeam_channel::never();
        let expected = self.scheduler.has_ended() || self.stop.load(Ordering::Relaxed);
        if expected { Ok(()) } else { Err(exited_unexpectedly("the feeder thread")) }
    }

    fn report(&mut self, report: Report) -> Result<(), Failure> {
        match report {
            Report::Applied(group) => self.scheduler.applied(group),
            Report::Ordered(group) => self.scheduler.ordered(group),
            Report::Committed(group) => {
                self.released(group);
                self.scheduler.committed(group);
            }
            Report::Panicked(worker) => return Err(exited_unexpectedly(&format!("worker {worker}"))),
            Report::Failed { group, failure, committed_to } => {
                tracing::debug!(group = group.0, "failed: {failure}");
                self.scheduler.failed(group, failure, committed_to);
            }
        }
        Ok(())
    }

    fn released(&mut self, id: GroupId) {
        let slot = self.running.iter_mut().find(|slot| slot.as_ref().is_some_and(|(group, _)| group.id == id));
        let Some((group, since)) = slot.and_then(Option::take) else { return };
        let limits = self.scheduler.limits_mut();
        limits.packet_max = self.paces.packets.committed(group.transactions.len(), since.elapsed());
        if !group.is_barrier() {
            limits.rows_max = self.paces.rows.committed(group.rows(), since.elapsed());
        } else if group.transactions.first().is_some_and(|first| first.takes_others()) {
            limits.statements_max = self.paces.statements.committed(group.transactions.len(), since.elapsed());
        }
        self.free(group.transactions.iter());
    }

    fn free<'a>(&self, transactions: impl Iterator<Item = &'a Arc<Transaction>>) {
        let (bytes, count) =
            transactions.fold((0, 0), |(bytes, count), one| (bytes + transaction_bytes(one), count + 1));
        self.budget.release(bytes, count);
    }

    fn lock_wait(&mut self, waiting: usize, blocking: usize) {
        let group = |worker: usize| self.running.get(worker).and_then(|slot| slot.as_ref().map(|(group, _)| group.id));
        if let (Some(waiter), Some(blocker)) = (group(waiting), group(blocking)) {
            self.scheduler.lock_wait(waiter, blocker);
        }
    }

    /// What is due, as the scheduler has no clock.
    fn keep_time(&mut self) {
        self.suspect_locks();
        self.slow.look(&self.running);
        if self.told.elapsed() > LOW_WATER_EVERY {
            self.tell_low_water();
        }
        if self.dispatched.elapsed() > GATHER_MAX {
            self.scheduler.overdue();
        }
    }

    /// Asks for the target's lock information when a group with others behind it takes long: soon at first, then less and less often.
    /// The answer costs the target more than many a group.
    fn suspect_locks(&mut self) {
        if self.scheduler.in_flight() < 2 || !self.scheduler.aborts_for_locks() || !self.chores.is_empty() {
            return;
        }
        let oldest = self.running.iter().flatten().min_by_key(|(_, since)| *since);
        let Some((group, since)) = oldest else { return };
        let (id, time) = (group.id, since.elapsed());
        if self.suspected.0 != id {
            let commits = match self.scheduler.commits() {
                Commits::Each => group.transactions.len(),
                Commits::Together => 1,
            };
            self.suspected = (id, SUSPECT_AFTER * u32::try_from(commits).unwrap_or(u32::MAX));
        }
        if time > self.suspected.1 {
            self.suspected.1 = time + time.min(SUSPECT_AGAIN_MAX);
            let _ = self.chores.send(Chore::LockWaits);
        }
    }
}

/// What comes next in a queue, if anything is there; who fills it must not have gone.
fn next<T>(queue: &Receiver<T>, who: &str) -> Result<Option<T>, Failure> {
    match queue.try_recv() {
        Ok(item) => Ok(Some(item)),
        Err(TryRecvError::Empty) => Ok(None),
        Err(TryRecvError::Disconnected) => Err(exited_unexpectedly(who)),
    }
}
