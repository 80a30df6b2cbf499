//! What progress line, summary and status say in the same words.

use std::fmt::Display;
use std::time::Duration;

use channel::snapshot::SchedulerSample;
use engine::schedule::IdleCause;

/// Up to where a channel has applied, or read.
pub fn position<P: Display>(position: Option<P>) -> String {
    position.map_or_else(|| "the start".to_owned(), |position| position.to_string())
}

/// For how long a server cannot be reached, where that is known.
pub fn lost(lost: Option<Duration>) -> String {
    let time = lost.map_or_else(String::new, |lost| format!(" for {:.0} s", lost.as_secs_f64()));
    format!("can not be reached{time}")
}

/// What is tried again.
pub fn retried(message: &str, tries: u32, time: Duration) -> String {
    let times = if tries > 0 { format!(" ({tries} failures in {:.0} s)", time.as_secs_f64()) } else { String::new() };
    format!("trying again{times}: {message}")
}

/// How far something is behind.
pub fn lag(lag: Duration) -> String {
    format!("{:.1} s", lag.as_secs_f64())
}

/// A duration, as exact as it needs to be.
pub fn time(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0 => format!("{:.0} ms", seconds.max(0.0) * 1e3),
        1..120 => format!("{whole} s"),
        120..7200 => format!("{} min", (whole + 30) / 60),
        7200..172_800 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} days", whole / 86_400),
    }
}

/// Hour and minute of that moment, UTC. `us`: microseconds since 1970.
pub fn clock(us: u64) -> String {
    let time = i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    time.map_or_else(|| "an unknown time".to_owned(), |time| time.strftime("%H:%M").to_string())
}

/// The same with the second.
pub fn clock_with_seconds(us: u64) -> String {
    let time = i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    time.map_or_else(|| "an unknown time".to_owned(), |time| time.strftime("%H:%M:%S").to_string())
}

/// Without a full stop at its end: one follows.
pub fn full_stop(text: &str) -> &str {
    text.trim_end().trim_end_matches('.')
}

/// With a capital at its beginning.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Why nothing more is dispatched.
pub fn waits_for(scheduled: &SchedulerSample) -> &'static str {
    match scheduled.idle_because {
        IdleCause::NothingQueued if scheduled.groups_in_flight == 0 => "no work",
        IdleCause::NothingQueued => "waiting for the target",
        IdleCause::AllWorkersBusy => "waiting for the target (all workers busy)",
        IdleCause::Barrier(_) => "waiting for the target (a transaction that runs alone)",
        IdleCause::Dependency => "waiting for the target (the next transactions depend on these)",
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
    fn who_waits_for_the_target_says_so() {
        let check = |idle_because, groups_in_flight, said: &str| {
            let scheduled = SchedulerSample { idle_because, groups_in_flight, ..SchedulerSample::default() };
            assert!(waits_for(&scheduled).starts_with(said), "{}", waits_for(&scheduled));
        };
        check(IdleCause::NothingQueued, 0, "no work");
        check(IdleCause::NothingQueued, 1, "waiting for the target");
        check(IdleCause::AllWorkersBusy, 4, "waiting for the target");
        check(IdleCause::Dependency, 1, "waiting for the target");
        check(IdleCause::Gathering, 1, "gathers a group");
    }

    #[test]
    fn what_is_tried_again_is_named() {
        let said = retried("the table 't' is full", 3, Duration::from_secs(12));
        assert_eq!(said, "trying again (3 failures in 12 s): the table 't' is full");
        assert_eq!(retried("closed", 0, Duration::ZERO), "trying again: closed");
    }

    #[test]
    fn a_source_that_is_lost() {
        assert_eq!(lost(Some(Duration::from_secs(7))), "can not be reached for 7 s");
        assert_eq!(lost(None), "can not be reached");
    }
}
