//! Where a channel is: what `heddle status` shows. All of it is read from the target.

use engine::failure::Culprit;
use serde::{Serialize, Serializer};

use crate::standby::StandbyStatus;

/// `heddle status --json`: one a channel.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChannelStatus {
    pub channel: String,
    /// Everything up to this number is applied.
    pub low_water: u64,
    /// Applied ranges above it (relaxed order): between them are the gaps.
    pub islands: Vec<(u64, u64)>,
    /// Ranges between them that are not applied.
    pub gaps: Vec<(u64, u64)>,
    pub source: String,
    pub source_position: Option<String>,
    pub gtid_set: String,
    #[serde(flatten)]
    pub last: LastTransaction,
    /// Whether a process holds the channel now.
    pub running: bool,
    /// Whether that process is connected to its source, as far as was seen in the last seconds; null where none runs. True of files.
    pub source_reached: Option<bool>,
    /// How long it has not been, in seconds; null where it is, or where the account does not see.
    pub source_lost_seconds: Option<u64>,
    /// Process and host that held it last.
    pub owner: String,
    /// The node of a target with several at which it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// A statement that can not be rolled back is under way, or was when the channel stopped.
    pub intent: Option<String>,
    /// What the channel's connections do on the target now; null where that can not be seen.
    pub in_flight: Option<Vec<OpenWork>>,
    /// What it tries again now; null: nothing, or no process has the channel.
    pub retrying: Option<RetryStatus>,
    /// The part of the source that it takes, as the options that ask for it; null: all.
    pub selection: Option<String>,
    /// What the channel does.
    pub state: State,
    /// Why it stopped the last time that it did so with an error; null: it never did, or the target could not be reached.
    pub last_error: Option<LastError>,
    /// How far it is behind its source; null: the source was not asked.
    pub lag: Option<PendingWork>,
    /// The processes that wait for it (`replicate --standby`).
    pub standbys: Vec<StandbyStatus>,
}

/// What a channel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No process holds it.
    #[default]
    Stopped,
    /// The same, after an error.
    Failed,
    Paused,
    /// Its rows are copied (`replicate --copy`).
    Copying,
    /// Its source can not be reached.
    WaitsForSource,
    /// What failed on the target is tried again, or the target takes no changes.
    Retrying,
    /// A connection of it waits for a lock on the target.
    WaitsForLock,
    Applying,
    /// It runs, and nothing is under way.
    Idle,
}

/// What a running channel tries again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RetryStatus {
    pub message: String,
    pub code: Option<u16>,
    /// How often it has failed; 0: not known.
    pub tries: u32,
    /// Since it failed first; 0: not known.
    pub seconds: u64,
}

/// One stop of a channel.
#[derive(Clone, Debug, Serialize)]
pub struct LastError {
    /// Microseconds since 1970.
    pub time_us: u64,
    pub kind: String,
    pub code: Option<u16>,
    pub message: String,
    pub place: String,
    pub remedy: String,
    /// The channel has applied more since: it is no trouble any more.
    pub passed: bool,
    /// The transaction that failed, where it is known to be one.
    #[serde(serialize_with = "culprit")]
    pub transaction: Option<Culprit>,
}

/// Its number in the channel, GTID (empty: none), and FILE:POS where it begins.
#[expect(clippy::ref_option, reason = "serde gives the field as it is")]
fn culprit<S: Serializer>(culprit: &Option<Culprit>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Named<'a> {
        seq: u64,
        gtid: &'a str,
        position: &'a str,
    }
    let named = culprit.as_ref().map(|one| Named { seq: one.seq, gtid: &one.gtid, position: &one.position });
    named.serialize(serializer)
}

/// What a running channel says that it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The source cannot be reached.
    pub source_lost: bool,
    /// To be resumed.
    pub paused: bool,
    /// The target takes no changes.
    pub closed: bool,
    /// A process copies its rows.
    pub copying: bool,
}

/// What the source has and the channel has not applied; null where it can not be told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PendingWork {
    /// Not more than this: the age of the last transaction that is applied, by the source's clock. What is left was committed later. 0: nothing is left to apply.
    pub seconds: Option<f64>,
    pub transactions: Option<u64>,
    /// Bytes of the source's log.
    pub bytes: Option<u64>,
}

impl ChannelStatus {
    /// What it does, from what it says that it waits for, and all else.
    pub fn set_state(&mut self, waits: Waits) {
        // A channel that went on behind its error has left it behind.
        let applied_us = self.last.applied_time_us;
        if let Some(error) = &mut self.last_error {
            error.passed = applied_us.is_some_and(|applied| applied > error.time_us);
        }
        let failed_here = self.last_error.as_ref().is_some_and(|error| !error.passed);
        let connections = self.in_flight.as_deref().unwrap_or_default();
        self.state = if waits.copying {
            State::Copying
        } else if !self.running {
            if failed_here { State::Failed } else { State::Stopped }
        } else if waits.paused {
            State::Paused
        } else if waits.closed || self.retrying.is_some() {
            State::Retrying
        } else if connections.iter().any(|one| one.waits_for_lock) {
            State::WaitsForLock
        } else if !connections.is_empty() {
            State::Applying
        } else if waits.source_lost {
            State::WaitsForSource
        } else {
            State::Idle
        };
    }

    /// Of a channel that has applied everything up to the low water, and these ranges above it. All else is as if nothing were known.
    pub fn new(channel: String, low_water: u64, committed_ranges: Vec<(u64, u64)>) -> Self {
        let gaps = gaps(low_water, &committed_ranges);
        Self { channel, low_water, islands: committed_ranges, gaps, ..Self::default() }
    }
}

/// The last transaction that is applied: all null where there is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LastTransaction {
    /// When the source committed it, microseconds since 1970.
    pub commit_time_us: Option<u64>,
    /// When it was applied, microseconds since 1970.
    pub applied_time_us: Option<u64>,
    /// Commit on the source → commit on the target, in seconds.
    pub delay_seconds: Option<f64>,
    /// Since it was applied, in seconds.
    pub idle_seconds: Option<f64>,
}

impl LastTransaction {
    /// From what is recorded, in microseconds since 1970. A channel that has only been given its start has recorded no commit: 0.
    pub fn new(commit_time_us: u64, applied_time_us: u64, now_us: u64) -> Self {
        if commit_time_us == 0 {
            return Self::default();
        }
        let seconds = |from: u64, to: u64| Some(to.saturating_sub(from) as f64 / 1e6);
        Self {
            commit_time_us: Some(commit_time_us),
            applied_time_us: Some(applied_time_us),
            delay_seconds: seconds(commit_time_us, applied_time_us),
            idle_seconds: seconds(applied_time_us, now_us),
        }
    }
}

/// One connection of a channel with an open transaction, or with a statement under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenWork {
    /// Null: the connection that runs statements and DDL for all workers.
    pub worker: Option<usize>,
    /// Its number on the target, as in SHOW PROCESSLIST.
    pub connection: u64,
    /// Since its transaction began; null if the server does not say.
    pub seconds: Option<u64>,
    /// Rows that its transaction has changed so far.
    pub rows: u64,
    /// The verb of the statement under way; empty: all is applied, and it waits for its turn to commit.
    pub statement: String,
    /// It waits for a lock.
    pub waits_for_lock: bool,
}

/// What lies between the low water and the committed ranges above it.
pub fn gaps(low_water: u64, committed_ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let before = std::iter::once(low_water).chain(committed_ranges.iter().map(|&(_, last)| last));
    before
        .zip(committed_ranges)
        .map(|(end, &(first, _))| (end.saturating_add(1), first.saturating_sub(1)))
        .filter(|(first, last)| first <= last)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_has_applied_nothing_claims_no_delay() {
        let json = |last| serde_json::to_value(ChannelStatus { last, ..ChannelStatus::default() }).unwrap();
        let (none, some) =
            (json(LastTransaction::new(0, 5, 9)), json(LastTransaction::new(1_000_000, 3_500_000, 4_000_000)));
        for field in ["commit_time_us", "applied_time_us", "delay_seconds", "idle_seconds"] {
            assert!(none[field].is_null() && none.as_object().unwrap().contains_key(field), "{none}");
            assert!(some[field].is_number(), "{some}");
        }
        assert_eq!((&some["delay_seconds"], &some["idle_seconds"]), (&2.5.into(), &0.5.into()));
    }

    #[test]
    fn what_a_channel_does() {
        let error = LastError {
            time_us: 5,
            kind: "Divergence".to_owned(),
            code: Some(1062),
            message: "x".to_owned(),
            place: String::new(),
            remedy: String::new(),
            passed: false,
            transaction: None,
        };
        let check = |mut status: ChannelStatus, paused, state| {
            let source_lost = status.source_reached == Some(false);
            status.set_state(Waits { source_lost, paused, ..Waits::default() });
            assert_eq!(status.state, state);
        };
        check(ChannelStatus::default(), false, State::Stopped);
        let failed = ChannelStatus { last_error: Some(error), ..ChannelStatus::default() };
        check(failed.clone(), false, State::Failed);
        let last = LastTransaction { applied_time_us: Some(6), ..LastTransaction::default() };
        check(ChannelStatus { last, ..failed.clone() }, false, State::Stopped);
        let running = ChannelStatus { running: true, source_reached: Some(true), ..failed };
        check(running.clone(), false, State::Idle);
        check(running.clone(), true, State::Paused);
        check(ChannelStatus { source_reached: Some(false), ..running.clone() }, false, State::WaitsForSource);
        let mut copying = running.clone();
        copying.set_state(Waits { copying: true, ..Waits::default() });
        assert_eq!(copying.state, State::Copying);
        let one = OpenWork {
            worker: None,
            connection: 1,
            seconds: None,
            rows: 0,
            statement: String::new(),
            waits_for_lock: false,
        };
        let applying = ChannelStatus { in_flight: Some(vec![one.clone()]), ..running.clone() };
        check(applying, false, State::Applying);
        let retrying = Some(RetryStatus { message: "full".to_owned(), code: Some(1114), tries: 2, seconds: 1 });
        check(ChannelStatus { retrying, ..running.clone() }, false, State::Retrying);
        let one = OpenWork { waits_for_lock: true, ..one };
        check(ChannelStatus { in_flight: Some(vec![one]), ..running }, false, State::WaitsForLock);
    }

    #[test]
    fn gaps_are_what_is_between() {
        assert_eq!(gaps(3, &[(5, 5), (6, 6), (9, 12)]), [(4, 4), (7, 8)]);
        assert_eq!(gaps(3, &[(4, 8)]), []);
        // Rows that somebody has changed.
        assert_eq!(gaps(u64::MAX, &[(0, u64::MAX), (0, 0)]), []);
    }
}
