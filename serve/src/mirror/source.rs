//! Questions to the source of a mirror: who it is, which files it has, where its log ends; and its stream from a place on.

use std::time::Duration;

use crate::dump::OF_SOURCE;
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
/// A source's words to the older of two replicas that it takes for one.
const REPLACED: &str = "the same server_uuid/server_id";

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

/// How a stream is asked for by a mirror that acknowledges.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attaching {
    /// By which it is known.
    pub uuid: Option<String>,
    pub is_semi_sync: bool,
}

/// Where the source's stream is to begin.
#[derive(Debug, Clone)]
pub struct From {
    pub at: LogPosition,
    /// This replica's number towards the source.
    pub server_id: u32,
    pub(crate) attaching: Attaching,
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
        let identity = wire::source::identity(connection).map_err(|error| failed("who it is", &error))?;
        let logs = wire::source::binary_logs(connection).map_err(|error| failed("SHOW BINARY LOGS", &error))?;
        if logs.is_empty() {
            // Another mirror that has just begun.
            return Err(Failure::new(FailureKind::ConnectionLost, "the source has no log files yet")
                .remedy("see that the source runs; then run the same command again"));
        }
        let status = wire::source::end_statement(connection);
        let end = wire::source::log_end(connection).map_err(|error| failed(status, &error))?;
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

/// The events from there on, all of them, summed as they are in the file. `identity`: whose position that is, for a source that is a heddle.
pub fn stream(mut connection: Connection, from: &From, identity: &str) -> Result<BinlogStream, Failure> {
    let identity: String = identity.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    let said = format!("SET @{OF_SOURCE} = '{identity}'");
    connection.query(said).map_err(|error| failed("saying whose positions are asked for", &error))?;
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
        semi_sync: from.attaching.is_semi_sync,
        replica_uuid: from.attaching.uuid.clone(),
        mirror: from.attaching.uuid.clone(),
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
        Error::Server { message, .. } if message.contains(REPLACED) => FailureKind::Fenced,
        Error::Interrupted { .. } => FailureKind::Stopped,
        error if error.is_transient_network() => FailureKind::ConnectionLost,
        _ => FailureKind::Refused,
    };
    let remedy = match error.code() {
        _ if kind == FailureKind::Fenced => {
            "another replica with this one's number or identity has attached, and the source has ended this one's stream: it does not go back, or each would end the other's again and again. Keep one of the two; or give this one              a --server-id of its own (if its folder is a copy, remove heddle-identity.json from it). If the source is gone by now: this folder may have commits that the other does not have yet"
        }
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

    /// The words of MySQL 9.7, MariaDB 10.11 and older ones.
    #[test]
    fn a_replica_that_was_replaced_does_not_go_back() {
        for (code, words) in [
            (
                1236,
                "A replica with the same server_uuid/server_id as this replica has connected to the source; the first event",
            ),
            (
                1236,
                "A slave with the same server_uuid/server_id as this slave has connected to the master; the first event",
            ),
            (4052, "A slave with the same server_uuid/server_id is already connected; the first event"),
        ] {
            let (sqlstate, message) = ("HY000".to_owned(), words.to_owned());
            let failure = failed("reading its log", &Error::Server { code, sqlstate, message, statement_index: 0 });
            assert_eq!(failure.kind, FailureKind::Fenced, "{words}");
        }
    }
}
