//! Parts of the facts that the sentence is made from.

/// Why a channel has stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stopped {
    /// As [`engine::failure::FailureKind`] is called.
    pub kind: String,
    pub message: String,
    /// GTID, file and position.
    pub place: String,
    pub remedy: String,
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
pub enum LagSeen {
    #[default]
    Unknown,
    CaughtUp,
    Behind(f64),
}
