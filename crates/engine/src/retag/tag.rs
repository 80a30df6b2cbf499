//! What is said of a transaction: the source's tag, and the new one.

use binlog::gtids::Gtid;

use super::waits::Cause;

/// The new tag of one transaction.
#[derive(Clone, Debug)]
pub struct NewTag {
    /// Where its GTID event stands in its file.
    pub gtid_at: u64,
    pub gtid: Option<Gtid>,
    pub tag: Tag,
    pub cause: Cause,
    /// The key or the table that it waits for.
    pub why: Option<String>,
    pub rows: u64,
}

impl NewTag {
    pub fn is_changed(&self) -> bool {
        match self.tag {
            Tag::LogicalClock { source, last_committed, .. } => source != Some(last_committed),
            Tag::CommitGroup { source, new } => (source.commit_id, source.waited) != (new.commit_id, new.waited),
        }
    }
}

/// Both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// MySQL: the `last_committed` of the source, and the new one. `None`: MySQL 5.6 gives none, and no number.
    LogicalClock { sequence_number: i64, source: Option<i64>, last_committed: i64 },
    /// MariaDB.
    CommitGroup { source: Marks, new: Marks },
}

/// What a MariaDB GTID event says of running beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Neighbours of a domain with the same one run side by side.
    pub commit_id: Option<u64>,
    /// `FL_WAITED`: not begun before everything before it is committed, in mode `optimistic`.
    pub waited: bool,
    /// It is the first of its group.
    pub begins: bool,
}
