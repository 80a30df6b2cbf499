//! Asks the source how long its log is while the receiver is behind: then what is left to apply is not all here. Over a connection of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wire::{ConnectOptions, Connection};

use crate::flow::measures::Measures;
use crate::flow::signals::Signals;
use crate::flow::source_log::SourceLog;

const EVERY: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);
/// What came last was as old when it came: the source has more.
const BEHIND_MS: u64 = 5000;

/// When it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryPolicy {
    WhileBehind,
    Always,
}

/// Asks while the receiver is behind, or always, until `ended` is set.
pub fn watch(options: &ConnectOptions, query: QueryPolicy, signals: &Signals, measures: &Measures, ended: &AtomicBool) {
    let (mut asked, mut bytes) = (Instant::now(), 0);
    while !ended.load(Ordering::Relaxed) {
        std::thread::sleep(POLL);
        if asked.elapsed() < EVERY {
            continue;
        }
        asked = Instant::now();
        let received = measures.received_so_far();
        let is_behind = received.bytes != bytes && received.age_ms >= BEHIND_MS;
        bytes = received.bytes;
        let is_of_use = query == QueryPolicy::Always || is_behind || signals.is_relay_full();
        if !is_of_use || signals.source().outage().is_some() {
            continue;
        }
        match ask(options) {
            Ok(log) => signals.set_source_log(log),
            Err(error) => tracing::debug!("the end of the source's log is not known: {error}"),
        }
    }
}

fn ask(options: &ConnectOptions) -> Result<SourceLog, wire::Error> {
    let mut connection = Connection::connect(&options.within(PATIENCE))?;
    let files = wire::source::binary_logs(&mut connection)?;
    connection.close();
    Ok(SourceLog::new(files))
}

/// Set when it goes, whatever the reason.
pub struct EndFlag<'a>(pub &'a AtomicBool);

impl Drop for EndFlag<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
