//! A policy that exists to show what a new one takes: this file, its `mod` and its line in a list. For tests only: those of
//! other crates include this file.
//!
//! The hazard: T1 and T2 change the same row. Transactions with an odd number and the next one run side by side only if they
//! touch no common key; the next pair waits for both.
//!
//! ```text
//! T1 ──c     T3 ──c
//! T2 ───c    T4 ─c
//! ```

use engine::Seq;
use engine::policy::{
    ALL, Placement, Policies, Policy, PolicyDescription, PolicySpec, Requirements, Watermark, WriteSetPolicy,
};
use engine::transaction::Transaction;

pub static SPEC: PolicySpec = PolicySpec {
    name: "pairs",
    about: PolicyDescription {
        summary: "Two at a time",
        needs: "row format",
        guarantees: "pairs come one after the other",
        blocked_by: "the longer one of each pair",
    },
    requires: Requirements::NONE,
    make: |_| Box::<Pairs>::default(),
};

/// [`ALL`] with one line more.
pub fn list() -> Policies {
    let list: Vec<&'static PolicySpec> = ALL.iter().chain([&SPEC]).collect();
    Policies::new(list.leak())
}

#[derive(Debug, Default)]
struct Pairs {
    keys: WriteSetPolicy,
}

impl Policy for Pairs {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        let mut placement = self.keys.place(transaction);
        if placement.barrier.is_none() {
            let before_pair = (transaction.seq - 1) & !1;
            placement.after = match placement.after {
                Watermark::Committed(seq) if seq > before_pair => placement.after,
                _ => Watermark::Committed(before_pair),
            };
            placement.row_after.clear();
        }
        placement
    }

    fn low_water(&mut self, seq: Seq) {
        self.keys.low_water(seq);
    }
}
