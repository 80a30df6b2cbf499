//! How far a replica is behind: the time since the oldest transaction that it has not applied was committed on its source. Without heartbeat tables. Pure.
//!
//! MySQL from 8.0 on names that time for what each worker applies: when the *direct* source committed it (`immediate_commit_timestamp`). The first commit
//! (`original_commit_timestamp`) may be a week before, where the source was restored from its own log. Other servers say `Seconds_Behind`, the age of the last
//! transaction applied, and 0 too early (MDEV-17516). What an earlier look saw received and this one does not see applied is at least as old as the time between
//! the two. How long what waits will take is a forecast, no lag ([`crate::facts::trend`]).

use serde::Serialize;

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::clock::seconds_of;
use crate::facts::period::text;
use crate::questions::{BY_WORKER, CONNECTION};
use replica::statements::HOLD_S;
use replica::status::Receiver;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lag {
    /// Behind the source's commits. Null: unknown, as of a replica whose threads are stopped.
    pub seconds: Option<f64>,
    /// `commit_times` (of the oldest transaction under way), `caught_up` (all that was received is applied), `source_log` (with `--source`, of the first transaction there
    /// that is not applied), `server` (Seconds_Behind), `looks` (received so long ago), `unknown`.
    pub from: &'static str,
}

pub fn of(seen: &ChannelFacts<'_>) -> Lag {
    let unknown = Lag { seconds: None, from: "unknown" };
    let status = &seen.status;
    let received_applied = seen.behind_transactions().map_or(seen.behind_bytes() == Some(0), |left| left == 0);
    let is_connected = status.receiver == Receiver::Connected;
    if !status.applier_runs || status.delay_s == HOLD_S || status.receiver_error.is_some() && !is_connected {
        return unknown;
    }
    if received_applied && is_connected && status.applier_waits {
        // What is on its way from the source is not known here: the time that the last one took to come is.
        return Lag { seconds: Some(0.0), from: "caught_up" };
    }
    let since = |committed: Option<f64>, now: Option<f64>, from| {
        let seconds = (now? - committed?).max(0.0);
        Some(Lag { seconds: Some(seconds), from })
    };
    since(oldest_commit(seen), seen.local_now_s(), "commit_times")
        .or_else(|| since(next_in_source_log(seen), seen.now_s(), "source_log"))
        .or_else(|| by_server(seen))
        .unwrap_or(unknown)
}

/// MySQL from 8.0 on: of the transactions that are not applied, as the direct source committed the first.
fn oldest_commit(seen: &ChannelFacts<'_>) -> Option<f64> {
    let own = |rows: &'static str, column: &'static str| {
        let rows = seen.period.after.rows(rows).iter();
        rows.filter(|row| text(row, "CHANNEL_NAME") == seen.status.channel)
            .filter_map(move |row| seconds_of(text(row, column)))
    };
    // Zero where nothing is under way.
    own(BY_WORKER, "APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP").min_by(f64::total_cmp).or_else(|| {
        let column = if seen.has_backlog() {
            return own(BY_WORKER, "LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP").max_by(f64::total_cmp);
        } else {
            // Between two transactions: what came last is about to be applied.
            "LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP"
        };
        own(CONNECTION, column).max_by(f64::total_cmp)
    })
}

/// With the source: its log was read from where the replica is now.
fn next_in_source_log(seen: &ChannelFacts<'_>) -> Option<f64> {
    let next = seen.period.source.as_ref()?.next.as_ref()?;
    (next.channel == seen.status.channel && seen.status.applied.as_ref()?.to_string() == next.applied)
        .then_some(next.committed_s)
}

fn by_server(seen: &ChannelFacts<'_>) -> Option<Lag> {
    let server = seen.status.behind_s.map(|seconds| seconds as f64);
    let waited = seen.waiting_since_s();
    match (server, waited) {
        (server, Some(waited)) if server.is_none_or(|server| server < waited) => {
            Some(Lag { seconds: Some(waited), from: "looks" })
        }
        (server, _) => server.map(|seconds| Lag { seconds: Some(seconds), from: "server" }),
    }
}

/// Seconds from a commit on the source until it was in the relay log, of the last transaction received. MySQL from 8.0 on.
pub fn of_receiver(seen: &ChannelFacts<'_>) -> Option<f64> {
    let rows = seen.period.after.rows(CONNECTION).iter();
    let row = rows.into_iter().find(|row| text(row, "CHANNEL_NAME") == seen.status.channel)?;
    let queued = seconds_of(text(row, "LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP"))?;
    let committed = seconds_of(text(row, "LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP"))?;
    Some((queued - committed).max(0.0))
}
