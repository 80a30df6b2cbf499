//! How far a replica is behind, without heartbeat tables. Pure.
//!
//! MySQL from 8.0 on names the commit time on the source of what each worker applies: the oldest of these against the replica's clock. A replica that has applied
//! all that it received is 0 s behind what it received, whatever `Seconds_Behind` says; MariaDB's says too little with parallel threads (MDEV-17516): it is the time
//! of what was handed out last, and 0 when all is handed out. It is not less behind than what waits takes at the present rate.

use serde::Serialize;

use crate::watch::asking::questions::{BY_WORKER, CONNECTION};
use crate::watch::facts::clock::seconds_of;
use crate::watch::facts::period::text;
use crate::watch::facts::seen::Seen;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lag {
    /// Behind the source's commits. Null: unknown, as of a replica whose threads are stopped.
    pub seconds: Option<f64>,
    /// `commit_times` (of transactions under way), `caught_up` (all that was received is applied), `server` (Seconds_Behind), `queue` (what waits, at the present
    /// rate), `unknown`.
    pub from: &'static str,
}

pub fn of(seen: &Seen<'_>) -> Lag {
    let unknown = Lag { seconds: None, from: "unknown" };
    let status = &seen.status;
    let received_applied = seen.behind_transactions().map_or(seen.behind_bytes() == Some(0), |left| left == 0);
    let is_connected = status.receiver == crate::replica::status::Receiver::Connected;
    if !status.applier_runs || status.receiver_error.is_some() && !is_connected {
        return unknown;
    }
    if received_applied && is_connected && status.applier_waits {
        // What is on its way from the source is not known here: the time that the last one took to come is.
        return Lag { seconds: Some(0.0), from: "caught_up" };
    }
    let oldest = seen.period.after.rows(BY_WORKER).iter().filter_map(|row| {
        let own = text(row, "CHANNEL_NAME") == status.channel && !text(row, "APPLYING_TRANSACTION").is_empty();
        seconds_of(text(row, "APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP")).filter(|_| own)
    });
    let last_applied = || {
        let rows = seen.period.after.rows(BY_WORKER).iter();
        let own = rows.filter(|row| text(row, "CHANNEL_NAME") == status.channel);
        own.filter_map(|row| seconds_of(text(row, "LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP")))
            .max_by(f64::total_cmp)
    };
    let committed_s = oldest.min_by(f64::total_cmp).or_else(|| last_applied().filter(|_| seen.has_backlog()));
    match (committed_s, seen.local_now_s()) {
        (Some(committed), Some(now)) => Lag { seconds: Some((now - committed).max(0.0)), from: "commit_times" },
        _ => {
            let server = status.behind_s.map(|seconds| Lag { seconds: Some(seconds as f64), from: "server" });
            let queue = seen.queue_s().filter(|_| seen.has_backlog());
            match (server, queue) {
                (Some(server), Some(queue)) if server.seconds.is_some_and(|seconds| seconds >= queue) => server,
                (_, Some(queue)) => Lag { seconds: Some(queue), from: "queue" },
                (Some(server), None) => server,
                (None, None) => unknown,
            }
        }
    }
}

/// Seconds from a commit on the source until it was in the relay log, of the last transaction received. MySQL from 8.0 on.
pub fn of_receiver(seen: &Seen<'_>) -> Option<f64> {
    let rows = seen.period.after.rows(CONNECTION).iter();
    let row = rows.into_iter().find(|row| text(row, "CHANNEL_NAME") == seen.status.channel)?;
    let queued = seconds_of(text(row, "LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP"))?;
    let committed = seconds_of(text(row, "LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP"))?;
    Some((queued - committed).max(0.0))
}
