//! What the sentence is made from: facts of a running channel, of one that has ended, or of one that only its target knows.

use std::time::Duration;

use apply::status::{ChannelStatus, State};
use channel::snapshot::{Lag, LockHolder, Snapshot, StandbyState};

use super::Facts;
use super::fact_values::{Absence, Commits, KnownLag, StandbyFacts, StopCause};
use super::lanes::{Lane, LaneGroup, lanes};
use super::shares::Shares;

impl Facts {
    pub fn of(channel: &str, before: &Snapshot, now: &Snapshot) -> Self {
        let seconds = (now.taken - before.taken).as_secs_f64().max(1e-9);
        let (then, counters) = (&before.scheduled.counters, &now.scheduled.counters);
        let received = now.received.as_ref();
        let groups = now.workers.totals.group_micros.count.saturating_sub(before.workers.totals.group_micros.count);
        let micros = now.workers.totals.commit_micros.sum.saturating_sub(before.workers.totals.commit_micros.sum);
        let commits = now.workers.totals.commit_micros.count.saturating_sub(before.workers.totals.commit_micros.count);
        let mean = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        let transactions = counters.transactions.saturating_sub(then.transactions);
        Self {
            channel: channel.to_owned(),
            paused: now.trouble.paused,
            standby: now.trouble.standby.as_ref().map(|standby| waiting(standby, now)),
            is_starting: now.memory.max_bytes == 0,
            source_lost: now.trouble.source_lost.as_ref().map(Absence::from),
            target_lost: now.trouble.target.lost.as_ref().map(Absence::from),
            retried: now
                .trouble
                .target
                .retried
                .as_ref()
                .map(|one| (one.message.clone(), one.tries, one.since.elapsed())),
            holders: now.trouble.target.holders.clone(),
            lag: match now.lag() {
                Lag::CaughtUp => KnownLag::CaughtUp,
                Lag::Behind(lag) => KnownLag::Behind(lag.as_secs_f64()),
                Lag::Unknown | Lag::SourceLost(_) => KnownLag::Unknown,
            },
            outstanding: now.outstanding_transactions() + now.unread_transactions().unwrap_or(0),
            forecast: now.forecast,
            left: now.left_transactions(),
            rate: transactions as f64 / seconds,
            shares: Shares::between(before, now),
            lanes: lanes(before, now),
            hot: now.read.placed.hot.clone(),
            waiting_share: now.read.placed.waiting_share,
            commits: Commits {
                groups,
                seconds: mean(micros, commits) / 1e6,
                rows: mean(counters.rows.saturating_sub(then.rows), groups),
                transactions: mean(transactions, groups),
            },
            relay_full: received.is_some_and(|received| received.relay_full),
            memory_max_bytes: now.memory.max_bytes,
            unread_bytes: received.and_then(|received| received.unread_bytes).unwrap_or(0),
            received_lag_s: super::stages::stages(before, now)
                .first()
                .filter(|stage| stage.name == "received")
                .and_then(|stage| stage.lag_s)
                .unwrap_or(0.0),
            clock_us: now.clock_us,
            ..Self::default()
        }
    }

    /// What the target alone knows of it.
    pub fn of_status(status: &ChannelStatus, clock_us: u64) -> Self {
        let connections = status.in_flight.iter().flatten();
        let lane = |one: &apply::status::OpenWork| Lane {
            worker: one.worker.unwrap_or(0),
            state: if one.waits_for_lock { super::lanes::WAITS_FOR_LOCK } else { super::lanes::APPLYING }.to_owned(),
            is_first: true,
            group: LaneGroup {
                age_s: one.seconds.unwrap_or(0) as f64,
                rows: one.rows,
                subject: one.statement.clone(),
                ..LaneGroup::default()
            },
            ..Lane::default()
        };
        let waiting = connections.clone().filter(|one| one.waits_for_lock);
        let holders = waiting.map(|one| LockHolder { worker: one.worker, ..LockHolder::default() }).collect();
        let stopped = status.last_error.as_ref().filter(|_| status.state == State::Failed).map(|error| StopCause {
            kind: error.kind.clone(),
            message: error.message.clone(),
            place: error.transaction.as_ref().map_or_else(String::new, |at| place(&at.gtid, &at.position)),
            remedy: error.remedy.clone(),
        });
        let (transactions, seconds) = match &status.lag {
            Some(lag) => (lag.transactions, lag.seconds),
            None => (None, None),
        };
        Self {
            channel: status.channel.clone(),
            is_down: !status.running,
            stopped,
            paused: status.state == State::Paused,
            source_lost: (status.source_reached == Some(false))
                .then(|| Absence { time: status.source_lost_seconds.map(Duration::from_secs), ..Absence::default() }),
            retried: status
                .retrying
                .as_ref()
                .map(|one| (one.message.clone(), one.tries, Duration::from_secs(one.seconds))),
            holders,
            lag: match seconds {
                Some(seconds) if seconds > 0.0 => KnownLag::Behind(seconds),
                Some(_) => KnownLag::CaughtUp,
                None => KnownLag::Unknown,
            },
            outstanding: transactions.unwrap_or(0),
            lanes: connections.map(lane).collect(),
            clock_us,
            ..Self::default()
        }
    }
}

fn waiting(standby: &StandbyState, now: &Snapshot) -> StandbyFacts {
    let received = now.received.as_ref();
    StandbyFacts {
        owner: standby.owner.clone(),
        obstacle: standby.obstacle.clone(),
        received: now.received_to().map(ToString::to_string).unwrap_or_default(),
        behind_bytes: received.and_then(|received| received.unreceived_bytes),
    }
}

/// GTID, file and position, as far as they are known.
pub fn place(gtid: &str, position: &str) -> String {
    match (gtid, position) {
        ("", position) => position.to_owned(),
        (gtid, "") => format!("GTID {gtid}"),
        (gtid, position) => format!("GTID {gtid}, {position}"),
    }
}
