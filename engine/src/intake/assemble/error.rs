//! Why a log cannot be put together into transactions.

use binlog::{Event, LogPosition};

#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error("{position}: {kind} event: {source}")]
    Corrupt { position: LogPosition, kind: &'static str, source: binlog::Corrupt },
    #[error("{position}: {what}")]
    Unexpected { position: LogPosition, what: String },
    #[error("{position}: event type {code} ({name}) is not known to this version; it is not marked as one to ignore")]
    UnknownEvent { position: LogPosition, code: u8, name: &'static str },
    #[error("{position}: the source wrote an incident ({message}): it may have lost events here")]
    Incident { position: LogPosition, message: String },
}

impl AssembleError {
    pub(super) fn corrupt(event: &Event, at: &LogPosition, source: binlog::Corrupt) -> Self {
        Self::Corrupt { position: at.clone(), kind: event.kind().name(), source }
    }

    pub(super) fn unexpected(at: &LogPosition, what: impl Into<String>) -> Self {
        Self::Unexpected { position: at.clone(), what: what.into() }
    }
}
