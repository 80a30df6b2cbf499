//! Where a running channel is: one plain value, taken at one moment. Progress line, summary and what watches a channel are worded from it.
//!
//! It holds only what is measured. It decides nothing and words nothing.

use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::Seq;
use engine::progress::Mark;
use engine::quality::{Forecast, Histogram};

pub use crate::flow::measures::{Amount, GroupRetry, SchedulerSample, Waits};
pub use crate::flow::samples::conflicts::{ConflictsSample, HotRow};
pub use crate::flow::samples::source_tags::SourceTags;
pub use crate::flow::samples::subject::Subject;
pub use crate::flow::work::{RunningGroup, Totals, WorkerCounts, WorkerSample};
pub use apply::locks::LockHolder;
pub use wire::reach::Outage;

/// MariaDB, and MySQL before 8.0, log the time of a commit in whole seconds.
const SOURCE_TICK_US: u64 = 1_000_000;

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub taken: Instant,
    /// This machine's clock then, microseconds since 1970.
    pub clock_us: u64,
    /// `None`: the source is files, or has not been opened yet.
    pub received: Option<ReceiverState>,
    pub read: FeederState,
    pub scheduled: SchedulerSample,
    /// The low water: everything up to it is committed on the target.
    pub committed: Mark,
    /// When what is left will be applied.
    pub forecast: Forecast,
    pub memory: Memory,
    pub trouble: Trouble,
    pub workers: Workers,
}

/// What the workers do, and have done.
#[derive(Clone, Debug, Default)]
pub struct Workers {
    /// By their numbers.
    pub each: Vec<WorkerSample>,
    pub totals: Totals,
    pub waits: Waits,
}

/// The receiver and the relay log of a live source.
#[derive(Clone, Debug)]
pub struct ReceiverState {
    pub amount: Amount,
    /// What of it is on the disk.
    pub on_disk: Amount,
    /// What of the relay log is not read, in bytes and in transactions. Exact, but for transactions that an earlier run has received: they are estimated
    /// by their bytes. `None`: not known.
    pub unread_bytes: Option<u64>,
    pub unread_transactions: Option<u64>,
    /// What the source's log had behind what was received, when the source was last asked; `None`: not known.
    pub unreceived_bytes: Option<u64>,
    /// The end of the last event that is on the disk.
    pub durable: Option<LogPosition>,
    pub relay_bytes: u64,
    /// The relay log is as large as it may be: nothing is received.
    pub relay_full: bool,
    /// Microseconds of each sync of the relay log.
    pub syncs: Histogram,
}

/// The feeder.
#[derive(Clone, Debug, Default)]
pub struct FeederState {
    /// Bytes of events.
    pub bytes: u64,
    /// Between two transactions.
    pub position: Option<LogPosition>,
    /// The last transaction before that position.
    pub seq: Seq,
    /// The last transaction that was read: it may be on its way to the scheduler.
    pub last_seq: Seq,
    /// Transactions that began, this run.
    pub transactions: u64,
    /// Commit time of the last transaction that was read, on the source's clock, microseconds since 1970; 0: none yet.
    pub commit_time_us: u64,
    /// The same of the oldest transaction that was read and is not applied; `None`: there is none.
    pub oldest_us: Option<u64>,
    /// Transactions with statements whose result may be another on the target.
    pub unsafe_transactions: u64,
    /// How parallel the source's tags are.
    pub tags: SourceTags,
    /// How parallel the transactions are by their keys, and what they wait for most.
    pub placed: ConflictsSample,
}

/// What the transactions under way take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub used_bytes: u64,
    pub max_bytes: u64,
    /// The feeder waits for room now.
    pub full: bool,
}

/// What keeps the channel from going on; nothing: it goes on.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// The source can not be reached.
    pub source_lost: Option<Outage>,
    /// An operator has paused the channel.
    pub paused: bool,
    /// Another process has the channel, and this one waits for it.
    pub standby: Option<StandbyState>,
    pub target: TargetTrouble,
}

/// A process that waits for its channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandbyState {
    /// Process and host that have the channel; empty: none has it.
    pub owner: String,
    /// Why this one would not take it now.
    pub obstacle: Option<String>,
}

/// What keeps the target from taking changes; nothing: it takes them.
#[derive(Clone, Debug, Default)]
pub struct TargetTrouble {
    /// What it did not take, and is tried again.
    pub retried: Option<GroupRetry>,
    /// It can not be reached.
    pub lost: Option<Outage>,
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
    /// The time since the commit of the oldest transaction that is not applied; if that one is not read yet, of the last that is: by the source's clock and this
    /// machine's.
    Behind(Duration),
}

impl Snapshot {
    pub fn lag(&self) -> Lag {
        if let Some(lost) = &self.trouble.source_lost {
            return Lag::SourceLost(lost.time);
        }
        let age_us = |time_us: u64| {
            // A whole second is its beginning: the transaction may be as much younger.
            let tick_us = if time_us.is_multiple_of(SOURCE_TICK_US) { SOURCE_TICK_US } else { 0 };
            self.clock_us.saturating_sub(time_us).saturating_sub(tick_us)
        };
        let applied_us = self.committed.commit_time_us;
        if let Some(oldest_us) = self.read.oldest_us.filter(|oldest_us| *oldest_us > 0) {
            return Lag::Behind(Duration::from_micros(age_us(oldest_us)));
        }
        let has_read_all = self.read.position.is_some() && self.unread_transactions() == Some(0);
        // A DDL is under way before it counts as read.
        if self.outstanding_transactions() == 0 && !self.is_busy() && (has_read_all || !self.trouble.paused) {
            let is_new = applied_us == 0 && self.read.position.is_none();
            return if is_new { Lag::Unknown } else { Lag::CaughtUp };
        }
        if applied_us == 0 { Lag::Unknown } else { Lag::Behind(Duration::from_micros(age_us(applied_us))) }
    }

    /// Up to where the source's log is on this disk, or is not needed any more.
    pub fn received_to(&self) -> Option<&LogPosition> {
        let durable = self.received.as_ref()?.durable.as_ref();
        durable.max(self.committed.position.as_ref())
    }

    /// Received and not read; `None`: not known.
    pub fn unread_transactions(&self) -> Option<u64> {
        self.received.as_ref().map_or(Some(0), |received| received.unread_transactions)
    }

    /// Read and not yet covered by the low water.
    pub fn outstanding_transactions(&self) -> u64 {
        self.read.last_seq.max(self.read.seq).saturating_sub(self.committed.seq)
    }

    /// What is not applied, as far as the source's log was seen; `None`: not known, as of files.
    pub fn left_transactions(&self) -> Option<u64> {
        let received = self.received.as_ref()?;
        let mean = (self.read.transactions > 0).then(|| self.read.bytes as f64 / self.read.transactions as f64);
        let unreceived = match received.unreceived_bytes {
            None | Some(0) => 0,
            Some(bytes) => (bytes as f64 / mean?.max(1.0)).round() as u64,
        };
        Some(unreceived + received.unread_transactions? + self.outstanding_transactions())
    }

    /// The same in bytes, about.
    pub fn left_bytes(&self) -> Option<u64> {
        let received = self.received.as_ref()?;
        let running = self.workers.each.iter().filter_map(|worker| worker.running.as_ref());
        let inside = self.scheduled.queued_bytes + running.map(|running| running.bytes).sum::<u64>();
        Some(received.unreceived_bytes.unwrap_or(0) + received.unread_bytes? + inside)
    }

    /// A worker has a group above the low water.
    fn is_busy(&self) -> bool {
        let mut running = self.workers.each.iter().filter_map(|worker| worker.running.as_ref());
        running.any(|one| one.first.seq > self.committed.seq)
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
            read: FeederState::default(),
            scheduled: SchedulerSample::default(),
            committed: Mark::default(),
            forecast: Forecast::Unknown,
            memory: Memory::default(),
            trouble: Trouble::default(),
            workers: Workers::default(),
        }
    }

    fn received(unread_bytes: u64, unread_transactions: u64) -> ReceiverState {
        ReceiverState {
            amount: Amount::default(),
            on_disk: Amount::default(),
            unread_bytes: Some(unread_bytes),
            unread_transactions: Some(unread_transactions),
            unreceived_bytes: None,
            durable: None,
            relay_bytes: 0,
            relay_full: false,
            syncs: Histogram::default(),
        }
    }

    #[test]
    fn lag_is_the_age_of_the_oldest_transaction_that_is_not_applied() {
        let mut seen = snapshot();
        assert_eq!(seen.lag(), Lag::Unknown);
        // All that was read is applied, an hour ago.
        seen.clock_us = 3_610_000_000;
        seen.read = FeederState { position: Some(LogPosition::new("b.000001", 500)), seq: 5, last_seq: 5, ..seen.read };
        (seen.committed.seq, seen.committed.commit_time_us) = (5, 10_000_001);
        assert_eq!(seen.lag(), Lag::CaughtUp);
        // One comes: it is as old as it is, whatever the last one is.
        (seen.read.last_seq, seen.read.oldest_us) = (6, Some(3_609_800_001));
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_micros(199_999)));
        // Of a source that logs whole seconds, a second may be the clock's.
        seen.read.oldest_us = Some(3_605_000_000);
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_secs(4)));
        // A DDL is under way and not read yet.
        (seen.read.last_seq, seen.read.oldest_us) = (5, None);
        let first = Culprit { seq: 6, gtid: String::new(), position: String::new() };
        let running = RunningGroup {
            time: Duration::ZERO,
            transactions: 1,
            first,
            commit_time_us: 3_608_700_001,
            barrier: None,
            rows: 1,
            bytes: 1,
            subject: Subject::default(),
        };
        seen.workers.each.push(WorkerSample { running: Some(running), ..WorkerSample::default() });
        assert!(matches!(seen.lag(), Lag::Behind(_)));
        seen.workers.each.clear();
        // A paused channel has more in its relay log.
        (seen.trouble.paused, seen.received) = (true, Some(received(5000, 57)));
        assert_eq!(seen.lag(), Lag::Behind(Duration::from_micros(3_599_999_999)));
        seen.received = Some(received(0, 0));
        assert_eq!(seen.lag(), Lag::CaughtUp);
        seen.trouble.source_lost = Some(Outage { time: Duration::from_secs(5), ..Outage::default() });
        assert_eq!(seen.lag(), Lag::SourceLost(Duration::from_secs(5)));
    }

    #[test]
    fn what_is_left() {
        let mut seen = snapshot();
        assert_eq!((seen.left_transactions(), seen.left_bytes()), (None, None));
        seen.received = Some(received(5000, 50));
        (seen.read.last_seq, seen.committed.seq) = (20, 13);
        seen.scheduled.queued_bytes = 600;
        assert_eq!((seen.left_transactions(), seen.left_bytes()), (Some(57), Some(5600)));
        // The source has more that did not come yet, at a hundred bytes each.
        (seen.read.bytes, seen.read.transactions) = (2000, 20);
        seen.received.as_mut().expect("received").unreceived_bytes = Some(100_000);
        assert_eq!((seen.left_transactions(), seen.left_bytes()), (Some(1057), Some(105_600)));
    }

    #[test]
    fn a_position_is_committed_once_the_transactions_before_it_are() {
        let end = LogPosition::new("b.000001", 500);
        let mut seen = snapshot();
        assert!(!seen.has_committed_to(&end));
        seen.read = FeederState { position: Some(end.clone()), seq: 3, ..FeederState::default() };
        seen.committed.seq = 2;
        assert!(!seen.has_committed_to(&end));
        seen.committed.seq = 3;
        assert!(seen.has_committed_to(&end));
    }
}
