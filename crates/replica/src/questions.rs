//! Questions about a server's own replication and its settings, for all who look at a replica. Changes nothing, judges nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use binlog::{Flavour, LogPosition};
use wire::{Connection, Row};

use super::procedures;
use super::statements::NativeChannel;
use super::status::{Columns, ReplicaStatus};
use apply::mysql::server::sql::quote;

/// ER_SPECIFIC_ACCESS_DENIED_ERROR.
pub const DENIED: u16 = 1227;

/// Columns of one row by their names, as text; NULL is left out.
pub type Record = BTreeMap<String, String>;

/// All channels of a replica.
pub fn channels(connection: &mut Connection, native: &NativeChannel) -> Result<Vec<ReplicaStatus>> {
    let rows = match connection.rows(native.status()) {
        // Only the service's own account may ask MariaDB on RDS.
        Err(error) if native.flavour == Flavour::MariaDb && error.code() == Some(DENIED) => {
            connection.rows(procedures::STATUS).map_err(|_| error)
        }
        rows => rows,
    };
    let rows = rows.with_context(|| {
        format!("{} (needs REPLICATION CLIENT, on MariaDB REPLICA MONITOR or SUPER)", native.status())
    })?;
    rows.iter()
        .map(|row| ReplicaStatus::parse(&Columns::new(record(row)), native.flavour).map_err(|error| anyhow!(error)))
        .collect()
}

/// A row as it is.
pub fn record(row: &Row) -> Record {
    let columns = row.columns().iter().enumerate();
    let values = columns.filter_map(|(at, column)| {
        // Values can hold any bytes, such as a key's.
        Some((column.name.clone(), String::from_utf8_lossy(row.get(at)?).into_owned()))
    });
    values.collect()
}

/// Names in lower case.
pub fn variables_like(connection: &mut Connection, kind: &str, pattern: &str) -> Result<BTreeMap<String, String>> {
    let rows =
        connection.rows(format!("SHOW {kind} LIKE {}", quote(pattern))).with_context(|| format!("SHOW {kind}"))?;
    rows.iter()
        .map(|row| {
            let name = row.required_text(0)?.to_ascii_lowercase();
            // Values can hold any bytes, such as a key's.
            Ok((name, String::from_utf8_lossy(row.get(1).unwrap_or_default()).into_owned()))
        })
        .collect()
}

/// Sizes of a server's binary logs, in bytes, oldest first.
pub fn binary_logs(source: &mut Connection) -> Result<Vec<(String, u64)>> {
    let rows = source.rows("SHOW BINARY LOGS").context("SHOW BINARY LOGS")?;
    rows.iter().map(|row| Ok((row.required_text(0)?.to_owned(), row.required(1)?))).collect()
}

/// Bytes from a position to the end of the last log.
pub fn bytes_after(logs: &[(String, u64)], position: &LogPosition) -> Option<u64> {
    let at = logs.iter().position(|(name, _)| *name == *position.file)?;
    let all: u64 = logs.get(at..)?.iter().map(|(_, bytes)| bytes).sum();
    Some(all.saturating_sub(position.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_to_the_end() {
        let logs = [("b.000001".to_owned(), 100), ("b.000002".to_owned(), 50), ("b.000003".to_owned(), 7)];
        let check = |file: &str, offset, expected| {
            assert_eq!(bytes_after(&logs, &LogPosition::new(file, offset)), expected, "{file}:{offset}");
        };
        check("b.000001", 4, Some(153));
        check("b.000002", 50, Some(7));
        check("b.000003", 7, Some(0));
        check("b.000009", 4, None);
    }
}
