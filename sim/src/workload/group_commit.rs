//! The commit of a server with a binary log: flush, sync and commit stages, each one group at a time.
//!
//! Whoever is prepared while a stage is busy shares the next turn of it, and with that its fsync. While one group is
//! being synced the next is being flushed (`MYSQL_BIN_LOG::ordered_commit`).

use super::locks::SessionId;
use super::transaction::Statement;

/// A transaction between its COMMIT and the end of it.
#[derive(Debug)]
pub struct Prepared {
    pub session: SessionId,
    /// The last transaction that was committed when this one was prepared.
    pub commit_parent: u64,
    pub begun_us: u64,
    pub prepared_us: u64,
    pub statements: Vec<Statement>,
}

/// A stage has begun and ends after its fsync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// Of the storage engine's log.
    Flush,
    /// Of the binary log.
    Sync,
}

#[derive(Debug, Default)]
pub struct GroupCommit {
    waiting: Vec<Prepared>,
    flushing: Option<Vec<Prepared>>,
    flushed: Vec<Flushed>,
    syncing: Option<Vec<Flushed>>,
    last_seq: u64,
}

/// It has its place in the log.
#[derive(Debug)]
pub struct Flushed {
    pub seq: u64,
    pub commit_time_us: u64,
    pub prepared: Prepared,
}

impl GroupCommit {
    /// `last_seq`: how many transactions are in the log already.
    pub fn new(last_seq: u64) -> GroupCommit {
        GroupCommit { last_seq, ..GroupCommit::default() }
    }

    pub fn prepared(&mut self, prepared: Prepared) -> Option<Begun> {
        self.waiting.push(prepared);
        self.begin_flush()
    }

    /// The flush stage's fsync has ended.
    pub fn flush_ended(&mut self, now_us: u64) -> [Option<Begun>; 2] {
        for prepared in self.flushing.take().unwrap_or_default() {
            self.last_seq += 1;
            self.flushed.push(Flushed { seq: self.last_seq, commit_time_us: now_us, prepared });
        }
        [self.begin_sync(), self.begin_flush()]
    }

    /// The sync stage's fsync has ended: its transactions are committed, in this order.
    pub fn sync_ended(&mut self) -> (Vec<Flushed>, Option<Begun>) {
        let committed = self.syncing.take().unwrap_or_default();
        (committed, self.begin_sync())
    }

    fn begin_flush(&mut self) -> Option<Begun> {
        if self.flushing.is_some() || self.waiting.is_empty() {
            return None;
        }
        self.flushing = Some(std::mem::take(&mut self.waiting));
        Some(Begun::Flush)
    }

    fn begin_sync(&mut self) -> Option<Begun> {
        if self.syncing.is_some() || self.flushed.is_empty() {
            return None;
        }
        self.syncing = Some(std::mem::take(&mut self.flushed));
        Some(Begun::Sync)
    }
}
