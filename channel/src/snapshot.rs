//! Where a running channel is: one plain value, taken at one moment. Progress line, summary and what watches a channel are worded from it.
//!
//! It holds only what is measured. It decides nothing and words nothing.

use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::Seq;
use engine::progress::Mark;
use engine::quality::Histogram;

pub use crate::flow::measures::{Amount, Retried, Scheduled, Waits};
pub use crate::flow::seen::conflicts::{HotRow, Placed};
pub use crate::flow::seen::source_tags::SourceTags;
pub use crate::flow::seen::subject::Subject;
pub use crate::flow::work::{Done, Running, Totals, WorkerSeen};
pub use apply::locks::LockHolder;

/// MariaDB, and MySQL before 8.0, log the time of a commit in whole seconds.
const SOURCE_TICK: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub taken: Instant,
    /// This machine's clock then, microseconds since 1970.
    pub clock_us: u64,
    /// `None`: the source is files, or has not been opened yet.
    pub received: Option<Received>,
    pub read: Read,
    /// An operator has paused the channel.
    pub paused: bool,
    pub scheduled: Scheduled,
    /// The low water: everything up to it is committed on the target.
    pub committed: Mark,
    pub memory: Memory,
    pub target: TargetTrouble,
    pub workers: Workers,
}

/// What the workers do, and have done.
#[derive(Clone, Debug, Default)]
pub struct Workers {
    /// By their numbers.
    pub each: Vec<WorkerSeen>,
    pub totals: Totals,
    pub waits: Waits,
}

/// The receiver and the relay log of a live source.
#[derive(Clone, Debug)]
pub struct Received {
    pub amount: Amount,
    /// What of it is on the disk.
    pub on_disk: Amount,
    /// Bytes of the relay log behind what was read, and behind what is committed, about; `None`: not known.
    pub unread_bytes: Option<u64>,
    pub uncommitted_bytes: Option<u64>,
    /// The end of the last event that is on the disk.
    pub durable: Option<LogPosition>,
    pub relay_bytes: u64,
    /// The relay log is as large as it may be: nothing is received.
    pub relay_full: bool,
    /// The source cannot be reached, for so long.
    pub source_lost: Option<Duration>,
    /// Microseconds of each sync of the relay log.
    pub syncs: Histogram,
}

/// The feeder.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Bytes of events.
    pub bytes: u64,
    /// Between two transactions.
    pub position: Option<LogPosition>,
    /// The last transaction before that position.
    pub seq: Seq,
    /// Commit time of the last transaction that was read, on the source's clock, microseconds since 1970; 0: none yet.
    pub commit_time_us: u64,
    /// How parallel the source's tags are.
    pub tags: SourceTags,
    /// How parallel the transactions are by their keys, and what they wait for most.
    pub placed: Placed,
}

/// What the transactions under way take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub used_bytes: u64,
    pub max_bytes: u64,
    /// The feeder waits for room now.
    pub full: bool,
}

/// What keeps the target from taking changes; nothing: it takes them.
#[derive(Clone, Debug, Default)]
pub struct TargetTrouble {
    /// What it did not take, and is tried again.
    pub retried: Option<Retried>,
    /// It cannot be reached, for so long.
    pub lost: Option<Duration>,
    /// Who holds the locks that workers wait for, as far as the target says.
    pub holders: Vec<LockHolder>,
}

/// How far a live channel is behind its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lag {
    /// Nothing was applied yet.
    Unknown,
    /// The source cannot be reached, for so long: what it has written since is not known here.
    SourceLost(Duration),
    /// Everything that was read is applied.
    CaughtUp,
    /// The age of the first transaction that is not applied where it is known, else of the last that is: by the source's clock and this machine's.
    Behind(Duration),
}

impl Snapshot {
    pub fn lag(&self) -> Lag {
        if let Some(lost) = self.received.as_ref().and_then(|received| received.source_lost) {
            return Lag::SourceLost(lost);
        }
        let running = self.first_running();
        // A DDL is under way before it counts as read.
        let has_all = self.read.position.is_some() && self.read.seq <= self.committed.seq && running.is_none();
        let applied = self.committed.commit_time_us;
        let mut age = Duration::from_micros(self.clock_us.saturating_sub(applied));
        if let Some(next) = running.filter(|next| next.first.seq == self.committed.seq + 1 && next.commit_time_us > 0) {
            // After a pause of the source the last one is older than what is late.
            age = age.min(Duration::from_micros(self.clock_us.saturating_sub(next.commit_time_us)));
        }
        if has_all {
            return Lag::CaughtUp;
        }
        if applied == 0 {
            return Lag::Unknown;
        }
        if self.read.commit_time_us > applied {
            return Lag::Behind(age);
        }
        // Nothing was read in this run, or what is left was committed at the same time: a second is as short as some sources measure.
        let late = age.saturating_sub(SOURCE_TICK);
        if self.read.position.is_none() || late.is_zero() { Lag::CaughtUp } else { Lag::Behind(late) }
    }

    /// The first group above the low water that a worker has.
    fn first_running(&self) -> Option<&Running> {
        let running = self.workers.each.iter().filter_map(|worker| worker.running.as_ref());
        running.filter(|one| one.first.seq > self.committed.seq).min_by_key(|one| one.first.seq)
    }

    /// Whether all that the source's log has before `end` is committed.
    pub fn has_committed_to(&self, end: &LogPosition) -> bool {
        self.read.position.as_ref().is_some_and(|read| read >= end) && self.read.seq <= self.committed.seq
    }
}

#[cfg(test)]
mod tests {
    use engine::failure::Culprit;

    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            taken: Instant::now(),
            clock_us: 10_000_000,
            received: None,
            read: Read::default(),
            paused: false,
            scheduled: Scheduled::default(),
            committed: Mark::default(),
            memory: Memory::default(),
            target: TargetTrouble::default(),
            workers: Workers::default(),
        }
    }

    #[test]
    fn lag_is_the_age_of_the_last_transaction_applied() {
        let mut seen = snapshot();
        assert_eq!(seen.lag(), Lag::Unknown);
        (seen.committed.commit_time_us, seen.read.commit_time_us) = (7_000_000, 8_000_000);
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_secs(3)));
        seen.committed.commit_time_us = 8_000_000;
        assert_eq!(seen.lag(), Lag::CaughtUp);
        // Of two transactions the later one of the log has the earlier time: both are applied, so nothing is behind.
        (seen.committed.commit_time_us, seen.committed.seq) = (7_000_000, 5);
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_secs(3)));
        seen.read = Read { position: Some(LogPosition::new("b.000001", 500)), seq: 5, ..seen.read };
        assert_eq!(seen.lag(), Lag::CaughtUp);
        // One is left that the source committed in the same second: it holds the channel up as others do.
        seen.read.seq = 6;
        seen.committed.commit_time_us = 8_000_000;
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_secs(1)));
        seen.clock_us = 8_900_000;
        assert_eq!(seen.lag(), Lag::CaughtUp);
        // After a pause of the source: what is late is the one that a worker has.
        let first = Culprit { seq: 6, gtid: String::new(), position: String::new() };
        let next = Running {
            time: Duration::ZERO,
            transactions: 1,
            first,
            commit_time_us: 8_700_000,
            barrier: None,
            rows: 1,
            bytes: 1,
            subject: Subject::default(),
        };
        seen.workers.each.push(WorkerSeen { running: Some(next), ..WorkerSeen::default() });
        (seen.committed.seq, seen.committed.commit_time_us, seen.read.commit_time_us) = (5, 1_000_000, 8_700_000);
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_millis(200)));
        // A DDL is not read yet, and not done.
        seen.read.seq = 5;
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_millis(200)));
        let lost = Some(Duration::from_secs(5));
        seen.received = Some(Received {
            amount: Amount::default(),
            on_disk: Amount::default(),
            unread_bytes: None,
            uncommitted_bytes: None,
            durable: None,
            relay_bytes: 0,
            relay_full: false,
            source_lost: lost,
            syncs: Histogram::default(),
        });
        assert_eq!(seen.lag(), Lag::SourceLost(Duration::from_secs(5)));
    }

    #[test]
    fn a_position_is_committed_once_the_transactions_before_it_are() {
        let end = LogPosition::new("b.000001", 500);
        let mut seen = snapshot();
        assert!(!seen.has_committed_to(&end));
        seen.read = Read { position: Some(end.clone()), seq: 3, ..Read::default() };
        seen.committed.seq = 2;
        assert!(!seen.has_committed_to(&end));
        seen.committed.seq = 3;
        assert!(seen.has_committed_to(&end));
    }
}
