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

use super::{Placement, Policy, Watermark};
use crate::Seq;
use crate::tags::{Parent, SourceClock};
use crate::transaction::Transaction;

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
            Some(_) => "logical-clock",
            None => "logical-clock-unblocked",
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
        let parent = match transaction.tags.sequence_number > 0 {
            true => self.clock.next(transaction),
            false => Parent::Untagged,
        };
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
        let alone = Placement::alone(transaction);
        alone.unwrap_or_else(|| Placement { after: Watermark::Committed(parent), ..Placement::default() })
    }

    fn low_water(&mut self, seq: Seq) {
        self.clock.forget_to(seq);
    }
}
