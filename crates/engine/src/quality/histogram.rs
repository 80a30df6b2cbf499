//! Counts by powers of two.

/// Bucket n > 0 counts values from 2^(n-1) up to 2^n − 1; bucket 0 counts zeros.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: [u64; 65],
    pub count: u64,
    pub sum: u64,
    pub max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; 65], count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    pub fn add(&mut self, value: u64) {
        if let Some(bucket) = self.buckets.get_mut((u64::BITS - value.leading_zeros()) as usize) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// (smallest value, greatest value, count) of the buckets from the first to the last that has any.
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let first = self.buckets.iter().position(|&count| count > 0).unwrap_or(0);
        let last = self.buckets.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        let bounds = |at: usize| match at {
            0 => (0, 0),
            64 => (1 << 63, u64::MAX),
            at => (1 << (at - 1), (1 << at) - 1),
        };
        let counts = self.buckets.iter().copied().enumerate().take(last).skip(first);
        counts.map(|(at, count)| (bounds(at).0, bounds(at).1, count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.buckets(), histogram.mean()), (vec![], None));
        [1, 2, 3, 8, 15].iter().for_each(|&value| histogram.add(value));
        assert_eq!(histogram.buckets(), [(1, 1, 1), (2, 3, 2), (4, 7, 0), (8, 15, 2)]);
        histogram.add(u64::MAX);
        histogram.add(0);
        assert_eq!(histogram.buckets().first(), Some(&(0, 0, 1)));
        assert_eq!(histogram.buckets().last(), Some(&(1 << 63, u64::MAX, 1)));
    }
}
