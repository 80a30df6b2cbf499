//! The source's own tags: a transaction follows everything up to its `last_committed` (MySQL 5.7 and later).
//!
//! The hazard: T3 waited on the source for a lock that T1 held, so T1 had committed when T3 was prepared: its
//! `last_committed` is T1 or later. T2 was prepared while T1 had not committed, so both held their locks at once and
//! cannot conflict.
//!
//! ```text
//! last_committed, sequence_number     0,1   0,2   1,3   1,4   4,5
//!                                     ────
//!                                     ────                        2 beside 1
//!                                           ────                  3 and 4 after 1
//!                                           ──────────
//!                                                       ────      5 after all
//! ```
//!
//! In two ways. `logical-clock` as a native replica does it: its coordinator waits itself, so while 5 waits for a long 4,
//! nothing behind 5 starts either, whatever its tags; and the first transaction of a log, and one after a gap in the numbers, waits
//! for all before it. `logical-clock-unblocked` lets whatever may run run.

use super::{Placement, Policy, PolicyDescription, PolicySpec, Requirements, SourceTags, Watermark};
use crate::Seq;
use crate::tags::{Parent, SourceClock};
use crate::transaction::Transaction;

pub(super) static BLOCKING: PolicySpec = PolicySpec {
    name: "logical-clock",
    about: PolicyDescription {
        summary: "The source's tags, as a native replica uses them (MySQL 5.7)",
        needs: "a MySQL source, 5.7 or later",
        guarantees: "what the source's last_committed says, scheduled as a native replica does",
        blocked_by: "a long transaction that others follow: all behind them wait, too; gaps in the numbers; log rotation",
    },
    requires: Requirements { source: SourceTags::LogicalClock, ..Requirements::NONE },
    make: |_| Box::new(LogicalClock::blocking()),
};

pub(super) static UNBLOCKED: PolicySpec = PolicySpec {
    name: "logical-clock-unblocked",
    about: PolicyDescription {
        summary: "The source's tags, without waiting for the one in front",
        needs: "a MySQL source, 5.7 or later",
        guarantees: "what the source's last_committed says",
        blocked_by: "a long transaction: those that follow it; few sessions on the source; an intermediate server that committed one by one",
    },
    requires: Requirements { source: SourceTags::LogicalClock, ..Requirements::NONE },
    make: |_| Box::new(LogicalClock::unblocked()),
};

#[derive(Debug)]
pub struct LogicalClock {
    clock: SourceClock,
    /// As the native coordinator: where it has waited to.
    blocks: Option<Seq>,
    tagged: bool,
}

impl LogicalClock {
    pub fn blocking() -> Self {
        Self { clock: SourceClock::default(), blocks: Some(0), tagged: false }
    }

    pub fn unblocked() -> Self {
        Self { blocks: None, ..Self::blocking() }
    }
}

impl Policy for LogicalClock {
    fn name(&self) -> &'static str {
        match self.blocks {
            Some(_) => BLOCKING.name,
            None => UNBLOCKED.name,
        }
    }

    fn accepts(&self, transaction: &Transaction) -> Result<(), &'static str> {
        if self.tagged || transaction.tags.sequence_number > 0 {
            return Ok(());
        }
        Err("the source does not tag its transactions with a logical clock (only MySQL 5.7 and later does)")
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        let seq = transaction.seq;
        let parent = if transaction.tags.sequence_number > 0 { self.clock.next(transaction) } else { Parent::Untagged };
        self.tagged |= parent != Parent::Untagged;
        let mut parent = match parent {
            Parent::Known(parent) => parent,
            Parent::Untagged => seq - 1,
        };
        if let Some(waited) = &mut self.blocks {
            if transaction.tags.last_committed == 0 || self.clock.after_gap() {
                parent = seq - 1;
            }
            parent = parent.max(*waited);
            *waited = parent;
        }
        let barrier = Placement::barrier(transaction);
        barrier.unwrap_or_else(|| Placement { after: Watermark::Committed(parent), ..Placement::default() })
    }

    fn low_water(&mut self, seq: Seq) {
        self.clock.forget_to(seq);
    }
}
