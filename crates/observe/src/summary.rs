//! The summary of one run of a channel.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::failure::FailureKind;
use serde::Serialize;

use crate::usage::Usage;
use crate::view::fact_values::StopCause;
use crate::words;
use channel::errors::chain;
use channel::monitor::Monitor;
use channel::outcome::RunEnd;
use channel::snapshot::Snapshot;
use channel::spec::Spec;

/// `--json`: names and units are stable; fields may be added.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub transactions: u64,
    pub rows: u64,
    pub seconds: f64,
    /// Of these: with sessions that were ready, until the last of them had done its work.
    pub applying_seconds: f64,
    pub transactions_per_second: f64,
    pub workers: usize,
    pub policy: &'static str,
    pub commit_order: &'static str,
    /// Target transactions.
    pub groups: u64,
    pub retries: u64,
    /// Groups that were rolled back because an earlier one needed a lock that they held.
    pub aborts: u64,
    /// Groups that were applied transaction by transaction after a failure.
    pub isolations: u64,
    pub barriers: u64,
    pub rows_held: u64,
    pub low_water: u64,
    /// FILE:OFFSET behind the last transaction that is applied.
    pub source_position: Option<String>,
    pub gtid_set: String,
    pub read_bytes: u64,
    /// Transactions that ran before what they might conflict with had committed.
    pub speculative: u64,
    /// Seconds that workers waited for their turn to commit, all together.
    pub commit_wait_seconds: f64,
    /// Seconds that reading waited for room in `--memory`.
    pub memory_wait_seconds: f64,
    /// Processor time of this process.
    pub cpu_seconds: f64,
    /// The most memory that this process had at once, in bytes.
    pub memory_bytes_max: u64,
    /// Ended by a signal, without gaps.
    pub stopped: bool,
    /// Ended so that another process takes the channel, as was asked.
    pub handed_over: bool,
    pub error: Option<ErrorReport>,
}

#[derive(Debug, Serialize)]
pub struct ErrorReport {
    pub kind: &'static str,
    /// The same, for the exit code.
    #[serde(skip)]
    pub failure_kind: FailureKind,
    pub message: String,
    pub code: Option<u16>,
    pub place: String,
    pub remedy: String,
}

/// A run that has failed before, or after, it applied anything.
pub fn stopped(error: &anyhow::Error) -> StopCause {
    StopCause { kind: "error".to_owned(), message: chain(error), ..StopCause::default() }
}

/// Runs a channel, and sums up.
///
/// # Errors
/// As of [`channel::run::run`].
pub fn run(spec: &Spec, monitor: &Monitor, stop: &Arc<AtomicBool>) -> anyhow::Result<Summary> {
    channel::run::run(spec, monitor, stop)
        .map(|finished| Summary::new(spec, &monitor.snapshot(), finished, Usage::now()))
}

impl Summary {
    /// The error that ended it, as the dashboard shows it.
    pub fn stopped(&self) -> Option<StopCause> {
        self.error.as_ref().map(|error| StopCause {
            kind: error.kind.to_owned(),
            message: error.message.clone(),
            place: error.place.clone(),
            remedy: error.remedy.clone(),
        })
    }

    /// `seen`: at its end. `usage`: of this process.
    pub fn new(spec: &Spec, seen: &Snapshot, finished: RunEnd, usage: Usage) -> Self {
        let RunEnd { first_seq, time, outcome } = finished;
        let (mark, counters) = (&seen.committed, &seen.scheduled.counters);
        let transactions = counters.transactions.max(mark.seq - first_seq);
        let seconds = time.as_secs_f64();
        Self {
            transactions,
            rows: counters.rows,
            seconds,
            applying_seconds: outcome.applying.as_secs_f64(),
            transactions_per_second: transactions as f64 / seconds.max(1e-9),
            workers: spec.applying.workers,
            policy: spec.applying.policy.name,
            commit_order: spec.applying.order.as_str(),
            groups: counters.groups,
            retries: counters.retries,
            aborts: counters.aborts,
            isolations: counters.isolations,
            barriers: counters.barriers,
            rows_held: counters.rows_deferred,
            low_water: mark.seq,
            source_position: mark.position.as_ref().map(ToString::to_string),
            gtid_set: mark.gtids.to_string(),
            read_bytes: seen.read.bytes,
            speculative: counters.speculative,
            commit_wait_seconds: seen.workers.waits.to_commit.as_secs_f64(),
            memory_wait_seconds: seen.workers.waits.for_memory.as_secs_f64(),
            cpu_seconds: usage.cpu.as_secs_f64(),
            memory_bytes_max: usage.memory_bytes_max,
            stopped: outcome.stopped,
            handed_over: outcome.handed_over,
            error: outcome.failure.map(|failure| ErrorReport {
                kind: failure.kind.as_str(),
                failure_kind: failure.kind,
                message: failure.message,
                code: failure.code,
                place: failure.place,
                remedy: failure.remedy,
            }),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} transactions ({} rows) in {:.1} s: {:.0} transactions/s, {} target transactions, {} retries",
            self.transactions, self.rows, self.seconds, self.transactions_per_second, self.groups, self.retries
        );
        if let Some(position) = &self.source_position {
            text += &format!("\napplied up to {}", words::position(Some(position)));
        }
        if !self.gtid_set.is_empty() {
            text += &format!("\nGTIDs {}", self.gtid_set);
        }
        if self.stopped && !self.handed_over {
            text += "\nstopped by a signal, without gaps; the same command goes on";
        }
        text
    }
}
