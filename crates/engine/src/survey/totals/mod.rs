//! Sums over a log's transactions, taken in the order of the log.
//!
//! Memory is bounded: windows, sketches, histograms, series of a bounded length, the largest few.

mod facts;
mod pending_transaction;

pub use facts::{
    Blocker, Costs, Example, Minute, OTHER_TABLES, OtherClock, Sink, SizedTransaction, TableTotal, TableTraffic,
    TransactionFacts,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use binlog::gtids::Gtid;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Cause, Depth, Durations, KeyName, MeasuredTransaction, PieceSummary, Record, Traffic};
use crate::intake::Selection;
use crate::quality::exact::{ChainPosition, ExactModel, Link, TouchedRows};
use crate::quality::{GroupSizes, Histogram, Intervals, Series};
use crate::schema::{Table, TableId};
use crate::tags::{DependencyTracking, Fallback, Rules, Tracker, TransactionTags};
use crate::transaction::TableUse;
use pending_transaction::PendingTransaction;

/// Largest and longest transactions that are kept.
const TOP: usize = 10;
/// Names of keys that are remembered.
const NAMES_MAX: usize = 50_000;
/// Keys and tables for which an example of who waited is kept.
const EXAMPLES_MAX: usize = 20_000;
/// Tables that are told apart.
const TABLES_MAX: usize = 100_000;

#[derive(Debug)]
pub struct Totals {
    pub depth: Depth,
    /// What is counted.
    pub selection: Selection,
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
    pub exact: ExactModel,
    pub barriers: BTreeMap<Cause, Blocker>,
    pub other_clock: OtherClock,
    pub fallbacks: BTreeMap<Fallback, Blocker>,
    pub tables: HashMap<TableId, TableTotal, FixedState>,
    pub names: HashMap<u64, KeyName, FixedState>,
    /// The first transaction that waited for a key, by its hash, and for a table as a whole.
    pub key_examples: HashMap<u64, Example, FixedState>,
    pub table_examples: HashMap<TableId, Example, FixedState>,
    pub rows_histogram: Histogram,
    pub bytes_histogram: Histogram,
    pub largest: Vec<SizedTransaction>,
    pub longest: Vec<SizedTransaction>,
    /// The one that takes longest to apply of those that may run beside others.
    pub slowest: Option<SizedTransaction>,
    pub minutes: Series<Minute>,
    pub table_minutes: Series<TableTraffic>,
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
    pending: Option<PendingTransaction>,
    follows: Vec<u32>,
    durations: Durations,
    /// What [`Totals::slowest`] takes.
    slowest_us: u64,
}

impl Totals {
    pub fn new(depth: Depth, costs: Costs) -> Self {
        Self::with_exact(depth, costs, ExactModel::default())
    }

    /// With windows of another size.
    pub fn with_exact(depth: Depth, costs: Costs, exact: ExactModel) -> Self {
        let tracker = |tracking| Tracker::new(Rules::new(tracking), 1);
        Self {
            depth,
            selection: Selection::everything(),
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
            other_clock: OtherClock::default(),
            fallbacks: BTreeMap::new(),
            tables: HashMap::default(),
            names: HashMap::default(),
            key_examples: HashMap::default(),
            table_examples: HashMap::default(),
            rows_histogram: Histogram::default(),
            bytes_histogram: Histogram::default(),
            largest: Vec::new(),
            longest: Vec::new(),
            slowest: None,
            slowest_us: 0,
            durations: Durations::default(),
            minutes: Series::fitting(),
            table_minutes: Series::with_buckets(1, 2_000),
            with_session: 0,
            writeset_tracker: tracker(DependencyTracking::Writeset),
            session_tracker: tracker(DependencyTracking::WritesetSession),
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
    pub fn add<'s>(&mut self, scanned: &PieceSummary, mut sink: Option<&mut (dyn Sink + 's)>) {
        self.events += scanned.events;
        self.bytes += scanned.bytes;
        self.durations.file(scanned.begun_us, scanned.started_us);
        for seen in scanned.tables.values() {
            self.table(&seen.table, seen.traffic, seen.transactions);
        }
        for (&(second, table), &traffic) in &scanned.seconds {
            *self.table_minutes.at(second * 1_000_000) += TableTraffic(BTreeMap::from([(table, traffic)]));
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
                _ => PendingTransaction { record: record.clone(), ..PendingTransaction::default() },
            };
            pending.take(writes, reads, uses, server);
            if record.goes_on {
                self.pending = Some(pending);
            } else {
                let PendingTransaction { record, writes, reads, uses, server } = pending;
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
        let measured = self.durations.measure(record);
        let cost_us = self.costs.of(record, measured.exec_us);
        self.note_other_clock(record, measured);
        let mut minute = Minute { transactions: 1, bytes: record.bytes, ..Minute::default() };
        minute.traffic =
            Traffic { inserts: record.inserts, updates: record.updates, deletes: record.deletes, bytes: 0 };
        self.traffic += minute.traffic;
        self.unpacked_bytes += record.unpacked_bytes;
        self.note_time(time);
        self.rows_histogram.add(rows);
        self.bytes_histogram.add(record.bytes);

        let source_parent = self.source_tags(number, record, &mut minute);
        self.transactions = number;
        let (mut writeset, mut session, mut placed) = (None, None, ChainPosition::default());
        self.follows.clear();
        if self.depth >= Depth::Keys {
            let subject = record.subject(server);
            self.with_session += u64::from(subject.session != 0);
            let order = source_parent.unwrap_or(number - 1).min(number - 1);
            let by_rows = self.writeset_tracker.next(order, &subject);
            let by_session = self.session_tracker.next(order, &subject);
            let note = |intervals: &mut Intervals, tagged: &TransactionTags| {
                intervals.add(tagged.last_committed, tagged.sequence_number).map_or((0, 0), |length| (1, length))
            };
            minute.intervals[1] = note(&mut self.writeset, &by_rows);
            minute.intervals[2] = note(&mut self.session, &by_session);
            if let Some(fallback) = by_rows.fallback {
                self.fallbacks.entry(fallback).or_default().add(record, measured, &self.file_name);
            }
            (writeset, session) = (Some(by_rows), Some(by_session));
            let touched =
                TouchedRows { writes, reads, tables: uses, barrier: record.barrier.map(Cause::number), cost_us };
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
            self.barriers.entry(cause).or_default().add(record, measured, &self.file_name);
        }
        *self.minutes.at(time) += minute;
        self.keep_if_large(record, measured, cost_us);
        if let Some(sink) = sink {
            let (file, follows, tables, file_name) =
                (self.file, self.follows.as_slice(), &self.tables, &self.file_name);
            sink.transaction(&TransactionFacts {
                number,
                file,
                file_name,
                record,
                writes,
                reads,
                server,
                measured,
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

    fn note_other_clock(&mut self, record: &Record, measured: MeasuredTransaction) {
        let Some(seconds) = measured.stated else { return };
        self.other_clock.count += 1;
        if seconds > self.other_clock.seconds {
            (self.other_clock.seconds, self.other_clock.example) = (seconds, Example::of(record, &self.file_name));
        }
    }

    /// `time`: of a commit; 0: not known.
    fn note_time(&mut self, time: u64) {
        if time > 0 {
            self.first_time_us = Some(self.first_time_us.map_or(time, |first| first.min(time)));
            self.last_time_us = Some(self.last_time_us.map_or(time, |last| last.max(time)));
        }
    }

    /// Keeps the transaction if it is one of the largest, or of the longest.
    fn keep_if_large(&mut self, record: &Record, measured: MeasuredTransaction, cost_us: u64) {
        let file_name = &self.file_name;
        let make = || SizedTransaction::of(record, measured, file_name);
        keep(&mut self.largest, |sized| (sized.bytes, sized.rows), (record.bytes, record.rows()), make);
        if measured.open_seconds > 0 {
            let duration = (u64::from(measured.open_seconds), 0);
            keep(&mut self.longest, |sized| (sized.duration_seconds.into(), 0), duration, make);
        }
        if record.barrier.is_none() && cost_us > self.slowest_us {
            (self.slowest, self.slowest_us) = (Some(make()), cost_us);
        }
    }

    /// Keeps an example of who waits for a key or a table.
    fn note_waiting(&mut self, link: Link, record: &Record) {
        let make = || Example::of(record, &self.file_name);
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

/// Keeps the greatest few, the earlier one of equals first.
fn keep(
    list: &mut Vec<SizedTransaction>,
    size: impl Fn(&SizedTransaction) -> (u64, u64),
    own: (u64, u64),
    make: impl FnOnce() -> SizedTransaction,
) {
    if list.len() >= TOP && list.last().is_some_and(|last| size(last) >= own) {
        return;
    }
    let at = list.partition_point(|other| size(other) >= own);
    list.insert(at, make());
    list.truncate(TOP);
}
