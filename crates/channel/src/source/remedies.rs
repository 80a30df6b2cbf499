//! What helps against an error that the source has answered with. Logins and privileges are worded in [`apply::mysql::server::remedies`], for both ends.

use apply::mysql::server::remedies::{ChannelEnd, of_connecting, of_privilege};
use engine::failure::{Failure, FailureKind};
use wire::availability::Reaction;

use crate::errors::chain;
use crate::flow::memory::event_memory::EventMemory;

/// `ER_SLAVE_SAME_ID` of MariaDB's.
const SAME_SERVER_ID: u16 = 4052;

/// A failure before anything was received: with what helps.
pub fn failure(error: anyhow::Error) -> anyhow::Error {
    let found = error.chain().find_map(|cause| cause.downcast_ref::<wire::Error>());
    let Some(of_server) = found else { return error };
    let kind = if matches!(of_server, wire::Error::Interrupted { .. }) {
        FailureKind::Stopped
    } else if of_server.availability().is_some_and(|row| row.reaction == Reaction::Wait) {
        FailureKind::Maintenance
    } else if of_server.is_transient_network()
        || of_server.availability().is_some_and(|row| row.reaction != Reaction::Stop)
    {
        FailureKind::ConnectionLost
    } else {
        FailureKind::Refused
    };
    let remedy = remedy(of_server);
    let failure = Failure::new(kind, chain(&error)).remedy(remedy);
    of_server.code().map_or(failure.clone(), |code| failure.code(code)).into()
}

/// A failure of the stream itself, with what helps.
pub fn of_stream(error: &wire::Error, memory: EventMemory) -> Failure {
    let remedy = match error {
        wire::Error::EventTooLarge { bytes, .. } => memory.remedy(*bytes),
        _ => remedy(error),
    };
    let failed = Failure::new(FailureKind::Refused, format!("source: {error}")).remedy(remedy);
    error.code().map_or(failed.clone(), |code| failed.code(code))
}

/// What to do.
pub fn remedy(error: &wire::Error) -> String {
    let text = error.to_string();
    let number = error.code().unwrap_or_default();
    if let Some(known) = of_dump(number, &text) {
        return known.to_owned();
    }
    of_connecting(ChannelEnd::Source, error).or_else(|| of_privilege(number, &text)).unwrap_or_else(|| match number {
        1045 | 1227 => "GRANT REPLICATION SLAVE, REPLICATION CLIENT (MariaDB: and BINLOG MONITOR) ON *.* TO heddle's account on the source; a password that is wrong: \
                        HEDDLE_SOURCE_PASSWORD, or the option file"
            .to_owned(),
        _ if matches!(error, wire::Error::Interrupted { .. }) => "nothing is lost: run the same command again".to_owned(),
        _ => "see the message, and the source's error log; when the cause is gone, run the same command again".to_owned(),
    })
}

/// The events that come next.
pub const GONE: &str = "the source does not have the events that come next (purged, reset, or another server): load the target anew from a \
    copy, and start there with --start, --start-gtid or --start-from; keep logs for longer (binlog_expire_logs_seconds, MariaDB: expire_logs_days)";

/// Errors of a dump. Both vendors have one number for most of them, so their texts decide.
fn of_dump(number: u16, text: &str) -> Option<&'static str> {
    // MySQL says it with the error of everything else.
    if matches!(number, 1236 | SAME_SERVER_ID) && text.contains("same server_uuid/server_id") {
        return Some(
            "another replica, or heddle, with the same server id reads from this source now: stop the one that should not run, or give \
             this one another --server-id",
        );
    }
    if number != 1236 {
        return None;
    }
    let has = |part: &str| text.contains(part);
    Some(if has("GTID_MODE = OFF") {
        // Of transactions with GTIDs that it has written before they were switched off.
        "SET GLOBAL gtid_mode = OFF_PERMISSIVE on the source until the channel has passed its transactions with GTIDs, or go on from the \
         source's files"
    } else if has("more GTIDs than the") || has("has diverged") {
        "the channel has applied transactions that the source does not have: it is another server, or it was restored or promoted without them. Compare GTIDs \
         (heddle status, and the source's gtid_executed or gtid_binlog_pos); then load the target anew from a copy, and start there with a new --channel"
    } else if has("max_allowed_packet") {
        "SET GLOBAL max_allowed_packet = 1073741824 on the source: an event of its log is larger than it may send; then run the same command again"
    } else if has("crc check")
        || has("checksum")
        || has("bogus data")
        || has("truncated in the middle")
        || has("corrupt")
    {
        "the source's binary log is damaged there: look at the file with mysqlbinlog --verify-binlog-checksum (mariadb-binlog), and at the source's disk; if it is, \
         load the target anew from a copy, and start there with a new --channel and --start or --start-gtid"
    } else if has("impossible position") || has("position > file size") {
        "the source's log ends before the place where the channel is: the source has lost the end of its log in a crash (sync_binlog=1 keeps it), or was restored. \
         Load the target anew from a copy, and start there with a new --channel"
    } else if has("server_id is 0") || has("server id was not set") || has("server-id was not set") {
        "SET GLOBAL server_id to a number of its own on the source, and run the same command again"
    } else if has("Binary log is not open") || has("binary log is not open") {
        "the source has no binary log: start it with log_bin, take a new copy, and start there with a new --channel"
    } else {
        GONE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16, message: &str) -> wire::Error {
        wire::Error::Server { code, sqlstate: "HY000".to_owned(), message: message.to_owned(), statement_index: 0 }
    }

    #[test]
    fn every_error_of_a_source_says_what_to_do() {
        for (code, message, part) in [
            (1236, "Could not find first log file name in binary log index file", "purged"),
            (
                1236,
                "Cannot replicate because the source purged required binary logs. Replicate the missing transactions from elsewhere",
                "purged",
            ),
            (
                1236,
                "Error: connecting slave requested to start from GTID 0-1-5, which is not in the master's binlog",
                "purged",
            ),
            (1236, "Slave has more GTIDs than the master has, using the master's SERVER_UUID", "Compare GTIDs"),
            (
                1236,
                "which is not in the master's binlog. Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the slave has diverged",
                "Compare GTIDs",
            ),
            (
                1236,
                "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master",
                "SET GLOBAL max_allowed_packet",
            ),
            (1236, "event read from binlog did not pass crc check", "damaged"),
            (1236, "bogus data in log event", "damaged"),
            (1236, "binlog truncated in the middle of event; consider out of disk space on master", "damaged"),
            (1236, "Client requested master to start replication from impossible position", "ends before"),
            (1236, "Client requested master to start replication from position > file size", "ends before"),
            (1236, "Misconfigured master - master server_id is 0", "SET GLOBAL server_id"),
            (1236, "Binary log is not open", "log_bin"),
            (1236, "A slave with the same server_uuid/server_id as this slave has connected", "--server-id"),
            (4052, "A slave with the same server_uuid/server_id as this slave has connected", "--server-id"),
            (1236, "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF", "OFF_PERMISSIVE"),
            (
                1227,
                "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s) for this operation",
                "GRANT REPLICATION SLAVE ON *.*",
            ),
            (1227, "denied", "GRANT REPLICATION SLAVE"),
            (1130, "Host '10.0.0.7' is not allowed to connect to this MySQL server", "CREATE USER"),
            (1040, "Too many connections", "max_connections"),
        ] {
            let remedy = remedy(&server(code, message));
            assert!(remedy.contains(part), "{code} {message}: {remedy}");
            assert!(!remedy.contains("see the message"), "{code} {message}: {remedy}");
        }
        let source = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert!(remedy(&wire::Error::Connect { to: "h:3306".to_owned(), source }).contains("bind_address"));
    }

    #[test]
    fn what_is_no_answer_of_a_server_stays_as_it_is() {
        let said = failure(anyhow::anyhow!("the source has no binary log"));
        assert!(said.downcast_ref::<Failure>().is_none());
        let said = failure(anyhow::Error::new(server(1130, "Host")).context("source"));
        assert!(
            said.downcast_ref::<Failure>()
                .is_some_and(|failure| failure.code == Some(1130) && !failure.remedy.is_empty())
        );
    }
}
