//! Kinds of failure, and what each asks of the channel.

use std::fmt;

/// What went wrong, by what has to happen next. Matched without `_`, so that a new kind is decided everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// A later group held what an earlier one needs, or the server broke a deadlock: roll back, run again.
    Conflict,
    /// The connection is gone. What became of a commit under way is not known: ask the progress table.
    ConnectionLost,
    /// A row is missing or already there: source and target differ.
    Divergence,
    /// The target refuses for a reason that waiting will not cure (missing table, type, privilege …).
    Refused,
    /// Another Heddle has taken the channel over.
    Fenced,
    /// The process is asked to end, so a wait for a server was given up.
    Stopped,
    /// The target can not take more now (disk full, too many connections): try again later.
    Exhausted,
    /// The target's administrator has closed it for a while, to changes or to everybody (`read_only`, `offline_mode`).
    Maintenance,
}

/// The answer to a [`FailureKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Roll back; run again once everything before it has committed.
    RetryAsHead,
    /// The same, however often it was tried: who has closed the target opens it again.
    Wait,
    /// Connect anew, find out whether it was committed, else run again.
    Reconnect,
    /// Apply one transaction at a time to name the culprit exactly, then stop.
    Isolate,
    Stop,
}

impl FailureKind {
    /// Its name in JSON, which is stable.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "Conflict",
            Self::ConnectionLost => "ConnectionLost",
            Self::Divergence => "Divergence",
            Self::Refused => "Refused",
            Self::Fenced => "Fenced",
            Self::Stopped => "Stopped",
            Self::Exhausted => "Exhausted",
            Self::Maintenance => "Maintenance",
        }
    }

    pub fn directive(self) -> Directive {
        match self {
            Self::Conflict | Self::Exhausted => Directive::RetryAsHead,
            Self::Maintenance => Directive::Wait,
            Self::ConnectionLost => Directive::Reconnect,
            Self::Divergence | Self::Refused => Directive::Isolate,
            Self::Fenced | Self::Stopped => Directive::Stop,
        }
    }
}

/// One failure with everything that a person needs at 3 a.m.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: FailureKind,
    /// What happened, in the server's words where it has some.
    pub message: String,
    /// The server's error number, when a server said it.
    pub code: Option<u16>,
    /// Where: GTID, file and position, table, key. Empty until it is known.
    pub place: String,
    /// What the operator can do.
    pub remedy: String,
    /// The transaction that failed, where it is known to be this one.
    pub culprit: Option<Box<Culprit>>,
}

/// What names a transaction for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Its number in the channel.
    pub seq: u64,
    /// Empty: it has none.
    pub gtid: String,
    /// FILE:POS where it begins in the source's log.
    pub position: String,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: None, place: String::new(), remedy: String::new(), culprit: None }
    }

    pub fn code(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// This transaction failed.
    pub fn of(mut self, culprit: Culprit) -> Self {
        self.culprit = Some(Box::new(culprit));
        self
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.place.is_empty() {
            write!(f, "\n  where: {}", self.place)?;
        }
        if !self.remedy.is_empty() {
            write!(f, "\n  what to do: {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_json_are_those_of_the_first_versions() {
        use FailureKind::{Conflict, ConnectionLost, Divergence, Exhausted, Fenced, Maintenance, Refused};
        for kind in [Conflict, ConnectionLost, Divergence, Refused, Fenced, Exhausted, Maintenance] {
            assert_eq!(kind.as_str(), format!("{kind:?}"));
        }
    }
}
