//! Why a log cannot be put together into transactions.

use binlog::{CorruptionKind, Event, LogPosition};

use crate::intake::selection::ForeignObject;

#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error("{position}: {kind} event: {source}")]
    Corrupt { position: LogPosition, kind: &'static str, source: binlog::Corruption },
    /// More than the limit of [`Assembler::inflating_at_most`](super::Assembler::inflating_at_most).
    #[error("{position}: {field} of {bytes} bytes: at most {limit} are held at once")]
    TooLarge { position: LogPosition, field: &'static str, bytes: u64, limit: u64 },
    #[error("{position}: {what}")]
    Unexpected { position: LogPosition, what: String },
    /// An earlier run has read its data, in a transaction before, or nobody has.
    #[error("{position}: LOAD DATA of file {file} that is not in the log from where this run began to read it")]
    NoLoadData { position: LogPosition, file: u32 },
    #[error("{position}: {object}")]
    Foreign { position: LogPosition, object: ForeignObject },
    #[error("{position}: event type {code} ({name}) is not known to this version; it is not marked as one to ignore")]
    UnknownEvent { position: LogPosition, code: u8, name: &'static str },
    #[error("{position}: the source wrote an incident ({message}): it may have lost events here")]
    Incident { position: LogPosition, message: String },
}

impl AssembleError {
    pub(in crate::intake) fn corrupt(event: &Event, at: &LogPosition, source: binlog::Corruption) -> Self {
        match source.what {
            // What it comes in is held beside it.
            CorruptionKind::TooLarge { field, bytes, limit } => {
                let packed = event.bytes().len() as u64;
                Self::TooLarge { position: at.clone(), field, bytes: bytes + packed, limit: limit + packed }
            }
            _ => Self::Corrupt { position: at.clone(), kind: event.kind().name(), source },
        }
    }

    pub(super) fn unexpected(at: &LogPosition, what: impl Into<String>) -> Self {
        Self::Unexpected { position: at.clone(), what: what.into() }
    }
}
