//! How many rows the next chunk has, from how long the last one took. It has no clock.

use std::time::Duration;

const ROWS_FIRST: u64 = 1_000;
const ROWS_MAX: u64 = 200_000;
/// A chunk grows and shrinks by at most this factor.
const STEP_MAX: f64 = 3.0;

#[derive(Clone, Debug)]
pub struct ChunkSize {
    rows: u64,
    aim: Duration,
}

impl ChunkSize {
    /// `aim`: how long a chunk should take.
    pub fn new(aim: Duration) -> Self {
        Self { rows: ROWS_FIRST, aim }
    }

    /// The first chunk of a table whose rows have so many bytes on the average.
    #[must_use]
    pub fn of_rows(mut self, row_bytes: u64, chunk_bytes: u64) -> Self {
        self.rows = (chunk_bytes / row_bytes.max(1)).clamp(1, ROWS_FIRST);
        self
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// A chunk of so many rows took so long.
    pub fn note(&mut self, rows: u64, time: Duration) {
        if rows < self.rows {
            return;
        }
        let factor = self.aim.as_secs_f64() / time.as_secs_f64().max(1e-6);
        let next = self.rows as f64 * factor.clamp(1.0 / STEP_MAX, STEP_MAX);
        self.rows = (next as u64).clamp(1, ROWS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_time() {
        let mut size = ChunkSize::new(Duration::from_millis(500));
        size.note(1_000, Duration::from_millis(50));
        assert_eq!(size.rows(), 3_000, "no more than the step");
        size.note(3_000, Duration::from_secs(1));
        assert_eq!(size.rows(), 1_500);
        size.note(10, Duration::from_millis(1));
        assert_eq!(size.rows(), 1_500, "the last chunk of a table says nothing");
        for _ in 0..20 {
            size.note(u64::MAX, Duration::from_secs(100));
        }
        assert_eq!(size.rows(), 1);
        assert_eq!(ChunkSize::new(Duration::from_secs(1)).of_rows(1 << 20, 4 << 20).rows(), 4);
    }
}
