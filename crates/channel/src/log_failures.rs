//! What the operator can do about a log that cannot be read on.

use apply::mysql::progress::HOLE_TABLE;
use engine::failure::{Failure, FailureKind};
use engine::intake::{AssembleError, ForeignObject, KeyingError};
use engine::transaction::Transaction;

use crate::flow::memory::event_memory::EventMemory;
use crate::source::stream_writer::of_log;

pub fn log_failure(error: &relay::Error, memory: EventMemory) -> Failure {
    let remedy = match error {
        relay::Error::EventTooLarge { bytes, .. } => memory.remedy(*bytes),
        relay::Error::Io { .. } if error.may_pass() => error.remedy().unwrap_or_default().to_owned(),
        _ => {
            "everything before it is applied; replace or fetch the log again and run the same command again".to_owned()
        }
    };
    Failure::new(of_log(error), error.to_string()).remedy(remedy)
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
        AssembleError::Foreign { object: ForeignObject::Object { name, .. }, .. } if name.ends_with(HOLE_TABLE) => {
            "everything before it is applied; heddle rescue caught this server up without logging what it applied, so its log lacks these transactions: have the channel read \
             that server's own source, where it has stopped (--from, with the source's GTIDs), or load the target anew from a copy of it"
        }
        AssembleError::Foreign { object: ForeignObject::Object { .. }, .. } => {
            "everything before it is applied; if the source's schema of that name is an application's, have heddle keep its own tables elsewhere: --bookkeeping-schema NAME, a \
             schema that the source does not have. A channel that has begun stays where it is: begin a new --channel there, with --start where this one has stopped"
        }
        AssembleError::Foreign { object: ForeignObject::Mixed { .. }, .. } => {
            "everything before it is applied; do on the target by hand what the statement does to the other tables, and leave the transaction out (heddle channel skip)"
        }
        AssembleError::Corrupt { .. } | AssembleError::Unexpected { .. } | AssembleError::UnknownEvent { .. } => {
            "everything before it is applied; if the log is intact this is something that heddle does not know yet: please report it"
        }
    };
    Failure::new(FailureKind::Refused, error.to_string()).remedy(remedy)
}

pub fn keying_failure(error: &KeyingError, transaction: &Transaction) -> Failure {
    let failure = match error {
        KeyingError::Catalogue(error) => error.failure(),
        KeyingError::Rows { .. } => Failure::new(FailureKind::Refused, error.to_string()).remedy(
            "if the log is intact, and the table has no TIME, DATETIME or TIMESTAMP with a fraction from mysql56_temporal_format=OFF \
             (MariaDB), please report it",
        ),
    };
    failure.at(transaction.place())
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
        let foreign = |name: &str| {
            let object = ForeignObject::Object { name: name.to_owned(), schema: "heddle".into() };
            assemble_failure(&AssembleError::Foreign { position: position.clone(), object }, memory).remedy
        };
        assert!(foreign("heddle.orders").contains("--bookkeeping-schema"));
        assert!(foreign("heddle.rescue_left_a_hole_in_this_binary_log").contains("load the target anew"));
        let unknown = AssembleError::UnknownEvent { position, code: 200, name: "UNKNOWN" };
        assert!(assemble_failure(&unknown, memory).remedy.contains("report it"));
    }
}
