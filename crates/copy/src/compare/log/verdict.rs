//! When two rows that differ are a difference: pure, with a model of everything that happens at the same time.
//!
//! # The rule
//! A row was read on both servers, and the values differ. Four places of the source's log are known:
//!
//! | Place | Is |
//! |---|---|
//! | low | everything before it was visible in the source's read |
//! | high | everything that the source's read has seen is before it |
//! | applied | everything before it was applied when the target's read began |
//! | end | asked after the target's read: whatever the target has is before it |
//!
//! If no transaction from the lesser of low and applied on, up to the greater of high and end, touches the row, then both reads saw the last of the same changes: the source all
//! before low and nothing behind, the target all before applied and nothing behind. So the target's row is another one than the log makes: a difference. If one touches it, nothing is
//! known, and the row is looked at again.
//!
//! The order of the reads does not matter, nor how far the target is, nor whether it applies in the source's order: only the window's width changes. To wait for `high` before the target is read
//! makes the window short. A row that was equal in one look is dropped.

use binlog::LogPosition;

/// The four places of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look<P> {
    pub low: P,
    pub high: P,
    /// `None`: not known as a place of this log, but not less than `high`.
    pub applied: Option<P>,
    pub end: P,
}

/// The places of a server.
pub type ServerLook = Look<LogPosition>;

impl<P: Ord + Clone> Look<P> {
    /// From where to where a transaction that touches the row makes the look worthless.
    pub fn window(&self) -> (P, P) {
        let start = self.applied.as_ref().map_or(&self.low, |applied| applied.min(&self.low));
        (start.clone(), self.end.clone().max(self.high.clone()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It need not be looked at again.
    Equal,
    Different,
    /// It is on its way, or was: look again.
    Unknown,
}

/// `touched`: whether a transaction in the window of the look touches the row.
pub fn judge<R: PartialEq>(source: Option<&R>, target: Option<&R>, touched: impl FnOnce() -> bool) -> Verdict {
    if source == target {
        Verdict::Equal
    } else if touched() {
        Verdict::Unknown
    } else {
        Verdict::Different
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    const KEYS: u8 = 3;
    type Rows = BTreeMap<u8, u8>;

    /// What a transaction does: new values of keys, none to delete.
    type Changes = Vec<(u8, Option<u8>)>;

    /// A source that logs before it shows, and a target that applies what is logged: in any order that keeps the order of each row.
    struct World {
        random: StdRng,
        log: Vec<Changes>,
        /// Logged, not visible yet: a lock is held on its rows.
        hidden: BTreeSet<usize>,
        source: Rows,
        target: Rows,
        applied: BTreeSet<usize>,
        /// Rows that somebody changed on the target.
        spoilt: BTreeSet<u8>,
        /// Values from a small range come back: the row is what it was, with something else between.
        values: u8,
    }

    fn apply(rows: &mut Rows, changes: &Changes) {
        for (key, value) in changes {
            match value {
                Some(value) => rows.insert(*key, *value),
                None => rows.remove(key),
            };
        }
    }

    impl World {
        fn new(seed: u64) -> Self {
            let mut random = StdRng::seed_from_u64(seed);
            let rows: Rows = (0..KEYS).map(|key| (key, random.random_range(0..2))).collect();
            let values = random.random_range(1..4);
            Self {
                random,
                log: Vec::new(),
                hidden: BTreeSet::new(),
                source: rows.clone(),
                target: rows,
                applied: BTreeSet::new(),
                spoilt: BTreeSet::new(),
                values,
            }
        }

        fn touches(&self, number: usize, key: u8) -> bool {
            self.log.get(number).is_some_and(|changes| changes.iter().any(|(touched, _)| *touched == key))
        }

        /// Everything before it is visible.
        fn low(&self) -> usize {
            self.hidden.first().copied().unwrap_or(self.log.len())
        }

        fn applied(&self) -> usize {
            (0..self.log.len()).find(|number| !self.applied.contains(number)).unwrap_or(self.log.len())
        }

        /// One thing happens.
        fn step(&mut self) {
            match self.random.random_range(0..4) {
                0 => self.write(),
                1 => {
                    let at = self.random.random_range(0..8);
                    if let Some(number) = self.hidden.iter().nth(at).copied() {
                        self.hidden.remove(&number);
                        apply(&mut self.source, &self.log[number].clone());
                    }
                }
                _ => self.replicate(),
            }
        }

        fn write(&mut self) {
            let count = self.random.random_range(1..3);
            let changes: Changes = (0..count)
                .map(|_| {
                    let value = self.random.random_range(0..=self.values);
                    (self.random.random_range(0..KEYS), (value > 0).then_some(value))
                })
                .collect();
            // Its rows are locked by a transaction that is not visible yet.
            let is_locked = |(key, _): &(u8, Option<u8>)| self.hidden.iter().any(|number| self.touches(*number, *key));
            if !changes.iter().any(is_locked) {
                self.hidden.insert(self.log.len());
                self.log.push(changes);
            }
        }

        /// The target applies one of the first that it lacks, not before an earlier one on the same rows.
        fn replicate(&mut self) {
            let ahead = self.random.random_range(0..3);
            let Some(number) = (0..self.log.len()).filter(|number| !self.applied.contains(number)).nth(ahead) else {
                return;
            };
            let changes = self.log[number].clone();
            let waits =
                |(key, _): &(u8, Option<u8>)| (0..number).any(|n| !self.applied.contains(&n) && self.touches(n, *key));
            if !changes.iter().any(waits) {
                self.applied.insert(number);
                // What somebody changed stays changed where the log does not change it again.
                for (key, _) in &changes {
                    self.spoilt.remove(key);
                }
                apply(&mut self.target, &changes);
            }
        }

        fn steps(&mut self, max: u32) {
            for _ in 0..self.random.random_range(0..=max) {
                self.step();
            }
        }

        /// Somebody writes on the target.
        fn spoil(&mut self) {
            let key = self.random.random_range(0..KEYS);
            if self.target.insert(key, 100).is_some_and(|before| before != 100) || self.source.get(&key) != Some(&100) {
                self.spoilt.insert(key);
            }
        }

        /// A look with things happening between its steps, in either order; what it says of each row.
        fn look(&mut self) -> Vec<(u8, Verdict)> {
            let source_first = self.random.random_bool(0.7);
            let mut source = None;
            let mut target = None;
            for turn in 0..2 {
                if (turn == 0) == source_first {
                    let low = self.low();
                    self.steps(4);
                    let rows = self.source.clone();
                    self.steps(4);
                    source = Some((low, rows, self.log.len()));
                } else {
                    let applied = self.applied();
                    self.steps(4);
                    target = Some((applied, self.target.clone(), self.spoilt.clone()));
                }
                self.steps(4);
            }
            let ((low, source, high), (applied, target, spoilt)) = source.zip(target).unwrap();
            let (start, end) = Look { low, high, applied: Some(applied), end: self.log.len() }.window();
            let verdict = |key: u8| {
                let touched = || (start..end).any(|number| self.touches(number, key));
                let verdict = judge(source.get(&key), target.get(&key), touched);
                assert!(
                    verdict != Verdict::Different || spoilt.contains(&key),
                    "row {key} is on its way, and was reported"
                );
                (key, verdict)
            };
            (0..KEYS).map(verdict).collect()
        }
    }

    #[test]
    fn nothing_that_is_on_its_way_is_reported_and_what_differs_is() {
        let rounds: u64 =
            std::env::var("HEDDLE_MODEL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60_000);
        let (mut found, mut unknown) = (0_u64, 0_u64);
        for seed in 0..rounds {
            let mut world = World::new(seed);
            world.steps(12);
            if seed % 2 == 0 {
                world.spoil();
            }
            for _ in 0..3 {
                let verdicts = world.look();
                found += verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Different).count() as u64;
                unknown += verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Unknown).count() as u64;
            }
            // At rest everything that was spoilt is found.
            for number in std::mem::take(&mut world.hidden) {
                apply(&mut world.source, &world.log[number].clone());
            }
            while world.applied() < world.log.len() {
                world.replicate();
            }
            let (low, end) = (world.low(), world.log.len());
            let (start, end) = Look { low, high: end, applied: Some(end), end }.window();
            assert_eq!((start, end), (low, low));
            for key in 0..KEYS {
                let (source, target) = (world.source.get(&key), world.target.get(&key));
                let verdict = judge(source, target, || false);
                assert_eq!(verdict == Verdict::Different, world.spoilt.contains(&key), "seed {seed}, row {key}");
            }
        }
        assert!(
            found > rounds / 10 && unknown > rounds / 10,
            "the model shows nothing: {found} differences, {unknown} unknown"
        );
    }
}
