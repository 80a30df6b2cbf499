//! Questions to the source of a mirror: who it is, which files it has, where its log ends; and its stream from a place on.

use std::time::Duration;

use binlog::{Flavour, LogPosition};
use engine::failure::{Failure, FailureKind};
use wire::{
    BinlogStream, Checksums, ConnectOptions, Connection, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpOptions,
    DumpRequest, Error,
};

const HEARTBEAT: Duration = Duration::from_secs(2);
/// A source that does not answer for so long is lost: as for the servers' own receivers.
const SILENCE_MAX: Duration = Duration::from_secs(60);
pub const UNKNOWN_VARIABLE: u16 = 1193;
const ENCRYPTION_HEADER: u64 = 512;

/// How a source is reached.
#[derive(Debug, Clone)]
pub struct Upstream {
    pub options: ConnectOptions,
    /// This replica's number towards the source: must differ from every other replica's.
    pub server_id: u32,
    /// For how long a source that is gone is tried again.
    pub retry_for: Duration,
}

/// A source as it is now.
#[derive(Debug, Clone)]
pub struct Source {
    pub flavour: Flavour,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB).
    pub identity: String,
    /// Its files with their lengths, oldest first.
    pub logs: Vec<LogPosition>,
    /// Where its log ends.
    pub end: LogPosition,
}

/// Where the source's stream is to begin.
#[derive(Debug, Clone)]
pub struct From {
    pub at: LogPosition,
    /// This replica's number towards the source.
    pub server_id: u32,
    /// End at the end of the log instead of waiting for more.
    pub then: Then,
}

/// What the source does at the end of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Wait,
    End,
}

pub fn connect(options: &ConnectOptions) -> Result<Connection, Failure> {
    let mut options = options.clone();
    options.limits.read_timeout.get_or_insert(SILENCE_MAX);
    Connection::connect(&options).map_err(|error| failed("connecting", &error))
}

impl Source {
    pub fn ask(connection: &mut Connection) -> Result<Self, Failure> {
        let server = connection.server().clone();
        if variable(connection, "log_bin")? != "1" {
            return Err(refused("the source has no binary log").remedy("start it with log_bin"));
        }
        let engine = match connection.scalar("SELECT @@global.binlog_storage_engine") {
            Err(Error::Server { code: UNKNOWN_VARIABLE, .. }) => None,
            answer => answer.map_err(|error| failed("binlog_storage_engine", &error))?,
        };
        has_files(engine.as_deref())?;
        let identity = if server.is_mariadb() {
            format!("mariadb-server-{}", variable(connection, "server_id")?)
        } else {
            variable(connection, "server_uuid")?
        };
        let row = |row: &wire::Row| -> Result<LogPosition, Error> {
            Ok(LogPosition::new(row.required_text(0)?, row.required(1)?))
        };
        let rows = connection.rows("SHOW BINARY LOGS").map_err(|error| failed("SHOW BINARY LOGS", &error))?;
        let log = |found: &wire::Row| -> Result<LogPosition, Error> {
            let is_encrypted = found.len() > 2 && found.text(2)? == Some("Yes");
            Ok(without_encryption_header(row(found)?, is_encrypted))
        };
        let logs =
            rows.iter().map(log).collect::<Result<Vec<_>, _>>().map_err(|error| failed("SHOW BINARY LOGS", &error))?;
        let status = if !server.is_mariadb() && server.at_least(8, 2, 0) {
            "SHOW BINARY LOG STATUS"
        } else {
            "SHOW MASTER STATUS"
        };
        let end = connection.row(status).map_err(|error| failed(status, &error))?;
        let end = end.ok_or_else(|| refused(format!("{status} says nothing")))?;
        let end = row(&end).map_err(|error| failed(status, &error))?;
        let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
        Ok(Self { flavour, identity, logs, end })
    }
}

/// MariaDB 12.3's `binlog_storage_engine`: one stream without files or offsets.
fn has_files(engine: Option<&str>) -> Result<(), Failure> {
    match engine {
        None | Some("") => Ok(()),
        Some(engine) => Err(refused(format!(
            "the source keeps its binary log in {engine} (binlog_storage_engine): it has no files that could be mirrored"
        ))
        .remedy("start the source without binlog_storage_engine")),
    }
}

/// MySQL counts a header to the length of an encrypted file, which no position counts.
fn without_encryption_header(mut length: LogPosition, is_encrypted: bool) -> LogPosition {
    if is_encrypted {
        length.offset = length.offset.saturating_sub(ENCRYPTION_HEADER);
    }
    length
}

/// The events from there on, all of them, summed as they are in the file.
pub fn stream(connection: Connection, from: &From) -> Result<BinlogStream, Failure> {
    // Without the texts of statements MariaDB's files would have holes.
    let annotate = if connection.server().is_mariadb() { DUMP_SEND_ANNOTATE_ROWS } else { 0 };
    let end = if from.then == Then::End { DUMP_NON_BLOCK } else { 0 };
    let request = DumpRequest::FilePosition {
        file: from.at.file.to_string(),
        position: from.at.offset,
        server_id: from.server_id,
        flags: annotate | end,
    };
    let options = DumpOptions {
        heartbeat_period: HEARTBEAT,
        checksums: Checksums::AsInFile,
        non_block: from.then == Then::End,
        ..DumpOptions::default()
    };
    connection.binlog_dump_with(&request, &options).map_err(|error| failed("asking for the log", &error))
}

fn variable(connection: &mut Connection, name: &str) -> Result<String, Failure> {
    let value = connection.scalar(format!("SELECT @@global.{name}")).map_err(|error| failed(name, &error))?;
    Ok(value.unwrap_or_default())
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, message)
}

/// An answer of the source, by what it means for the mirror.
pub fn failed(asking: &str, error: &Error) -> Failure {
    let kind = match error {
        Error::Interrupted { .. } => FailureKind::Stopped,
        error if error.is_transient_network() => FailureKind::ConnectionLost,
        _ => FailureKind::Refused,
    };
    let remedy = match error.code() {
        Some(1045 | 1227) => {
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT (MariaDB: REPLICATION SLAVE, BINLOG MONITOR) ON *.* to heddle's account on the source"
        }
        Some(1236) => {
            "the message is the source's: it does not have what comes next in the mirror. Keep the mirror as it is, and begin another one in a new --dir"
        }
        _ if kind == FailureKind::ConnectionLost => {
            "see that the source runs and can be reached; then run the same command again"
        }
        _ => "see the message, and the source's error log; when the cause is gone, run the same command again",
    };
    let failure = Failure::new(kind, format!("source, {asking}: {error}")).remedy(remedy);
    error.code().map_or(failure.clone(), |code| failure.code(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_files_is_refused_by_name() {
        assert!(has_files(None).is_ok() && has_files(Some("")).is_ok());
        let refused = has_files(Some("innodb")).unwrap_err();
        assert!(refused.message.contains("innodb (binlog_storage_engine)"), "{refused:?}");
        assert_eq!(refused.kind, FailureKind::Refused);
    }

    #[test]
    fn positions_do_not_count_the_header_of_an_encrypted_file() {
        let length = |is_encrypted| without_encryption_header(LogPosition::new("b.000001", 1512), is_encrypted).offset;
        assert_eq!((length(false), length(true)), (1512, 1000));
    }
}
