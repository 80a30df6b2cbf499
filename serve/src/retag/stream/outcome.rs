//! How a log file was left.

use engine::failure::{Failure, FailureKind};

use crate::inventory::ReadError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// It is complete, and all of it has tags.
    Whole,
    Stopped,
    /// Its tags were those of another log: they are gone.
    Again,
}

/// Why it was left early.
pub(super) enum Trouble {
    /// A person has to decide.
    Refused(Failure),
    /// It may pass.
    Disk(String),
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        Self::Disk(error.to_string())
    }
}

/// What can not be tagged at all.
pub(super) fn mariadb() -> Trouble {
    let message = "--retag: the source is a MariaDB server, whose events have no room for another commit id";
    Trouble::Refused(Failure::new(FailureKind::Refused, message).remedy("run heddle serve without --retag"))
}
