//! The dependency tags that a MySQL server would give: `last_committed` and `sequence_number`, by its own rules.
//!
//! [`Tracker`] is fed with transactions and says the tags; [`SourceClock`] says what the source's own tags mean, across
//! rotations and gaps; [`ServerSet`] is the write set as the server makes it (keying fills it in, see
//! [`crate::intake::Keying::for_tags`]). For policies, for what a source's tags could be, and for tagging a log anew. What
//! a server knows and its log does not say (sessions with `binlog_format=MIXED`, say) is named at [`Subject`].
//! Nothing here decides what runs when.
//!
//! The rules are facts of `rpl_trx_tracking.cc` and `rpl_write_set_handler.cc`, and were compared with real servers.

mod clock;
mod server_set;
mod subject;
#[cfg(test)]
mod tests;
mod tracker;

pub use clock::{Parent, SourceClock};
pub use server_set::{ForeignKeyHashes, ServerSet};
pub use subject::Subject;
pub use tracker::{Fallback, Tracker, TransactionTags};

/// `binlog_transaction_dependency_tracking`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyTracking {
    /// Prepared before another had committed.
    CommitOrder,
    /// And besides, no common key. The only one since MySQL 8.4.
    Writeset,
    /// As `Writeset`, and transactions of one session keep their order.
    WritesetSession,
}

/// Whose rules: they have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// 5.7.22 and later 5.7.
    Mysql57,
    /// 8.0, as 8.0.15 has it.
    Mysql80,
    /// 8.4 to 9.7. Late releases of 8.0 have taken over some of it.
    Mysql84,
}

/// `binlog_transaction_dependency_history_size` as the servers have it.
pub const HISTORY_HASHES: usize = 25_000;

#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub tracking: DependencyTracking,
    pub generation: Generation,
    /// Hashes that are remembered, `binlog_transaction_dependency_history_size`.
    pub history_max: usize,
}

impl Rules {
    pub fn new(tracking: DependencyTracking) -> Self {
        Self { tracking, generation: Generation::Mysql84, history_max: HISTORY_HASHES }
    }
}

impl Generation {
    pub const ALL: [Self; 3] = [Self::Mysql57, Self::Mysql80, Self::Mysql84];

    /// As in `--writeset-rules`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mysql57 => "5.7",
            Self::Mysql80 => "8.0",
            Self::Mysql84 => "8.4",
        }
    }

    /// Which releases, where the name does not say it.
    pub fn about(self) -> &'static str {
        match self {
            Self::Mysql57 => "",
            Self::Mysql80 => "As 8.0.15",
            Self::Mysql84 => "To 9.7",
        }
    }

    /// Statements such as OPTIMIZE hold back what comes after them, since they give up their locks early.
    fn has_blocking_statements(self) -> bool {
        self != Self::Mysql57
    }

    /// A hash that comes twice counts twice towards the history's size.
    fn counts_repeated(self) -> bool {
        self != Self::Mysql57
    }

    /// A transaction with more hashes than the history holds has no write set.
    fn drops_large_sets(self) -> bool {
        self == Self::Mysql84
    }

    /// Anything but row format, and CREATE TABLE … SELECT, have no usable write set.
    fn wants_rows_only(self) -> bool {
        self == Self::Mysql84
    }

    /// XA COMMIT in the session of its PREPARE counts with the rows that were prepared.
    fn keeps_prepared_sets(self) -> bool {
        self != Self::Mysql84
    }

    /// What of a foreign key is hashed.
    pub fn foreign_key_hashes(self) -> ForeignKeyHashes {
        match self {
            Self::Mysql57 | Self::Mysql80 => ForeignKeyHashes::ByColumn,
            Self::Mysql84 => ForeignKeyHashes::ByKey,
        }
    }

    /// Of a prefix key only the prefix is hashed; before, the whole column was, and equal prefixes went unseen.
    pub fn hashes_prefixes(self) -> bool {
        self == Self::Mysql84
    }
}
