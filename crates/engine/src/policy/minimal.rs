//! One transaction after the other, but the next begins while the one before commits (MariaDB).
//!
//! The hazard: T2 changes the row that T1 has changed. T1 has applied all its changes and holds all its locks when T2
//! begins, so T2 waits for the lock, and that is until T1 has committed.
//!
//! ```text
//! T1 ─────·c
//! T2       ────·c        · all applied, c commit
//! T3            ─────·c
//! ```
//!
//! The commits can share an fsync. From outside a server that needs `--commit-order relaxed`: in the source's order each commit
//! has to wait for the answer of the one before. But then T1 might fail in its commit after T2 has got the lock, and
//! come after it; so there T2 also waits for T1's commit if they touch a common key.

use super::commit_order::CommitOrder;
use super::{
    Placement, Policy, PolicyDescription, PolicySpec, Requirements, Setting, WaitUnit, Watermark, WriteSetPolicy,
};
use crate::Seq;
use crate::transaction::Transaction;

pub(super) static SPEC: PolicySpec = PolicySpec {
    name: "minimal",
    about: PolicyDescription {
        summary: "The next begins when the one before commits (MariaDB)",
        needs: "nothing; --commit-order relaxed for commits that share an fsync",
        guarantees: "a transaction begins when the one before has applied all its rows",
        blocked_by: "every transaction, but for its commit",
    },
    requires: Requirements { counts_on: WaitUnit::BegunCommits, ..Requirements::NONE },
    make,
};

fn make(setting: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(match setting.order {
        _ if !setting.locks_rows => MinimalPolicy::without_locks(),
        CommitOrder::Preserve => MinimalPolicy::in_order(),
        CommitOrder::PerLane | CommitOrder::Relaxed => MinimalPolicy::overtaking(),
    })
}

#[derive(Debug, Default)]
pub struct MinimalPolicy {
    keys: Option<WriteSetPolicy>,
    overlap: bool,
}

impl MinimalPolicy {
    /// Commits are in the source's order.
    pub fn in_order() -> Self {
        Self { keys: None, overlap: true }
    }

    /// Commits may overtake each other.
    pub fn overtaking() -> Self {
        Self { keys: Some(WriteSetPolicy::default()), overlap: true }
    }

    /// The target has no locks to meet: nothing overlaps.
    pub fn without_locks() -> Self {
        Self { keys: None, overlap: false }
    }
}

impl Policy for MinimalPolicy {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        let before = transaction.seq - 1;
        let mut placement = self.keys.as_mut().map(|keys| keys.place(transaction)).unwrap_or_default();
        if let Some(barrier) = Placement::barrier(transaction) {
            return barrier;
        }
        let follows_readers = placement.after != Watermark::None;
        placement.row_after.clear();
        placement.after = if self.overlap && !follows_readers {
            Watermark::CommitBegun(before)
        } else {
            Watermark::Committed(before)
        };
        placement
    }

    fn low_water(&mut self, seq: Seq) {
        if let Some(keys) = &mut self.keys {
            keys.low_water(seq);
        }
    }
}
