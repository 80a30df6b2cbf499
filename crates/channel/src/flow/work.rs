//! What workers have done, what each does now, and why some had nothing to do. The coordinator writes it, observers read it. Nothing is decided by it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::failure::Culprit;
use engine::group::Group;
use engine::quality::Histogram;
use engine::schedule::{IdleCause, Worker};
use engine::transaction::BarrierCause;

use super::samples::subject::Subject;

/// A cause for each value of [`IdleCause`], and of the barriers' causes: no more than this.
const CAUSES_MAX: usize = 32;

#[derive(Debug, Default)]
pub struct Work {
    workers: Vec<WorkerWork>,
    totals: Totals,
    /// Since when the workers without a group have none for this cause, and how many they are.
    idle_since: Option<(Instant, IdleCause, usize)>,
}

/// Sums over all workers since the start.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Workers' time without a group, by why nothing was dispatched.
    pub idle: Vec<(IdleCause, Duration)>,
    /// Committed barriers by cause.
    pub barriers: Vec<(BarrierCause, u64)>,
    /// Transactions of each committed group.
    pub group_transactions: Histogram,
    /// Microseconds from the dispatch of a group to its durable commit.
    pub group_micros: Histogram,
    /// Microseconds of each commit on the target, with the rows that were sent along with it.
    pub commit_micros: Histogram,
    /// Groups that held what an earlier one needed.
    pub lock_waits: u64,
}

#[derive(Debug, Default)]
struct WorkerWork {
    done: WorkerCounts,
    running: Option<(Instant, Arc<Group>)>,
    /// Time without a group, by why nothing was dispatched.
    idle: Vec<(IdleCause, Duration)>,
    /// Up to when that is counted.
    counted: Option<Instant>,
}

/// What one worker has done since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerCounts {
    /// With groups that it has finished.
    pub busy: Duration,
    pub groups: u64,
    pub transactions: u64,
}

/// One worker at one moment.
#[derive(Clone, Debug, Default)]
pub struct WorkerSample {
    /// `busy` includes the group that it has.
    pub done: WorkerCounts,
    pub running: Option<RunningGroup>,
    /// Time without a group, by why nothing was dispatched.
    pub idle: Vec<(IdleCause, Duration)>,
    /// It has applied its rows and waits for its turn to commit, or for rows of earlier groups.
    pub waits_to_commit: bool,
}

/// A group that a worker has.
#[derive(Clone, Debug)]
pub struct RunningGroup {
    pub time: Duration,
    pub transactions: usize,
    /// The first of its transactions.
    pub first: Culprit,
    /// When the source committed it, microseconds since 1970; 0: not known.
    pub commit_time_us: u64,
    pub barrier: Option<BarrierCause>,
    pub rows: u64,
    /// Bytes in the log.
    pub bytes: u64,
    /// What its first transactions change: statements, tables.
    pub subject: Subject,
}

impl Work {
    pub fn set_workers(&mut self, count: usize) {
        let now = Some(Instant::now());
        self.workers.resize_with(count, || WorkerWork { counted: now, ..WorkerWork::default() });
    }

    pub fn dispatched(&mut self, worker: Worker, group: Arc<Group>, now: Instant) {
        let cause = self.idle_since.map_or(IdleCause::NothingQueued, |(_, cause, _)| cause);
        let Some(slot) = self.workers.get_mut(worker) else { return };
        slot.count_idle(now, cause);
        // A group that has failed is given out again.
        if let Some((since, _)) = slot.running.replace((now, group)) {
            slot.done.busy += now - since;
        }
    }

    /// The worker has committed its group, so long after it got it.
    pub fn committed(&mut self, worker: Worker, time: Duration) {
        let Some(slot) = self.workers.get_mut(worker) else { return };
        let Some((since, group)) = slot.running.take() else { return };
        slot.counted = Some(since + time);
        slot.done.busy += time;
        slot.done.groups += 1;
        slot.done.transactions += group.transactions.len() as u64;
        self.totals.group_transactions.add(group.transactions.len() as u64);
        self.totals.group_micros.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        for cause in group.transactions.iter().filter_map(|transaction| transaction.barrier) {
            add(&mut self.totals.barriers, cause, 1, |sum, one| *sum += one);
        }
    }

    /// A commit took so long.
    pub fn commit(&mut self, time: Duration) {
        self.totals.commit_micros.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub fn lock_wait(&mut self) {
        self.totals.lock_waits += 1;
    }

    /// From now on so many workers have no group, for this cause.
    pub fn idle(&mut self, now: Instant, cause: IdleCause, workers: usize) {
        if let Some((_, before, _)) = self.idle_since
            && before != cause
        {
            self.workers.iter_mut().for_each(|worker| worker.count_idle(now, before));
        }
        if let Some((since, cause, count)) = self.idle_since.replace((now, cause, workers))
            && count > 0
        {
            let time = (now - since) * u32::try_from(count).unwrap_or(u32::MAX);
            add(&mut self.totals.idle, cause, time, |sum, time| *sum += time);
        }
    }

    pub fn seen(&self, now: Instant) -> (Vec<WorkerSample>, Totals) {
        let mut totals = self.totals.clone();
        let cause = self.idle_since.map_or(IdleCause::NothingQueued, |(_, cause, _)| cause);
        if let Some((since, cause, count)) = self.idle_since.filter(|(.., count)| *count > 0) {
            let time = now.saturating_duration_since(since) * u32::try_from(count).unwrap_or(u32::MAX);
            add(&mut totals.idle, cause, time, |sum, time| *sum += time);
        }
        (self.workers.iter().map(|worker| worker.seen(now, cause)).collect(), totals)
    }
}

impl WorkerWork {
    /// Time without a group since it was last counted.
    fn uncounted(&self, now: Instant) -> Option<Duration> {
        let since = self.counted.filter(|_| self.running.is_none())?;
        Some(now.saturating_duration_since(since))
    }

    fn count_idle(&mut self, now: Instant, cause: IdleCause) {
        if let Some(time) = self.uncounted(now) {
            add(&mut self.idle, cause, time, |sum, time| *sum += time);
            self.counted = Some(now);
        }
    }

    /// `cause`: why it has no group now, if it has none.
    fn seen(&self, now: Instant, cause: IdleCause) -> WorkerSample {
        let mut idle = self.idle.clone();
        if let Some(time) = self.uncounted(now) {
            add(&mut idle, cause, time, |sum, time| *sum += time);
        }
        let mut done = self.done;
        let running = self.running.as_ref().and_then(|(since, group)| {
            let time = now.saturating_duration_since(*since);
            done.busy += time;
            let first = group.transactions.first()?;
            let (transactions, barrier) = (group.transactions.len(), first.barrier);
            let bytes = group.transactions.iter().map(|transaction| transaction.bytes).sum();
            let (subject, commit_time_us) = (Subject::of(group), first.commit_time_us);
            Some(RunningGroup {
                time,
                transactions,
                first: first.culprit(),
                commit_time_us,
                barrier,
                rows: group.rows() as u64,
                bytes,
                subject,
            })
        });
        WorkerSample { done, running, idle, waits_to_commit: false }
    }
}

fn add<K: PartialEq, V: Default>(sums: &mut Vec<(K, V)>, key: K, value: V, plus: impl Fn(&mut V, V)) {
    if let Some((_, sum)) = sums.iter_mut().find(|(known, _)| *known == key) {
        plus(sum, value);
    } else if sums.len() < CAUSES_MAX {
        sums.push((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_the_time_of_all_workers_without_a_group() {
        let mut work = Work::default();
        work.set_workers(4);
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        work.idle(at(0), IdleCause::NothingQueued, 4);
        work.idle(at(1), IdleCause::Dependency, 3);
        work.idle(at(3), IdleCause::AllWorkersBusy, 0);
        work.idle(at(9), IdleCause::Barrier(BarrierCause::Ddl), 1);
        let (_, totals) = work.seen(at(11));
        let seconds: Vec<_> = totals.idle.iter().map(|(cause, time)| (*cause, time.as_secs())).collect();
        assert_eq!(
            seconds,
            [(IdleCause::NothingQueued, 4), (IdleCause::Dependency, 6), (IdleCause::Barrier(BarrierCause::Ddl), 2)]
        );
        let (workers, again) = work.seen(at(12));
        // None was given a group.
        let idle = |worker: &WorkerSample| worker.idle.iter().map(|(_, time)| time.as_secs()).sum::<u64>();
        assert!(workers.iter().all(|worker| idle(worker) == 12), "{workers:?}");
        assert_eq!((workers.len(), again.idle.last().map(|(_, time)| time.as_secs())), (4, Some(3)));
    }
}
