//! The tags that a source would write if it went by keys alone, whatever it did write: each transaction follows the last one that wrote a key of it. As
//! MySQL's WRITESET with its default history, but exact for foreign keys and tables without a key.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Intervals;
use crate::Seq;
use crate::schema::TableId;
use crate::transaction::{TableAccess, Transaction};

/// Keys that are remembered: MySQL's `binlog_transaction_dependency_history_size` by default.
pub const KEYS_MAX: usize = 25_000;
/// Tables likewise.
const TABLES_MAX: usize = 4_096;

/// What is known of the last transactions.
#[derive(Debug, Default)]
pub struct KeyedTags {
    keys: HashMap<u64, Seq, FixedState>,
    tables: HashMap<TableId, TableUse, FixedState>,
    /// What is not in the history counts as written by this one.
    start: Seq,
    intervals: Intervals,
}

#[derive(Clone, Copy, Debug, Default)]
struct TableUse {
    /// The last that used it, and the last whose keys do not say all that it writes.
    touched: Seq,
    written: Seq,
}

impl KeyedTags {
    pub fn add(&mut self, transaction: &Transaction) {
        let seq = transaction.seq;
        let parent = if transaction.barrier.is_some() { seq.saturating_sub(1) } else { self.parent(transaction) };
        let number = |seq: Seq| i64::try_from(seq).unwrap_or(i64::MAX);
        self.intervals.add(number(parent), number(seq));
        if transaction.barrier.is_some() || self.keys.len() >= KEYS_MAX || self.tables.len() >= TABLES_MAX {
            self.keys.clear();
            self.tables.clear();
            self.start = seq;
        }
    }

    /// AMIL and pseudo group size of these tags.
    pub fn intervals(&self) -> Intervals {
        self.intervals
    }

    fn parent(&mut self, transaction: &Transaction) -> Seq {
        let (set, seq) = (&transaction.write_set, transaction.seq);
        let mut parent = self.start.min(seq.saturating_sub(1));
        for table_use in &set.tables {
            let table = self.tables.entry(table_use.table).or_default();
            let before = if table_use.access == TableAccess::Keys { table.written } else { table.touched };
            parent = parent.max(if before == seq { 0 } else { before });
            table.touched = seq;
            if table_use.access == TableAccess::WriteAll {
                table.written = seq;
            }
        }
        for row in &set.rows {
            for hash in set.reference_hashes(row) {
                parent = parent.max(self.keys.get(hash).copied().filter(|&by| by < seq).unwrap_or(0));
            }
            for &hash in set.unique_hashes(row).iter().filter(|&&hash| hash != 0) {
                let by = self.keys.insert(hash, seq).unwrap_or(0);
                parent = parent.max(if by < seq { by } else { 0 });
            }
        }
        parent
    }
}
