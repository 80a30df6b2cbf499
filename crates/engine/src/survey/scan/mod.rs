//! One piece of a log → its transactions, tables and keys.
//!
//! [`Boundary`] says where transactions begin and end. What cannot be read is recorded as a [`Problem`], and the scan goes on with the
//! next transaction: unlike the assembler, it never stops.

mod rows;
mod statements;

use std::sync::Arc;

use binlog::boundary::{Boundary, Step, is_gtid};
use binlog::gtids::Gtid;
use binlog::{Event, Header, Kind, LoggedGtids, MariaDbGtid, MySqlGtid, TransactionPayload, XaPrepare};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::cut::{PAYLOAD_BYTES_MAX, events};
use super::keys::{Counts, note_uses};
use super::{
    Cause, Depth, LogCatalogue, Piece, PieceSummary, Problem, ProblemKind, Record, TableRecord, Traffic, table_id,
};
use crate::intake::{Keying, Selection, Tables};
use crate::schema::{Table, TableId};
use crate::tags::Generation;
use crate::transaction::{TableAccess, TableUse, Tags, WriteSet};

/// What the table maps of one statement may take in memory.
const MAPS_BYTES_MAX: u64 = 64 << 20;
/// Problems of one piece that are kept.
const PROBLEMS_MAX: usize = 100;

/// The transaction that is open for [`Scan::boundary`].
struct Current {
    record: Record,
    /// The earliest time that an event of it names, in seconds since 1970.
    began: u32,
    /// Places in [`Scan::slots`].
    tables: SmallVec<[usize; 4]>,
}

struct Scan<'a> {
    piece: &'a Piece,
    depth: Depth,
    out: PieceSummary,
    boundary: Boundary,
    current: Option<Current>,
    /// An event could not be read: what follows belongs to nothing until a transaction begins.
    lost: bool,
    /// With each table's place in [`Scan::slots`], once rows came.
    tables: Tables<Option<usize>>,
    /// Tables that rows were seen of.
    slots: Vec<Slot>,
    slot_of: HashMap<TableId, usize, FixedState>,
    catalogue: LogCatalogue,
    keying: Keying,
    set: WriteSet,
    counts: Counts,
}

/// What goes into a table, summed up before it goes into the lists: most of it comes in the same second as what was before.
struct Slot {
    seen: TableRecord,
    second: u64,
    in_second: Traffic,
}

/// Reads a piece.
pub fn scan(piece: &Piece, depth: Depth) -> PieceSummary {
    scan_part(piece, depth, &Selection::everything())
}

/// Reads of a piece what the selection takes.
pub fn scan_part(piece: &Piece, depth: Depth, selection: &Selection) -> PieceSummary {
    let mut scan = Scan {
        piece,
        depth,
        out: PieceSummary::default(),
        boundary: piece.boundary,
        current: None,
        lost: false,
        tables: Tables::new(selection.clone()),
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
            self.current = Some(Current { record, began: 0, tables: SmallVec::new() });
            for map in maps {
                if let Ok(event) = Event::parse(map.clone(), self.piece.format.checksum) {
                    // It was read once before: what is wrong with it has been recorded.
                    let _ = self.tables.add(&event, &self.piece.format);
                }
            }
        }
        self.out.begun_us = u64::from(self.piece.written_by.time) * 1_000_000;
        self.out.started_us = u64::from(self.piece.format.created) * 1_000_000;
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
                self.drop_unfinished();
            }
        }
        for slot in std::mem::take(&mut self.slots) {
            self.second(slot.second, slot.seen.table.id, slot.in_second);
            self.out.tables.insert(slot.seen.table.id, slot.seen);
        }
    }

    fn second(&mut self, second: u64, table: TableId, traffic: Traffic) {
        *self.out.seconds.entry((second, table)).or_default() += traffic;
    }

    /// The slot of a table, whatever its maps are.
    fn slot(&mut self, table: Arc<Table>, second: u64) -> usize {
        let next = self.slots.len();
        let place = *self.slot_of.entry(table.id).or_insert(next);
        if place == next {
            let seen = TableRecord { table, traffic: Traffic::default(), transactions: 0 };
            self.slots.push(Slot { seen, second, in_second: Traffic::default() });
        }
        place
    }

    fn problem(&mut self, offset: u64, what: String) {
        self.note(Problem::new(offset, what));
    }

    fn note(&mut self, problem: Problem) {
        if self.out.problems.len() < PROBLEMS_MAX {
            self.out.problems.push(problem);
        } else {
            self.out.more_problems += 1;
        }
    }

    fn fail(&mut self, offset: u64, what: String) {
        self.problem(offset, format!("{what}; its transaction is not counted"));
        self.current = None;
        self.boundary.restart();
        self.lost = true;
    }

    /// The file, or the log of a server that died, ends in a transaction.
    fn drop_unfinished(&mut self) {
        if let Some(current) = self.current.take() {
            let what = "a transaction that does not end in its file is not counted";
            let problem = Problem::new(current.record.start, what);
            self.note(Problem { kind: ProblemKind::Unfinished, ..problem });
        }
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
            .tables
            .iter()
            .map(|map| TableUse { table: table_id(&map.schema, &map.table), access: TableAccess::WriteAll })
            .collect();
        if let Some(current) = &mut self.current {
            current.record.bytes += u64::from(header.event_len);
            current.record.unpacked_bytes += u64::from(header.event_len);
            current.record.keys_left_out = true;
            note_uses(&mut self.out.uses, current.record.uses.start as usize, &tables);
            if let Step::Ends { .. } = self.boundary.unread(header.kind) {
                self.end(offset + u64::from(header.event_len), false);
            }
        }
    }

    fn begin_lists(&self, record: &mut Record) {
        let at = |list: usize| list as u32..list as u32;
        record.writes = at(self.out.writes.len());
        record.reads = at(self.out.reads.len());
        record.uses = at(self.out.uses.len());
        record.server = at(self.out.server.len());
    }

    /// With an event that [`Scan::boundary`] calls the first of a transaction.
    fn begin(&mut self, event: &Event, offset: u64) -> &mut Current {
        if let Some(current) = &self.current {
            let began = current.record.start;
            self.problem(
                began,
                format!("a transaction that has not ended when another begins at {offset} is not counted"),
            );
        }
        self.lost = false;
        let time = event.header().timestamp;
        let bytes = event.bytes().len() as u64;
        let mut record = Record {
            start: offset,
            commit_time_us: u64::from(time) * 1_000_000,
            bytes,
            unpacked_bytes: bytes,
            ..Record::default()
        };
        let (own, writer) = (event.header().server_id, self.piece.written_by.server_id);
        record.replicated = own != 0 && writer != 0 && own != writer;
        self.begin_lists(&mut record);
        self.current.insert(Current { record, began: time, tables: SmallVec::new() })
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
        let committed_us =
            if record.original_commit_us > 0 { record.original_commit_us } else { record.commit_time_us };
        record.began = current.began;
        record.duration_seconds = ((committed_us / 1_000_000) as u32).saturating_sub(current.began);
        // What a file has was committed after it was begun, whatever time the session had.
        record.commit_time_us = record.commit_time_us.max(self.out.begun_us);
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
        if let Some(current) = self.current.as_mut().filter(|_| !is_gtid(kind)) {
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
                self.boundary.prepares_statement();
                self.begin(event, offset);
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
                self.tables.clear();
                if let Step::NewLog { cut: true, .. } = self.boundary.new_log(event.header(), &self.piece.format) {
                    self.drop_unfinished();
                }
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
                if let Step::Ends { .. } = self.boundary.unread(kind) {
                    self.end(offset + length, false);
                }
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

    fn table_map(&mut self, event: &Event) -> Result<(), Failed> {
        self.tables.add(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
        let bytes = self.tables.held_bytes();
        if bytes > MAPS_BYTES_MAX {
            self.tables.clear();
            return Err(format!("the table maps of one statement take {bytes} bytes"));
        }
        Ok(())
    }

    /// XID, XA PREPARE.
    fn end_here(&mut self, end: u64) {
        match self.boundary.end() {
            Step::EndsNothing if self.lost => {}
            Step::EndsNothing => {
                self.problem(end, "the end of a transaction that did not begin in this file".to_owned());
            }
            _ => self.end(end, false),
        }
    }

    fn mysql(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let gtid = MySqlGtid::decode(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
        self.out.gtids.insert_mysql(&gtid);
        self.boundary.gtid();
        let record = &mut self.begin(event, offset).record;
        record.gtid = Gtid::of_mysql(&gtid);
        record.tags =
            Tags { last_committed: gtid.last_committed, sequence_number: gtid.sequence_number, ..Tags::default() };
        if let Some(us) = gtid.immediate_commit_timestamp_us.or(gtid.original_commit_timestamp_us)
            && us > 0
        {
            record.commit_time_us = us;
        }
        let original = gtid.original_commit_timestamp_us.or(gtid.immediate_commit_timestamp_us);
        record.original_commit_us = original.unwrap_or(0);
        Ok(())
    }

    fn mariadb(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let gtid = MariaDbGtid::decode(event, &self.piece.format).map_err(|corrupt| corrupt.to_string())?;
        self.out.gtids.insert_mariadb(&gtid);
        self.boundary.mariadb_gtid(gtid.flags);
        let record = &mut self.begin(event, offset).record;
        record.gtid = Some(Gtid::of_mariadb(&gtid));
        record.tags = Tags { commit_id: gtid.commit_id, domain: gtid.domain_id, flags: gtid.flags, ..Tags::default() };
        record.tags.session = gtid.thread_id.unwrap_or(0);
        if gtid.flags & (MariaDbGtid::FL_PREPARED_XA | MariaDbGtid::FL_COMPLETED_XA) != 0 {
            record.barrier = Some(Cause::Xa);
        }
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
