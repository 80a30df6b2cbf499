//! How much of a source's log a channel has not applied, by asking the source. It knows no running channel, so it is as right of one that stands still.

use anyhow::{Context, Result};
use binlog::LogPosition;
use binlog::gtids::GtidState;
use wire::Connection;

use crate::start::source_state::SourceState;

/// What is left to apply; `None` where it can not be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// By GTID; on MariaDB without those of its domains that count anew.
    pub transactions: Option<u64>,
    /// Bytes of the log between the channel's position and the end.
    pub bytes: Option<u64>,
}

impl Backlog {
    /// Nothing is left: what a log has at its end besides transactions is no lag.
    pub fn is_empty(&self) -> bool {
        self.transactions == Some(0) || self.bytes == Some(0)
    }

    /// `applied`, `gtids`: up to where the channel is.
    pub fn read(
        connection: &mut Connection,
        source: &SourceState,
        applied: Option<&LogPosition>,
        gtids: &GtidState,
    ) -> Result<Self> {
        let logs = connection.rows("SHOW BINARY LOGS").context("SHOW BINARY LOGS")?;
        let logs = logs
            .iter()
            .map(|row| Ok((row.required_text(0)?.to_owned(), row.required(1)?)))
            .collect::<Result<Vec<(String, u64)>, wire::Error>>()?;
        let transactions = behind(&source.executed, gtids);
        let bytes = applied.and_then(|applied| bytes_behind(&logs, applied, &source.end));
        // A new log file, or a restart, leaves bytes behind the last transaction.
        let bytes = if transactions == Some(0) { Some(0) } else { bytes };
        Ok(Self { transactions, bytes })
    }
}

/// Transactions of the source that are not among the applied ones.
fn behind(executed: &GtidState, applied: &GtidState) -> Option<u64> {
    match (executed, applied) {
        (GtidState::MySql(executed), GtidState::MySql(applied)) => {
            let mut left = executed.clone();
            left.subtract(applied);
            Some(left.count())
        }
        (GtidState::MariaDb(executed), GtidState::MariaDb(applied)) => Some(
            executed
                .iter()
                .map(|last| last.seq.saturating_sub(applied.get(last.domain).map_or(0, |applied| applied.seq)))
                .sum(),
        ),
        _ => None,
    }
}

/// `None`: the log in which the channel is, is gone.
fn bytes_behind(logs: &[(String, u64)], applied: &LogPosition, end: &LogPosition) -> Option<u64> {
    let at = logs.iter().position(|(name, _)| **name == *applied.file)?;
    let left = logs.get(at..)?.iter().map(|(name, size)| if **name == *end.file { end.offset } else { *size });
    Some(left.sum::<u64>().saturating_sub(applied.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_several_logs() {
        let logs = [("b.1".to_owned(), 100), ("b.2".to_owned(), 200), ("b.3".to_owned(), 50)];
        let end = LogPosition::new("b.3", 40);
        let check = |file, offset, bytes| {
            assert_eq!(bytes_behind(&logs, &LogPosition::new(file, offset), &end), bytes);
        };
        check("b.3", 40, Some(0));
        check("b.3", 4, Some(36));
        check("b.1", 60, Some(40 + 200 + 40));
        check("b.0", 4, None);
    }

    #[test]
    fn transactions_by_gtid() {
        let check = |executed: &str, applied: &str, left| {
            assert_eq!(behind(&executed.parse().expect("GTIDs"), &applied.parse().expect("GTIDs")), left);
        };
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        check(&format!("{uuid}:1-10"), &format!("{uuid}:1-3:5"), Some(6));
        check("0-1-100,1-1-7", "0-1-90", Some(17));
        check("0-1-100", &format!("{uuid}:1"), None);
    }
}
