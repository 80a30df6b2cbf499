//! A log's transactions in the compact form that replica models take.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use binlog::MariaDbGtid;
use binlog::gtids::Gtid;
use engine::policy::WriteSets;
use engine::survey::Sink;
use engine::survey::totals::TransactionFacts;
use sim::replica::{AppliedTransaction, Shape, Trace};

/// Collects up to so many transactions, about 120 bytes each, and 8 for each of their keys.
pub struct Collector<'a> {
    pub trace: Trace,
    transactions_max: usize,
    sets: WriteSets,
    schemas: HashMap<String, u32>,
    full: &'a AtomicBool,
}

impl<'a> Collector<'a> {
    /// `full` is set when there is no room for more. `sets`: whether a policy wants a MySQL server's write sets.
    pub fn new(transactions_max: usize, sets: WriteSets, full: &'a AtomicBool) -> Self {
        Self { trace: Trace::default(), transactions_max, sets, schemas: HashMap::new(), full }
    }

    fn schemas(&mut self, seen: &TransactionFacts<'_>) -> u64 {
        let mut bits = 0;
        for table_use in seen.uses {
            let Some(table) = seen.tables.get(&table_use.table) else { continue };
            let next = self.schemas.len() as u32;
            let number = match self.schemas.get(&table.schema) {
                Some(number) => *number,
                None => *self.schemas.entry(table.schema.clone()).or_insert(next),
            };
            self.trace.schema_of.entry(table_use.table).or_insert(number);
            bits |= 1 << (number % 64);
        }
        bits
    }

    fn take_keys(&mut self, seen: &TransactionFacts<'_>) {
        self.trace.writes.extend_from_slice(seen.writes);
        self.trace.reads.extend_from_slice(seen.reads);
        self.trace.uses.extend_from_slice(seen.uses);
        if self.sets == WriteSets::Server {
            self.trace.server.extend_from_slice(seen.server);
        }
    }
}

fn shape(seen: &TransactionFacts<'_>) -> Shape {
    let subject = seen.record.subject(seen.server);
    Shape::of(&[
        (Shape::MISSING_KEYS, subject.missing_keys),
        (Shape::REFERENCED, subject.referenced),
        (Shape::UNKNOWN, subject.unknown),
        (Shape::EMPTY, subject.empty),
        (Shape::CREATE_SELECT, subject.create_select),
        (Shape::STATEMENT, subject.statement),
        (Shape::BLOCKING, subject.blocking),
        (Shape::PREPARES, subject.prepares),
        (Shape::COMPLETES, subject.completes),
    ])
}

impl Sink for Collector<'_> {
    fn transaction(&mut self, seen: &TransactionFacts<'_>) {
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
        let mut own = self.trace.follows.split_off(first_follow as usize);
        own.sort_unstable();
        own.dedup();
        self.trace.follows.append(&mut own);
        self.take_keys(seen);
        let before = (seen.number - 1) as u32;
        let flags = record.tags.flags;
        let parent = |tagged: Option<u64>| tagged.map_or(before, |parent| parent.min(seen.number - 1) as u32);
        let source_parent = parent(seen.source_parent);
        let applied = AppliedTransaction {
            rows: record.rows().min(u32::MAX.into()) as u32,
            source_us: seen.measured.exec_us as f32,
            source_parent,
            writeset_parent: parent(seen.writeset.map(|tagged| tagged.parent)),
            session_parent: parent(seen.session.map(|tagged| tagged.parent)),
            last_committed: u32::try_from(record.tags.last_committed).unwrap_or_default(),
            sequence_number: u32::try_from(record.tags.sequence_number).unwrap_or_default(),
            file: seen.file,
            session: record.tags.session,
            group: source_parent + 1,
            domain: record.tags.domain,
            never_ahead: record.barrier.is_some() || (mariadb && flags & MariaDbGtid::FL_TRANSACTIONAL == 0),
            doubtful: mariadb && (flags & MariaDbGtid::FL_WAITED != 0 || flags & MariaDbGtid::FL_ALLOW_PARALLEL == 0),
            barrier: record.barrier.is_some(),
            shape: shape(seen),
            schemas: self.schemas(seen),
            first_follow,
            end_follow: self.trace.follows.len() as u32,
            ends: self.trace.ends(),
        };
        self.trace.transactions.push(applied);
    }
}
