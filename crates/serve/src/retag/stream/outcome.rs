//! The outcome of one pass over a log file.

use crate::inventory::ReadError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileOutcome {
    /// It is complete, and all of it has tags.
    Whole,
    Stopped,
    /// Its tags were those of another log: they are gone.
    Again,
}

/// Why it was left early: it may pass.
pub(super) struct Trouble(pub String);

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        Self(error.to_string())
    }
}
