//! Comparing round after round, each spread over a given time, and what is seen of it meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use channel::errors::kind;
use engine::failure::FailureKind;

use super::chunks::{Counters, Spread};
use super::report::{Outcome, Report, TableReport};
use super::request::Request;
use super::run::compare;
use super::tables::plan::Choice;

/// After a round that failed because a server was away.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);

/// What a round has found.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundSummary {
    pub tables: u64,
    pub different_tables: u64,
    /// Rows that are named, and tables and columns that the target lacks.
    pub differences: u64,
    /// Rows that never came to rest.
    pub unsettled: u64,
    pub rows: u64,
    pub seconds: f64,
    /// Since 1970.
    pub ended_at: f64,
}

impl RoundSummary {
    fn of(report: &Report) -> Self {
        let sum = |count: &dyn Fn(&TableReport) -> u64| report.tables.iter().map(count).sum();
        let ended_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            tables: report.tables.len() as u64,
            different_tables: sum(&|table| table.is_different().into()),
            differences: sum(&|table| {
                let missing = table.missing_on_target.as_ref().map_or(0, |columns| columns.len().max(1));
                (table.differences.len() + missing) as u64
            }),
            unsettled: sum(&|table| table.unsettled),
            rows: report.rows,
            seconds: report.seconds,
            ended_at: ended_at.as_secs_f64(),
        }
    }
}

/// What is seen of a comparison that goes round, by any thread.
#[derive(Debug)]
pub struct Board {
    /// What a round is to take.
    pub period: Duration,
    /// Of the round under way.
    pub counters: Arc<Counters>,
    rounds: AtomicU64,
    failed_rounds: AtomicU64,
    /// Of the rounds that have ended.
    rows: AtomicU64,
    last: Mutex<Option<(RoundSummary, String)>>,
}

impl Board {
    pub fn new(period: Duration) -> Self {
        Self {
            period,
            counters: Arc::default(),
            rounds: AtomicU64::new(0),
            failed_rounds: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }

    /// That have ended.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// That came to no end: a server was away.
    pub fn failed_rounds(&self) -> u64 {
        self.failed_rounds.load(Ordering::Relaxed)
    }

    /// Of all rounds.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed) + self.counters.rows.load(Ordering::Relaxed)
    }

    /// Of the round under way, from 0 to 1, by the source's estimate of its rows. `None`: nothing is known of it.
    pub fn progress(&self) -> Option<f64> {
        let [rows, estimate] =
            [&self.counters.rows, &self.counters.rows_estimate].map(|count| count.load(Ordering::Relaxed));
        (estimate > 0).then(|| (rows as f64 / estimate as f64).min(1.0))
    }

    /// The last round that has ended, and its report as text.
    pub fn last(&self) -> Option<(RoundSummary, String)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn begin(&self) {
        let rows = self.counters.rows.swap(0, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn end(&self, report: &Report) {
        let last = (RoundSummary::of(report), report.text());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }
}

/// Goes round until it is told to stop, a round each period of the board; a round that takes longer is followed by the next at once. Returns what the last round has found; `None`:
/// it was stopped in the first.
pub fn watch(
    request: &Request,
    choice: &dyn Choice,
    board: &Board,
    stop: &AtomicBool,
    mut take: impl FnMut(&Report) -> Result<()>,
) -> Result<Option<Outcome>> {
    let (period, mut last, mut rows) = (board.period, None, None);
    loop {
        let began = Instant::now();
        board.begin();
        let spread = Spread { began, period, rows };
        let next = match compare(request, choice, &board.counters, Some(spread), stop) {
            Ok(report) => {
                board.end(&report);
                (last, rows) = (Some(report.outcome), Some(report.rows));
                take(&report)?;
                began + period
            }
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(last),
            Err(error) if is_passing(&error) => {
                board.failed_rounds.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    "the round came to no end: {error:#}; the next one begins in {} s",
                    AGAIN_AFTER.as_secs()
                );
                Instant::now() + AGAIN_AFTER
            }
            Err(error) => return Err(error),
        };
        while Instant::now() < next {
            if stop.load(Ordering::Relaxed) {
                return Ok(last);
            }
            std::thread::sleep(POLL);
        }
    }
}

/// A server or the network is away: the next round may come to its end.
fn is_passing(error: &anyhow::Error) -> bool {
    matches!(
        kind(error),
        FailureKind::ConnectionLost | FailureKind::Exhausted | FailureKind::Maintenance | FailureKind::Conflict
    )
}
