//! When to stop applying: once all that the source had a moment ago is applied.
//!
//! Asks the source every now and then where its log ends. The lag is the age of the newest of these answers that is applied: one
//! clock, ours, and no difference between those of the servers. Sets the flag that stops the run; decides nothing else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use binlog::gtids::GtidState;
use wire::{ConnectOptions, Connection};

use channel::monitor::Monitor;
use channel::snapshot::Snapshot;
use channel::start::source_state as state;

/// What has to be reached.
#[derive(Clone, Debug)]
pub enum Goal {
    /// At most so far behind.
    Lag(Duration),
    /// Transactions applied up to this number.
    Seq(u64),
    /// All that the source's log has before it.
    Position(LogPosition),
}

pub struct Watcher {
    pub goal: Goal,
    pub source: ConnectOptions,
    pub flavour: binlog::Flavour,
    pub gtids: bool,
    pub monitor: Arc<Monitor>,
    /// The user wants it to stop.
    pub signalled: Arc<AtomicBool>,
    /// Stops the run.
    pub stop: Arc<AtomicBool>,
    /// The run is over.
    pub over: Arc<AtomicBool>,
    /// Set when the goal is reached.
    pub reached: Arc<AtomicBool>,
}

/// Where the source's log ended at a time.
struct Answer {
    at: Instant,
    end: LogPosition,
    executed: GtidState,
}

const POLL: Duration = Duration::from_millis(50);
const ASK_EVERY: Duration = Duration::from_millis(250);
const RETRY_EVERY: Duration = Duration::from_secs(2);
/// Answers that are not applied yet, at the most: when behind, the newer of them are left out.
const ANSWERS_MAX: usize = 256;

impl Watcher {
    pub fn run(self) {
        let mut connection: Option<Connection> = None;
        let mut answers: VecDeque<Answer> = VecDeque::new();
        let mut next = Instant::now();
        while !self.over.load(Ordering::Relaxed) {
            if self.signalled.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
                return;
            }
            let reached = match &self.goal {
                Goal::Seq(seq) => self.monitor.low_water() >= *seq,
                Goal::Position(end) => self.monitor.snapshot().has_committed_to(end),
                Goal::Lag(lag) => {
                    if Instant::now() >= next && answers.len() < ANSWERS_MAX {
                        let answer = self.ask(&mut connection);
                        next = Instant::now() + if answer.is_some() { ASK_EVERY } else { RETRY_EVERY };
                        answers.extend(answer);
                    }
                    age_of_applied(&self.monitor.snapshot(), &mut answers).is_some_and(|now| now <= *lag)
                }
            };
            if reached {
                self.reached.store(true, Ordering::Relaxed);
                self.stop.store(true, Ordering::Relaxed);
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    fn ask(&self, connection: &mut Option<Connection>) -> Option<Answer> {
        let mut open = match connection.take() {
            Some(open) => open,
            None => {
                let mut options = self.source.clone();
                options.limits.read_timeout = Some(Duration::from_secs(10));
                Connection::connect(&options).map_err(|error| tracing::debug!("asking the source: {error}")).ok()?
            }
        };
        let at = Instant::now();
        match state::end(&mut open, self.flavour, self.gtids) {
            Ok((end, executed)) => {
                *connection = Some(open);
                Some(Answer { at, end, executed })
            }
            Err(error) => {
                tracing::debug!("asking the source where its log ends: {error:#}");
                None
            }
        }
    }
}

/// The age of the newest answer that is applied; the older ones are forgotten.
fn age_of_applied(seen: &Snapshot, answers: &mut VecDeque<Answer>) -> Option<Duration> {
    let mut newest = None;
    while let Some(first) = answers.front() {
        let by_gtid = !first.executed.is_empty() && seen.committed.gtids.contains_state(&first.executed);
        if !by_gtid && !seen.has_committed_to(&first.end) {
            break;
        }
        newest = Some(first.at.elapsed());
        answers.pop_front();
    }
    newest
}
