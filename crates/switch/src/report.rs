//! What a switch reports in the end, for machines and as an exit code. Pure.

use copy::compare::report::Report as Comparison;
use serde::Serialize;

use crate::findings::Findings;
use crate::servers::coordinates::Coordinates;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing was changed.
    #[default]
    Looked,
    /// There is something that has to be different first. Nothing was changed.
    Refused,
    /// A step failed. What was changed is set back.
    Failed,
    /// Rows differ. What was changed is set back.
    Different,
    /// The target has everything, and what was asked for is done.
    Switched,
    /// What an earlier switch had changed is set back.
    Undone,
    /// The source is read-only, and either that could not be set back, or the target has everything and a later step failed.
    Unfinished,
}

/// `--json`: names and units are stable; fields may be added.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub outcome: Outcome,
    pub source: String,
    pub target: String,
    pub channel: String,
    /// Where an earlier run had come to.
    pub continued: Option<&'static str>,
    pub findings: Findings,
    pub switched: Option<SwitchedState>,
    /// With `--compare`.
    pub comparison: Option<Comparison>,
    pub seconds: f64,
    pub error: Option<String>,
}

/// Once the target has everything.
#[derive(Debug, Default, Serialize)]
pub struct SwitchedState {
    /// Where the source's log ended.
    pub source_end: Option<String>,
    /// From the source's last write until the target had everything and could take writes. Null: an earlier run did that.
    pub closed_seconds: Option<f64>,
    /// Where the target's own log ended then. Null: it has none.
    pub target_log: Option<Coordinates>,
    /// Events that are disabled as on a replica, as the statements that enable them.
    pub events: Vec<String>,
    /// They were executed.
    pub events_enabled: bool,
    /// The channel's process still runs: it has to be ended by hand.
    pub channel_runs: Option<String>,
    /// The command that starts a channel back. Null: the target has no log that is known.
    pub return_command: Option<String>,
}
