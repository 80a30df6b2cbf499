//! A trace's transactions as the engine's: with all that a policy looks at, and without rows.
//!
//! One transaction is filled in anew for each, so that a stream takes no memory.

use std::collections::HashMap;
use std::sync::Arc;

use binlog::gtids::Gtid;
use binlog::{
    Bitmap, Checksum, Event, Flavour, FormatDescription, LogPosition, MariaDbGtid, Query, RowsEvent, RowsKind, TableMap,
};
use bytes::Bytes;
use engine::sql::{self, SqlMode};
use engine::tags::ServerSet;
use engine::transaction::{BarrierCause, Body, Item, Row, RowsItem, StatementItem, Tags, Transaction, WriteSet};

use crate::replica::trace::{AppliedTransaction, Keys, Shape, Trace};

pub(in crate::replica) struct Stream<'a> {
    trace: &'a Trace,
    next: usize,
    begins: Keys<u32>,
    transaction: Transaction,
    items: Items,
}

impl<'a> Stream<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        Self { trace, next: 0, begins: Keys::default(), transaction: blank(), items: Items::default() }
    }

    pub fn next(&mut self) -> Option<&Transaction> {
        let applied = self.trace.transactions.get(self.next)?;
        self.next += 1;
        self.fill(applied);
        Some(&self.transaction)
    }

    /// One that stays.
    #[cfg(test)]
    pub fn next_owned(&mut self) -> Option<Transaction> {
        self.next()?;
        let file = Arc::clone(&self.transaction.start.file);
        let next = Transaction { start: LogPosition::new(file, 0), ..blank() };
        Some(std::mem::replace(&mut self.transaction, next))
    }

    fn fill(&mut self, applied: &AppliedTransaction) {
        let (trace, begins, ends) = (self.trace, self.begins, applied.ends);
        self.begins = ends;
        let transaction = &mut self.transaction;
        transaction.seq = self.next as u64;
        if self.next == 1 || applied.file != self.items.file {
            self.items.file = applied.file;
            transaction.start.file = Arc::from(applied.file.to_string());
        }
        let mariadb = trace.has_groups;
        transaction.gtid = mariadb.then_some(Gtid::MariaDb { domain: applied.domain, server: 1, seq: transaction.seq });
        transaction.tags = Tags {
            last_committed: applied.last_committed.into(),
            sequence_number: applied.sequence_number.into(),
            commit_id: mariadb.then_some(applied.group.into()),
            domain: applied.domain,
            flags: flags(applied),
            session: applied.session,
        };
        // Which barrier it is makes no difference to a policy.
        transaction.barrier = applied.barrier.then_some(BarrierCause::Ddl);
        write_set(&mut transaction.write_set, trace, begins, applied);
        let Body::Items(items) = &mut transaction.body else { return };
        items.clear();
        self.items.add_rows(items, trace, begins.uses as usize..ends.uses as usize);
        add_statements(items, applied.shape);
    }
}

fn blank() -> Transaction {
    Transaction {
        seq: 0,
        gtid: None,
        start: LogPosition::new("", 0),
        end: LogPosition::new("", 0),
        tags: Tags::default(),
        server_id: 1,
        commit_time_us: 0,
        original_commit_us: 0,
        bytes: 0,
        map_bytes: 0,
        body: Body::Items(Vec::new()),
        rolls_back: true,
        only_changes: false,
        beside_prepared: false,
        unsafe_statements: Vec::new(),
        left_out: Vec::new(),
        refusal: None,
        session: None,
        branch: None,
        source_starts: 0,
        write_set: WriteSet::default(),
        barrier: None,
    }
}

/// As MariaDB would log them.
fn flags(applied: &AppliedTransaction) -> u8 {
    let doubt = if applied.doubtful { MariaDbGtid::FL_WAITED } else { MariaDbGtid::FL_ALLOW_PARALLEL };
    doubt | if applied.never_ahead && !applied.barrier { 0 } else { MariaDbGtid::FL_TRANSACTIONAL }
}

/// All keys are in one row: a trace does not say which row has which.
fn write_set(set: &mut WriteSet, trace: &Trace, begins: Keys<u32>, applied: &AppliedTransaction) {
    let (ends, shape) = (applied.ends, applied.shape);
    let writes = trace.writes.get(begins.writes as usize..ends.writes as usize).unwrap_or_default();
    let reads = trace.reads.get(begins.reads as usize..ends.reads as usize).unwrap_or_default();
    let uses = trace.uses.get(begins.uses as usize..ends.uses as usize).unwrap_or_default();
    let server = trace.server.get(begins.server as usize..ends.server as usize).unwrap_or_default();
    set.rows.clear();
    set.hashes.clear();
    set.tables.clear();
    set.tables.extend_from_slice(uses);
    if applied.rows > 0 {
        // Hashes come in pairs, before and after a change.
        set.hashes.extend_from_slice(writes);
        if !writes.len().is_multiple_of(2) {
            set.hashes.push(0);
        }
        let unique = u16::try_from(set.hashes.len() / 2).unwrap_or(u16::MAX);
        set.hashes.extend_from_slice(reads);
        let end_hash = u32::try_from(set.hashes.len()).unwrap_or(u32::MAX);
        set.rows.push(Row { item: 0, before: 0..0, after: 0..0, first_hash: 0, end_hash, unique, wild: false });
    }
    let known = set.server.get_or_insert_default();
    known.hashes.clear();
    known.hashes.extend_from_slice(server);
    let ServerSet { missing_keys, referenced, unknown, .. } = &mut **known;
    (*missing_keys, *referenced) = (shape.has(Shape::MISSING_KEYS), shape.has(Shape::REFERENCED));
    *unknown = shape.has(Shape::UNKNOWN);
}

/// What stands for a transaction's rows and statements.
#[derive(Default)]
struct Items {
    file: u32,
    /// By schema.
    rows: HashMap<u32, Option<RowsItem>>,
    /// Schemas of the transaction.
    seen: Vec<u32>,
}

/// A statement of each kind that a tracker tells from others, and one that it does not.
const STATEMENTS: [(Shape, &str); 6] = [
    (Shape::CREATE_SELECT, "CREATE TABLE s.t (a INT) START TRANSACTION"),
    (Shape::STATEMENT, "INSERT INTO s.t VALUES (1)"),
    (Shape::BLOCKING, "OPTIMIZE TABLE s.t"),
    (Shape::PREPARES, "XA START 'x'"),
    (Shape::COMPLETES, "XA COMMIT 'x'"),
    (Shape::OTHER, "CREATE TABLE s.t (a INT)"),
];

impl Items {
    /// One change for each schema.
    fn add_rows(&mut self, items: &mut Vec<Item>, trace: &Trace, uses: std::ops::Range<usize>) {
        self.seen.clear();
        for table_use in trace.uses.get(uses).unwrap_or_default() {
            let schema = trace.schema_of.get(&table_use.table).copied().unwrap_or_default();
            if self.seen.contains(&schema) {
                continue;
            }
            self.seen.push(schema);
            items.extend(self.rows.entry(schema).or_insert_with(|| rows_item(schema)).clone().map(Item::Rows));
        }
    }
}

fn add_statements(items: &mut Vec<Item>, shape: Shape) {
    let has_more = items.is_empty() && !shape.has(Shape::EMPTY);
    let wanted = |kind: Shape| if kind == Shape::OTHER { has_more } else { shape.has(kind) };
    for (_, text) in STATEMENTS.into_iter().filter(|&(kind, _)| wanted(kind)) {
        items.push(Item::Statement(Box::new(StatementItem {
            query: Query {
                thread_id: 0,
                exec_time: 0,
                error_code: 0,
                schema: Bytes::new(),
                status_vars: Bytes::new(),
                sql: Bytes::from_static(text.as_bytes()),
                vars: binlog::StatusVars::default(),
            },
            timestamp: 0,
            suppress_use: true,
            context: Vec::new(),
            class: sql::classify(text.as_bytes(), "", SqlMode::default()),
            file: None,
        })));
    }
}

/// A change of a table in a schema with this number. `None`: what we encode can not be decoded, which a test would show.
fn rows_item(schema: u32) -> Option<RowsItem> {
    use binlog::encode::{self, FormatSpec, Head, TableMapSpec};
    let head = Head::new(0, 1, Checksum::Crc32);
    let format = encode::format_description(&head, &FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Crc32));
    let (_, format) = FormatDescription::decode(&Bytes::from(format)).ok()?;
    let name = schema.to_string();
    let spec = TableMapSpec {
        table_id: 1,
        flags: 1,
        schema: &name,
        table: "t",
        columns: &[],
        primary_key: None,
        metadata: false,
    };
    let map = encode::table_map(&head, &spec);
    let map = TableMap::decode(&Event::parse(Bytes::from(map), Checksum::Crc32).ok()?, &format).ok()?;
    let event = RowsEvent {
        kind: RowsKind::Update,
        version: 2,
        table_id: 1,
        flags: RowsEvent::STMT_END,
        extra: Bytes::new(),
        width: 0,
        before_columns: Bitmap::full(0),
        after_columns: Bitmap::full(0),
        rows: Bytes::new(),
        partial_json: false,
    };
    Some(RowsItem { map: Arc::new(map), event, timestamp: 0, session: None, table: None, rows: 0..0 })
}

#[cfg(test)]
mod tests {
    use engine::tags::Subject;

    use super::*;

    /// A tracker sees in the engine's transaction what it saw in the log's.
    #[test]
    fn a_tracker_sees_the_shape() {
        let all = [
            Shape::MISSING_KEYS,
            Shape::REFERENCED,
            Shape::UNKNOWN,
            Shape::EMPTY,
            Shape::CREATE_SELECT,
            Shape::STATEMENT,
            Shape::BLOCKING,
            Shape::PREPARES,
            Shape::COMPLETES,
        ];
        for bits in 0..1 << all.len() {
            let shape =
                Shape::of(&all.iter().enumerate().map(|(at, &one)| (one, bits >> at & 1 != 0)).collect::<Vec<_>>());
            let statements =
                [Shape::CREATE_SELECT, Shape::STATEMENT, Shape::BLOCKING, Shape::PREPARES, Shape::COMPLETES];
            if shape.has(Shape::EMPTY) && statements.iter().any(|&statement| shape.has(statement)) {
                continue;
            }
            let applied = AppliedTransaction { shape, session: 7, ..AppliedTransaction::default() };
            let trace = Trace { transactions: vec![applied], ..Trace::default() };
            let mut stream = Stream::new(&trace);
            let subject = Subject::of(stream.next().unwrap());
            let seen = Shape::of(&[
                (Shape::MISSING_KEYS, subject.missing_keys),
                (Shape::REFERENCED, subject.referenced),
                (Shape::UNKNOWN, subject.unknown),
                (Shape::EMPTY, subject.empty),
                (Shape::CREATE_SELECT, subject.create_select),
                (Shape::STATEMENT, subject.statement),
                (Shape::BLOCKING, subject.blocking),
                (Shape::PREPARES, subject.prepares),
                (Shape::COMPLETES, subject.completes),
            ]);
            assert_eq!((seen, subject.session), (shape, 7));
        }
    }
}
