//! What the operator can do about a log that cannot be read on.

use engine::failure::{Failure, FailureKind};
use engine::intake::{AssembleError, KeyingError};
use engine::transaction::Transaction;

use crate::flow::event_memory::EventMemory;

pub fn log_failure(error: &relay::Error, memory: EventMemory) -> Failure {
    let remedy = match error {
        relay::Error::EventTooLarge { bytes, .. } => memory.remedy(*bytes),
        _ => {
            "everything before it is applied; replace or fetch the log again and run the same command again".to_owned()
        }
    };
    Failure::new(FailureKind::Refused, error.to_string()).remedy(remedy)
}

pub fn assemble_failure(error: &AssembleError, memory: EventMemory) -> Failure {
    let remedy = match error {
        AssembleError::Incident { .. } => {
            "everything before it is applied; what the source has lost is in no log, so the target would differ from here on: load it anew from the \
             source, and begin a new --channel where that copy was made, behind the incident"
        }
        AssembleError::TooLarge { bytes, .. } => {
            return Failure::new(FailureKind::Refused, error.to_string()).remedy(memory.remedy(*bytes));
        }
        AssembleError::NoLoadData { .. } => {
            "everything before it is applied; the source logged the statement's data in a transaction before, which an earlier run has read: load them on the target by \
             hand, or make its table equal to the source's, and go on behind this transaction with a new --channel and --start"
        }
        AssembleError::Corrupt { .. } | AssembleError::Unexpected { .. } | AssembleError::UnknownEvent { .. } => {
            "everything before it is applied; if the log is intact this is something that heddle does not know yet: please report it"
        }
    };
    Failure::new(FailureKind::Refused, error.to_string()).remedy(remedy)
}

pub fn keying_failure(error: &KeyingError, transaction: &Transaction) -> Failure {
    let remedy = match error {
        KeyingError::Catalogue(_) => {
            "as the message says; if the target could not be asked, run the same command again"
        }
        KeyingError::Rows { .. } => {
            "if the log is intact, and the table has no TIME, DATETIME or TIMESTAMP with a fraction from mysql56_temporal_format=OFF \
             (MariaDB), please report it"
        }
    };
    Failure::new(FailureKind::Refused, error.to_string()).at(transaction.place()).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::LogPosition;

    #[test]
    fn what_to_do_about_an_event() {
        let position = LogPosition::new("binlog.000003", 157);
        let incident = AssembleError::Incident { position: position.clone(), message: "number 1: lost".to_owned() };
        let memory = EventMemory::new(64 << 20, apply::Footprint { base_bytes: 0, event_copies: 1 });
        let failure = assemble_failure(&incident, memory);
        assert!(failure.remedy.contains("load it anew") && !failure.remedy.contains("report it"), "{failure}");
        let large =
            AssembleError::TooLarge { position: position.clone(), field: "an event", bytes: 64 << 20, limit: 9 };
        let failure = assemble_failure(&large, memory).to_string();
        assert!(failure.contains("binlog.000003:157") && failure.contains("--memory "), "{failure}");
        let unknown = AssembleError::UnknownEvent { position, code: 200, name: "UNKNOWN" };
        assert!(assemble_failure(&unknown, memory).remedy.contains("report it"));
    }
}
