//! A progress bar on a terminal, log lines elsewhere: rate, lag, time left.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use channel::flow::stats::Stats;

/// The bar that is drawn, so that log lines are written above it.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

const DRAW_EVERY: Duration = Duration::from_millis(250);
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Where log lines go: above the bar, when there is one.
pub fn writer() -> impl Write {
    LogWriter
}

struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match &*bar {
            Some(bar) => bar.suspend(|| std::io::stderr().write(bytes)),
            None => std::io::stderr().write(bytes),
        };
        // Nobody may be there to read it any more (a closed terminal): that stops no channel.
        Ok(written.unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub struct Progress {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// `live`: there is no end to go for, so lag is shown instead of time left.
    pub fn start(stats: &Arc<Stats>, live: bool) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let on_terminal = std::io::stderr().is_terminal();
        let observer = Observer { stats: Arc::clone(stats), done: Arc::clone(&done), live };
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            if on_terminal {
                observer.draw();
            } else {
                observer.log();
            }
        });
        Self { done, thread: thread.ok() }
    }

    pub fn finish(self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the progress thread has panicked");
            }
        }
    }
}

struct Observer {
    stats: Arc<Stats>,
    done: Arc<AtomicBool>,
    live: bool,
}

/// A look at the numbers.
struct Look {
    transactions: u64,
    /// The source's time of the last transaction applied, microseconds since the epoch; 0: none yet.
    applied_us: u64,
    at: Instant,
}

/// Seconds until a channel that is `lag_s` behind has caught up, when it applies `speed` seconds of the source's time in one.
fn seconds_left(lag_s: f64, speed: f64) -> Option<f64> {
    (lag_s >= 2.0 && speed > 1.01).then(|| lag_s / (speed - 1.0))
}

impl Observer {
    fn look(&self) -> Look {
        Look {
            transactions: self.stats.counters().0.transactions,
            applied_us: self.stats.mark().commit_time_us,
            at: Instant::now(),
        }
    }

    fn line(&self, before: &Look, now: &Look) -> String {
        let seconds = (now.at - before.at).as_secs_f64().max(1e-9);
        let rate = (now.transactions - before.transactions) as f64 / seconds;
        let (counters, idle) = self.stats.counters();
        let mark = self.stats.mark();
        let position = mark.position.map_or_else(|| "start".to_owned(), |position| position.to_string());
        format!(
            "{} transactions, {rate:.0}/s, {} target transactions, {} retries, {}{} at {position}{}",
            now.transactions,
            counters.groups,
            counters.retries,
            idle,
            self.full(),
            self.lag(before, now)
        )
    }

    fn full(&self) -> &'static str {
        if self.stats.is_memory_full() {
            " (memory full)"
        } else if self.stats.relay_full.load(Ordering::Relaxed) {
            " (relay log full)"
        } else {
            ""
        }
    }

    /// How far behind: by the source's clock when it is live, by what is read otherwise.
    fn lag(&self, before: &Look, now: &Look) -> String {
        let applied_us = now.applied_us;
        if !self.live {
            return String::new();
        }
        if let Some(lost) = self.stats.source_lost_for() {
            // How much it has written meanwhile nobody here knows.
            return format!(", the source can not be reached for {:.0} s", lost.as_secs_f64());
        }
        if applied_us == 0 {
            return String::new();
        }
        let read_us = self.stats.read_time_us.load(Ordering::Relaxed);
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64);
        if read_us <= applied_us {
            return ", caught up".to_owned();
        }
        let lag_s = now_us.saturating_sub(applied_us) as f64 / 1e6;
        let speed = match before.applied_us {
            0 => 0.0,
            then => applied_us.saturating_sub(then) as f64 / 1e6 / (now.at - before.at).as_secs_f64().max(1e-9),
        };
        match seconds_left(lag_s, speed) {
            Some(left) => format!(", lag {lag_s:.1} s, caught up in about {left:.0} s"),
            None => format!(", lag {lag_s:.1} s"),
        }
    }

    fn draw(&self) {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
            bar.set_style(style);
        }
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        let mut before = self.look();
        while !self.done.load(Ordering::Relaxed) {
            std::thread::park_timeout(DRAW_EVERY);
            let now = self.look();
            bar.set_message(self.line(&before, &now));
            bar.tick();
            if now.at - before.at > Duration::from_secs(2) {
                before = now;
            }
        }
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = None;
        bar.finish_and_clear();
    }

    fn log(&self) {
        let mut before = self.look();
        while !self.done.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOG_EVERY);
            let now = self.look();
            if !self.done.load(Ordering::Relaxed) && now.at - before.at >= LOG_EVERY {
                tracing::info!("{}", self.line(&before, &now));
                before = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left() {
        let check = |lag_s, speed, expected: Option<f64>| assert_eq!(seconds_left(lag_s, speed), expected);
        check(100.0, 11.0, Some(10.0));
        check(100.0, 2.0, Some(100.0));
        check(100.0, 1.0, None);
        check(100.0, 0.0, None);
        check(1.0, 11.0, None);
    }
}
