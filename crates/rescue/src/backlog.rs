//! How far the replica is behind, how fast it and its source move, and whether the source still has what comes next. Changes nothing.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::GtidState;
use wire::{ConnectOptions, Connection};

use crate::server::{channel, executed};
use crate::state::Place;
use ::channel::start::source_state::SourceState;
use apply::mysql::server::sql::quote;
use replica::questions::{binary_logs, bytes_after};
use replica::statements::NativeChannel;
use replica::status::{Positioning, ReplicaStatus};

/// How far the replica is behind, and how fast it moves.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Backlog {
    /// Since the source committed the oldest transaction under way (MySQL 8.0 and later); else the replica's Seconds_Behind.
    pub behind_seconds: Option<u64>,
    /// All that the source had when the look began was applied so many seconds later. Null: not while this looked.
    pub applied_within_seconds: Option<f64>,
    /// By GTIDs: of those that the source has logged.
    pub behind_transactions: Option<u64>,
    /// Of the source's binary logs.
    pub behind_bytes: Option<u64>,
    /// Of the native applier, in the source's binary log, while this looked.
    pub native_bytes_per_second: Option<u64>,
    /// Of the source meanwhile.
    pub source_bytes_per_second: Option<u64>,
    /// What Heddle is expected to apply, of the source's binary log.
    pub heddle_bytes_per_second: Option<u64>,
    /// Why `heddle_bytes_per_second` is not there, if it is not.
    pub heddle_estimate_missing: Option<String>,
}

/// How long an applier needs until it has caught up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatchUpTime {
    /// Seconds.
    In(u64),
    /// At this speed.
    Never,
    /// Why.
    Unknown(String),
}

impl Backlog {
    pub fn native_left(&self) -> CatchUpTime {
        self.left(self.native_bytes_per_second, "the native applier was not seen to move")
    }

    pub fn heddle_left(&self) -> CatchUpTime {
        self.left(
            self.heddle_bytes_per_second,
            self.heddle_estimate_missing.as_deref().unwrap_or("it was not measured"),
        )
    }

    /// `missing`: why the rate is not there, if it is not.
    fn left(&self, bytes_per_second: Option<u64>, missing: &str) -> CatchUpTime {
        let unknown = |why: &str| CatchUpTime::Unknown(why.to_owned());
        let Some(rate) = bytes_per_second else { return unknown(missing) };
        let Some(behind) = self.behind_bytes else {
            return unknown("the source has purged what comes next, so how much is left cannot be counted");
        };
        let Some(source) = self.source_bytes_per_second else { return unknown("the source's rate was not seen") };
        match (behind, rate.saturating_sub(source)) {
            (0, _) => CatchUpTime::In(0),
            (_, 0) => CatchUpTime::Never,
            (behind, gain) => CatchUpTime::In(behind / gain),
        }
    }
}

/// Looks twice, `sample` apart.
pub fn measure(
    replica: &mut Connection,
    source: &ConnectOptions,
    native: &NativeChannel,
    gtids: &GtidState,
    sample: Duration,
) -> Result<Backlog> {
    let mut source = Connection::connect(source).context("source")?;
    let state = SourceState::read(&mut source)?;
    let began = Instant::now();
    let (before, first) = (channel(replica, native)?, binary_logs(&mut source)?);
    let applied_within = until_applied(replica, native, &state, sample)?;
    std::thread::sleep(sample.saturating_sub(began.elapsed()));
    let (after, second) = (channel(replica, native)?, binary_logs(&mut source)?);
    let seconds = began.elapsed().as_secs_f64();
    let per_second = |bytes: u64| (bytes as f64 / seconds) as u64;
    let behind = |status: &ReplicaStatus, logs: &[(String, u64)]| {
        status.applied.as_ref().and_then(|position| bytes_after(logs, position))
    };
    // In one list of logs, so that what the source has written meanwhile does not count.
    let moved = behind(&before, &second).zip(behind(&after, &second)).map(|(from, to)| from.saturating_sub(to));
    let written = first
        .first()
        .map(|(name, _)| LogPosition::new(name.as_str(), 0))
        .and_then(|oldest| Some(bytes_after(&second, &oldest)?.saturating_sub(bytes_after(&first, &oldest)?)));
    let behind_transactions = match (&state.executed, gtids) {
        (GtidState::MySql(theirs), GtidState::MySql(ours)) => {
            let mut missing = theirs.clone();
            missing.subtract(ours);
            Some(missing.count())
        }
        (GtidState::MariaDb(theirs), GtidState::MariaDb(ours)) => {
            let behind = |last: binlog::gtids::mariadb::Gtid| {
                last.seq.saturating_sub(ours.get(last.domain).map_or(0, |gtid| gtid.seq))
            };
            Some(theirs.iter().map(behind).sum())
        }
        _ => None,
    };
    Ok(Backlog {
        behind_seconds: behind_seconds(replica, native, &after),
        applied_within_seconds: applied_within.map(|time| time.as_secs_f64()),
        behind_transactions,
        behind_bytes: behind(&after, &second),
        native_bytes_per_second: moved.map(per_second),
        source_bytes_per_second: written.map(per_second),
        heddle_bytes_per_second: None,
        heddle_estimate_missing: None,
    })
}

/// Servers that do not name commit times, or not to this account, say `Seconds_Behind`.
fn behind_seconds(replica: &mut Connection, native: &NativeChannel, status: &ReplicaStatus) -> Option<u64> {
    let committed = "APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP";
    let has_times = native.flavour == Flavour::MySql && native.version >= (8, 0, 1) && status.applier_runs;
    let by_commit = has_times.then(|| {
        replica.scalar(format!(
            "SELECT GREATEST(0, TIMESTAMPDIFF(SECOND, MIN({committed}), SYSDATE(6))) FROM performance_schema.replication_applier_status_by_worker \
             WHERE CHANNEL_NAME={} AND {committed} > '1971-01-01'",
            quote(&native.channel)
        ))
    });
    by_commit.and_then(Result::ok).flatten().and_then(|seconds| seconds.parse().ok()).or(status.behind_s)
}

/// From now on, until the replica has applied what the source had; at the most so long.
fn until_applied(
    replica: &mut Connection,
    native: &NativeChannel,
    source: &SourceState,
    longest: Duration,
) -> Result<Option<Duration>> {
    const POLL: Duration = Duration::from_millis(50);
    let began = Instant::now();
    let gtid_mode = if source.gtids { "ON" } else { "OFF" };
    while began.elapsed() < longest {
        let has = executed(replica, native.flavour, gtid_mode)?;
        let by_gtid = !source.executed.is_empty() && has.contains_state(&source.executed);
        let position = channel(replica, native)?.applied;
        if by_gtid || position.is_some_and(|applied| applied >= source.end) {
            return Ok(Some(began.elapsed()));
        }
        std::thread::sleep(POLL);
    }
    Ok(None)
}

/// Whether the source still has all that comes after the place. `Err(why)` in words.
pub fn source_has(source: &mut Connection, state: &SourceState, place: &Place) -> Result<Result<(), String>> {
    let at_position = || match &place.position {
        Some(position) if !state.logs.iter().any(|log| **log == *position.file) => Err(format!(
            "the source has purged {} (its oldest is {})",
            position.file,
            state.logs.first().map_or("none", String::as_str)
        )),
        _ => Ok(()),
    };
    if place.positioning == Positioning::File {
        return Ok(at_position());
    }
    match (&place.gtids, state.flavour) {
        (GtidState::MySql(have), Flavour::MySql) => {
            let purged = source.scalar("SELECT @@global.gtid_purged")?.unwrap_or_default();
            let GtidState::MySql(mut missing) = purged.parse().context("gtid_purged")? else { return Ok(Ok(())) };
            missing.subtract(have);
            Ok(if missing.is_empty() { Ok(()) } else { Err(format!("the source has purged {missing}")) })
        }
        (GtidState::MariaDb(have), Flavour::MariaDb) => {
            let Some(oldest) = state.logs.first() else { return Ok(Ok(())) };
            let begins = source.scalar(format!("SELECT BINLOG_GTID_POS({}, 4)", quote(oldest)))?;
            let GtidState::MariaDb(begins) = begins.unwrap_or_default().parse().context("BINLOG_GTID_POS")? else {
                return Ok(Ok(()));
            };
            Ok(if have.contains_pos(&begins) {
                Ok(())
            } else {
                Err(format!("the source's binary logs begin behind {begins} only"))
            })
        }
        _ => Ok(at_position()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_the_native_applier_needs() {
        let check = |native, source, expected| {
            let backlog = Backlog {
                behind_bytes: Some(1000),
                native_bytes_per_second: native,
                source_bytes_per_second: source,
                ..Backlog::default()
            };
            assert_eq!(backlog.native_left(), expected);
        };
        let unknown = |why: &str| CatchUpTime::Unknown(why.to_owned());
        check(Some(20), Some(10), CatchUpTime::In(100));
        check(Some(10), Some(10), CatchUpTime::Never);
        check(Some(5), Some(10), CatchUpTime::Never);
        check(None, Some(10), unknown("the native applier was not seen to move"));
        check(Some(5), None, unknown("the source's rate was not seen"));
        let purged =
            Backlog { heddle_bytes_per_second: Some(5), source_bytes_per_second: Some(1), ..Backlog::default() };
        assert!(matches!(purged.heddle_left(), CatchUpTime::Unknown(why) if why.contains("purged")));
        let missing = Backlog { heddle_estimate_missing: Some("no privilege".to_owned()), ..Backlog::default() };
        assert_eq!(missing.heddle_left(), unknown("no privilege"));
    }
}
