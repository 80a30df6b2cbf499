//! What the threads of a run tell each other through queues. Plain data; nothing is decided here.

use std::sync::Arc;

use crossbeam_channel::Sender;
use engine::Seq;
use engine::failure::Failure;
use engine::group::{Group, GroupId};
use engine::policy::Placement;
use engine::schedule::{Run, Worker};
use engine::transaction::Transaction;

use super::handoff::Wake;

/// Feeder → coordinator.
#[derive(Debug)]
pub enum FeederMessage {
    /// In their order.
    Transactions(Vec<(Arc<Transaction>, Placement)>),
    /// The end of the stream, or the end that was asked for.
    End,
    Failed(Failure),
}

/// Coordinator → worker.
#[derive(Debug)]
pub enum Order {
    Run {
        group: Arc<Group>,
        run: Run,
    },
    /// The deferred rows may be applied.
    Release(GroupId),
    Grant(GroupId),
    Abort {
        group: GroupId,
        attempt: u32,
    },
}

/// Worker → coordinator.
#[derive(Debug)]
pub enum Report {
    /// All rows are applied, only the commit is left.
    Applied(GroupId),
    Ordered(GroupId),
    Committed(GroupId),
    Failed {
        group: GroupId,
        failure: Failure,
        committed_to: Seq,
    },
    /// The worker has panicked: it reports no more about its group.
    Panicked(Worker),
}

/// How the coordinator reaches one worker.
pub struct WorkerHandle {
    pub orders: Sender<Order>,
    pub worker: Arc<dyn Wake>,
}

/// Workforce → coordinator.
pub enum Staffing {
    /// There is one more worker, with the next number.
    Worker(WorkerHandle),
    /// So many of the workers get groups.
    Use(usize),
}

/// Housekeeper → coordinator.
#[derive(Debug)]
pub enum News {
    /// One worker waits for a lock that the other holds.
    LockWait { waiting: Worker, blocking: Worker },
    /// The channel cannot go on.
    Failed(Failure),
}
