//! Binary logs read for what they say, not to be applied.
//!
//! [`Cutter`] cuts files into pieces of whole transactions, without looking into them; [`scan`] turns a piece into
//! records, one a transaction, with the keys that it touches; [`Totals`] takes the records in the order of the log and
//! sums up. Pieces can be scanned in any order and at the same time: the cuts depend on the bytes alone, so the sums do
//! not depend on who scanned what.
//!
//! Unlike [`crate::intake`], what is damaged or not known is recorded and passed over: nothing is applied here, and what
//! can be read is worth reading. Nothing is skipped without a [`Problem`].

mod catalogue;
mod cause;
mod cut;
mod definitions;
mod dump;
mod durations;
mod fit;
mod keys;
mod piece_summary;
mod scan;
pub mod search;
pub mod totals;

pub use catalogue::LogCatalogue;
pub use cause::Cause;
pub use cut::{Cut, Cutter, FileWriter, PIECE_BYTES, Piece};
pub use definitions::Definitions;
pub use dump::Statements;
pub use durations::{Durations, MeasuredTransaction};
pub(crate) use keys::{Side, key_name};
pub use piece_summary::{Depth, PieceSummary};
pub use scan::{scan, scan_part};
pub use totals::{Sink, Totals};

use crate::schema::{Table, TableId};
use crate::tags::Subject;
use crate::transaction::Tags;
use binlog::gtids::Gtid;
use std::ops::Range;
use std::sync::Arc;

/// Something that could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Offset in the file, in bytes.
    pub offset: u64,
    pub what: String,
    pub kind: ProblemKind,
}

/// What a problem means for who reads a log that still grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The log is not as it should be.
    Damage,
    /// The last transaction has not ended: its rest may come.
    Unfinished,
}

impl Problem {
    pub fn new(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, what: what.into(), kind: ProblemKind::Damage }
    }
}

/// One transaction, or one statement outside of any.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Offset of its first event.
    pub start: u64,
    /// Offset behind its last event.
    pub end: u64,
    pub gtid: Option<Gtid>,
    pub tags: Tags,
    /// Microseconds since 1970 of the commit on the server that wrote the log.
    pub commit_time_us: u64,
    /// The same on the server that it comes from; 0: the log does not say (MySQL before 8.0, MariaDB).
    pub original_commit_us: u64,
    /// The earliest time of its events, in seconds since 1970.
    pub began: u32,
    /// From there to the commit, in seconds, by what the log states: [`Durations`] says how much of it can be so.
    pub duration_seconds: u32,
    /// Seconds that its longest statement ran (statements and DDL only), and the time that this statement has; as stated, too.
    pub exec_seconds: u32,
    pub exec_began: u32,
    /// The clock of the server that logged its last statement, in microseconds since 1970; 0: not known.
    pub ended_us: u64,
    /// Another server executed it first.
    pub replicated: bool,
    /// As in the log, and decompressed.
    pub bytes: u64,
    pub unpacked_bytes: u64,
    pub inserts: u64,
    pub updates: u64,
    pub deletes: u64,
    pub statements: u32,
    /// Nothing may run beside it.
    pub barrier: Option<Cause>,
    /// The beginning of the statement that made it a barrier; not of statements about accounts.
    pub text: Option<Box<str>>,
    /// Its keys in [`PieceSummary::writes`], [`PieceSummary::reads`] and [`PieceSummary::uses`].
    pub writes: Range<u32>,
    pub reads: Range<u32>,
    pub uses: Range<u32>,
    /// What a MySQL server's tracker would see, see [`Record::subject`]; the hashes are in [`PieceSummary::server`].
    pub server: Range<u32>,
    pub missing_keys: bool,
    pub referenced: bool,
    pub unknown_keys: bool,
    pub create_select: bool,
    pub blocking: bool,
    /// XA PREPARE; XA COMMIT or XA ROLLBACK of a prepared one.
    pub prepares: bool,
    pub completes: bool,
    /// Its keys are not all there: it is ordered by its tables.
    pub keys_left_out: bool,
    /// It began in the piece before.
    pub continued: bool,
    /// It goes on in the next piece.
    pub goes_on: bool,
}

impl Record {
    /// XA COMMIT … ONE PHASE is a commit like any other; so is any other end of a branch but a prepare.
    pub(super) fn no_branch(&mut self) {
        self.prepares = false;
        if self.barrier == Some(Cause::Xa) {
            (self.barrier, self.text) = (None, None);
        }
    }

    pub fn rows(&self) -> u64 {
        self.inserts + self.updates + self.deletes
    }

    /// For [`crate::tags::Tracker`]; `hashes` are those of [`Record::server`].
    pub fn subject<'a>(&self, hashes: &'a [u64]) -> Subject<'a> {
        Subject {
            hashes,
            missing_keys: self.missing_keys,
            referenced: self.referenced,
            unknown: self.unknown_keys || self.keys_left_out,
            empty: self.rows() == 0 && self.statements == 0,
            create_select: self.create_select,
            statement: matches!(self.barrier, Some(Cause::Statement | Cause::LoadData)),
            blocking: self.blocking,
            prepares: self.prepares,
            completes: self.completes,
            session: self.tags.session,
        }
    }
}

/// Rows and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub inserts: u64,
    pub updates: u64,
    pub deletes: u64,
    /// Of rows events.
    pub bytes: u64,
}

impl Traffic {
    pub fn rows(&self) -> u64 {
        self.inserts + self.updates + self.deletes
    }
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.inserts += other.inserts;
        self.updates += other.updates;
        self.deletes += other.deletes;
        self.bytes += other.bytes;
    }
}

/// A key that came several times in a piece, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyName {
    pub hash: u64,
    pub table: TableId,
    pub index: Arc<str>,
    /// Such as `id=42`, or `order_id=1, line=2`.
    pub values: String,
}

/// Stands for a table by its name alone, the same in every piece.
pub fn table_id(schema: &str, table: &str) -> TableId {
    let mut text = Vec::with_capacity(schema.len() + table.len() + 1);
    text.extend_from_slice(schema.as_bytes());
    text.push(0);
    text.extend_from_slice(table.as_bytes());
    TableId(twox_hash::XxHash64::oneshot(0, &text) as u32)
}

/// A table of a piece and what went into it.
#[derive(Clone, Debug)]
pub struct TableRecord {
    pub table: Arc<Table>,
    pub traffic: Traffic,
    pub transactions: u64,
}
