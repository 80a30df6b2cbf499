//! How long to try to get a lost target back, and how often.

use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};

/// After this the channel stops: a person has to look.
const RECONNECT_FOR: Duration = Duration::from_secs(600);
const BACK_OFF_FIRST: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// The attempt itself says when the process is to end, so it is never long until the next one.
const STEP: Duration = Duration::from_secs(1);
const WARN_EVERY: Duration = BACK_OFF_MAX;

/// Pause before try `attempt` (from 1) to do again what has failed.
pub fn back_off(attempt: u32) -> Duration {
    (BACK_OFF_FIRST * 2u32.saturating_pow(attempt.saturating_sub(1).min(16))).min(BACK_OFF_MAX)
}

/// Tries until it succeeds, fails for another reason than that the target can not be reached or is full, or took too long.
///
/// # Errors
/// The last failure.
pub fn until_reached<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let since = Instant::now();
    let mut attempts = 0_u32;
    let mut warned = None;
    loop {
        match attempt() {
            Err(again)
                if matches!(again.kind, FailureKind::ConnectionLost | FailureKind::Exhausted)
                    && since.elapsed() <= RECONNECT_FOR =>
            {
                if warned.is_none_or(|at: Instant| at.elapsed() >= WARN_EVERY) {
                    tracing::warn!("target not reachable: {}", again.message);
                    warned = Some(Instant::now());
                }
                attempts = attempts.saturating_add(1);
                std::thread::sleep(back_off(attempts).min(STEP));
            }
            done => return done,
        }
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
