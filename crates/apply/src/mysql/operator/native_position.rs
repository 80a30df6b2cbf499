//! The GTID position from which MariaDB's own replication goes on where a channel has ended. Changes nothing.
//!
//! The progress commits with the rows, so it is that position; but a statement that commits by itself (DDL, `XA COMMIT`) is executed before it is recorded. After a kill in between, the intent
//! says that one was under way, and the target's binary log whether it was executed: it is logged there under the source's GTID (`--gtids preserve`).

use binlog::gtids::mariadb::GtidPos;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::mysql::progress::intent::Intents;
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;

/// As the target has it.
struct Recorded {
    progress: GtidPos,
    intents: Option<Intents>,
    /// `@@gtid_binlog_pos`: the last GTID of each domain in the target's binary log.
    logged: GtidPos,
    /// The target's own.
    server_id: u32,
}

/// Of a MariaDB channel none of whose connections is left. None: the channel has no GTIDs.
///
/// # Errors
/// A statement was under way, and the target does not say whether it was executed.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<GtidPos>, Failure> {
    let rows = connection
        .rows(format!(
            "SELECT gtids, intent, @@global.gtid_binlog_pos, @@global.server_id FROM {SCHEMA}.progress WHERE channel={}",
            quote(channel)
        ))
        .map_err(failed)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let position = |at: usize| -> Result<GtidPos, Failure> {
        let text = row.text(at).map_err(failed)?.unwrap_or_default();
        text.parse().map_err(|error| Failure::new(FailureKind::Refused, format!("the GTID position {text:?}: {error}")))
    };
    let intents = row.text(1).map_err(failed)?.filter(|text| !text.is_empty()).map(Intents::required).transpose()?;
    let recorded =
        Recorded { progress: position(0)?, intents, logged: position(2)?, server_id: row.required(3).map_err(failed)? };
    if recorded.progress.is_empty() { Ok(None) } else { recorded.position().map(Some) }
}

impl Recorded {
    /// Numbers of a domain rise, as with `gtid_strict_mode`.
    fn position(&self) -> Result<GtidPos, Failure> {
        let mut position = self.progress.clone();
        let Some(intents) = &self.intents else { return Ok(position) };
        let mut is_known = intents.partly().is_none();
        let mut is_preserved = false;
        for gtid in self.logged.iter().filter(|gtid| gtid.server != self.server_id) {
            is_preserved = true;
            // A domain that the progress does not have yet may be another channel's.
            match self.progress.get(gtid.domain) {
                Some(last) if gtid.seq > last.seq => position.update(gtid),
                Some(_) => {}
                None => is_known = false,
            }
        }
        if is_known && is_preserved {
            return Ok(position);
        }
        Err(Failure::new(
            FailureKind::Refused,
            "a statement that commits by itself was under way, and the target's binary log does not say whether it was executed",
        )
        .remedy("run the channel once more: it finds out by what the statement changes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::progress::intent::{FingerprintScope, Intent};

    fn recorded(progress: &str, logged: &str, intent: Option<Intent>) -> Recorded {
        Recorded {
            progress: progress.parse().unwrap(),
            intents: intent.map(|intent| Intents::new(vec![intent])),
            logged: logged.parse().unwrap(),
            server_id: 2,
        }
    }

    fn intent() -> Intent {
        Intent { seq: 7, item: 0, fingerprint: 1, look: FingerprintScope::Needed }
    }

    #[test]
    fn a_statement_that_was_executed_is_behind_the_position() {
        let position = |recorded: Recorded| recorded.position().map(|position| position.to_string()).ok();
        // Nothing was under way: what the log says does not count.
        assert_eq!(position(recorded("0-1-7", "0-1-9", None)).as_deref(), Some("0-1-7"));
        assert_eq!(position(recorded("0-1-7", "0-1-8,9-2-4", Some(intent()))).as_deref(), Some("0-1-8"));
        assert_eq!(position(recorded("0-1-7,1-1-3", "0-1-7,1-1-3", Some(intent()))).as_deref(), Some("0-1-7,1-1-3"));
        // The progress is past what only defers a branch, which is not logged.
        assert_eq!(position(recorded("0-1-7", "0-1-5", Some(intent()))).as_deref(), Some("0-1-7"));
    }

    #[test]
    fn what_the_log_does_not_say_is_refused() {
        assert!(recorded("0-1-7", "", Some(intent())).position().is_err(), "the target logs nothing");
        assert!(recorded("0-1-7", "0-2-9", Some(intent())).position().is_err(), "the target logs its own GTIDs");
        assert!(recorded("0-1-7", "0-1-8,5-3-1", Some(intent())).position().is_err(), "whose domain is 5?");
        assert!(recorded("0-1-7", "0-1-8", Some(Intent::partly(8))).position().is_err());
    }
}
