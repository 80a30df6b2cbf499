//! Sums over a log's transactions, taken in the order of the log.
//!
//! Memory is bounded: windows, sketches, histograms, series of a bounded length, the largest few.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Cause, Depth, KeyName, Record, Scanned, Traffic};
use crate::quality::exact::{Exact, Link, Placed, Touched};
use crate::quality::{GroupSizes, Histogram, Intervals, Series};
use crate::schema::{Table, TableId, TableOrderCause};
use crate::tags::{Fallback, Rules, Tagged, Tracker, Tracking};
use crate::transaction::{TableAccess, TableUse};
use binlog::gtids::Gtid;

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
    pub fn of(&self, record: &Record) -> u64 {
        let rows = self.transaction_us + self.row_us * record.rows() as f64;
        let ddl = if record.barrier.is_some_and(Cause::is_ddl) { self.ddl_us } else { 0.0 };
        rows.max(ddl).max(f64::from(record.exec_seconds) * 1e6) as u64
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
    /// Seconds that the statements ran on the source.
    pub seconds: u64,
    /// The one that ran longest; of several the first.
    pub example: Example,
    longest: u32,
}

/// A transaction with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sized {
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
pub struct ByTable(pub BTreeMap<TableId, Traffic>);

impl std::ops::AddAssign for ByTable {
    fn add_assign(&mut self, other: Self) {
        for (table, traffic) in other.0 {
            let full = self.0.len() >= TABLES_OF_A_MINUTE_MAX && !self.0.contains_key(&table);
            *self.0.entry(if full { OTHER_TABLES } else { table }).or_default() += traffic;
        }
    }
}

/// Stands for tables that are too many to be told apart over time.
pub const OTHER_TABLES: TableId = TableId(0);
const TABLES_OF_A_MINUTE_MAX: usize = 32;
/// Largest and longest transactions that are kept.
const TOP: usize = 10;
/// Names of keys that are remembered.
const NAMES_MAX: usize = 50_000;
/// Keys and tables for which an example of who waited is kept.
const EXAMPLES_MAX: usize = 20_000;
/// Tables that are told apart.
const TABLES_MAX: usize = 100_000;
/// Keys of a transaction that spans several pieces; what has more is ordered by its tables.
const KEYS_MAX: usize = 1 << 19;

/// One transaction with all that was found out about it.
#[derive(Debug)]
pub struct Seen<'a> {
    /// From 1.
    pub number: u64,
    pub file: u32,
    pub file_name: &'a Arc<str>,
    pub record: &'a Record,
    /// Its keys, those of parents, and the hashes that a MySQL server's tracker would see.
    pub writes: &'a [u64],
    pub reads: &'a [u64],
    pub server: &'a [u64],
    pub uses: &'a [TableUse],
    /// The tables so far.
    pub tables: &'a HashMap<TableId, TableTotal, FixedState>,
    /// Exact dependencies; the numbers count in the window.
    pub placed: Placed,
    /// Transactions that it follows, by their number in the window; may repeat.
    pub follows: &'a [u32],
    /// What the source's tags say, in numbers as `number`: the last transaction that it has to follow.
    pub source_parent: Option<u64>,
    pub writeset: Option<Tagged>,
    pub session: Option<Tagged>,
}

/// Gets every transaction, in order.
pub trait Sink {
    fn transaction(&mut self, seen: &Seen<'_>);
}

/// A transaction of which more pieces come.
#[derive(Debug, Default)]
struct Pending {
    record: Record,
    writes: Vec<u64>,
    reads: Vec<u64>,
    uses: Vec<TableUse>,
    server: Vec<u64>,
}

#[derive(Debug)]
pub struct Totals {
    pub depth: Depth,
    pub costs: Costs,
    pub transactions: u64,
    pub events: u64,
    pub bytes: u64,
    /// Of transactions, decompressed.
    pub unpacked_bytes: u64,
    pub traffic: Traffic,
    pub first_time_us: Option<u64>,
    pub last_time_us: Option<u64>,
    /// New files, after the first.
    pub rotations: u64,
    /// The file that the first of them began.
    pub first_rotation: Option<Arc<str>>,
    pub mariadb: bool,
    pub source: Intervals,
    pub writeset: Intervals,
    pub session: Intervals,
    pub exact_intervals: Intervals,
    pub groups: GroupSizes,
    pub exact: Exact,
    pub barriers: BTreeMap<Cause, Blocker>,
    pub fallbacks: BTreeMap<Fallback, Blocker>,
    pub tables: HashMap<TableId, TableTotal, FixedState>,
    pub names: HashMap<u64, KeyName, FixedState>,
    /// The first transaction that waited for a key, by its hash, and for a table as a whole.
    pub key_examples: HashMap<u64, Example, FixedState>,
    pub table_examples: HashMap<TableId, Example, FixedState>,
    pub rows_histogram: Histogram,
    pub bytes_histogram: Histogram,
    pub largest: Vec<Sized>,
    pub longest: Vec<Sized>,
    pub minutes: Series<Minute>,
    pub table_minutes: Series<ByTable>,
    /// Transactions whose session the log names.
    pub with_session: u64,
    writeset_tracker: Tracker,
    session_tracker: Tracker,
    file: u32,
    file_name: Arc<str>,
    /// Number of the last transaction before the file.
    file_base: u64,
    last_tag: i64,
    /// MariaDB: the last number before the group under way, and the group.
    group_base: u64,
    group: Option<(u32, u64)>,
    pending: Option<Pending>,
    follows: Vec<u32>,
}

impl Totals {
    pub fn new(depth: Depth, costs: Costs) -> Self {
        Self::with_exact(depth, costs, Exact::default())
    }

    /// With windows of another size.
    pub fn with_exact(depth: Depth, costs: Costs, exact: Exact) -> Self {
        let tracker = |tracking| Tracker::new(Rules::new(tracking), 1);
        Self {
            depth,
            costs,
            transactions: 0,
            events: 0,
            bytes: 0,
            unpacked_bytes: 0,
            traffic: Traffic::default(),
            first_time_us: None,
            last_time_us: None,
            rotations: 0,
            first_rotation: None,
            mariadb: false,
            source: Intervals::default(),
            writeset: Intervals::default(),
            session: Intervals::default(),
            exact_intervals: Intervals::default(),
            groups: GroupSizes::default(),
            exact,
            barriers: BTreeMap::new(),
            fallbacks: BTreeMap::new(),
            tables: HashMap::default(),
            names: HashMap::default(),
            key_examples: HashMap::default(),
            table_examples: HashMap::default(),
            rows_histogram: Histogram::default(),
            bytes_histogram: Histogram::default(),
            largest: Vec::new(),
            longest: Vec::new(),
            minutes: Series::new(60),
            table_minutes: Series::with_buckets(60, 2_000),
            with_session: 0,
            writeset_tracker: tracker(Tracking::Writeset),
            session_tracker: tracker(Tracking::WritesetSession),
            file: 0,
            file_name: Arc::from(""),
            file_base: 0,
            last_tag: 0,
            group_base: 0,
            group: None,
            pending: None,
            follows: Vec::new(),
        }
    }

    /// What comes now is from this file. `rotates`: it is not the first.
    pub fn begin_file(&mut self, number: u32, name: &Arc<str>, rotates: bool) {
        (self.file, self.file_name) = (number, Arc::clone(name));
        if rotates {
            self.rotations += 1;
            self.first_rotation.get_or_insert_with(|| Arc::clone(name));
            self.rotate();
        }
        // A transaction does not span files.
        self.pending = None;
    }

    fn rotate(&mut self) {
        self.source.rotate();
        self.writeset.rotate();
        self.session.rotate();
        self.groups.finish();
        self.group = None;
        self.writeset_tracker.rotate();
        self.session_tracker.rotate();
        self.file_base = self.transactions;
        self.last_tag = 0;
    }

    /// The next piece, in the order of the log.
    pub fn add<'s>(&mut self, scanned: &Scanned, mut sink: Option<&mut (dyn Sink + 's)>) {
        self.events += scanned.events;
        self.bytes += scanned.bytes;
        for seen in scanned.tables.values() {
            self.table(&seen.table, seen.traffic, seen.transactions);
        }
        for (&(minute, table), &traffic) in &scanned.minutes {
            *self.table_minutes.at(minute * 60_000_000) += ByTable(BTreeMap::from([(table, traffic)]));
        }
        if self.names.len() + scanned.names.len() > NAMES_MAX {
            // Those of hot keys come again, should their window be the one under way.
            let hot = self.exact.hot();
            self.names.retain(|&hash, _| hot.get(hash).is_some());
        }
        for name in &scanned.names {
            if self.names.len() < NAMES_MAX {
                self.names.entry(name.hash).or_insert_with(|| name.clone());
            }
        }
        for record in &scanned.records {
            let list = |all: &'_ [u64], range: &std::ops::Range<u32>| -> std::ops::Range<usize> {
                let end = (range.end as usize).min(all.len());
                (range.start as usize).min(end)..end
            };
            let writes = scanned.writes.get(list(&scanned.writes, &record.writes)).unwrap_or_default();
            let reads = scanned.reads.get(list(&scanned.reads, &record.reads)).unwrap_or_default();
            let server = scanned.server.get(list(&scanned.server, &record.server)).unwrap_or_default();
            let uses = scanned.uses.get(record.uses.start as usize..record.uses.end as usize).unwrap_or_default();
            let sink = sink.as_deref_mut();
            if !record.continued && !record.goes_on {
                self.transaction(record, writes, reads, uses, server, sink);
                continue;
            }
            let mut pending = match self.pending.take() {
                Some(mut pending) if record.continued => {
                    pending.record.join(record);
                    pending
                }
                _ => Pending { record: record.clone(), ..Pending::default() },
            };
            pending.take(writes, reads, uses, server);
            if record.goes_on {
                self.pending = Some(pending);
            } else {
                let Pending { record, writes, reads, uses, server } = pending;
                self.transaction(&record, &writes, &reads, &uses, &server, sink);
            }
        }
    }

    fn table(&mut self, table: &Table, traffic: Traffic, transactions: u64) {
        if self.tables.len() >= TABLES_MAX && !self.tables.contains_key(&table.id) {
            return;
        }
        let total = self.tables.entry(table.id).or_insert_with(|| TableTotal {
            schema: table.schema.clone(),
            name: table.name.clone(),
            traffic: Traffic::default(),
            transactions: 0,
            order_by_table: None,
            primary_key_only: false,
        });
        total.traffic += traffic;
        total.transactions += transactions;
        total.order_by_table = table.order_by_table;
    }

    fn transaction<'s>(
        &mut self,
        record: &Record,
        writes: &[u64],
        reads: &[u64],
        uses: &[TableUse],
        server: &[u64],
        sink: Option<&mut (dyn Sink + 's)>,
    ) {
        let number = self.transactions + 1;
        let (rows, time) = (record.rows(), record.commit_time_us);
        let mut minute = Minute { transactions: 1, bytes: record.bytes, ..Minute::default() };
        minute.traffic =
            Traffic { inserts: record.inserts, updates: record.updates, deletes: record.deletes, bytes: 0 };
        self.traffic += minute.traffic;
        self.unpacked_bytes += record.unpacked_bytes;
        if time > 0 {
            self.first_time_us = Some(self.first_time_us.map_or(time, |first| first.min(time)));
            self.last_time_us = Some(self.last_time_us.map_or(time, |last| last.max(time)));
        }
        self.rows_histogram.add(rows);
        self.bytes_histogram.add(record.bytes);

        let source_parent = self.source_tags(number, record, &mut minute);
        self.transactions = number;
        let (mut writeset, mut session, mut placed) = (None, None, Placed::default());
        self.follows.clear();
        if self.depth >= Depth::Keys {
            let subject = record.subject(server);
            self.with_session += u64::from(subject.session != 0);
            let order = source_parent.unwrap_or(number - 1).min(number - 1);
            let by_rows = self.writeset_tracker.next(order, &subject);
            let by_session = self.session_tracker.next(order, &subject);
            let note = |intervals: &mut Intervals, tagged: &Tagged| {
                intervals.add(tagged.last_committed, tagged.sequence_number).map_or((0, 0), |length| (1, length))
            };
            minute.intervals[1] = note(&mut self.writeset, &by_rows);
            minute.intervals[2] = note(&mut self.session, &by_session);
            if let Some(fallback) = by_rows.fallback {
                note_blocker(self.fallbacks.entry(fallback).or_default(), record, &self.file_name);
            }
            (writeset, session) = (Some(by_rows), Some(by_session));
            let touched = Touched {
                writes,
                reads,
                tables: uses,
                barrier: record.barrier.map(Cause::number),
                cost_us: self.costs.of(record),
            };
            let follows = &mut self.follows;
            placed = match &sink {
                Some(_) => self.exact.place_and_tell(&touched, |number| follows.push(number)),
                None => self.exact.place(&touched),
            };
            if placed.number == 1 {
                self.exact_intervals.rotate();
            }
            self.note_waiting(placed.link, record);
            let length = self.exact_intervals.add(placed.parent.into(), placed.number.into());
            minute.intervals[3] = length.map_or((0, 0), |length| (1, length));
        }
        if let Some(cause) = record.barrier {
            note_blocker(self.barriers.entry(cause).or_default(), record, &self.file_name);
        }
        *self.minutes.at(time) += minute;
        let file_name = &self.file_name;
        keep(&mut self.largest, |sized| (sized.bytes, sized.rows), (record.bytes, rows), || sized(record, file_name));
        if record.duration_seconds > 0 {
            let duration = (u64::from(record.duration_seconds), 0);
            keep(&mut self.longest, |sized| (sized.duration_seconds.into(), 0), duration, || sized(record, file_name));
        }
        if let Some(sink) = sink {
            let (file, follows, tables, file_name) =
                (self.file, self.follows.as_slice(), &self.tables, &self.file_name);
            sink.transaction(&Seen {
                number,
                file,
                file_name,
                record,
                writes,
                reads,
                server,
                uses,
                tables,
                placed,
                follows,
                source_parent,
                writeset,
                session,
            });
        }
    }

    /// Keeps an example of who waits for a key or a table.
    fn note_waiting(&mut self, link: Link, record: &Record) {
        let make = || example(record, &self.file_name);
        match link {
            Link::Key(hash) | Link::Reference(hash) if self.key_examples.len() < EXAMPLES_MAX => {
                self.key_examples.entry(hash).or_insert_with(make);
            }
            Link::Table(table) if self.table_examples.len() < EXAMPLES_MAX => {
                self.table_examples.entry(table).or_insert_with(make);
            }
            _ => {}
        }
    }

    /// What the source wrote of parallelism. Returns the last transaction to be followed, by our numbers.
    fn source_tags(&mut self, number: u64, record: &Record, minute: &mut Minute) -> Option<u64> {
        let tags = &record.tags;
        if matches!(record.gtid, Some(Gtid::MariaDb { .. })) {
            self.mariadb = true;
            let group = tags.commit_id.map(|id| (tags.domain, id));
            if group.is_none() || group != self.group {
                self.group_base = number - 1;
                self.group = group;
                minute.groups = 1;
            }
            self.groups.add(tags.commit_id);
            return Some(self.group_base);
        }
        if tags.sequence_number <= 0 {
            return None;
        }
        if tags.sequence_number <= self.last_tag {
            // A log of another server's files put together, or a relay log: the numbers began again.
            self.rotate();
        }
        self.last_tag = tags.sequence_number;
        if let Some(length) = self.source.add(tags.last_committed, tags.sequence_number) {
            minute.intervals[0] = (1, length);
            minute.unmodified_sum = tags.sequence_number.saturating_sub(tags.last_committed) as u64;
        }
        let back = tags.sequence_number.saturating_sub(tags.last_committed).max(1) as u64;
        Some(number.saturating_sub(back).max(self.file_base).min(number - 1))
    }

    /// The log names the sessions of its transactions: MariaDB before 11.5 does not.
    pub fn has_sessions(&self) -> bool {
        2 * self.with_session > self.transactions
    }

    /// Nothing more comes.
    pub fn finish(&mut self) {
        self.groups.finish();
    }
}

impl Record {
    /// Takes the continuation of a transaction in.
    fn join(&mut self, next: &Record) {
        self.end = next.end;
        self.bytes += next.bytes;
        self.unpacked_bytes += next.unpacked_bytes;
        self.inserts += next.inserts;
        self.updates += next.updates;
        self.deletes += next.deletes;
        self.statements += next.statements;
        self.barrier = self.barrier.or(next.barrier);
        self.duration_seconds = self.duration_seconds.max(next.duration_seconds);
        self.exec_seconds = self.exec_seconds.max(next.exec_seconds);
        self.keys_left_out |= next.keys_left_out;
        self.missing_keys |= next.missing_keys;
        self.referenced |= next.referenced;
        self.unknown_keys |= next.unknown_keys;
    }
}

impl Pending {
    fn take(&mut self, writes: &[u64], reads: &[u64], uses: &[TableUse], server: &[u64]) {
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

fn example(record: &Record, file: &Arc<str>) -> Example {
    Example { gtid: record.gtid.clone(), file: Arc::clone(file), position: record.start, text: record.text.clone() }
}

fn sized(record: &Record, file: &Arc<str>) -> Sized {
    Sized {
        example: example(record, file),
        commit_time_us: record.commit_time_us,
        rows: record.rows(),
        bytes: record.bytes,
        duration_seconds: record.duration_seconds,
    }
}

fn note_blocker(blocker: &mut Blocker, record: &Record, file: &Arc<str>) {
    if blocker.count == 0 || record.exec_seconds > blocker.longest {
        blocker.example = example(record, file);
        blocker.longest = record.exec_seconds;
    }
    blocker.count += 1;
    blocker.seconds += u64::from(record.exec_seconds);
}

/// Keeps the greatest few, the earlier one of equals first.
fn keep(list: &mut Vec<Sized>, size: impl Fn(&Sized) -> (u64, u64), own: (u64, u64), make: impl FnOnce() -> Sized) {
    if list.len() >= TOP && list.last().is_some_and(|last| size(last) >= own) {
        return;
    }
    let at = list.partition_point(|other| size(other) >= own);
    list.insert(at, make());
    list.truncate(TOP);
}
