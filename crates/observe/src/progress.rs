//! A progress bar on a terminal, log lines elsewhere: rate, lag, time left.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use channel::monitor::Monitor;
use channel::snapshot::Snapshot;

use crate::view::Facts;
use crate::view::verdict::{Level, verdict};
use crate::words;
use output::escaping::in_log;

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
        // A whole event comes at once.
        let text = String::from_utf8_lossy(bytes);
        let text = in_log(&text);
        let write = || std::io::stderr().write_all(text.as_bytes());
        // Nobody may be there to read it any more (a closed terminal): that stops no channel.
        let _ = match &*bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Where the log comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A live server: its lag is shown.
    Live,
    Files,
}

pub struct Progress {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    pub fn start(monitor: &Arc<Monitor>, source: Kind) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let on_terminal = std::io::stderr().is_terminal();
        let observer = Observer { monitor: Arc::clone(monitor), done: Arc::clone(&done), source };
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
    monitor: Arc<Monitor>,
    done: Arc<AtomicBool>,
    source: Kind,
}

struct Line {
    text: String,
    /// It does not go on by itself, or not now: somebody should look.
    is_trouble: bool,
    remedy: String,
}

/// What changed from one snapshot to a later one.
fn line(before: &Snapshot, now: &Snapshot, source: Kind) -> Line {
    let seconds = (now.taken - before.taken).as_secs_f64().max(1e-9);
    let counters = now.scheduled.counters;
    let rate = (counters.transactions - before.scheduled.counters.transactions) as f64 / seconds;
    let full = match &now.received {
        _ if now.memory.full => " (memory full)",
        Some(received) if received.relay_full => " (relay log full)",
        _ => "",
    };
    let said = verdict(&Facts::of("NAME", before, now));
    let is_trouble = said.level >= Level::Warning;
    let sentence = match source {
        Kind::Live => said.sentence,
        Kind::Files if is_trouble => said.sentence,
        // Files are not behind anything.
        Kind::Files => format!("{}:", words::waits_for(&now.scheduled)),
    };
    // What matters comes first: a terminal of 80 columns cuts the rest.
    let text = format!(
        "{sentence} {rate:.0}/s{full}, at {}, {} transactions in {} target transactions, {} retries",
        words::position(now.committed.position.as_ref()),
        counters.transactions,
        counters.groups,
        counters.retries,
    );
    let remedy = if is_trouble { said.remedy } else { String::new() };
    Line { text, is_trouble, remedy }
}

impl Observer {
    fn line(&self, before: &Snapshot, now: &Snapshot) -> Line {
        line(before, now, self.source)
    }

    fn draw(&self) {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
            bar.set_style(style);
        }
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        let mut before = self.monitor.snapshot();
        while !self.done.load(Ordering::Relaxed) {
            std::thread::park_timeout(DRAW_EVERY);
            let now = self.monitor.snapshot();
            bar.set_message(self.line(&before, &now).text);
            bar.tick();
            if now.taken - before.taken > Duration::from_secs(2) {
                before = now;
            }
        }
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = None;
        bar.finish_and_clear();
    }

    fn log(&self) {
        let mut before = self.monitor.snapshot();
        while !self.done.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOG_EVERY);
            let now = self.monitor.snapshot();
            if !self.done.load(Ordering::Relaxed) && now.taken - before.taken >= LOG_EVERY {
                let Line { text, is_trouble, remedy } = self.line(&before, &now);
                if is_trouble && !remedy.is_empty() {
                    tracing::warn!(remedy, "{text}");
                } else if is_trouble {
                    tracing::warn!("{text}");
                } else {
                    tracing::info!("{text}");
                }
                before = now;
            }
        }
    }
}
