//! With relaxed order: which queued transactions have all their predecessors committed.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::Seq;
use crate::policy::{Placement, Watermark};
use crate::progress::CommittedRanges;

#[derive(Debug, Default)]
pub struct ReadySet {
    ready: BTreeSet<Seq>,
    /// Number of predecessors that each waiting transaction still misses.
    missing: HashMap<Seq, u32, FixedState>,
    /// predecessor → who waits for it
    waiting: HashMap<Seq, Vec<Seq>, FixedState>,
    /// low water → who waits for it
    watermarks: BTreeMap<Seq, Vec<Seq>>,
    /// The same for commits that have begun.
    begun: BTreeMap<Seq, Vec<Seq>>,
}

impl ReadySet {
    /// `begun`: everything up to there has begun to commit.
    pub fn add(&mut self, seq: Seq, placement: &Placement, committed: &CommittedRanges, begun: Seq) {
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
            Watermark::Committed(after) => {
                if after > committed.low_water() {
                    self.watermarks.entry(after).or_default().push(seq);
                    missing += 1;
                }
            }
            Watermark::CommitBegun(after) => {
                if after > begun {
                    self.begun.entry(after).or_default().push(seq);
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

    pub fn contains(&self, seq: Seq) -> bool {
        self.ready.contains(&seq)
    }

    /// Those that may run, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Seq> + '_ {
        self.ready.iter().copied()
    }

    /// It was dispatched, alone or in a group that holds what it depends on.
    pub fn remove(&mut self, seq: Seq) {
        self.ready.remove(&seq);
        self.missing.remove(&seq);
    }

    pub fn committed(&mut self, first: Seq, last: Seq) {
        for seq in first..=last {
            for waiter in self.waiting.remove(&seq).unwrap_or_default() {
                self.meet(waiter);
            }
        }
    }

    pub fn watermarks(&mut self, low_water: Seq, begun: Seq) {
        while let Some(entry) = self.watermarks.first_entry().filter(|entry| *entry.key() <= low_water) {
            entry.remove().into_iter().for_each(|waiter| self.meet(waiter));
        }
        while let Some(entry) = self.begun.first_entry().filter(|entry| *entry.key() <= begun) {
            entry.remove().into_iter().for_each(|waiter| self.meet(waiter));
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
