//! What a rescue reports in the end, for machines and as an exit code. Pure.

use serde::Serialize;

use super::judge::Findings;
use super::look::Backlog;
use crate::report::summary::Summary;

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

/// For people: 7 s, 12 min, 20 h.
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
