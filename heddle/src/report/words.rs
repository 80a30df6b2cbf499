//! What progress line, summary and status say in the same words.

use std::fmt::Display;
use std::time::Duration;

use engine::schedule::IdleCause;

/// Up to where a channel has applied, or read.
pub fn position<P: Display>(position: Option<P>) -> String {
    position.map_or_else(|| "the start".to_owned(), |position| position.to_string())
}

/// For how long the source cannot be reached, where that is known.
pub fn source_lost(lost: Option<Duration>) -> String {
    let time = lost.map_or_else(String::new, |lost| format!(" for {:.0} s", lost.as_secs_f64()));
    format!("can not be reached{time}")
}

/// How far something is behind.
pub fn lag(lag: Duration) -> String {
    format!("{:.1} s", lag.as_secs_f64())
}

/// Why nothing more is dispatched.
pub fn waits_for(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::NothingQueued => "no work",
        IdleCause::AllWorkersBusy => "all workers busy",
        IdleCause::Barrier(_) => "waits for a barrier",
        IdleCause::Dependency => "waits for dependencies",
        IdleCause::Gathering => "gathers a group",
        IdleCause::Stopping => "stopping",
    }
}

/// A worker that has applied all and may not commit yet.
pub const WAITS_TO_COMMIT: &str = "waits for its turn to commit";
/// A worker whose statement waits.
pub const WAITS_FOR_LOCK: &str = "waits for a lock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_lost() {
        assert_eq!(source_lost(Some(Duration::from_secs(7))), "can not be reached for 7 s");
        assert_eq!(source_lost(None), "can not be reached");
    }
}
