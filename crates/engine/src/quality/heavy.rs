//! Keys that come often, in bounded memory.
//!
//! Keeps at most twice `capacity` counters; when they are full, the rarer half goes and the largest count that went is
//! remembered. What is counted anew after that may have had up to so many before: its `error`. So the true number lies
//! between `count` and `count + error`, and a key whose true number exceeds the largest `error` is never missing.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// One key's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter<V> {
    /// Counted since the key was (last) taken in.
    pub count: u64,
    /// How many may have been missed before.
    pub error: u64,
    pub value: V,
}

#[derive(Clone, Debug)]
pub struct HeavyHitters<V> {
    capacity: usize,
    counters: HashMap<u64, Counter<V>, FixedState>,
    floor: u64,
}

impl<V: Default> HeavyHitters<V> {
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), counters: HashMap::default(), floor: 0 }
    }

    /// Adds `weight` to the key's count and gives its value for the caller to bring up to date.
    pub fn add(&mut self, key: u64, weight: u64) -> &mut V {
        if self.counters.len() >= 2 * self.capacity && !self.counters.contains_key(&key) {
            self.prune();
        }
        let floor = self.floor;
        let counter =
            self.counters.entry(key).or_insert_with(|| Counter { count: 0, error: floor, value: V::default() });
        counter.count += weight;
        &mut counter.value
    }

    pub fn get(&self, key: u64) -> Option<&Counter<V>> {
        self.counters.get(&key)
    }

    pub fn get_mut(&mut self, key: u64) -> Option<&mut Counter<V>> {
        self.counters.get_mut(&key)
    }

    /// The greatest number of times that a key which is not counted may have come.
    pub fn missed_max(&self) -> u64 {
        self.floor
    }

    fn prune(&mut self) {
        let mut order: Vec<(u64, u64)> =
            self.counters.iter().map(|(&key, counter)| (counter.count + counter.error, key)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(&(gone, _)) = order.get(self.capacity) {
            self.floor = self.floor.max(gone);
        }
        for (_, key) in order.iter().skip(self.capacity) {
            self.counters.remove(key);
        }
    }

    /// The most frequent keys, those of equal counts by key.
    pub fn top(&self, number: usize) -> Vec<(u64, &Counter<V>)> {
        let mut all: Vec<(u64, &Counter<V>)> = self.counters.iter().map(|(&key, counter)| (key, counter)).collect();
        all.sort_unstable_by_key(|(key, counter)| (std::cmp::Reverse(counter.count), *key));
        all.truncate(number);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The stated bounds hold for any stream.
        #[test]
        fn true_counts_lie_within_the_bounds(stream in prop::collection::vec((0..60_u64, 1..5_u64), 0..600)) {
            let mut heavy = HeavyHitters::<()>::new(8);
            let mut truth = std::collections::BTreeMap::<u64, u64>::new();
            for &(key, weight) in &stream {
                heavy.add(key, weight);
                *truth.entry(key).or_default() += weight;
                prop_assert!(heavy.counters.len() <= 16);
            }
            for (key, count) in truth {
                match heavy.get(key) {
                    Some(counter) => {
                        prop_assert!(counter.count <= count && count <= counter.count + counter.error);
                    }
                    None => prop_assert!(count <= heavy.missed_max()),
                }
            }
        }
    }

    #[test]
    fn a_heavy_key_among_many_is_found() {
        let mut heavy = HeavyHitters::<()>::new(16);
        for n in 0..10_000_u64 {
            heavy.add(n + 100, 1);
            if n % 10 == 0 {
                heavy.add(7, 1);
            }
        }
        let (key, counter) = heavy.top(1)[0];
        assert_eq!(key, 7);
        assert!(counter.count <= 1000 && 1000 <= counter.count + counter.error, "{counter:?}");
    }
}
