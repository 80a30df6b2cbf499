//! With relaxed order: which queued transactions have all their predecessors committed.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::Seq;
use crate::policy::{Placement, Watermark};
use crate::progress::Committed;

#[derive(Debug, Default)]
pub struct ReadySet {
    ready: BTreeSet<Seq>,
    /// Number of predecessors that each waiting transaction still misses.
    missing: HashMap<Seq, u32, FixedState>,
    /// predecessor → who waits for it
    waiting: HashMap<Seq, Vec<Seq>, FixedState>,
    /// low water → who waits for it
    watermarks: BTreeMap<Seq, Vec<Seq>>,
}

impl ReadySet {
    pub fn add(&mut self, seq: Seq, placement: &Placement, committed: &Committed) {
        let mut missing = 0;
        let mut predecessors = placement.after_transactions.clone();
        predecessors.sort_unstable();
        predecessors.dedup();
        for predecessor in predecessors {
            if !committed.contains(predecessor) {
                self.waiting.entry(predecessor).or_default().push(seq);
                missing += 1;
            }
        }
        match placement.after {
            Watermark::None => {}
            Watermark::Committed(after) | Watermark::CommitBegun(after) => {
                if after > committed.low_water() {
                    self.watermarks.entry(after).or_default().push(seq);
                    missing += 1;
                }
            }
        }
        if missing == 0 {
            self.ready.insert(seq);
        } else {
            self.missing.insert(seq, missing);
        }
    }

    /// The earliest transaction that may run.
    pub fn first(&self) -> Option<Seq> {
        self.ready.first().copied()
    }

    /// It was dispatched, alone or in a group that holds what it depends on.
    pub fn remove(&mut self, seq: Seq) {
        self.ready.remove(&seq);
        self.missing.remove(&seq);
    }

    pub fn committed(&mut self, first: Seq, last: Seq, low_water: Seq) {
        for seq in first..=last {
            for waiter in self.waiting.remove(&seq).unwrap_or_default() {
                self.meet(waiter);
            }
        }
        while let Some(entry) = self.watermarks.first_entry() {
            if *entry.key() > low_water {
                break;
            }
            for waiter in entry.remove() {
                self.meet(waiter);
            }
        }
    }

    fn meet(&mut self, waiter: Seq) {
        // Gone when it was dispatched together with its predecessor.
        let Some(missing) = self.missing.get_mut(&waiter) else { return };
        *missing -= 1;
        if *missing == 0 {
            self.missing.remove(&waiter);
            self.ready.insert(waiter);
        }
    }
}
