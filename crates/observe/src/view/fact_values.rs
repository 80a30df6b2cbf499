//! Parts of the facts that the sentence is made from.

use std::time::Duration;

use channel::snapshot::Outage;
use output::numbers::counted;

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

/// A process that waits for a channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StandbyFacts {
    /// Process and host that have the channel.
    pub owner: String,
    /// Why it would not take the channel now.
    pub obstacle: Option<String>,
    /// FILE:OFFSET; empty: nothing yet.
    pub received: String,
    /// What the source's log has behind that.
    pub behind_bytes: Option<u64>,
}

impl StandbyFacts {
    /// Who has the channel, and what was received.
    pub fn said(&self) -> String {
        let behind = self
            .behind_bytes
            .map_or_else(String::new, |bytes| format!(", {} behind the source", counted(bytes, "byte")));
        let received = match &*self.received {
            "" => "nothing received yet".to_owned(),
            at => format!("received up to {at}{behind}"),
        };
        let owner = if self.owner.is_empty() { "no process" } else { &self.owner };
        format!("{owner} has the channel; {received}")
    }
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
