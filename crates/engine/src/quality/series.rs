//! Values over time in a bounded number of buckets, whose width grows until the time fits: seconds for a log of minutes, minutes for weeks.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Buckets at the most: a minute each for four weeks.
const BUCKETS_MAX: usize = 40_320;
/// Widths below a minute, in seconds. Each is a multiple of the one before.
const SHORT: [u64; 3] = [1, 5, 15];
const MINUTE: u64 = 60;
/// So much time fits into buckets below a minute, counted in buckets.
const SHORT_SPAN_MAX: u64 = 600;

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
    /// Begins with seconds.
    pub fn fitting() -> Self {
        Self::with_buckets(1, BUCKETS_MAX)
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
        while self.is_too_narrow() {
            self.seconds = match SHORT.iter().find(|&&width| width > self.seconds) {
                Some(&width) => width,
                None if self.seconds < MINUTE => MINUTE,
                None => self.seconds * 2,
            };
            for (start, value) in std::mem::take(&mut self.buckets) {
                *self.buckets.entry(start / self.seconds * self.seconds).or_default() += value;
            }
        }
    }

    fn is_too_narrow(&self) -> bool {
        let ends = self.buckets.first_key_value().zip(self.buckets.last_key_value());
        let span = ends.map_or(0, |((first, _), (last, _))| last - first);
        self.buckets.len() > self.buckets_max || (self.seconds < MINUTE && span >= SHORT_SPAN_MAX * self.seconds)
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
    fn the_width_fits_the_time() {
        for (minutes, width) in
            [(0, 1), (9, 1), (10, 5), (49, 5), (50, 15), (149, 15), (150, 60), (40_000, 60), (41_000, 120)]
        {
            let mut series = Series::<u64>::fitting();
            for minute in 0..=minutes {
                *series.at(1_000_000_000_000_000 + minute * 60_000_000) += 1;
            }
            assert_eq!(series.width_seconds(), width, "{minutes} minutes");
            assert_eq!(series.buckets().map(|(_, count)| count).sum::<u64>(), minutes + 1);
        }
    }

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
