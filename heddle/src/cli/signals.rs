//! SIGTERM, SIGINT and SIGHUP (a terminal that is gone; not under `nohup`): commands end early with what they have, or with their temporary files
//! removed; channels stop without gaps.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// For as long as it lives, a signal sets the flag instead of ending the process.
pub struct Signals(Vec<SigId>);

impl Signals {
    pub fn watch(stop: &Arc<AtomicBool>) -> Result<Self> {
        let mut signals = Self(Vec::new());
        for signal in ends() {
            signals.0.push(signal_hook::flag::register(signal, Arc::clone(stop)).context("signal handlers")?);
        }
        Ok(signals)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.0.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// The signals that are to end the process.
fn ends() -> Vec<i32> {
    let mut signals = vec![SIGTERM, SIGINT];
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether whoever started the process wants it to live through the signal, as Linux says it (`proc(5)`: `SigIgn`, a bit for each signal from 1 on).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The first signal stops without gaps, the second ends at once (which is safe, too), unless it is SIGHUP: a terminal that goes may send several. A run
/// that has come to its end sets the flag itself: the signals are counted apart from it.
pub fn stop_without_gaps(stop: &Arc<AtomicBool>) -> Result<()> {
    stop_at(&ends(), SIGHUP, stop)
}

/// `patient`: the signal that never ends the process at once.
fn stop_at(signals: &[i32], patient: i32, stop: &Arc<AtomicBool>) -> Result<()> {
    let asked = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        if signal != patient {
            signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(super::exit::EXIT_FAILED),
                Arc::clone(&asked),
            )
            .context("signal handlers")?;
        }
        signal_hook::flag::register(signal, Arc::clone(&asked))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .context("signal handlers")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use signal_hook::consts::{SIGUSR1, SIGUSR2};

    use super::*;

    #[test]
    fn the_first_signal_ends_nothing_at_once_even_when_the_run_has_come_to_its_end() {
        let stop = Arc::new(AtomicBool::new(true));
        // Other tests watch for the usual ones.
        stop_at(&[SIGUSR1], SIGHUP, &stop).expect("handlers");
        // Would end the tests.
        signal_hook::low_level::raise(SIGUSR1).expect("a signal");
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn a_terminal_that_goes_may_say_so_twice() {
        let stop = Arc::new(AtomicBool::new(false));
        stop_at(&[SIGUSR2], SIGUSR2, &stop).expect("handlers");
        for _ in 0..2 {
            signal_hook::low_level::raise(SIGUSR2).expect("a signal");
            assert!(stop.load(Ordering::Relaxed));
        }
    }
}
