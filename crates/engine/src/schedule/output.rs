//! What the scheduler tells its shell to do, why it is idle, and what it counts.

use std::sync::Arc;

use super::config::Signals;
use crate::failure::Failure;
use crate::group::{Group, GroupId};
use crate::progress::Mark;
use crate::transaction::BarrierCause;

/// Index of a worker, below `Config::workers`.
pub type Worker = usize;

/// How a worker is to run a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// 1 for the first try.
    pub attempt: u32,
    /// All before it have committed: nothing has to wait, it may commit at once.
    pub granted: bool,
    /// Apply each transaction by itself, so that a failure names its culprit.
    pub isolate: bool,
    pub signals: Signals,
}

#[derive(Debug)]
pub enum Output {
    Dispatch {
        worker: Worker,
        group: Arc<Group>,
        run: Run,
    },
    /// What the group's deferred rows wait for has committed: they may be applied, ahead of the grant.
    Release {
        worker: Worker,
        group: GroupId,
    },
    /// The group may commit.
    Grant {
        worker: Worker,
        group: GroupId,
    },
    /// Roll back what was applied of the group and report it as failed by a conflict.
    Abort {
        worker: Worker,
        group: GroupId,
        attempt: u32,
    },
    /// Everything up to here is committed.
    LowWater(Mark),
    /// Nothing is left to do (end of the stream, or stopped without gaps).
    Finished,
    /// The channel can not go on.
    Stop(Failure),
}

/// Why no transaction is being dispatched right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdleCause {
    NothingQueued,
    AllWorkersBusy,
    /// The next transaction is a barrier, or one is running.
    Barrier(BarrierCause),
    /// Every queued transaction depends on one that has not committed.
    Dependency,
    /// What waits becomes one group, with what comes until it may commit.
    Gathering,
    Stopping,
}

impl IdleCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NothingQueued => "nothing_queued",
            Self::AllWorkersBusy => "all_workers_busy",
            Self::Barrier(_) => "barrier",
            Self::Dependency => "dependency",
            Self::Gathering => "gathering",
            Self::Stopping => "stopping",
        }
    }
}

/// Counters since the start; they only grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub groups: u64,
    pub transactions: u64,
    pub rows: u64,
    pub retries: u64,
    pub aborts: u64,
    pub isolations: u64,
    pub barriers: u64,
    /// Rows that had to wait for an earlier group.
    pub rows_deferred: u64,
    /// Transactions that were run without knowing what they may conflict with.
    pub speculative: u64,
}
