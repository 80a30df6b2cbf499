//! Questions to the source of a mirror: its identity, its files, the end of its log; and its stream from a position on. It writes nothing.

use std::time::Duration;

use binlog::{Flavour, LogPosition};
use engine::failure::{Failure, FailureKind};
use wire::{
    BinlogStream, Checksums, ConnectOptions, Connection, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpOptions,
    DumpRequest, Error,
};

/// The user variable in which a mirror tells its source, which may be another heddle, whose positions it asks for.
pub const POSITIONS_OF: &str = "heddle_source";
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A source that does not answer for so long is lost: as for the servers' own receivers.
const SILENCE_MAX: Duration = Duration::from_secs(60);
pub const UNKNOWN_VARIABLE: u16 = 1193;
/// A source's words to the older of two replicas that it takes for one.
const REPLACED: &str = "the same server_uuid/server_id";
/// An error of a dump: mostly that the source does not have what is asked for.
const DUMP_ERROR: u16 = 1236;
/// What both vendors' sources say with the same number of what says nothing of their history: settings, their disk, their memory.
const MAY_PASS: [&str; 14] = [
    "max_allowed_packet",
    "server_id is 0",
    "server id was not set",
    "server-id was not set",
    "inary log is not open",
    "GTID_MODE",
    "crc check",
    "checksum",
    "bogus data",
    "truncated in the middle",
    "corrupt",
    "I/O error",
    "emory allocation failed",
    "unknown error",
];

/// The options to connect to a source.
#[derive(Debug, Clone)]
pub struct Upstream {
    pub options: ConnectOptions,
    /// This replica's number towards the source: must differ from every other replica's.
    pub server_id: u32,
    /// How long a lost source is tried again.
    pub retry_for: Duration,
}

/// A source as it is now.
#[derive(Debug, Clone)]
pub struct Source {
    pub flavour: Flavour,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB).
    pub identity: String,
    /// The source's files with their lengths, oldest first.
    pub logs: Vec<LogPosition>,
    /// The end of the source's log.
    pub end: LogPosition,
}

/// How a mirror that acknowledges attaches.
#[derive(Debug, Clone, Default)]
pub struct Attachment {
    /// The mirror's UUID.
    pub uuid: Option<String>,
    pub is_semi_sync: bool,
}

/// Where the source's stream begins, and how it is requested.
#[derive(Debug, Clone)]
pub struct StreamStart {
    pub at: LogPosition,
    /// This replica's number towards the source.
    pub server_id: u32,
    pub attaching: Attachment,
    /// End at the end of the log instead of waiting for more.
    pub at_end: NextStep,
}

/// What the source does at the end of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
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
            return Err(not_now("the source has no binary log").remedy("start it with log_bin"));
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
        Some(engine) => Err(not_now(format!(
            "the source keeps its binary log in {engine} (binlog_storage_engine): it has no files that could be mirrored"
        ))
        .remedy("start the source without binlog_storage_engine")),
    }
}

/// The events from there on, all of them, summed as they are in the file. `identity`: whose position that is, for a source that is a heddle.
pub fn stream(mut connection: Connection, from: &StreamStart, identity: &str) -> Result<BinlogStream, Failure> {
    let identity: String = identity.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
    let said = format!("SET @{POSITIONS_OF} = '{identity}'");
    connection.query(said).map_err(|error| failed("setting the user variable heddle_source", &error))?;
    // Without the texts of statements MariaDB's files would have holes.
    let annotate = if connection.server().is_mariadb() { DUMP_SEND_ANNOTATE_ROWS } else { 0 };
    let end = if from.at_end == NextStep::End { DUMP_NON_BLOCK } else { 0 };
    let request = DumpRequest::FilePosition {
        file: from.at.file.to_string(),
        position: from.at.offset,
        server_id: from.server_id,
        flags: annotate | end,
    };
    let options = DumpOptions {
        heartbeat_period: HEARTBEAT,
        checksums: Checksums::AsInFile,
        non_block: from.at_end == NextStep::End,
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

/// It may pass: a source that was reached once is waited for.
fn not_now(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Maintenance, message)
}

/// An answer of the source, by what it means for the mirror. What shows another history is refused; all else that a server answers may pass
/// ([`FailureKind::Maintenance`]): a login, a privilege, a setting.
pub fn failed(asking: &str, error: &Error) -> Failure {
    let kind = match error {
        Error::Server { message, .. } if message.contains(REPLACED) => FailureKind::Fenced,
        Error::Interrupted { .. } => FailureKind::Stopped,
        error if error.is_transient_network() || matches!(error, Error::ShutDown) => FailureKind::ConnectionLost,
        Error::Server { code: DUMP_ERROR, message, .. } if !MAY_PASS.iter().any(|part| message.contains(part)) => {
            FailureKind::Refused
        }
        // It ends before what is in the mirror; or it can not be asked for.
        Error::DumpEnded | Error::DumpRequest(_) | Error::EventTooLarge { .. } => FailureKind::Refused,
        _ => FailureKind::Maintenance,
    };
    let remedy = match error.code() {
        _ if kind == FailureKind::Fenced => {
            "another replica with this one's number or identity has attached, and the source has ended this one's stream: it does not go back, or each would end the other's again and again. Keep one of the two; or give this one a --server-id of its own (if its folder is a copy, remove heddle-identity.json from it). If the source is gone by now: this folder may have commits that the other does not have yet"
        }
        Some(1045 | 1227) => {
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT (MariaDB: REPLICATION SLAVE, BINLOG MONITOR) ON *.* to heddle's account on the source"
        }
        Some(DUMP_ERROR) if kind == FailureKind::Refused => {
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
        assert_eq!(refused.kind, FailureKind::Maintenance);
    }

    /// Texts of MySQL 9.7, 8.0.15, 5.7 and MariaDB 10.11.
    #[test]
    fn only_another_history_is_refused_for_good() {
        let kind = |code, words: &str| {
            let (sqlstate, message) = ("HY000".to_owned(), words.to_owned());
            failed("reading its log", &Error::Server { code, sqlstate, message, statement_index: 0 }).kind
        };
        for words in [
            "Could not find first log file name in binary log index file",
            "Client requested master to start replication from position > file size",
            "Client requested source to start replication from impossible position; the first event",
            "Cannot replicate because the source purged required binary logs.",
        ] {
            assert_eq!(kind(1236, words), FailureKind::Refused, "{words}");
        }
        for (code, words) in [
            (1236, "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source"),
            (1236, "Misconfigured master - master server_id is 0"),
            (1236, "Binary log is not open"),
            (1236, "I/O error reading log event; the first event"),
            (1045, "Access denied for user 'repl'@'localhost' (using password: YES)"),
            (1227, "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s) for this operation"),
            (3032, "The server is currently in offline mode"),
            (3118, "Access denied for user 'repl'@'localhost'. Account is locked."),
        ] {
            assert_eq!(kind(code, words), FailureKind::Maintenance, "{words}");
        }
        let login =
            Error::Auth { code: 0, message: "wants the password under its RSA key".to_owned(), hint: String::new() };
        assert_eq!(failed("connecting", &login).kind, FailureKind::Maintenance);
        assert_eq!(failed("connecting", &Error::Lost { during: "logging in" }).kind, FailureKind::ConnectionLost);
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
