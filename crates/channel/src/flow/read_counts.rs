//! How far the log is read: what of the relay log is left to read, in bytes and in transactions, and the commit times of what is read and not yet
//! applied. Nobody decides by it.
//!
//! The receiver counts transactions as it appends them, this counts them as it reads them: the difference is exact, whatever the source's
//! positions say. What an earlier run has left in the relay log was counted by nobody: it is estimated by its bytes.

use std::collections::VecDeque;

use binlog::{Event, Kind};
use engine::Seq;
use relay::{LocatedEvent, RelayOffset};

/// What was read in this run.
#[derive(Debug, Default)]
pub struct ReadCounts {
    seen: ReadSample,
    /// When the source wrote the transaction that is being read.
    inside_us: u64,
    /// Sequence numbers and commit times of what is read and not yet applied, in order.
    commit_times: VecDeque<(Seq, u64)>,
}

/// The numbers of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSample {
    /// Of events.
    pub bytes: u64,
    /// Transactions that began.
    pub transactions: u64,
    /// Those of them that an earlier run had received.
    pub old_transactions: u64,
    /// The last of them is not read to its end.
    pub is_inside: bool,
    /// Where the last event ends in the relay log; `None`: nothing was read, or the source is files.
    pub at: Option<RelayOffset>,
    /// Where the relay log ended when the run began.
    pub began_at: RelayOffset,
    /// The last transaction, and when the source committed it, microseconds since the epoch.
    pub seq: Seq,
    pub commit_time_us: u64,
    /// When the source committed the oldest one that is not applied; `None`: all that were read are.
    pub oldest_us: Option<u64>,
}

impl ReadCounts {
    pub fn begins_at(&mut self, end_of_relay: RelayOffset) {
        self.seen.began_at = end_of_relay;
    }

    pub fn event(&mut self, located: &LocatedEvent) {
        let seen = &mut self.seen;
        seen.bytes += located.event.bytes().len() as u64;
        seen.at = located.relay_end();
        if begins_transaction(&located.event) {
            seen.transactions += 1;
            seen.old_transactions += u64::from(seen.at.is_some_and(|at| at <= seen.began_at));
            seen.is_inside = true;
            self.inside_us = u64::from(located.event.header().timestamp) * 1_000_000;
        }
    }

    pub fn has_whole(&mut self) {
        self.seen.is_inside = false;
    }

    pub fn transaction(&mut self, seq: Seq, commit_time_us: u64, low_water: Seq) {
        self.applied(low_water);
        self.commit_times.push_back((seq, commit_time_us));
        (self.seen.seq, self.seen.commit_time_us) = (seq, commit_time_us);
    }

    pub fn measured(&mut self, low_water: Seq) -> ReadSample {
        self.applied(low_water);
        let oldest_us = self.commit_times.front().map(|&(_, time_us)| time_us);
        // A very large one takes long to read.
        let inside_us = (self.seen.is_inside && self.inside_us > 0).then_some(self.inside_us);
        ReadSample { oldest_us: oldest_us.or(inside_us), ..self.seen }
    }

    fn applied(&mut self, low_water: Seq) {
        while self.commit_times.front().is_some_and(|&(seq, _)| seq <= low_water) {
            self.commit_times.pop_front();
        }
    }
}

impl ReadSample {
    /// Transactions of the relay log that are not read to their end. `received`: in this run; `unread_bytes`, `received_bytes`: what the relay log has behind
    /// the last event that was read, and what this run has added to it. `None`: the log does not say where transactions begin.
    pub fn unread_transactions(&self, received: u64, unread_bytes: u64, received_bytes: u64) -> Option<u64> {
        let new = (received + self.old_transactions).saturating_sub(self.transactions);
        let mean = (self.transactions > 0).then(|| self.bytes as f64 / self.transactions as f64);
        let old = match unread_bytes.saturating_sub(received_bytes) {
            bytes if bytes <= SEGMENT_HEAD_MAX => 0,
            bytes => (bytes as f64 / mean?.max(1.0)).round() as u64,
        };
        if received == 0 && self.transactions == 0 && unread_bytes > SEGMENT_HEAD_MAX {
            return None;
        }
        Some(new + old + u64::from(self.is_inside))
    }
}

/// What each file of the relay log begins and ends with, which is no event of the source's log: at most so much.
pub const SEGMENT_HEAD_MAX: u64 = 2 << 10;

/// Where the log has GTIDs, or MySQL's anonymous ones.
pub fn begins_transaction(event: &Event) -> bool {
    matches!(event.kind(), Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_counted() {
        let read = |transactions, old_transactions, is_inside| ReadSample {
            bytes: transactions * 100,
            transactions,
            old_transactions,
            is_inside,
            ..ReadSample::default()
        };
        let check = |read: ReadSample, received, unread_bytes, received_bytes, left| {
            assert_eq!(read.unread_transactions(received, unread_bytes, received_bytes), left, "{read:?}");
        };
        // Nothing has come; nothing is there.
        check(read(0, 0, false), 0, 0, 0, Some(0));
        // 1,000 came, 943 are read: bytes do not matter.
        check(read(943, 0, false), 1000, 9_000_000, 9_500_000, Some(57));
        // The last one is under way.
        check(read(943, 0, true), 1000, 9_000_000, 9_500_000, Some(58));
        // 300 of an earlier run are read, of 500 by their bytes, and 40 came meanwhile.
        check(read(300, 300, false), 40, 24_000, 4_000, Some(240));
        // All that an earlier run left is read.
        check(read(510, 500, false), 40, 3_000, 4_000, Some(30));
        // A log without GTIDs.
        check(read(0, 0, false), 0, 9_000, 9_000, None);
    }

    #[test]
    fn the_oldest_that_is_not_applied() {
        let mut reading = ReadCounts::default();
        assert_eq!(reading.measured(0).oldest_us, None);
        for seq in 1..=5 {
            reading.transaction(seq, seq * 10, 0);
        }
        assert_eq!(reading.measured(0).oldest_us, Some(10));
        assert_eq!(reading.measured(3).oldest_us, Some(40));
        assert_eq!(reading.measured(5).oldest_us, None);
        assert_eq!((reading.measured(5).seq, reading.measured(5).commit_time_us), (5, 50));
    }
}
