//! The commit of a server with a binary log: flush, sync and commit stages, each one group at a time.
//!
//! Whoever is prepared while a stage is busy shares the next turn of it, and with that its fsync. While one group is
//! being synced the next is being flushed (`MYSQL_BIN_LOG::ordered_commit`).

use super::locks::SessionId;
use super::transaction::Statement;

/// A transaction between its COMMIT and the end of it.
#[derive(Debug)]
pub struct PreparedCommit {
    pub session: SessionId,
    /// The last transaction that was committed when this one was prepared.
    pub commit_parent: u64,
    pub begun_us: u64,
    pub prepared_us: u64,
    pub statements: Vec<Statement>,
}

/// A stage has begun and ends after its fsync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageStart {
    /// Of the storage engine's log.
    Flush,
    /// Of the binary log.
    Sync,
}

#[derive(Debug, Default)]
pub struct GroupCommit {
    waiting: Vec<PreparedCommit>,
    flushing: Option<Vec<PreparedCommit>>,
    flushed: Vec<FlushedCommit>,
    syncing: Option<Vec<FlushedCommit>>,
    last_seq: u64,
}

/// It has its place in the log.
#[derive(Debug)]
pub struct FlushedCommit {
    pub seq: u64,
    pub commit_time_us: u64,
    pub prepared: PreparedCommit,
}

impl GroupCommit {
    /// `last_seq`: how many transactions are in the log already.
    pub fn new(last_seq: u64) -> GroupCommit {
        GroupCommit { last_seq, ..GroupCommit::default() }
    }

    pub fn prepared(&mut self, prepared: PreparedCommit) -> Option<StageStart> {
        self.waiting.push(prepared);
        self.begin_flush()
    }

    /// The flush stage's fsync has ended.
    pub fn flush_ended(&mut self, now_us: u64) -> [Option<StageStart>; 2] {
        for prepared in self.flushing.take().unwrap_or_default() {
            self.last_seq += 1;
            self.flushed.push(FlushedCommit { seq: self.last_seq, commit_time_us: now_us, prepared });
        }
        [self.begin_sync(), self.begin_flush()]
    }

    /// The sync stage's fsync has ended: its transactions are committed, in this order.
    pub fn sync_ended(&mut self) -> (Vec<FlushedCommit>, Option<StageStart>) {
        let committed = self.syncing.take().unwrap_or_default();
        (committed, self.begin_sync())
    }

    fn begin_flush(&mut self) -> Option<StageStart> {
        if self.flushing.is_some() || self.waiting.is_empty() {
            return None;
        }
        self.flushing = Some(std::mem::take(&mut self.waiting));
        Some(StageStart::Flush)
    }

    fn begin_sync(&mut self) -> Option<StageStart> {
        if self.syncing.is_some() || self.flushed.is_empty() {
            return None;
        }
        self.syncing = Some(std::mem::take(&mut self.flushed));
        Some(StageStart::Sync)
    }
}
