//! For how long the thread that reads a source's socket has waited in vain.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct SourceSilence {
    began: Instant,
    /// Since when it waits, in milliseconds since `began`, and one more; 0: it does not.
    waits_since: AtomicU64,
    /// Something has come to who waited.
    has_heard: AtomicBool,
}

impl Default for SourceSilence {
    fn default() -> Self {
        Self { began: Instant::now(), waits_since: AtomicU64::new(0), has_heard: AtomicBool::new(false) }
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
        if self.waits_since.swap(0, Ordering::Relaxed) != 0 {
            self.has_heard.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it ever heard the source.
    pub fn has_heard(&self) -> bool {
        self.has_heard.load(Ordering::Relaxed)
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
