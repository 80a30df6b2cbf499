//! Numbers that look random and are the same everywhere: SplitMix64, and Zipf's law in whole numbers.
//!
//! The streams of general libraries may change with their versions, and floating-point powers differ between machines;
//! generated logs should do neither.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The `stream`-th of the independent streams of `seed`.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut rng = Rng(seed);
        let base = rng.draw();
        let mut rng = Rng(base ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        rng.draw();
        rng
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`; 0 when that is 0. The bias of the multiplication is below one in 2³² for the sizes here.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    pub fn percent(&mut self, share: u8) -> bool {
        self.below(100) < u64::from(share)
    }
}

/// Numbers from 1 to n, k with a probability of 1/k of the first one's.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// Sums of the weights up to and with each number.
    sums: Vec<u64>,
}

impl Zipf {
    pub fn new(n: u64) -> Zipf {
        let mut sum = 0;
        let weights = (1..=n).map(|k| (1 << 32) / k);
        let sums = weights.map(|weight| {
            sum += weight;
            sum
        });
        Zipf { sums: sums.collect() }
    }

    pub fn pick(&self, rng: &mut Rng) -> u64 {
        let total = self.sums.last().copied().unwrap_or(0);
        let at = rng.below(total);
        self.sums.partition_point(|sum| *sum <= at) as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_small_numbers_and_stays_in_range() {
        let (zipf, mut rng) = (Zipf::new(100), Rng::new(1, 0));
        let mut counts = [0u32; 101];
        for _ in 0..100_000 {
            counts[zipf.pick(&mut rng) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| *count > 0), "{counts:?}");
        // 100,000 / H(100) = 19,277 of the first, half of it of the second.
        assert!((18_500..20_000).contains(&counts[1]), "{}", counts[1]);
        assert!((9_000..10_300).contains(&counts[2]), "{}", counts[2]);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let take = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            [rng.draw(), rng.draw(), rng.draw()]
        };
        assert_eq!(take(1, 2), take(1, 2));
        assert_ne!(take(1, 2), take(1, 3));
        assert_ne!(take(1, 2), take(2, 2));
    }
}
