//! Where the workers' time went between two snapshots: parts of one, by what they did or waited for.

use std::time::Duration;

use channel::snapshot::Snapshot;
use engine::schedule::IdleCause;
use serde::{Deserialize, Serialize};

/// Parts of the workers' time; together 1, or all 0 when there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// The target executes, or commits.
    pub applying: f64,
    /// Applied, and an earlier group has not committed.
    pub commit_order: f64,
    /// For rows that an earlier group changes, with and without a group.
    pub dependency: f64,
    /// For a lock that another session of the target holds.
    pub lock: f64,
    /// What failed is tried again.
    pub retry: f64,
    /// A transaction runs alone, or is to.
    pub barrier: f64,
    /// Nothing to do because reading waits for room in memory.
    pub memory: f64,
    /// What comes becomes one group.
    pub gathering: f64,
    /// Nothing to do.
    pub no_work: f64,
}

impl Shares {
    pub const NAMES: [&'static str; 9] =
        ["applying", "commit order", "dependency", "lock", "retry", "barrier", "memory", "gathering", "no work"];

    /// In the order of [`Shares::NAMES`].
    pub fn values(&self) -> [f64; 9] {
        let Self { applying, commit_order, dependency, lock, retry, barrier, memory, gathering, no_work } = *self;
        [applying, commit_order, dependency, lock, retry, barrier, memory, gathering, no_work]
    }

    /// Workers that had a group.
    pub fn busy(&self) -> f64 {
        self.applying + self.commit_order + self.lock + self.retry
    }

    pub fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let (then, workers) = (&before.workers, &now.workers);
        let idle = |is_it: fn(IdleCause) -> bool| {
            let sum = |all: &[(IdleCause, Duration)]| {
                all.iter().filter(|(cause, _)| is_it(*cause)).map(|(_, time)| time.as_secs_f64()).sum::<f64>()
            };
            (sum(&workers.totals.idle) - sum(&then.totals.idle)).max(0.0)
        };
        let wait = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64();
        let mut seconds = Self {
            gathering: idle(|cause| cause == IdleCause::Gathering),
            barrier: idle(|cause| matches!(cause, IdleCause::Barrier(_))),
            no_work: idle(|cause| {
                matches!(cause, IdleCause::NothingQueued | IdleCause::Stopping | IdleCause::AllWorkersBusy)
            }),
            ..Self::default()
        };
        let for_rows = wait(workers.waits.for_rows, then.waits.for_rows);
        seconds.dependency = idle(|cause| cause == IdleCause::Dependency) + for_rows;
        seconds.commit_order = (wait(workers.waits.to_commit, then.waits.to_commit) - for_rows).max(0.0);
        for (number, worker) in workers.each.iter().enumerate() {
            let busy = then.each.get(number).map_or(Duration::ZERO, |before| before.done.busy);
            let time = wait(worker.done.busy, busy);
            let is_ddl = worker.running.as_ref().is_some_and(|running| running.barrier.is_some());
            let is_held =
                now.trouble.target.holders.iter().any(|holder| !holder.is_own && holder.worker == Some(number));
            let is_held =
                is_held || (is_ddl && now.trouble.target.holders.iter().any(|holder| holder.worker.is_none()));
            match &worker.running {
                Some(_) if now.trouble.target.retried.is_some() && !worker.waits_to_commit => seconds.retry += time,
                Some(_) if is_held => seconds.lock += time,
                Some(_) if is_ddl => seconds.barrier += time,
                // Their wait is only counted once it is over.
                Some(running) if worker.waits_to_commit && running.time > now.taken - before.taken => {
                    seconds.commit_order += time;
                }
                _ => seconds.applying += time,
            }
        }
        let counted_twice = wait(workers.waits.to_commit, then.waits.to_commit);
        seconds.applying = (seconds.applying - counted_twice).max(0.0);
        let memory = wait(workers.waits.for_memory, then.waits.for_memory).min(seconds.no_work);
        if now.memory.full || memory > 0.0 {
            let all = if now.memory.full { seconds.no_work } else { memory };
            seconds.memory = all;
            seconds.no_work -= all;
        }
        seconds.to_parts()
    }

    fn to_parts(self) -> Self {
        let sum: f64 = self.values().iter().sum();
        if sum <= 0.0 {
            return Self::default();
        }
        Self {
            applying: self.applying / sum,
            commit_order: self.commit_order / sum,
            dependency: self.dependency / sum,
            lock: self.lock / sum,
            retry: self.retry / sum,
            barrier: self.barrier / sum,
            memory: self.memory / sum,
            gathering: self.gathering / sum,
            no_work: self.no_work / sum,
        }
    }
}
