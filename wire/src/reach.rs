//! A server that can not be reached: when to try again, and what to say of it. It connects to nothing and waits for nothing itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// As many different reasons are said: their texts may hold numbers that change.
const REASONS_MAX: usize = 5;

/// The pauses between attempts: each is twice the one before, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The first one.
    pub first: Duration,
    /// None is longer.
    pub max: Duration,
}

impl BackOff {
    /// For a stream from a source.
    pub const SOURCE: Self = Self { first: Duration::from_millis(100), max: Duration::from_secs(10) };
    /// For what is to be done again on a target.
    pub const TARGET: Self = Self { first: Duration::from_millis(50), max: Duration::from_secs(5) };

    /// Before try `attempt` (from 1) to do again what has failed.
    pub fn before(self, attempt: u32) -> Duration {
        self.first.saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1).min(16))).min(self.max)
    }
}

/// Says when a server cannot be reached, and when it is reached again: one line for each change and each new reason, however often it was tried in
/// between.
#[derive(Debug)]
pub struct Reachability {
    server: &'static str,
    lost: Mutex<Option<Lost>>,
}

#[derive(Debug)]
struct Lost {
    since: Instant,
    said: Vec<String>,
}

impl Reachability {
    /// Of `the source`, `the target`.
    pub const fn new(server: &'static str) -> Self {
        Self { server, lost: Mutex::new(None) }
    }

    /// True: it was not known before, or not for this reason.
    pub fn lost(&self, why: &str) -> bool {
        let mut lost = self.lock();
        let lost = lost.get_or_insert_with(|| Lost { since: Instant::now(), said: Vec::new() });
        let is_news = lost.said.len() < REASONS_MAX && !lost.said.iter().any(|said| said == why);
        if is_news {
            let still = if lost.said.is_empty() { "" } else { "still " };
            tracing::warn!("the {} can {still}not be reached, trying again: {why}", self.server);
            lost.said.push(why.to_owned());
        } else {
            tracing::debug!("the {} can still not be reached: {why}", self.server);
        }
        is_news
    }

    /// For how long it could not be, if so.
    pub fn reached(&self) -> Option<Duration> {
        let lost = self.lock().take()?.since.elapsed();
        tracing::info!("the {} is reachable again, after {:.1} s", self.server, lost.as_secs_f64());
        Some(lost)
    }

    /// For how long it can not be reached, if so.
    pub fn lost_for(&self) -> Option<Duration> {
        self.lock().as_ref().map(|lost| lost.since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lost>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_said_once() {
        let server = Reachability::new("source");
        assert_eq!((server.reached(), server.lost_for()), (None, None));
        assert!(server.lost("refused"));
        assert!(!server.lost("refused"));
        assert!(server.lost("login refused"));
        assert!(!server.lost("login refused") && !server.lost("refused"));
        assert!(server.lost_for().is_some() && server.reached().is_some());
        assert_eq!(server.reached(), None);
        assert!(server.lost("refused"));
    }

    #[test]
    fn the_pauses_grow_and_are_bounded() {
        let back_off = BackOff::TARGET;
        assert_eq!(back_off.before(1), back_off.first);
        assert_eq!(back_off.before(3), 4 * back_off.first);
        assert_eq!(back_off.before(u32::MAX), back_off.max);
    }
}
