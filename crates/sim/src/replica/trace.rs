//! The stream of transactions that replicas apply, in a compact form: logs have millions.
//!
//! It has what the native servers' rules and the engine's policies go by, and no row.

use engine::transaction::TableUse;

/// One transaction of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AppliedTransaction {
    pub rows: u32,
    /// What it took on the source, where the log says it (DDL, statements), in microseconds; else 0.
    pub source_us: f32,
    /// Numbers of the last transactions that it has to follow, from 1; 0 for none: by the source's tags, by
    /// WRITESET, by WRITESET_SESSION.
    pub source_parent: u32,
    pub writeset_parent: u32,
    pub session_parent: u32,
    /// MySQL's tags as logged; 0, 0: the source does not tag.
    pub last_committed: u32,
    pub sequence_number: u32,
    /// Which of the log's files it is in: tags count anew in each.
    pub file: u32,
    /// The source's session; 0: not known.
    pub session: u32,
    /// MariaDB: group commits are numbered in the order of the stream.
    pub group: u32,
    pub domain: u32,
    /// MariaDB's optimistic modes do not run it ahead: DDL, not transactional.
    pub never_ahead: bool,
    /// MariaDB's mode `optimistic` does not run it ahead: it waited on the source, or is not to be.
    pub doubtful: bool,
    /// Nothing may run beside it by exact dependencies.
    pub barrier: bool,
    pub shape: Shape,
    /// Which schemas it touches: bit n modulo 64; of more schemas some count as one.
    pub schemas: u64,
    /// Exact predecessors: places in [`Trace::follows`].
    pub first_follow: u32,
    pub end_follow: u32,
    /// Where its keys end in the lists of [`Trace`]; they begin where those of the one before end.
    pub ends: Keys<u32>,
}

/// Something for each kind of key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Keys<T> {
    pub writes: T,
    pub reads: T,
    pub uses: T,
    pub server: T,
}

/// What a MySQL server's tracker sees of a transaction beside its hashes ([`engine::tags::Subject`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape(u16);

impl Shape {
    pub const MISSING_KEYS: Self = Self(1);
    pub const REFERENCED: Self = Self(1 << 1);
    pub const UNKNOWN: Self = Self(1 << 2);
    pub const EMPTY: Self = Self(1 << 3);
    pub const CREATE_SELECT: Self = Self(1 << 4);
    pub const STATEMENT: Self = Self(1 << 5);
    pub const BLOCKING: Self = Self(1 << 6);
    pub const PREPARES: Self = Self(1 << 7);
    pub const COMPLETES: Self = Self(1 << 8);
    /// Something else than rows.
    pub const OTHER: Self = Self(1 << 9);

    /// Those of which it is said that they hold.
    pub fn of(all: &[(Self, bool)]) -> Self {
        Self(all.iter().filter(|(_, holds)| *holds).fold(0, |bits, (shape, _)| bits | shape.0))
    }

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A stream of transactions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub transactions: Vec<AppliedTransaction>,
    /// Numbers of transactions, from 1.
    pub follows: Vec<u32>,
    /// Hashes of written keys, of parents' keys, and of MySQL's write sets. The last are there only if somebody asks for them.
    pub writes: Vec<u64>,
    pub reads: Vec<u64>,
    pub server: Vec<u64>,
    pub uses: Vec<TableUse>,
    /// The schema of each table, by number from 0.
    pub schema_of: std::collections::HashMap<engine::schema::TableId, u32>,
    /// The source has tags of its own (MySQL 5.7 and later).
    pub has_tags: bool,
    /// It is MariaDB's.
    pub has_groups: bool,
}

impl Trace {
    /// Exact predecessors of a transaction, by number from 1.
    pub fn follows(&self, applied: &AppliedTransaction) -> &[u32] {
        self.follows.get(applied.first_follow as usize..applied.end_follow as usize).unwrap_or_default()
    }

    /// Where keys of the next transaction will begin.
    pub fn ends(&self) -> Keys<u32> {
        let end = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Keys {
            writes: end(self.writes.len()),
            reads: end(self.reads.len()),
            uses: end(self.uses.len()),
            server: end(self.server.len()),
        }
    }
}
