//! A transaction that spans several pieces, until its last one has come.

use crate::schema::TableId;
use crate::survey::Record;
use crate::transaction::{TableAccess, TableUse};

/// Keys of a transaction that spans several pieces; what has more is ordered by its tables.
const KEYS_MAX: usize = 1 << 19;

/// A transaction of which more pieces come.
#[derive(Debug, Default)]
pub(super) struct PendingTransaction {
    pub record: Record,
    pub writes: Vec<u64>,
    pub reads: Vec<u64>,
    pub uses: Vec<TableUse>,
    pub server: Vec<u64>,
}

impl Record {
    /// Takes the continuation of a transaction in.
    pub(super) fn join(&mut self, next: &Record) {
        self.end = next.end;
        self.bytes += next.bytes;
        self.unpacked_bytes += next.unpacked_bytes;
        self.inserts += next.inserts;
        self.updates += next.updates;
        self.deletes += next.deletes;
        self.statements += next.statements;
        self.barrier = self.barrier.or(next.barrier);
        self.duration_seconds = self.duration_seconds.max(next.duration_seconds);
        self.ended_us = self.ended_us.max(next.ended_us);
        if next.exec_seconds > self.exec_seconds {
            (self.exec_seconds, self.exec_began) = (next.exec_seconds, next.exec_began);
        }
        self.keys_left_out |= next.keys_left_out;
        self.missing_keys |= next.missing_keys;
        self.referenced |= next.referenced;
        self.unknown_keys |= next.unknown_keys;
    }
}

impl PendingTransaction {
    pub fn take(&mut self, writes: &[u64], reads: &[u64], uses: &[TableUse], server: &[u64]) {
        for table_use in uses {
            if !self.uses.contains(table_use) {
                self.uses.push(*table_use);
            }
        }
        if self.writes.len() + writes.len() + self.reads.len() + reads.len() > KEYS_MAX || self.record.keys_left_out {
            self.record.keys_left_out = true;
            (self.writes, self.reads, self.server) = Default::default();
            let tables: Vec<TableId> = self.uses.iter().map(|table_use| table_use.table).collect();
            for table in tables {
                let all = TableUse { table, access: TableAccess::WriteAll };
                if !self.uses.contains(&all) {
                    self.uses.push(all);
                }
            }
            return;
        }
        self.writes.extend_from_slice(writes);
        self.reads.extend_from_slice(reads);
        self.server.extend_from_slice(server);
    }
}
