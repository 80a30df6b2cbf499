//! What the sums are made of: sizes, examples, time buckets, and a transaction with all that was found out about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlog::gtids::Gtid;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::quality::exact::ChainPosition;
use crate::schema::{TableId, TableOrderCause};
use crate::survey::{Cause, MeasuredTransaction, Record, Traffic};
use crate::tags::TransactionTags;
use crate::transaction::TableUse;

/// Stands for tables that are too many to be told apart over time.
pub const OTHER_TABLES: TableId = TableId(0);
const TABLES_OF_A_MINUTE_MAX: usize = 32;

/// What things take, in microseconds, for estimates of time from a log alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    pub transaction_us: f64,
    pub row_us: f64,
    /// A DDL at least; else what it took on the source.
    pub ddl_us: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { transaction_us: 150.0, row_us: 15.0, ddl_us: 10_000.0 }
    }
}

impl Costs {
    /// `exec_us`: that its statements are believed to have run on the source.
    pub fn of(&self, record: &Record, exec_us: u64) -> u64 {
        let rows = self.transaction_us + self.row_us * record.rows() as f64;
        let ddl = if record.barrier.is_some_and(Cause::is_ddl) { self.ddl_us } else { 0.0 };
        rows.max(ddl).max(exec_us as f64) as u64
    }
}

/// A transaction to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    pub gtid: Option<Gtid>,
    pub file: Arc<str>,
    pub position: u64,
    /// The statement, where there is one.
    pub text: Option<Box<str>>,
}

/// How often something blocks, and one case of it.
#[derive(Clone, Debug, Default)]
pub struct Blocker {
    pub count: u64,
    /// Microseconds that the statements ran on the source.
    pub exec_us: u64,
    /// The one that ran longest; of several the first.
    pub example: Example,
    /// Of the one that ran longest.
    pub longest_us: u64,
}

/// Statements whose time is not when they began: how long the log says that they ran is impossible.
#[derive(Clone, Debug, Default)]
pub struct OtherClock {
    pub count: u64,
    /// The most seconds that one of them states, and which that is.
    pub seconds: u32,
    pub example: Example,
}

/// A transaction with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizedTransaction {
    pub example: Example,
    pub commit_time_us: u64,
    pub rows: u64,
    pub bytes: u64,
    pub duration_seconds: u32,
}

/// All that went into one table.
#[derive(Clone, Debug)]
pub struct TableTotal {
    pub schema: String,
    pub name: String,
    pub traffic: Traffic,
    pub transactions: u64,
    /// Why its rows are ordered as a whole, as of the last time that it was seen.
    pub order_by_table: Option<TableOrderCause>,
    /// Only its primary key is known, from table maps.
    pub primary_key_only: bool,
}

/// One bucket of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Minute {
    pub transactions: u64,
    pub traffic: Traffic,
    /// Of whole transactions.
    pub bytes: u64,
    /// (transactions, sum of modified intervals) of the source's tags, WRITESET, WRITESET_SESSION, exact dependencies.
    pub intervals: [(u64, u64); 4],
    /// Sum of the source's intervals as tagged.
    pub unmodified_sum: u64,
    /// MariaDB: group commits that began.
    pub groups: u64,
}

impl std::ops::AddAssign for Minute {
    fn add_assign(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.traffic += other.traffic;
        self.bytes += other.bytes;
        for (own, other) in self.intervals.iter_mut().zip(other.intervals) {
            own.0 += other.0;
            own.1 += other.1;
        }
        self.unmodified_sum += other.unmodified_sum;
        self.groups += other.groups;
    }
}

/// Tables of a bucket of time.
#[derive(Clone, Debug, Default)]
pub struct TableTraffic(pub BTreeMap<TableId, Traffic>);

impl std::ops::AddAssign for TableTraffic {
    fn add_assign(&mut self, other: Self) {
        for (table, traffic) in other.0 {
            let full = self.0.len() >= TABLES_OF_A_MINUTE_MAX && !self.0.contains_key(&table);
            *self.0.entry(if full { OTHER_TABLES } else { table }).or_default() += traffic;
        }
    }
}

/// One transaction with all that was found out about it.
#[derive(Debug)]
pub struct TransactionFacts<'a> {
    /// From 1.
    pub number: u64,
    pub file: u32,
    pub file_name: &'a Arc<str>,
    pub record: &'a Record,
    /// Its keys, those of parents, and the hashes that a MySQL server's tracker would see.
    pub writes: &'a [u64],
    pub reads: &'a [u64],
    pub server: &'a [u64],
    pub measured: MeasuredTransaction,
    pub uses: &'a [TableUse],
    /// The tables so far.
    pub tables: &'a HashMap<TableId, TableTotal, FixedState>,
    /// Exact dependencies; the numbers count in the window.
    pub placed: ChainPosition,
    /// Transactions that it follows, by their number in the window; may repeat.
    pub follows: &'a [u32],
    /// What the source's tags say, in numbers as `number`: the last transaction that it has to follow.
    pub source_parent: Option<u64>,
    pub writeset: Option<TransactionTags>,
    pub session: Option<TransactionTags>,
}

/// Gets every transaction, in order.
pub trait Sink {
    fn transaction(&mut self, seen: &TransactionFacts<'_>);
}

impl Example {
    pub(super) fn of(record: &Record, file: &Arc<str>) -> Self {
        Self { gtid: record.gtid.clone(), file: Arc::clone(file), position: record.start, text: record.text.clone() }
    }
}

impl SizedTransaction {
    pub(super) fn of(record: &Record, measured: MeasuredTransaction, file: &Arc<str>) -> Self {
        Self {
            example: Example::of(record, file),
            commit_time_us: record.commit_time_us,
            rows: record.rows(),
            bytes: record.bytes,
            duration_seconds: measured.open_seconds,
        }
    }
}

impl Blocker {
    pub(super) fn add(&mut self, record: &Record, measured: MeasuredTransaction, file: &Arc<str>) {
        if self.count == 0 || measured.exec_us > self.longest_us {
            self.example = Example::of(record, file);
            self.longest_us = measured.exec_us;
        }
        self.count += 1;
        self.exec_us += measured.exec_us;
    }
}
