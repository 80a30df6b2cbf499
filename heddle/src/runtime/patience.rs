//! How long to try to get a lost target back, and how often.

use std::time::{Duration, Instant};

/// After this the channel stops: a person has to look.
const RECONNECT_FOR: Duration = Duration::from_secs(600);
const BACK_OFF_FIRST: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// Pause before try `attempt` (from 1) to do again what has failed.
pub fn back_off(attempt: u32) -> Duration {
    (BACK_OFF_FIRST * 2u32.saturating_pow(attempt.saturating_sub(1).min(16))).min(BACK_OFF_MAX)
}

/// One series of tries.
#[derive(Debug)]
pub struct Patience {
    since: Instant,
    attempt: u32,
}

impl Patience {
    pub fn new() -> Self {
        Self { since: Instant::now(), attempt: 0 }
    }

    /// Sleeps before the next try; false when there is none.
    pub fn pause(&mut self) -> bool {
        if self.since.elapsed() > RECONNECT_FOR {
            return false;
        }
        self.attempt = self.attempt.saturating_add(1);
        std::thread::sleep(back_off(self.attempt));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_off_grows_and_is_bounded() {
        assert_eq!(back_off(1), BACK_OFF_FIRST);
        assert_eq!(back_off(3), 4 * BACK_OFF_FIRST);
        assert_eq!(back_off(u32::MAX), BACK_OFF_MAX);
    }
}
