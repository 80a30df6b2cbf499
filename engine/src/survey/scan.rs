//! One piece of a log → its transactions, tables and keys.
//!
//! Knows where transactions begin and end in every dialect; what it can not read it notes, and goes on with the next
//! transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlog::{
    Ending, Event, FormatDescription, Header, Kind, LoggedGtids, MariaDbGtid, MySqlGtid, Query, RowsEvent, RowsKind,
    TableMap, TransactionPayload, XaPrepare,
};
use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::cut::events;
use super::keys::{Counts, note_uses};
use super::{Cause, KeyName, LogCatalogue, Piece, Problem, Record, TableSeen, Traffic, table_id};
use crate::intake::Keying;
use crate::schema::{Catalogue, Table, TableId};
use crate::sql::{self, Class, SqlMode};
use crate::tags::Generation;
use crate::transaction::{RowsItem, TableAccess, TableUse, Tags, WriteSet};
use binlog::gtids::Gtid;

/// How deeply a scan looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Tags, transactions, rows and bytes.
    Traffic,
    /// And keys.
    Keys,
}

/// Keys of one transaction in one piece; what has more is ordered by its tables.
const KEYS_MAX: usize = 1 << 18;
/// A compressed transaction is looked into up to this size, in bytes.
const PAYLOAD_BYTES_MAX: u64 = 96 << 20;
/// Characters of a statement that are kept.
const TEXT_CHARS_MAX: usize = 160;
/// Problems of one piece that are kept.
const PROBLEMS_MAX: usize = 100;

/// What a piece holds.
#[derive(Debug, Default)]
pub struct Scanned {
    pub records: Vec<Record>,
    pub writes: Vec<u64>,
    pub reads: Vec<u64>,
    pub uses: Vec<TableUse>,
    /// Hashes as a MySQL server would make them.
    pub server: Vec<u64>,
    pub tables: BTreeMap<TableId, TableSeen>,
    /// By minute since 1970 and table.
    pub minutes: BTreeMap<(u64, TableId), Traffic>,
    pub names: Vec<KeyName>,
    pub problems: Vec<Problem>,
    /// Problems that were not kept.
    pub more_problems: u64,
    /// Events and bytes, those in compressed transactions not counted apart.
    pub events: u64,
    pub bytes: u64,
    pub format_descriptions: u64,
    /// The last event is a ROTATE, and names this file.
    pub next_file: Option<String>,
    /// At the begin of a file: what it says of those before.
    pub list: Option<LoggedGtids>,
    /// Of the transactions that begin here.
    pub gtids: LoggedGtids,
    /// The format description, if a file begins here.
    pub begins: Option<(Header, Arc<FormatDescription>)>,
    /// How what is here ends.
    pub ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// One statement ends it, unless that is a BEGIN.
    Statement,
    /// Until COMMIT, ROLLBACK, XID or XA PREPARE.
    Block,
}

struct Current {
    record: Record,
    open: Open,
    /// The earliest time that an event of it names, in seconds since 1970.
    began: u32,
    /// Places in [`Scan::slots`].
    tables: SmallVec<[usize; 4]>,
}

struct Scan<'a> {
    piece: &'a Piece,
    depth: Depth,
    out: Scanned,
    current: Option<Current>,
    /// An event could not be read: what follows belongs to nothing until a transaction begins.
    lost: bool,
    maps: HashMap<u64, Mapped, FixedState>,
    /// Tables that rows were seen of.
    slots: Vec<Slot>,
    slot_of: HashMap<TableId, usize, FixedState>,
    catalogue: LogCatalogue,
    keying: Keying,
    set: WriteSet,
    counts: Counts,
}

/// A table map, by its number.
struct Mapped {
    /// As in the log: most repeat the one before.
    body: Bytes,
    map: Arc<TableMap>,
    /// Place in [`Scan::slots`], once rows came.
    slot: Option<usize>,
}

/// What goes into a table, summed up before it goes into the lists: most of it comes in the same minute as what was before.
struct Slot {
    seen: TableSeen,
    minute: u64,
    in_minute: Traffic,
}

/// Reads a piece.
pub fn scan(piece: &Piece, depth: Depth) -> Scanned {
    let mut scan = Scan {
        piece,
        depth,
        out: Scanned::default(),
        current: None,
        lost: false,
        maps: HashMap::default(),
        slots: Vec::new(),
        slot_of: HashMap::default(),
        catalogue: LogCatalogue::new(Arc::clone(&piece.definitions)),
        keying: Keying::new(0).for_tags(Generation::Mysql84),
        set: WriteSet::default(),
        counts: Counts::new(piece.bytes.len()),
    };
    scan.run();
    scan.out
}

/// A problem of one event.
type Failed = String;

impl Scan<'_> {
    fn run(&mut self) {
        if let Some(maps) = &self.piece.continued {
            let mut record = Record { start: self.piece.offset, continued: true, ..Record::default() };
            self.begin_lists(&mut record);
            self.current = Some(Current { record, open: Open::Block, began: 0, tables: SmallVec::new() });
            for map in maps {
                if let Ok(event) = Event::parse(map.clone(), self.piece.format.checksum) {
                    // It was read once before: what is wrong with it has been noted.
                    let _ = self.table_map(&event);
                }
            }
        }
        let mut offset = self.piece.offset;
        for bytes in events(&self.piece.bytes) {
            let length = bytes.len() as u64;
            self.out.events += 1;
            self.out.bytes += length;
            match Event::parse(bytes, self.piece.format.checksum) {
                Ok(event) => {
                    self.out.ending.observe(event.header(), &self.piece.format);
                    if let Err(what) = self.event(&event, offset, true) {
                        self.fail(offset, what);
                    }
                }
                Err(corrupt) => self.fail(offset, corrupt.to_string()),
            }
            offset += length;
        }
        if let Some(header) = &self.piece.too_large {
            self.too_large(header, offset);
        }
        if self.current.is_some() {
            if self.piece.goes_on {
                self.end(offset, true);
            } else {
                let began = self.current.as_ref().map_or(0, |current| current.record.start);
                self.problem(began, "a transaction that does not end in its file is not counted".to_owned());
            }
        }
        for slot in std::mem::take(&mut self.slots) {
            self.minute(slot.minute, slot.seen.table.id, slot.in_minute);
            self.out.tables.insert(slot.seen.table.id, slot.seen);
        }
    }

    fn minute(&mut self, minute: u64, table: TableId, traffic: Traffic) {
        *self.out.minutes.entry((minute, table)).or_default() += traffic;
    }

    /// The slot of a table, whatever its maps are.
    fn slot(&mut self, table: Arc<Table>, minute: u64) -> usize {
        let next = self.slots.len();
        let place = *self.slot_of.entry(table.id).or_insert(next);
        if place == next {
            let seen = TableSeen { table, traffic: Traffic::default(), transactions: 0 };
            self.slots.push(Slot { seen, minute, in_minute: Traffic::default() });
        }
        place
    }

    fn problem(&mut self, offset: u64, what: String) {
        if self.out.problems.len() < PROBLEMS_MAX {
            self.out.problems.push(Problem { offset, what });
        } else {
            self.out.more_problems += 1;
        }
    }

    fn fail(&mut self, offset: u64, what: String) {
        self.problem(offset, format!("{what}; its transaction is not counted"));
        self.current = None;
        self.lost = true;
    }

    fn too_large(&mut self, header: &Header, offset: u64) {
        self.problem(
            offset,
            format!("a {} event of {} bytes is counted, but not looked into", header.kind, header.event_len),
        );
        self.out.ending.observe(header, &self.piece.format);
        self.out.events += 1;
        self.out.bytes += u64::from(header.event_len);
        let tables: Vec<TableUse> = self
            .maps
            .values()
            .map(|Mapped { map, .. }| TableUse {
                table: table_id(&map.schema, &map.table),
                access: TableAccess::WriteAll,
            })
            .collect();
        if let Some(current) = &mut self.current {
            current.record.bytes += u64::from(header.event_len);
            current.record.unpacked_bytes += u64::from(header.event_len);
            current.record.keys_left_out = true;
            note_uses(&mut self.out.uses, current.record.uses.start as usize, &tables);
        }
    }

    fn begin_lists(&self, record: &mut Record) {
        let at = |list: usize| list as u32..list as u32;
        record.writes = at(self.out.writes.len());
        record.reads = at(self.out.reads.len());
        record.uses = at(self.out.uses.len());
        record.server = at(self.out.server.len());
    }

    fn begin(&mut self, event: &Event, offset: u64, open: Open) -> &mut Current {
        if let Some(current) = &self.current {
            let began = current.record.start;
            self.problem(
                began,
                format!("a transaction that has not ended when another begins at {offset} is not counted"),
            );
        }
        self.lost = false;
        let time = event.header().timestamp;
        let mut record = Record { start: offset, commit_time_us: u64::from(time) * 1_000_000, ..Record::default() };
        self.begin_lists(&mut record);
        self.current.insert(Current { record, open, began: time, tables: SmallVec::new() })
    }

    /// Ends the transaction under way at `end` of the file.
    fn end(&mut self, end: u64, goes_on: bool) {
        let Some(mut current) = self.current.take() else { return };
        let record = &mut current.record;
        (record.end, record.goes_on) = (end, goes_on);
        record.writes.end = self.out.writes.len() as u32;
        record.reads.end = self.out.reads.len() as u32;
        record.uses.end = self.out.uses.len() as u32;
        record.server.end = self.out.server.len() as u32;
        let committed = (record.commit_time_us / 1_000_000) as u32;
        record.duration_seconds = committed.saturating_sub(current.began);
        for &slot in &current.tables {
            if let Some(slot) = self.slots.get_mut(slot) {
                slot.seen.transactions += 1;
            }
        }
        self.out.records.push(current.record);
    }

    /// `outer`: of the file, not of a compressed transaction.
    fn event(&mut self, event: &Event, offset: u64, outer: bool) -> Result<(), Failed> {
        let kind = event.kind();
        let length = event.bytes().len() as u64;
        let begins = matches!(kind, Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID);
        if let Some(current) = self.current.as_mut().filter(|_| !begins) {
            if outer {
                current.record.bytes += length;
            }
            current.record.unpacked_bytes += length;
            if event.header().timestamp != 0 {
                current.began = current.began.min(event.header().timestamp);
            }
        }
        match kind {
            Kind::TABLE_MAP => self.table_map(event)?,
            kind if kind.is_rows() => self.rows(event, offset)?,
            Kind::XID => self.end_here(offset + length),
            Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => self.mysql(event, offset)?,
            Kind::MARIADB_GTID => self.mariadb(event, offset)?,
            Kind::QUERY | Kind::QUERY_COMPRESSED | Kind::EXECUTE_LOAD_QUERY => self.query(event, offset)?,
            Kind::INTVAR | Kind::RAND | Kind::USER_VAR | Kind::BEGIN_LOAD_QUERY | Kind::APPEND_BLOCK
                if self.current.is_none() && !self.lost =>
            {
                let current = self.begin(event, offset, Open::Statement);
                (current.record.bytes, current.record.unpacked_bytes) = (length, length);
            }
            Kind::XA_PREPARE => {
                let prepare = XaPrepare::decode(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
                if let Some(current) = &mut self.current {
                    let record = &mut current.record;
                    if prepare.one_phase {
                        record.no_branch();
                    } else {
                        record.barrier = record.barrier.or(Some(Cause::Xa));
                    }
                }
                self.end_here(offset + length);
            }
            Kind::TRANSACTION_PAYLOAD => self.payload(event, offset)?,
            Kind::FORMAT_DESCRIPTION => {
                self.out.format_descriptions += 1;
                if self.out.events == 1 {
                    self.out.begins = Some((*event.header(), Arc::clone(&self.piece.format)));
                }
                self.maps.clear();
            }
            // Elsewhere it is one that a replica was sent.
            Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST
                if self.out.events == 2 && self.out.format_descriptions == 1 =>
            {
                let list = LoggedGtids::of_list(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
                self.out.list = list;
            }
            Kind::INCIDENT => {
                self.problem(offset, "the source wrote an incident: it may have lost events here".to_owned());
            }
            Kind::ROTATE => {
                if let Ok(rotate) = binlog::rotate::Rotate::decode(event, &self.piece.format) {
                    self.out.next_file = Some(rotate.file);
                }
            }
            kind if kind.name() == "UNKNOWN" && event.header().flags & 0x80 == 0 => {
                self.problem(offset, format!("an event of type {} is not known and was passed over", kind.0));
            }
            _ => {}
        }
        Ok(())
    }

    fn end_here(&mut self, end: u64) {
        if self.current.is_some() {
            self.end(end, false);
        } else if !self.lost {
            self.problem(end, "the end of a transaction that did not begin in this file".to_owned());
        }
    }

    fn mysql(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let gtid = MySqlGtid::decode(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
        let length = event.bytes().len() as u64;
        self.out.gtids.insert_mysql(&gtid);
        let record = &mut self.begin(event, offset, Open::Statement).record;
        (record.bytes, record.unpacked_bytes) = (length, length);
        record.gtid = Gtid::of_mysql(&gtid);
        record.tags =
            Tags { last_committed: gtid.last_committed, sequence_number: gtid.sequence_number, ..Tags::default() };
        if let Some(us) = gtid.immediate_commit_timestamp_us.or(gtid.original_commit_timestamp_us)
            && us > 0
        {
            record.commit_time_us = us;
        }
        Ok(())
    }

    fn mariadb(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let gtid = MariaDbGtid::decode(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
        let length = event.bytes().len() as u64;
        self.out.gtids.insert_mariadb(&gtid);
        let single = gtid.flags & (MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_COMPLETED_XA) != 0;
        let current = self.begin(event, offset, if single { Open::Statement } else { Open::Block });
        let record = &mut current.record;
        (record.bytes, record.unpacked_bytes) = (length, length);
        record.gtid = Some(Gtid::of_mariadb(&gtid));
        record.tags = Tags { commit_id: gtid.commit_id, domain: gtid.domain_id, flags: gtid.flags, ..Tags::default() };
        record.tags.session = gtid.thread_id.unwrap_or(0);
        if gtid.flags & (MariaDbGtid::FL_PREPARED_XA | MariaDbGtid::FL_COMPLETED_XA) != 0 {
            record.barrier = Some(Cause::Xa);
        }
        Ok(())
    }

    fn query(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let length = event.bytes().len() as u64;
        let format = &self.piece.format;
        let body = event.body();
        let thread = body.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let exec = body.get(4..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if event.kind() == Kind::QUERY && is_begin(body) {
            match &mut self.current {
                Some(current) => current.open = Open::Block,
                None => {
                    let current = self.begin(event, offset, Open::Block);
                    (current.record.bytes, current.record.unpacked_bytes) = (length, length);
                }
            }
            if let Some(current) = &mut self.current {
                current.record.tags.session = thread;
            }
            return Ok(());
        }
        let (query, load) = if event.kind() == Kind::EXECUTE_LOAD_QUERY {
            let load =
                binlog::load_data::ExecuteLoadQuery::decode(event, format).map_err(|corrupt| corrupt.to_string())?;
            (load.query, true)
        } else {
            (Query::decode(event, format).map_err(|corrupt| corrupt.to_string())?, false)
        };
        let mode = SqlMode::of(&query.vars);
        let class = sql::classify(&query.sql, &String::from_utf8_lossy(&query.schema), mode).class;
        if self.current.is_none() {
            if self.lost || matches!(class, Class::Commit | Class::Rollback) {
                return Ok(());
            }
            let current = self.begin(event, offset, Open::Statement);
            (current.record.bytes, current.record.unpacked_bytes) = (length, length);
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        let record = &mut current.record;
        if record.tags.session == 0 {
            record.tags.session = thread;
        }
        record.exec_seconds = record.exec_seconds.max(exec);
        let cause = match class {
            Class::Begin => {
                current.open = Open::Block;
                return Ok(());
            }
            Class::Commit | Class::Rollback => {
                record.no_branch();
                self.end(offset + length, false);
                return Ok(());
            }
            Class::Savepoint | Class::RollbackTo | Class::Release => return Ok(()),
            Class::XaStart { .. } => {
                current.open = Open::Block;
                record.prepares = true;
                Cause::Xa
            }
            Class::XaCommit { .. } | Class::XaRollback => {
                record.completes = true;
                Cause::Xa
            }
            Class::XaEnd | Class::XaPrepare => Cause::Xa,
            Class::Ddl { kind } => {
                // CREATE TABLE … START TRANSACTION: its rows follow.
                if matches!(kind, sql::DdlKind::CreateTable { start_transaction: true, .. }) {
                    current.open = Open::Block;
                    record.create_select = true;
                }
                record.blocking |= is_blocking(kind);
                Cause::of_ddl(kind)
            }
            Class::Dml { .. } | Class::SetStatement if load => Cause::LoadData,
            Class::Dml { .. } | Class::SetStatement => Cause::Statement,
            Class::Unknown => Cause::Unknown,
        };
        record.statements += 1;
        if record.text.is_none() && cause != Cause::Account {
            let text: String = String::from_utf8_lossy(&query.sql).chars().take(TEXT_CHARS_MAX).collect();
            record.text = Some(text.split_whitespace().collect::<Vec<_>>().join(" ").into());
        }
        record.barrier = Some(record.barrier.map_or(cause, |known| known.min(cause)));
        if current.open == Open::Statement {
            self.end(offset + length, false);
        }
        Ok(())
    }

    fn table_map(&mut self, event: &Event) -> Result<(), Failed> {
        let body = event.body();
        let known = body.first_chunk::<6>().and_then(|id| {
            let id = id.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            self.maps.get(&id)
        });
        if known.is_some_and(|known| known.body == body) {
            return Ok(());
        }
        let map = TableMap::decode(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
        self.maps.insert(map.table_id, Mapped { body: event.body_bytes(), map: Arc::new(map), slot: None });
        Ok(())
    }

    fn rows(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let Some(current) = &mut self.current else {
            if !self.lost {
                self.problem(offset, "a rows event outside any transaction is not counted".to_owned());
                self.lost = true;
            }
            return Ok(());
        };
        let format = &self.piece.format;
        let id = RowsEvent::peek_table_id(event, format).map_err(|corrupt| corrupt.to_string())?;
        let Some(Mapped { map, slot, .. }) = self.maps.get(&id) else {
            // A rows event that only ends a statement has no table.
            if [0x00ff_ffff, 0xffff_ffff, 0xffff_ffff_ffff].contains(&id) {
                return Ok(());
            }
            return Err(format!("rows for table id {id}, whose table map is missing"));
        };
        let rows = RowsEvent::decode(event, format).map_err(|corrupt| corrupt.to_string())?;
        let named = |what: String| format!("rows of {}.{}: {what}", map.schema, map.table);
        let length = event.bytes().len() as u64;
        let unpacked = (rows.rows.len() as u64).saturating_sub(length);
        current.record.unpacked_bytes += unpacked;
        let kind = rows.kind;
        let mut item = RowsItem {
            map: Arc::clone(map),
            event: rows,
            timestamp: event.header().timestamp,
            session: None,
            table: None,
            rows: 0..0,
        };
        let first_key = current.record.writes.start as usize;
        let too_many = self.out.writes.len() - first_key.min(self.out.writes.len()) > KEYS_MAX;
        let count = if self.depth >= Depth::Keys && !too_many {
            self.set.rows.clear();
            self.set.hashes.clear();
            self.set.tables.clear();
            let server = self.set.server.get_or_insert_default();
            server.hashes.clear();
            (server.missing_keys, server.referenced, server.unknown) = (false, false, false);
            let table = self
                .keying
                .key_event(0, &mut item, &mut self.catalogue, &mut self.set)
                .map_err(|error| error.to_string())?;
            self.counts.take(&item, &table, &self.set, &mut self.out);
            note_uses(&mut self.out.uses, current.record.uses.start as usize, &self.set.tables);
            if let Some(server) = &self.set.server {
                self.out.server.extend_from_slice(&server.hashes);
                current.record.missing_keys |= server.missing_keys;
                current.record.referenced |= server.referenced;
                current.record.unknown_keys |= server.unknown;
            }
            if !table.transactional {
                current.record.barrier.get_or_insert(Cause::NonTransactional);
            }
            self.set.rows.len() as u64
        } else {
            let mut count = 0;
            for images in item.event.images(&item.map) {
                images.map_err(|corrupt| named(corrupt.to_string()))?;
                count += 1;
            }
            if too_many {
                current.record.keys_left_out = true;
                let all =
                    TableUse { table: table_id(&item.map.schema, &item.map.table), access: TableAccess::WriteAll };
                note_uses(&mut self.out.uses, current.record.uses.start as usize, &[all]);
            }
            count
        };
        let minute = current.record.commit_time_us / 60_000_000;
        let mut traffic = Traffic { bytes: length, ..Traffic::default() };
        match kind {
            RowsKind::Write => (traffic.inserts, current.record.inserts) = (count, current.record.inserts + count),
            RowsKind::Update => (traffic.updates, current.record.updates) = (count, current.record.updates + count),
            RowsKind::Delete => (traffic.deletes, current.record.deletes) = (count, current.record.deletes + count),
        }
        let place = match *slot {
            Some(place) => place,
            None => {
                let table = match &item.table {
                    Some(table) => Arc::clone(table),
                    None => self.catalogue.table(&item.map).map_err(|error| error.to_string())?,
                };
                let place = self.slot(table, minute);
                if let Some(mapped) = self.maps.get_mut(&id) {
                    mapped.slot = Some(place);
                }
                place
            }
        };
        let (Some(current), Some(slot)) = (&mut self.current, self.slots.get_mut(place)) else { return Ok(()) };
        if !current.tables.contains(&place) {
            current.tables.push(place);
        }
        slot.seen.traffic += traffic;
        if slot.minute == minute {
            slot.in_minute += traffic;
            return Ok(());
        }
        let before = (slot.minute, slot.seen.table.id, std::mem::replace(&mut slot.in_minute, traffic));
        slot.minute = minute;
        self.minute(before.0, before.1, before.2);
        Ok(())
    }

    fn payload(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let payload = TransactionPayload::decode(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
        let end = offset + event.bytes().len() as u64;
        if payload.uncompressed_len > PAYLOAD_BYTES_MAX {
            self.problem(
                offset,
                format!(
                    "a compressed transaction of {} bytes is counted, but not looked into",
                    payload.uncompressed_len
                ),
            );
            if let Some(current) = &mut self.current {
                current.record.unpacked_bytes += payload.uncompressed_len;
                current.record.barrier = Some(Cause::Compressed);
            }
            self.end_here(end);
            return Ok(());
        }
        if let Some(current) = &mut self.current {
            current.record.unpacked_bytes = current.record.unpacked_bytes.saturating_sub(event.bytes().len() as u64);
        }
        let number = self.out.records.len();
        for inner in payload.events(PAYLOAD_BYTES_MAX).map_err(|corrupt| corrupt.to_string())? {
            let inner = inner.map_err(|corrupt| corrupt.to_string())?;
            self.event(&inner, offset, false)?;
        }
        // It ended inside, at an offset that means nothing in the file.
        if let Some(record) = self.out.records.get_mut(number) {
            record.end = end;
        }
        Ok(())
    }
}

/// As in [`crate::tags::Subject::blocking`].
fn is_blocking(kind: sql::DdlKind) -> bool {
    use sql::DdlKind::{AlterDatabase, Analyze, CreateDatabase, DropDatabase, Optimize, Repair};
    matches!(kind, Analyze | Optimize | Repair | CreateDatabase | AlterDatabase | DropDatabase)
}

/// Whether a QUERY event's body is just BEGIN, whatever session stands in front of it.
fn is_begin(body: &[u8]) -> bool {
    let (Some(&schema), Some(&[low, high])) = (body.get(8), body.get(11..13)) else { return false };
    let vars = usize::from(u16::from_le_bytes([low, high]));
    body.get(13 + vars + usize::from(schema) + 1..) == Some(b"BEGIN")
}
