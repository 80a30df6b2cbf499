//! Where a channel is: what `heddle status` shows. All of it is read from the target.

use serde::Serialize;

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
    pub last: LastApplied,
    /// Whether a process holds the channel now.
    pub running: bool,
    /// Whether that process is connected to its source, as far as was seen in the last seconds; null where none runs. True of files.
    pub source_reached: Option<bool>,
    /// How long it has not been, in seconds; null where it is, or where the account does not see.
    pub source_lost_seconds: Option<u64>,
    /// Process and host that held it last.
    pub owner: String,
    /// A statement that can not be rolled back is under way, or was when the channel stopped.
    pub intent: Option<String>,
    /// What the channel's connections do on the target now; null where that can not be seen.
    pub in_flight: Option<Vec<InFlight>>,
}

impl ChannelStatus {
    /// Of a channel that has applied everything up to the low water, and these ranges above it. All else is as if nothing were known.
    pub fn new(channel: String, low_water: u64, committed_ranges: Vec<(u64, u64)>) -> Self {
        let gaps = gaps(low_water, &committed_ranges);
        Self { channel, low_water, islands: committed_ranges, gaps, ..Self::default() }
    }
}

/// The last transaction that is applied: all null where there is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LastApplied {
    /// When the source committed it, microseconds since 1970.
    pub commit_time_us: Option<u64>,
    /// When it was applied, microseconds since 1970.
    pub applied_time_us: Option<u64>,
    /// Commit on the source → commit on the target, in seconds.
    pub delay_seconds: Option<f64>,
    /// Since it was applied, in seconds.
    pub idle_seconds: Option<f64>,
}

impl LastApplied {
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
pub struct InFlight {
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
        let (none, some) = (json(LastApplied::new(0, 5, 9)), json(LastApplied::new(1_000_000, 3_500_000, 4_000_000)));
        for field in ["commit_time_us", "applied_time_us", "delay_seconds", "idle_seconds"] {
            assert!(none[field].is_null() && none.as_object().unwrap().contains_key(field), "{none}");
            assert!(some[field].is_number(), "{some}");
        }
        assert_eq!((&some["delay_seconds"], &some["idle_seconds"]), (&2.5.into(), &0.5.into()));
    }

    #[test]
    fn gaps_are_what_is_between() {
        assert_eq!(gaps(3, &[(5, 5), (6, 6), (9, 12)]), [(4, 4), (7, 8)]);
        assert_eq!(gaps(3, &[(4, 8)]), []);
        // Rows that somebody has changed.
        assert_eq!(gaps(u64::MAX, &[(0, u64::MAX), (0, 0)]), []);
    }
}
