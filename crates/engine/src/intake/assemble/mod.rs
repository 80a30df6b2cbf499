//! From events to transactions.
//!
//! [`Boundary`] says where a transaction begins and ends. This collects what is in between: rows, statements with the session state that
//! they need, compressed payloads. It lets go of the bytes of a transaction that is larger than the memory budget. It never looks at
//! schemas or keys: that is keying's. An event that it does not understand is an error, never skipped, except those that say
//! they may be ignored.

mod building;
mod error;
mod load_files;
mod statements;

pub use error::AssembleError;

use std::sync::Arc;

use binlog::boundary::{Boundary, LogStart, Open, Step, Verb};
use binlog::load_data::{DeleteFile, ExecuteLoadQuery, LoadBlock};
use binlog::{
    Event, FormatDescription, Kind, LogPosition, MariaDbGtid, MySqlGtid, Query, RowsEvent, RowsKind,
    TransactionPayload, XaPrepare, query,
};

use super::selection::Selection;
use super::tables::{Lookup, Tables};
use crate::row_session::{RowSession, RowSessions};
use crate::transaction::{Context, Item, Transaction};
use binlog::gtids::Gtid;
use building::Building;
use load_files::LoadFiles;

/// `LOG_EVENT_IGNORABLE_F`: who does not know the event may go past it.
const IGNORABLE: u16 = 0x80;

pub struct Assembler {
    /// Items of a transaction are dropped once its events, and what is kept of its rows, exceed this; it is then read again from the log.
    spill_bytes: u64,
    /// What was compressed by itself, an event or a statement, is taken in up to so many bytes.
    event_bytes_max: u64,
    boundary: Boundary,
    /// What is open for `boundary`.
    building: Option<Building>,
    tables: Tables<()>,
    /// For the next statement.
    context: Vec<Context>,
    /// Of their events.
    context_bytes: u64,
    load_files: LoadFiles,
    /// A transaction of which there is only LOAD DATA's data: it is the beginning of the next, so that a run that begins there has them.
    carried: Option<Carried>,
    /// The log that was last read in.
    file: Option<Arc<str>>,
    source_starts: u32,
    row_sessions: RowSessions,
    /// See [`Transaction::unsafe_statements`].
    finds_unsafe: bool,
}

impl Assembler {
    pub fn new(spill_bytes: u64) -> Self {
        Self {
            spill_bytes,
            event_bytes_max: binlog::MAX_EVENT_LEN as u64,
            boundary: Boundary::default(),
            building: None,
            tables: Tables::new(Selection::sent()),
            context: Vec::new(),
            context_bytes: 0,
            load_files: LoadFiles::default(),
            carried: None,
            file: None,
            source_starts: 0,
            row_sessions: RowSessions::default(),
            finds_unsafe: false,
        }
    }

    /// What is compressed is taken in up to so many bytes at once: its size is not that of the log.
    #[must_use]
    pub fn inflating_at_most(mut self, event_bytes_max: u64) -> Self {
        self.event_bytes_max = event_bytes_max;
        self
    }

    /// Statements that are unsafe are noted in their transactions.
    #[must_use]
    pub fn finding_unsafe(mut self) -> Self {
        self.finds_unsafe = true;
        self
    }

    /// What of the log goes on; else as it is sent on.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.tables.select(selection);
        self
    }

    /// Bytes of the changes that [`Assembler::take_items`] would take, as they are held.
    pub fn held_bytes(&self) -> u64 {
        self.building.as_ref().map_or(0, Building::held_bytes)
    }

    /// What is gathered of many events may take no more memory than one.
    fn check_held(&self, field: &'static str, bytes: u64, at: &LogPosition) -> Result<(), AssembleError> {
        // However little that is, the servers' own transactions have so much.
        const HELD_BYTES_MIN: u64 = 32 << 20;
        let limit = self.event_bytes_max.max(HELD_BYTES_MIN);
        if bytes <= limit {
            return Ok(());
        }
        Err(AssembleError::TooLarge { position: at.clone(), field, bytes, limit })
    }

    /// What comes out of an event may have so many bytes.
    fn inflated_max(&self, event: &Event) -> u64 {
        self.event_bytes_max.saturating_sub(event.bytes().len() as u64)
    }

    /// Whether the events so far end between two transactions.
    pub fn is_between_transactions(&self) -> bool {
        self.boundary.is_between() && self.carried.is_none()
    }

    /// The stream was interrupted: what there is of a transaction comes again, whole.
    pub fn restart(&mut self) {
        self.boundary.restart();
        self.building = None;
        self.context.clear();
        self.load_files.forget_transaction();
    }

    /// Takes the changes so far out of the transaction that is being put together, to apply it in pieces.
    pub fn take_items(&mut self) -> Vec<Item> {
        self.building.as_mut().map(Building::take_items).unwrap_or_default()
    }

    /// The next event of the log, which stands from `start` to `end`. Returns the transaction that it completes, with
    /// `seq` 0: the caller numbers those that it keeps.
    pub fn event(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        start: &LogPosition,
        end: &LogPosition,
    ) -> Result<Option<Transaction>, AssembleError> {
        if let Some(building) = &mut self.building {
            building.add_bytes(event.bytes().len() as u64);
        }
        let ends = self.take(event, format, start)?;
        if let Some(building) = &mut self.building {
            building.spill_above(self.spill_bytes);
        }
        Ok(if ends { self.finish(end) } else { None })
    }

    /// Takes one event in; true when it ends the transaction.
    fn take(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<bool, AssembleError> {
        let corrupt = |source| AssembleError::corrupt(event, at, source);
        match event.kind() {
            Kind::TABLE_MAP => {
                self.is_in_transaction(at)?;
                let is_taken = self.tables.add(event, format).map_err(corrupt)?;
                if let Some(building) = self.building.as_mut().filter(|_| !is_taken) {
                    building.leaves_out(event.bytes().len() as u64);
                }
                self.check_held("table maps of one statement,", self.tables.held_bytes(), at)?;
            }
            kind if kind.is_rows() => self.rows(event, format, at)?,
            Kind::XID => return self.xid(at),
            Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => {
                let gtid = MySqlGtid::decode(event, format).map_err(corrupt)?;
                self.boundary.gtid();
                self.begin(Building::of_mysql(event, &gtid, at))?;
            }
            Kind::MARIADB_GTID => {
                let gtid = MariaDbGtid::decode(event, format).map_err(corrupt)?;
                self.boundary.mariadb_gtid(gtid.flags);
                self.begin(Building::of_mariadb(event, &gtid, at))?;
            }
            kind @ (Kind::QUERY | Kind::QUERY_COMPRESSED) => {
                // Most are just BEGIN, and need not be decoded.
                if kind == Kind::QUERY
                    && let Some((vars, b"BEGIN")) = query::peek(event.body(), kind, format)
                {
                    let session = self.row_sessions.of_begin(vars, event, format).map_err(corrupt)?;
                    self.opens(event, at, session)?;
                    return Ok(false);
                }
                let query = Query::decode_within(event, format, self.inflated_max(event)).map_err(corrupt)?;
                if let Some(building) = &mut self.building {
                    building.add_bytes((query.sql.len() as u64).saturating_sub(event.bytes().len() as u64));
                }
                return self.query(event, query, format, at);
            }
            Kind::INTVAR | Kind::RAND | Kind::USER_VAR => {
                self.prepares_statement(event, at);
                self.add_context(event, format, at)?;
            }
            Kind::BEGIN_LOAD_QUERY | Kind::APPEND_BLOCK => {
                self.prepares_statement(event, at);
                let block = LoadBlock::decode(event, format).map_err(corrupt)?;
                let held = self.load_files.held_bytes() + block.data.len();
                self.check_held("the file of a LOAD DATA statement,", held as u64, at)?;
                self.load_files.add(&block).map_err(|what| AssembleError::unexpected(at, what))?;
            }
            Kind::EXECUTE_LOAD_QUERY => {
                let load = ExecuteLoadQuery::decode(event, format).map_err(corrupt)?;
                return self.load(event, load, at);
            }
            Kind::DELETE_FILE => {
                let file = DeleteFile::decode(event, format).map_err(corrupt)?;
                self.load_files.take(file.file_id);
            }
            Kind::XA_PREPARE => {
                let prepare = XaPrepare::decode(event, format).map_err(corrupt)?;
                if let Some(building) = self.building.as_mut().filter(|_| prepare.one_phase) {
                    building.make_one_phase();
                }
                return self.end(at);
            }
            Kind::TRANSACTION_PAYLOAD => return self.payload(event, format, at),
            Kind::FORMAT_DESCRIPTION => self.new_log(event, format, at)?,
            Kind::INCIDENT => {
                let incident = binlog::incident::Incident::decode(event, format).map_err(corrupt)?;
                return Err(AssembleError::Incident { position: at.clone(), message: incident.to_string() });
            }
            // Nothing of these is applied, and none begins or ends a transaction.
            Kind::ROTATE
            | Kind::STOP
            | Kind::HEARTBEAT
            | Kind::HEARTBEAT_V2
            | Kind::IGNORABLE
            | Kind::ROWS_QUERY
            | Kind::ANNOTATE_ROWS
            | Kind::PREVIOUS_GTIDS
            | Kind::MARIADB_GTID_LIST
            | Kind::BINLOG_CHECKPOINT
            | Kind::TRANSACTION_CONTEXT
            | Kind::VIEW_CHANGE => {}
            _ if event.header().flags & IGNORABLE != 0 => {}
            kind => {
                return Err(AssembleError::UnknownEvent { position: at.clone(), code: kind.0, name: kind.name() });
            }
        }
        Ok(false)
    }

    /// A log begins. A server that died leaves an unfinished transaction at the end of the one before, and has rolled it back
    /// when it starts the next.
    fn new_log(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<(), AssembleError> {
        self.tables.clear();
        // One that is read again, after an interruption, is not another.
        let is_another = self.file.as_deref() != Some(&*at.file);
        self.file = Some(Arc::clone(&at.file));
        let Step::NewLog { by, cut } = self.boundary.new_log(event.header(), format) else { return Ok(()) };
        if by == LogStart::ServerStart && is_another {
            self.source_starts += 1;
            self.load_files.clear();
            self.carried = None;
        }
        match &self.building {
            Some(_) if cut && by == LogStart::ServerStart => self.restart(),
            Some(open) if cut => {
                let what = format!("a log begins while the transaction at {} has not ended", open.start);
                return Err(AssembleError::unexpected(at, what));
            }
            _ => {}
        }
        Ok(())
    }

    /// With a GTID.
    #[inline]
    fn begin(&mut self, building: Building) -> Result<(), AssembleError> {
        if let Some(cut) = self.building.take() {
            // A source that resends after a lost connection starts the same transaction again.
            if cut.gtid.is_none() || cut.gtid != building.gtid {
                let what = format!("a transaction starts while the one at {} has not ended", cut.start);
                return Err(AssembleError::unexpected(&building.start, what));
            }
        }
        self.context.clear();
        self.load_files.forget_transaction();
        self.tables.between_transactions();
        self.build(building);
        Ok(())
    }

    /// Without a GTID.
    fn begin_if_first(&mut self, step: Step, event: &Event, at: &LogPosition) {
        if matches!(step, Step::Begins { cut: false, .. } | Step::Ends { first: true, .. }) {
            self.tables.between_transactions();
            self.build(Building::new(event, at));
        }
    }

    #[inline]
    fn build(&mut self, mut building: Building) {
        if let Some(carried) = &self.carried {
            building.start = carried.start.clone();
            building.add_bytes(carried.bytes);
        }
        self.building = Some(building);
    }

    /// BEGIN.
    fn opens(&mut self, event: &Event, at: &LogPosition, session: Arc<RowSession>) -> Result<(), AssembleError> {
        let in_block = self.boundary.open() == Open::Block;
        let step = self.boundary.query(Verb::Begin);
        self.begin_if_first(step, event, at);
        let Some(building) = &mut self.building else { return Ok(()) };
        if in_block && building.has_items() {
            let what = format!("a transaction begins while the one at {} has not ended", building.start);
            return Err(AssembleError::unexpected(at, what));
        }
        building.server_id = event.header().server_id;
        building.session = Some(session);
        if let Some(id) = event.body().first_chunk::<4>() {
            building.tags.session = u32::from_le_bytes(*id);
        }
        Ok(())
    }

    fn prepares_statement(&mut self, event: &Event, at: &LogPosition) {
        let step = self.boundary.prepares_statement();
        self.begin_if_first(step, event, at);
    }

    fn xid(&mut self, at: &LogPosition) -> Result<bool, AssembleError> {
        if let Some(building) = &mut self.building {
            building.make_one_phase();
            building.rolls_back |= matches!(building.gtid, Some(Gtid::MySql { .. }));
        }
        self.end(at)
    }

    /// XID or XA PREPARE.
    fn end(&mut self, at: &LogPosition) -> Result<bool, AssembleError> {
        match self.boundary.end() {
            Step::EndsNothing => Err(AssembleError::unexpected(
                at,
                "the end of a transaction that did not begin; start at a transaction's first event",
            )),
            _ => Ok(true),
        }
    }

    /// Rows and their table maps: never the first of a transaction.
    fn is_in_transaction(&mut self, at: &LogPosition) -> Result<(), AssembleError> {
        match self.boundary.rows() {
            Step::Begins { .. } => {
                self.boundary.restart();
                Err(AssembleError::unexpected(at, "a rows event outside any transaction"))
            }
            _ => Ok(()),
        }
    }

    fn rows(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<(), AssembleError> {
        let unexpected = |what: String| AssembleError::unexpected(at, what);
        let corrupt = |source| AssembleError::corrupt(event, at, source);
        self.is_in_transaction(at)?;
        let inflated_max = self.inflated_max(event);
        let Some(building) = &mut self.building else { return Ok(()) };
        let keeps_deleted_rows = self.tables.selection().keeps_deleted_rows();
        let lookup = self.tables.of_rows(event, format).map_err(corrupt)?;
        match lookup {
            // Not a byte of it is looked at, or held.
            Lookup::LeftOut => {
                building.leaves_out(event.bytes().len() as u64);
                return Ok(());
            }
            Lookup::Refused(refusal) => {
                building.refuse(refusal);
                building.leaves_out(event.bytes().len() as u64);
                return Ok(());
            }
            _ => {}
        }
        let rows = RowsEvent::decode_within(event, format, inflated_max).map_err(corrupt)?;
        let table = match lookup {
            Lookup::Table(table) => table,
            Lookup::Dummy(_) if rows.rows.is_empty() => return Ok(()),
            Lookup::LeftOut | Lookup::Refused(_) => return Ok(()),
            Lookup::Foreign(foreign) => {
                return Err(AssembleError::Foreign { position: at.clone(), object: foreign.clone() });
            }
            Lookup::Dummy(id) | Lookup::Missing(id) => {
                return Err(unexpected(format!("a rows event for table id {id} without its table map")));
            }
        };
        if rows.kind == RowsKind::Delete && keeps_deleted_rows {
            building.leaves_out(event.bytes().len() as u64);
            return Ok(());
        }
        let map = &table.map;
        if map.columns.len() != rows.width {
            return Err(unexpected(format!(
                "a rows event of {} columns for {}.{}, whose table map has {}",
                rows.width,
                map.schema,
                map.table,
                map.columns.len()
            )));
        }
        let ends_statement = rows.flags & RowsEvent::STMT_END != 0;
        building.push_rows(event, rows, table);
        if ends_statement {
            self.tables.statement_ends();
        }
        Ok(())
    }

    fn payload(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<bool, AssembleError> {
        let corrupt = |source| AssembleError::corrupt(event, at, source);
        let payload = TransactionPayload::decode(event, format).map_err(corrupt)?;
        if let Some(building) = &mut self.building {
            // It counts as what it was before it was compressed.
            building.leave_out_bytes(event.bytes().len() as u64);
        }
        let mut ended = false;
        for inner in payload.events(self.inflated_max(event)).map_err(corrupt)? {
            let inner = inner.map_err(corrupt)?;
            if ended {
                return Err(AssembleError::unexpected(at, "events after the end of a compressed transaction"));
            }
            if let Some(building) = &mut self.building {
                building.add_bytes(inner.bytes().len() as u64);
            }
            ended = self.take(&inner, format, at)?;
            // Before the next one is there.
            if let Some(building) = &mut self.building {
                building.spill_above(self.spill_bytes);
            }
        }
        Ok(ended)
    }

    #[inline]
    fn finish(&mut self, end: &LogPosition) -> Option<Transaction> {
        let building = self.building.take()?;
        debug_assert!(self.boundary.is_between());
        if self.file.as_ref().is_none_or(|file| !Arc::ptr_eq(file, &end.file)) {
            self.file = Some(Arc::clone(&end.file));
        }
        self.context.clear();
        self.carried = None;
        if self.load_files.end_transaction() && building.can_begin_the_next() {
            self.carried = Some(Carried { bytes: building.held_bytes(), start: building.start });
            return None;
        }
        Some(building.finish(end, self.source_starts))
    }
}

/// See `Assembler::carried`.
struct Carried {
    start: LogPosition,
    bytes: u64,
}

#[cfg(test)]
mod tests;
