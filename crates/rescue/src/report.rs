//! What a rescue reports in the end, for machines and as an exit code. Pure.

use serde::Serialize;

use super::judge::{Findings, Reason};
use crate::backlog::Backlog;
use observe::summary::Summary;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing was changed.
    #[default]
    Looked,
    /// There is something that has to be different first. Nothing was changed.
    Refused,
    /// Native replication runs again.
    HandedBack,
    /// The replica is in Heddle's hands.
    Unfinished,
}

/// `--json`: names and units are stable; fields may be added.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub outcome: Outcome,
    /// How far behind, why, how long heddle needs, what to set on which server: in one sentence. Empty: it did not look.
    pub verdict: String,
    /// Why the native applier lags, the first to act on first.
    pub reasons: Vec<Reason>,
    pub replica: String,
    pub channel: String,
    /// Where an earlier run had come to.
    pub continued: Option<&'static str>,
    pub findings: Findings,
    pub backlog: Option<Backlog>,
    /// Of the run that applied.
    pub applied: Option<Summary>,
    pub take_over_seconds: Option<f64>,
    pub hand_back_seconds: Option<f64>,
    /// Where native replication goes on.
    pub goes_on_at: Option<String>,
    /// Settings of native replication that are not as they were.
    pub changed_settings: Vec<String>,
    pub seconds: f64,
    pub error: Option<String>,
}
