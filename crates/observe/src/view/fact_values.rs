//! Parts of the facts that the sentence is made from.

use std::time::Duration;

use channel::snapshot::Outage;

/// Why a channel has stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopCause {
    /// As [`engine::failure::FailureKind`] is called.
    pub kind: String,
    pub message: String,
    /// GTID, file and position.
    pub place: String,
    pub remedy: String,
}

/// A server that can not be reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Absence {
    /// For so long; `None`: not known.
    pub time: Option<Duration>,
    /// What the last try met; empty: not known.
    pub why: String,
    pub next_try: Option<Duration>,
}

impl From<&Outage> for Absence {
    fn from(outage: &Outage) -> Self {
        Self { time: Some(outage.time), why: outage.why.clone(), next_try: outage.next_try }
    }
}

/// Commits on the target between two snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Commits {
    pub groups: u64,
    /// Means, of a group.
    pub seconds: f64,
    pub rows: f64,
    pub transactions: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum KnownLag {
    #[default]
    Unknown,
    CaughtUp,
    Behind(f64),
}
