//! Why one connection's stream ended, and whether another try is of use.

use engine::failure::{Failure, FailureKind};

#[derive(Debug)]
pub enum StreamEnd {
    /// The run stops.
    Stopped,
    /// Worth another try.
    Lost(String),
    Failed(Failure),
}

/// `ER_SLAVE_SAME_ID` of MariaDB's.
const SAME_SERVER_ID: u16 = 4052;

/// What an error of the connection to the source means.
pub fn of_error(error: &wire::Error) -> StreamEnd {
    if error.is_transient_network() || matches!(error, wire::Error::DumpEnded | wire::Error::ShutDown) {
        return StreamEnd::Lost(error.to_string());
    }
    let remedy = match error.code() {
        // Of transactions with GTIDs that it has written before they were switched off.
        Some(1236) if error.to_string().contains("GTID_MODE = OFF") => {
            "SET GLOBAL gtid_mode = OFF_PERMISSIVE on the source until the channel has passed its transactions with GTIDs, or go on from the \
             source's files"
        }
        // MySQL says it with the error of everything else.
        Some(1236 | SAME_SERVER_ID) if error.to_string().contains("same server_uuid/server_id") => {
            "another replica, or heddle, with the same server id reads from this source now: stop the one that should not run, or give \
             this one another --server-id"
        }
        Some(1236) => {
            "the source does not have the events that come next (purged, reset, or another server): load the target anew from a \
             copy, and start there with --start or --start-gtid"
        }
        Some(1227 | 1045) => "grant REPLICATION SLAVE and REPLICATION CLIENT to heddle's account on the source",
        _ => "see the message; when the cause is gone, run the same command again",
    };
    StreamEnd::Failed(Failure::new(FailureKind::Refused, format!("source: {error}")).remedy(remedy))
}
