//! For how long the thread that reads a source's socket has waited in vain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct SourceSilence {
    began: Instant,
    /// Since when it waits, in milliseconds since `began`, and one more; 0: it does not.
    waits_since: AtomicU64,
}

impl Default for SourceSilence {
    fn default() -> Self {
        Self { began: Instant::now(), waits_since: AtomicU64::new(0) }
    }
}

impl SourceSilence {
    /// It waits from now on.
    pub fn waits(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.waits_since.store(since + 1, Ordering::Relaxed);
    }

    /// Something has come, or nothing is waited for any more.
    pub fn came(&self) {
        self.waits_since.store(0, Ordering::Relaxed);
    }

    /// For how long it waits; zero: it does not.
    pub fn silence(&self) -> Duration {
        match self.waits_since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.began.elapsed().saturating_sub(Duration::from_millis(since - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_waits_hears_nothing() {
        let heard = SourceSilence::default();
        assert_eq!(heard.silence(), Duration::ZERO);
        heard.waits();
        std::thread::sleep(Duration::from_millis(5));
        assert!(heard.silence() >= Duration::from_millis(4));
        heard.came();
        assert_eq!(heard.silence(), Duration::ZERO);
    }
}
