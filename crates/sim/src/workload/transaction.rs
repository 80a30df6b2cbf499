//! What comes out of the workload: transactions in commit order, with the rows that each changed.

use crate::schema::TableIndex;
use crate::value::{Key, Row};

/// One commit, or one DDL statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Number in commit order, from 1.
    pub seq: u64,
    /// The last transaction that had committed when this one was prepared; 0: none.
    pub commit_parent: u64,
    /// Which session ran it.
    pub session: u32,
    /// Microseconds since 1970 of its first statement.
    pub begun_us: u64,
    /// Of its COMMIT.
    pub prepared_us: u64,
    /// When it was written to the log. Rises with `seq`.
    pub commit_time_us: u64,
    pub body: Body,
}

/// What a transaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// One statement that is logged as its text.
    Ddl { schema: String, sql: String },
    /// Statements that are logged as rows; at least one.
    Rows(Vec<Statement>),
}

/// The rows that one statement changed, in one table and in one way; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub table: TableIndex,
    pub kind: ChangeKind,
    /// Microseconds since 1970.
    pub at_us: u64,
    pub changes: Vec<Change>,
}

/// How a statement changes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Insert,
    Update,
    Delete,
}

/// One row's change. No change moves a row to another key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    /// `None`: an insert.
    pub before: Option<Row>,
    /// `None`: a delete.
    pub after: Option<Row>,
}

impl Statement {
    /// Which rows it changed.
    pub fn rows(&self) -> impl Iterator<Item = (TableIndex, Key)> {
        self.changes.iter().map(|change| (self.table, change.key))
    }
}

impl Transaction {
    /// Rows that it changed; one that two statements changed counts twice.
    pub fn rows(&self) -> usize {
        match &self.body {
            Body::Ddl { .. } => 0,
            Body::Rows(statements) => statements.iter().map(|statement| statement.changes.len()).sum(),
        }
    }
}
