//! How long to try to get a lost target back, and how often.

use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use wire::reach::{Backoff, Outage, Reachability};

/// After this a channel stops whose caller says nothing else: a person has to look.
pub const RECONNECT_FOR: Duration = Duration::from_secs(600);
/// The attempt itself says when the process is to end, so it is never long until the next one.
const STEP: Duration = Duration::from_secs(1);

/// Pause before try `attempt` (from 1) to do again what has failed.
pub fn back_off(attempt: u32) -> Duration {
    Backoff::TARGET.before(attempt)
}

/// Pause before a group is tried again that has failed so; `attempt`: how often (from 1). What a person opens again is tried each second.
pub fn pause(kind: FailureKind, attempt: u32) -> Duration {
    match kind {
        // A full disk does not empty at once.
        FailureKind::Exhausted => back_off(attempt),
        FailureKind::Maintenance => back_off(attempt).min(STEP),
        _ => Duration::ZERO,
    }
}

/// All connections of this process to its target meet the same loss.
static TARGET: Reachability = Reachability::new("target");

/// A connection to the target is lost: [`until_reached`] says when there is one again.
pub fn target_is_lost(why: &str) {
    TARGET.lost(why);
}

/// It answers, whoever asked.
pub fn target_is_reached() {
    TARGET.reached();
}

/// What is known of the target's absence, if it can not be reached.
pub fn target_outage() -> Option<Outage> {
    TARGET.outage()
}

/// Tries until it succeeds, fails for another reason than that the target can not be reached, is full or is closed, or took longer than `limit`. For a
/// target that is closed there is no limit, unless `limit` is zero: then it is tried once.
///
/// # Errors
/// The last failure.
pub fn until_reached<T>(limit: Duration, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let since = Instant::now();
    let mut attempts = 0_u32;
    loop {
        match attempt() {
            Err(again) if !limit.is_zero() && is_tried_again(again.kind, since.elapsed() <= limit) => {
                TARGET.lost(&again.message);
                attempts = attempts.saturating_add(1);
                let pause = back_off(attempts).min(STEP);
                TARGET.tries_in(pause);
                std::thread::sleep(pause);
            }
            Ok(done) => {
                TARGET.reached();
                return Ok(done);
            }
            failed => return failed,
        }
    }
}

fn is_tried_again(kind: FailureKind, is_in_time: bool) -> bool {
    match kind {
        FailureKind::ConnectionLost | FailureKind::Exhausted => is_in_time,
        FailureKind::Maintenance => true,
        FailureKind::Conflict
        | FailureKind::Divergence
        | FailureKind::Refused
        | FailureKind::Fenced
        | FailureKind::Stopped => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_target_is_waited_for_without_a_limit() {
        let tries = |limit: Duration, kinds: &[FailureKind]| {
            let mut left = kinds.iter();
            let mut tried = 0;
            let done = until_reached(limit, || {
                tried += 1;
                left.next().map_or(Ok(()), |&kind| Err(Failure::new(kind, "made up")))
            });
            (tried, done.is_ok())
        };
        let (closed, lost) = (FailureKind::Maintenance, FailureKind::ConnectionLost);
        assert_eq!(tries(Duration::from_nanos(1), &[closed, closed]), (3, true));
        assert_eq!(tries(Duration::from_nanos(1), &[closed, lost]), (2, false));
        assert_eq!(tries(Duration::from_secs(60), &[lost, closed]), (3, true));
        assert_eq!(tries(Duration::ZERO, &[closed]), (1, false));
        assert_eq!(tries(Duration::from_secs(60), &[FailureKind::Refused]), (1, false));
    }
}
