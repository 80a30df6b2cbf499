//! The shell around the engine's scheduler: channels in, channels out. Decides nothing itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, select};
use engine::failure::{Failure, FailureKind};
use engine::group::{Group, GroupId};
use engine::pace::Pace;
use engine::progress::Mark;
use engine::scheduler::{Output, Scheduler};
use engine::transaction::Transaction;

use super::budget::Budget;
use super::feeder::{Fed, memory};
use super::housekeeper::{Chore, News};
use super::stats::Stats;
use super::worker::{Order, Report};

/// Transactions that may wait in the scheduler; the rest waits in the feeder's queue.
const QUEUED_TRANSACTIONS_MAX: usize = 50_000;
/// How far transactions may run ahead of the first that is not committed (relaxed order).
const OUTSTANDING_TRANSACTIONS_MAX: u64 = 1_000_000;
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
    pub workers: Vec<Sender<Order>>,
    pub chores: Sender<Chore>,
    pub news: Receiver<News>,
    pub budget: Arc<Budget>,
    pub stats: Arc<Stats>,
    pub stop: Arc<AtomicBool>,
    /// What each worker runs, and since when.
    pub running: Vec<Option<(Arc<Group>, Instant)>>,
    pub pace: Pace,
    /// The group that may be waiting for a lock, and from when on to look (again), counted from its dispatch.
    pub suspected: (GroupId, Duration),
    /// When a group was last handed to a worker.
    pub dispatched: Instant,
    /// What the housekeeper is still to be told, and when it last was told something.
    pub low_water: Option<Mark>,
    pub told: Instant,
    /// The channel can not go on: a worker has panicked, or the housekeeper has said so.
    pub broken: Option<Failure>,
}

/// How the run ended, with everything dispatched either committed or rolled back.
pub struct Outcome {
    pub failure: Option<Failure>,
    pub stopped: bool,
    /// With sessions that were ready, until the last of them had done its work.
    pub applying: Duration,
}

impl Coordinator {
    pub fn run(mut self) -> (Outcome, Scheduler) {
        let began = Instant::now();
        let mut failure = None;
        let mut stopped = false;
        loop {
            if self.stop.load(Ordering::Relaxed) && !stopped {
                stopped = true;
                self.scheduler.stop();
            }
            let mut finished = false;
            while let Some(output) = self.scheduler.poll() {
                match self.act(output) {
                    Acted::On => {}
                    Acted::Finished => finished = true,
                    Acted::Failed(why) => failure = Some(why),
                }
            }
            let (counters, idle) = (self.scheduler.counters(), self.scheduler.idle_because().as_str());
            self.stats.set_counters(counters, idle);
            if finished || failure.is_some() {
                break;
            }
            if let Some(why) = self.wait() {
                failure = Some(why);
                break;
            }
            self.keep_time();
        }
        self.tell_low_water();
        self.budget.close();
        self.stats.give_up();
        self.workers.clear();
        (Outcome { failure, stopped, applying: began.elapsed() }, self.scheduler)
    }

    fn act(&mut self, output: Output) -> Acted {
        match output {
            Output::Dispatch { worker, group, run } => {
                self.dispatched = Instant::now();
                let slot = self.running.get_mut(worker);
                let before = slot.and_then(|slot| slot.replace((Arc::clone(&group), self.dispatched)));
                if let Some((before, _)) = before {
                    // What an isolated run has committed is not in it any more.
                    self.free(before.transactions.iter().filter(|transaction| transaction.seq < group.first()));
                }
                self.order(worker, Order::Run { group, run });
            }
            Output::Release { worker, group } => self.order(worker, Order::Release(group)),
            Output::Grant { worker, group } => self.order(worker, Order::Grant(group)),
            Output::Abort { worker, group, attempt } => {
                self.order(worker, Order::Abort { group, attempt });
                // The housekeeper ends only with this coordinator.
                let _ = self.chores.send(Chore::Interrupt(worker));
            }
            Output::LowWater(mark) => self.low_water(mark),
            Output::Finished => return Acted::Finished,
            Output::Stop(failure) => return Acted::Failed(failure),
        }
        Acted::On
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

    fn order(&self, worker: usize, order: Order) {
        let Some(orders) = self.workers.get(worker) else { panic!("there is no worker {worker}") };
        if orders.send(order).is_err() {
            // A worker ends only when its orders do: it has panicked, and its thread's end is reported.
            tracing::error!("worker {worker} is gone");
        }
    }

    /// Sleeps until something happens, then takes in all that has.
    fn wait(&mut self) -> Option<Failure> {
        let wants_more = self.scheduler.queued().0 < QUEUED_TRANSACTIONS_MAX
            && self.scheduler.outstanding() < OUTSTANDING_TRANSACTIONS_MAX;
        let never = crossbeam_channel::never();
        let fed = if wants_more { &self.fed } else { &never };
        let (first_report, first_fed) = select! {
            recv(self.reports) -> report => match report {
                Ok(report) => (Some(report), None),
                Err(_) => return Some(silent("every worker")),
            },
            recv(fed) -> fed => match fed {
                Ok(fed) => (None, Some(fed)),
                Err(_) => return self.feeder_has_gone(),
            },
            recv(self.news) -> news => match news {
                Ok(news) => {
                    self.hear(news);
                    (None, None)
                }
                Err(_) => return Some(silent("the housekeeper")),
            },
            default(TICK) => (None, None),
        };
        let reports: Vec<Report> = first_report.into_iter().chain(self.reports.try_iter().take(REPORTS_MAX)).collect();
        for report in reports {
            self.report(report);
        }
        if self.broken.is_some() {
            return self.broken.take();
        }
        if wants_more {
            let arrived: Vec<Fed> = first_fed.into_iter().chain(self.fed.try_iter().take(BATCHES_MAX)).collect();
            for fed in arrived {
                match fed {
                    Fed::Transactions(batch) => {
                        for (transaction, placement) in batch {
                            let bytes = memory(&transaction);
                            if !self.scheduler.enqueue(transaction, placement) {
                                self.budget.release(bytes, 1);
                            }
                        }
                    }
                    Fed::End => self.scheduler.end(),
                    Fed::Failed(failure) => return self.drain(failure),
                }
            }
        }
        None
    }

    /// After its last word, or because it is told to stop, that is as it should be.
    fn feeder_has_gone(&mut self) -> Option<Failure> {
        self.fed = crossbeam_channel::never();
        let expected = self.scheduler.has_ended() || self.stop.load(Ordering::Relaxed);
        (!expected).then(|| silent("the thread that reads the log"))
    }

    /// The log can not be read on: what is there is applied, then the channel stops.
    fn drain(&mut self, failure: Failure) -> Option<Failure> {
        self.scheduler.end();
        loop {
            while let Some(output) = self.scheduler.poll() {
                self.stats.set_counters(self.scheduler.counters(), self.scheduler.idle_because().as_str());
                match self.act(output) {
                    Acted::On => {}
                    Acted::Finished => return Some(failure),
                    Acted::Failed(earlier) => return Some(earlier),
                }
            }
            match self.reports.recv_timeout(TICK) {
                Ok(report) => self.report(report),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Some(failure),
            }
            if self.broken.is_some() {
                return Some(failure);
            }
            while let Ok(news) = self.news.try_recv() {
                self.hear(news);
            }
            self.keep_time();
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Applied(group) => self.scheduler.applied(group),
            Report::Ordered(group) => self.scheduler.ordered(group),
            Report::Committed(group) => {
                self.released(group);
                self.scheduler.committed(group);
            }
            Report::Panicked(worker) => self.broken = Some(silent(&format!("worker {worker}"))),
            Report::Failed { group, failure, committed_to } => {
                tracing::debug!(group = group.0, "failed: {failure}");
                self.scheduler.failed(group, failure, committed_to);
            }
        }
    }

    fn released(&mut self, id: GroupId) {
        let slot = self.running.iter_mut().find(|slot| slot.as_ref().is_some_and(|(group, _)| group.id == id));
        let Some((group, since)) = slot.and_then(Option::take) else { return };
        if !group.is_barrier() {
            self.scheduler.limits_mut().rows_max = self.pace.committed(group.rows(), since.elapsed());
        }
        self.free(group.transactions.iter());
    }

    fn free<'a>(&self, transactions: impl Iterator<Item = &'a Arc<Transaction>>) {
        let (bytes, count) = transactions.fold((0, 0), |(bytes, count), one| (bytes + memory(one), count + 1));
        self.budget.release(bytes, count);
    }

    fn hear(&mut self, news: News) {
        match news {
            News::LockWait { waiting, blocking } => self.lock_wait(waiting, blocking),
            News::Failed(failure) => self.broken = Some(failure),
        }
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
        let Some((id, time)) = oldest.map(|(group, since)| (group.id, since.elapsed())) else { return };
        if self.suspected.0 != id {
            self.suspected = (id, SUSPECT_AFTER);
        }
        if time > self.suspected.1 {
            self.suspected.1 = time + time.min(SUSPECT_AGAIN_MAX);
            let _ = self.chores.send(Chore::LockWaits);
        }
    }
}

/// A thread that ends without saying why has panicked; its own message came before.
fn silent(who: &str) -> Failure {
    Failure::new(FailureKind::Refused, format!("{who} has ended without a word: this is a bug in heddle"))
        .remedy("everything before it is applied; please report it, with the log")
}

enum Acted {
    On,
    Finished,
    Failed(Failure),
}
