//! SIGTERM, SIGINT and SIGHUP (a terminal that is gone; not under `nohup`; a server without a terminal reads files again): commands end early with what they have, or with their temporary files
//! removed; channels stop without gaps, within five seconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use wire::Interrupt;

use crate::supervisor::PARENT;
use output::complain;

/// For as long as it lives, a signal sets the flag, and ends the process only where what is under way does not end by itself.
pub struct Signals {
    ids: Vec<SigId>,
    /// Tells the thread that would end the process.
    _alive: Arc<()>,
}

impl Signals {
    pub fn watch(stop: &Arc<AtomicBool>) -> Result<Self> {
        Self::watch_these(&ends(), stop)
    }

    /// The same, but where no terminal can go, SIGHUP sets the other flag.
    pub fn watch_for_reload(stop: &Arc<AtomicBool>, reload: &Arc<AtomicBool>) -> Result<Self> {
        let mut ends = ends();
        let is_for_reload = is_for_reload(&ends);
        ends.retain(|signal| *signal != SIGHUP || !is_for_reload);
        let mut signals = Self::watch_these(&ends, stop)?;
        if is_for_reload {
            signals.ids.push(signal_hook::flag::register(SIGHUP, Arc::clone(reload)).context("signal handlers")?);
        }
        Ok(signals)
    }

    fn watch_these(ends: &[i32], stop: &Arc<AtomicBool>) -> Result<Self> {
        let (asked, alive) = (Interrupt::default(), Arc::new(()));
        let mut signals = Self { ids: Vec::new(), _alive: Arc::clone(&alive) };
        for &signal in ends {
            for flag in [asked.flag(), Arc::clone(stop)] {
                signals.ids.push(signal_hook::flag::register(signal, flag).context("signal handlers")?);
            }
        }
        end_in_time(asked, Arc::downgrade(&alive))?;
        Ok(signals)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// A channel's process that `heddle run` started ends when that one is gone, as it would at SIGTERM.
pub fn end_with_parent() {
    let Some(parent) = std::env::var(PARENT).ok().and_then(|id| id.parse::<u32>().ok()) else { return };
    let watched = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    // It may have gone before it was watched.
    if watched.is_ok() && std::os::unix::process::parent_id() != parent {
        signal_hook::low_level::exit(i32::from(super::exit::EXIT_TRY_AGAIN));
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

/// SIGHUP does not say that a terminal is gone.
fn is_for_reload(ends: &[i32]) -> bool {
    !ends.contains(&SIGHUP) || !has_terminal()
}

/// Whether there is a terminal that sends SIGHUP when it goes.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether whoever started the process wants it to live through the signal, as Linux says it (`proc(5)`: `SigIgn`, a bit for each signal from 1 on).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// How long after the first signal what has not ended by itself is given up.
const END_AFTER: Duration = Duration::from_millis(4800);
const POLL: Duration = Duration::from_millis(100);

/// How a channel is asked to end.
///
/// The first signal stops it without gaps: what is under way is finished. What waits for a server that does not answer is interrupted after a grace
/// ([`Interrupt`]), and what still waits then (a disk, a FIFO, the name service) ends with the process, which is safe: at any moment the process
/// may be killed. The second signal ends it at once, unless it is SIGHUP: a terminal that goes may send several.
#[derive(Debug, Default)]
pub struct Ending {
    /// Set by a signal, and by a run that has come to its end.
    pub stop: Arc<AtomicBool>,
    /// Set by a signal only.
    asked: Interrupt,
    alive: Arc<()>,
}

impl Ending {
    /// What ends the waits of connections once there was a signal.
    pub fn interrupt(&self) -> Interrupt {
        self.asked.clone()
    }

    /// A run has come to its end, and another one begins.
    pub fn go_on(&self) {
        self.stop.store(false, Ordering::SeqCst);
        if self.asked.is_asked() {
            self.stop.store(true, Ordering::SeqCst);
        }
    }

    /// From here on signals end the run. Before, they end the process as they end any other.
    pub fn watch(&self) -> Result<()> {
        self.stop_at(&ends(), SIGHUP)?;
        end_in_time(self.interrupt(), Arc::downgrade(&self.alive))
    }

    /// The same where only this process can set right what it has begun: no signal ends it, however many come, and nothing else does.
    pub fn watch_to_the_end(&self) -> Result<()> {
        for signal in ends() {
            signal_hook::flag::register(signal, self.asked.flag())
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&self.stop)))
                .context("signal handlers")?;
        }
        Ok(())
    }

    /// The same, for a server. Where no terminal can go, SIGHUP asks for files to be read again: it sets the flag.
    pub fn watch_for_reload(&self) -> Result<Arc<AtomicBool>> {
        let reload = Arc::new(AtomicBool::new(false));
        let ends = ends();
        let is_for_reload = is_for_reload(&ends);
        if is_for_reload {
            signal_hook::flag::register(SIGHUP, Arc::clone(&reload)).context("signal handlers")?;
        }
        let ends: Vec<i32> = ends.into_iter().filter(|signal| *signal != SIGHUP || !is_for_reload).collect();
        self.stop_at(&ends, SIGHUP)?;
        end_in_time(self.interrupt(), Arc::downgrade(&self.alive))?;
        Ok(reload)
    }

    /// SIGUSR1 pauses, SIGUSR2 resumes.
    pub fn watch_pause(flag: &Arc<AtomicBool>) -> Result<()> {
        signal_hook::flag::register(SIGUSR1, Arc::clone(flag)).context("signal handlers")?;
        let resumed = Arc::clone(flag);
        let resume = move || resumed.store(false, Ordering::Relaxed);
        register(SIGUSR2, resume)
    }

    /// `patient`: the signal that never ends the process at once.
    fn stop_at(&self, signals: &[i32], patient: i32) -> Result<()> {
        for &signal in signals {
            if signal != patient {
                signal_hook::flag::register_conditional_shutdown(
                    signal,
                    i32::from(super::exit::EXIT_FAILED),
                    self.asked.flag(),
                )
                .context("signal handlers")?;
            }
            signal_hook::flag::register(signal, self.asked.flag())
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&self.stop)))
                .context("signal handlers")?;
        }
        Ok(())
    }
}

/// Runs `act` in the handler of the signal: it may only do what is safe there, such as setting a flag.
#[expect(unsafe_code, reason = "signal_hook has a safe function for setting a flag, and none for clearing it")]
fn register(signal: i32, act: impl Fn() + Send + Sync + 'static) -> Result<()> {
    // SAFETY: storing to an atomic is async-signal-safe.
    unsafe { signal_hook::low_level::register(signal, act) }.context("signal handlers").map(|_| ())
}

/// Ends the process when it was asked to end and has not in time, for as long as somebody holds `alive`.
fn end_in_time(asked: Interrupt, alive: Weak<()>) -> Result<()> {
    let watch = move || {
        let mut since = None;
        while since.is_none_or(|since: Instant| since.elapsed() < END_AFTER) {
            if alive.strong_count() == 0 {
                return;
            }
            if asked.is_asked() {
                since.get_or_insert_with(Instant::now);
            }
            thread::sleep(POLL);
        }
        complain!(
            "heddle: stopped. Something did not end within {} s: a server, a disk or a pipe that does not answer. Nothing is lost by that: run the \
             same command again",
            END_AFTER.as_secs_f32()
        );
        signal_hook::low_level::exit(i32::from(super::exit::EXIT_FAILED));
    };
    thread::Builder::new().name("ending".to_owned()).spawn(watch).context("a thread")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_ends_nothing_at_once_even_when_the_run_has_come_to_its_end() {
        let ending = Ending::default();
        ending.stop.store(true, Ordering::Relaxed);
        // Other tests watch for the usual ones.
        ending.stop_at(&[SIGUSR1], SIGHUP).expect("handlers");
        assert!(!ending.interrupt().is_asked());
        // Would end the tests.
        signal_hook::low_level::raise(SIGUSR1).expect("a signal");
        assert!(ending.stop.load(Ordering::Relaxed));
        assert!(ending.interrupt().is_asked());
    }

    #[test]
    fn a_terminal_that_goes_may_say_so_twice() {
        let ending = Ending::default();
        ending.stop_at(&[SIGUSR2], SIGUSR2).expect("handlers");
        for _ in 0..2 {
            signal_hook::low_level::raise(SIGUSR2).expect("a signal");
            assert!(ending.stop.load(Ordering::Relaxed));
        }
    }
}
