//! A log's transactions in the compact form that replica models take.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use binlog::MariaDbGtid;
use binlog::gtids::Gtid;
use engine::survey::Sink;
use engine::survey::totals::Seen;
use sim::replica::{Applied, Trace};

/// Collects up to so many transactions, about 100 bytes each.
pub struct Collector<'a> {
    pub trace: Trace,
    transactions_max: usize,
    schemas: HashMap<String, u32>,
    full: &'a AtomicBool,
}

impl<'a> Collector<'a> {
    /// `full` is set when there is no room for more.
    pub fn new(transactions_max: usize, full: &'a AtomicBool) -> Self {
        Self { trace: Trace::default(), transactions_max, schemas: HashMap::new(), full }
    }

    fn schemas(&mut self, seen: &Seen<'_>) -> u64 {
        let mut bits = 0;
        for table_use in seen.uses {
            let Some(table) = seen.tables.get(&table_use.table) else { continue };
            let next = self.schemas.len() as u32;
            let number = match self.schemas.get(&table.schema) {
                Some(number) => *number,
                None => *self.schemas.entry(table.schema.clone()).or_insert(next),
            };
            bits |= 1 << (number % 64);
        }
        bits
    }
}

impl Sink for Collector<'_> {
    fn transaction(&mut self, seen: &Seen<'_>) {
        if self.trace.transactions.len() >= self.transactions_max {
            self.full.store(true, Ordering::Relaxed);
            return;
        }
        let record = seen.record;
        let mariadb = matches!(record.gtid, Some(Gtid::MariaDb { .. }));
        self.trace.has_groups |= mariadb;
        self.trace.has_tags |= record.tags.sequence_number > 0;
        let first_follow = self.trace.follows.len() as u32;
        self.trace.follows.extend_from_slice(seen.follows);
        // The same predecessor is told once for each key.
        let own = self.trace.follows.split_off(first_follow as usize);
        let mut own = own;
        own.sort_unstable();
        own.dedup();
        self.trace.follows.append(&mut own);
        let before = (seen.number - 1) as u32;
        let flags = record.tags.flags;
        let parent = |tagged: Option<u64>| tagged.map_or(before, |parent| parent.min(seen.number - 1) as u32);
        let source_parent = parent(seen.source_parent);
        let applied = Applied {
            rows: record.rows().min(u32::MAX.into()) as u32,
            source_us: record.exec_seconds as f32 * 1e6,
            source_parent,
            writeset_parent: parent(seen.writeset.map(|tagged| tagged.parent)),
            session_parent: parent(seen.session.map(|tagged| tagged.parent)),
            group: source_parent + 1,
            domain: record.tags.domain,
            alone: record.barrier.is_some() || (mariadb && flags & MariaDbGtid::FL_TRANSACTIONAL == 0),
            held: mariadb && (flags & MariaDbGtid::FL_WAITED != 0 || flags & MariaDbGtid::FL_ALLOW_PARALLEL == 0),
            barrier: record.barrier.is_some(),
            schemas: self.schemas(seen),
            first_follow,
            end_follow: self.trace.follows.len() as u32,
        };
        self.trace.transactions.push(applied);
    }
}
