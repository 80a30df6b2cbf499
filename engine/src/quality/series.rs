//! Values over time in a bounded number of buckets, whose width doubles when they do not suffice.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Buckets at the most: a minute each for four weeks.
const BUCKETS_MAX: usize = 40_320;

#[derive(Clone, Debug)]
pub struct Series<V> {
    /// Width of a bucket.
    pub seconds: u64,
    buckets: BTreeMap<u64, V>,
    buckets_max: usize,
    /// The bucket of the time before: most times fall into the same one.
    last: Option<(u64, V)>,
}

impl<V: Default + Clone + AddAssign> Series<V> {
    /// `seconds`: the width to begin with.
    pub fn new(seconds: u64) -> Self {
        Self::with_buckets(seconds, BUCKETS_MAX)
    }

    /// With another bound of the number of buckets.
    pub fn with_buckets(seconds: u64, buckets_max: usize) -> Self {
        Self { seconds: seconds.max(1), buckets: BTreeMap::new(), buckets_max: buckets_max.max(2), last: None }
    }

    /// What is counted at a time, in microseconds since 1970.
    pub fn at(&mut self, time_us: u64) -> &mut V {
        let start = time_us / 1_000_000 / self.seconds * self.seconds;
        if self.last.as_ref().is_none_or(|(at, _)| *at != start) {
            self.settle();
            let start = time_us / 1_000_000 / self.seconds * self.seconds;
            self.last = Some((start, V::default()));
        }
        &mut self.last.get_or_insert_with(|| (start, V::default())).1
    }

    /// Width of a bucket, as [`Series::buckets`] gives them.
    pub fn width_seconds(&mut self) -> u64 {
        self.settle();
        self.seconds
    }

    fn settle(&mut self) {
        if let Some((start, value)) = self.last.take() {
            *self.buckets.entry(start / self.seconds * self.seconds).or_default() += value;
        }
        while self.buckets.len() > self.buckets_max {
            self.seconds *= 2;
            for (start, value) in std::mem::take(&mut self.buckets) {
                *self.buckets.entry(start / self.seconds * self.seconds).or_default() += value;
            }
        }
    }

    /// (seconds since 1970 at the bucket's start, what was counted), by time; empty buckets are left out.
    pub fn buckets(&mut self) -> impl Iterator<Item = (u64, &V)> {
        self.settle();
        self.buckets.iter().map(|(&start, value)| (start, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_become_wider_when_there_are_too_many() {
        let mut series = Series::<u64>::with_buckets(60, 4);
        for minute in [0, 0, 1, 2, 3, 1] {
            *series.at(minute * 60_000_000 + 59_999_999) += 1;
        }
        let all = |series: &mut Series<u64>| series.buckets().map(|(at, &n)| (at, n)).collect::<Vec<_>>();
        assert_eq!(all(&mut series), [(0, 2), (60, 2), (120, 1), (180, 1)]);
        *series.at(5 * 60_000_000) += 1;
        assert_eq!(all(&mut series), [(0, 4), (120, 2), (240, 1)]);
        assert_eq!(series.seconds, 120);
        *series.at(6 * 60_000_000) += 10;
        *series.at(7 * 60_000_000) += 10;
        assert_eq!(all(&mut series).last(), Some(&(360, 20)));
    }
}
