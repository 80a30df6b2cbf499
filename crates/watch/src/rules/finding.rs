//! What a rule says: one cause with its evidence, and what to do about it. Pure data.

use serde::{Serialize, Serializer};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing has to be done.
    #[default]
    Ok,
    Warning,
    Critical,
    /// The server could not be asked.
    Unknown,
}

impl Severity {
    /// In JSON and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Critical => "critical",
            Self::Unknown => "unknown",
        }
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// From how much lag on a replica is in trouble, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub warn_s: f64,
    pub critical_s: f64,
}

/// Where a statement is to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionTarget {
    Replica,
    Source,
    /// Beside them: a command of heddle's.
    Heddle,
    Application,
    #[default]
    Nowhere,
}

impl ActionTarget {
    pub fn words(self) -> &'static str {
        match self {
            Self::Replica => "replica",
            Self::Source => "source",
            Self::Heddle => "shell",
            Self::Application => "application",
            Self::Nowhere => "",
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    /// The rule's name: stable.
    pub rule: &'static str,
    pub severity: Severity,
    /// In the words of a sentence: "one worker applies …".
    pub cause: String,
    /// Of the time that was looked at, 0 to 1.
    pub share: f64,
    /// The numbers that it rests on.
    pub evidence: Vec<String>,
    pub server: ActionTarget,
    /// What to run there; empty: nothing.
    pub statement: String,
    pub risk: String,
    /// What is expected of it.
    pub effect: String,
    #[serde(flatten)]
    pub change: Change,
}

/// What the statement changes, and what that gives.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Change {
    /// What makes it outlive a restart; empty: it is not to, or does.
    pub keep: String,
    /// As many times as fast as now, by what was measured or simulated; null: not known, or not about speed.
    pub times: Option<f64>,
    /// By these settings a later look knows that it was run.
    #[serde(skip)]
    pub settings: Vec<&'static str>,
}
