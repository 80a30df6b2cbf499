//! What is committed: the low water and the committed ranges above it.

use std::collections::{BTreeMap, VecDeque};

use crate::Seq;
use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidState};

/// The set of committed transactions: everything up to `low_water`, and ranges above it (relaxed order only).
#[derive(Clone, Debug, Default)]
pub struct CommittedRanges {
    low_water: Seq,
    /// first → last of each range above the low water; disjoint, not adjacent to each other or to the low water.
    above: BTreeMap<Seq, Seq>,
}

impl CommittedRanges {
    pub fn new(low_water: Seq) -> Self {
        Self { low_water, above: BTreeMap::new() }
    }

    pub fn low_water(&self) -> Seq {
        self.low_water
    }

    /// Committed ranges above the low water: between them are the gaps.
    pub fn ranges(&self) -> impl Iterator<Item = (Seq, Seq)> + '_ {
        self.above.iter().map(|(&first, &last)| (first, last))
    }

    pub fn contains(&self, seq: Seq) -> bool {
        seq <= self.low_water || self.above.range(..=seq).next_back().is_some_and(|(_, &last)| seq <= last)
    }

    /// The last of the range above the low water that starts at `first`.
    pub fn end_of(&self, first: Seq) -> Option<Seq> {
        self.above.get(&first).copied()
    }

    /// Adds `first..=last`, of which nothing was committed before.
    pub fn add(&mut self, first: Seq, last: Seq) {
        assert!(first <= last, "an empty range {first}..={last} cannot be committed");
        assert!(!self.contains(first) && !self.contains(last), "{first}..={last} committed twice");
        let (mut first, mut last) = (first, last);
        if let Some((&before, &end)) = self.above.range(..first).next_back()
            && end + 1 == first
        {
            self.above.remove(&before);
            first = before;
        }
        if let Some(end) = self.above.remove(&(last + 1)) {
            last = end;
        }
        if first == self.low_water + 1 {
            self.low_water = last;
        } else {
            self.above.insert(first, last);
        }
    }
}

/// Everything that a target has to remember so that a channel can go on: what is applied, as the source says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub seq: Seq,
    /// Where to go on reading. `None` before the first transaction of a channel that started without a position.
    pub position: Option<LogPosition>,
    pub gtids: GtidState,
    /// The source's commit time of the transaction `seq`, microseconds since the epoch.
    pub commit_time_us: u64,
}

/// One transaction's contribution to the mark.
#[derive(Clone, Debug)]
struct Step {
    seq: Seq,
    gtid: Option<Gtid>,
    end: LogPosition,
    commit_time_us: u64,
}

/// Turns "committed up to seq" into a [`Mark`]: remembers the transactions in between.
#[derive(Debug)]
pub struct Marker {
    mark: Mark,
    steps: VecDeque<Step>,
}

impl Marker {
    pub fn new(mark: Mark) -> Self {
        Self { mark, steps: VecDeque::new() }
    }

    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Announces the next transaction, in `seq` order.
    pub fn push(&mut self, seq: Seq, gtid: Option<Gtid>, end: LogPosition, commit_time_us: u64) {
        self.steps.push_back(Step { seq, gtid, end, commit_time_us });
    }

    /// Moves the mark to `seq`; at or below where it is, nothing changes.
    #[expect(clippy::panic, reason = "a broken invariant of our own")]
    pub fn advance(&mut self, seq: Seq) -> &Mark {
        while self.steps.front().is_some_and(|step| step.seq <= seq) {
            let Some(step) = self.steps.pop_front() else { break };
            if let Some(gtid) = &step.gtid
                && let Err(mixed) = self.mark.gtids.add(gtid)
            {
                panic!("the assembler lets no {gtid} through: {mixed}");
            }
            self.mark.seq = step.seq;
            self.mark.position = Some(step.end);
            self.mark.commit_time_us = step.commit_time_us;
        }
        &self.mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn low_water_is_the_last_before_the_first_gap(order in Just((1u64..60).collect::<Vec<_>>()).prop_shuffle()) {
            let mut committed = CommittedRanges::new(0);
            let mut model = std::collections::BTreeSet::new();
            for seq in order {
                committed.add(seq, seq);
                model.insert(seq);
                let expected = (1..).take_while(|s| model.contains(s)).last().unwrap_or(0);
                prop_assert_eq!(committed.low_water(), expected);
                for probe in 1..60 {
                    prop_assert_eq!(committed.contains(probe), model.contains(&probe));
                }
            }
            prop_assert_eq!(committed.ranges().count(), 0);
        }
    }
}
