//! From events to transactions.
//!
//! Knows where a transaction begins and ends in every dialect (GTID, BEGIN … XID, a lone DDL, XA, MariaDB's
//! standalone GTIDs, compressed payloads), keeps the session state that statements need, and lets go of the bytes of a
//! transaction that is larger than the memory budget. Never looks at schemas or keys: that is keying's.
//! An event that it does not understand is an error, never skipped (except those that say they may be ignored).

use std::sync::Arc;

use binlog::{
    Event, FormatDescription, Kind, MariaDbGtid, MySqlGtid, Query, RowsEvent, StatusVars, TableMap, TransactionPayload,
    XaPrepare,
};
use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::Seq;
use crate::row_session::{RowSession, RowSessions};
use crate::sql::{self, Class, SqlMode};
use crate::transaction::{
    BarrierCause, Body, Context, Item, LoadFile, RowsItem, StatementItem, Tags, Transaction, WriteSet,
};
use binlog::LogPosition;
use binlog::gtids::Gtid;

#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error("{position}: {kind} event: {source}")]
    Corrupt { position: LogPosition, kind: &'static str, source: binlog::Corrupt },
    #[error("{position}: {what}")]
    Unexpected { position: LogPosition, what: String },
    #[error("{position}: event type {code} ({name}) is not known to this version; it is not marked as one to ignore")]
    UnknownEvent { position: LogPosition, code: u8, name: &'static str },
    #[error("{position}: the source wrote an incident ({message}): it may have lost events here")]
    Incident { position: LogPosition, message: String },
}

/// `LOG_EVENT_IGNORABLE_F`: who does not know the event may go past it.
const IGNORABLE: u16 = 0x80;

/// A transaction that is being put together.
struct Building {
    gtid: Option<Gtid>,
    tags: Tags,
    start: LogPosition,
    server_id: u32,
    commit_time_us: u64,
    bytes: u64,
    items: Vec<Item>,
    spilled: bool,
    barrier: Option<BarrierCause>,
    /// Between BEGIN (or XA START, or a MariaDB GTID that is not standalone) and its end.
    open: bool,
    /// See [`Transaction::rolls_back`].
    rolls_back: bool,
    /// A ROLLBACK TO SAVEPOINT was seen: its statements have to run in order.
    rolls_back_to: bool,
    /// The announcement, or the withdrawal, of a two-phase ALTER: its statement is not executed.
    skips_alter: bool,
    /// Of its BEGIN.
    session: Option<Arc<RowSession>>,
    /// Rows whose events came once there were many bytes; before that they weigh too little to be counted.
    counted_rows: u64,
    /// Rows that were let go of.
    spilled_rows: u64,
}

impl Building {
    /// XA COMMIT … ONE PHASE is a commit like any other: what is left of XA in it goes. So is any other end but a prepare (MySQL 5.7 logs a change
    /// after a deadlock in a branch, which it commits by itself, behind the XA START).
    fn make_one_phase(&mut self) {
        // What is of XA is a barrier; most transactions are none.
        if self.barrier.is_none() {
            return;
        }
        self.items.retain(|item| {
            !matches!(item, Item::Statement(statement)
                if matches!(statement.class.class, Class::XaStart { .. } | Class::XaEnd))
        });
        if self.barrier == Some(BarrierCause::Xa) {
            self.barrier = None;
        }
    }
}

pub struct Assembler {
    /// Items of a transaction are dropped once its events, and what is kept of its rows, exceed this; it is then read again from the log.
    spill_bytes: u64,
    building: Option<Building>,
    maps: HashMap<u64, (Bytes, Arc<TableMap>), FixedState>,
    context: Vec<Context>,
    load_files: HashMap<u32, Vec<u8>, FixedState>,
    /// The log that was last read in.
    file: Option<Arc<str>>,
    source_starts: u32,
    row_sessions: RowSessions,
}

/// Where heddle keeps its progress on a target. When that target is a source itself, its bookkeeping is not replicated.
pub const BOOKKEEPING_SCHEMA: &str = "heddle";

fn is_ours(schema: &str) -> bool {
    schema == BOOKKEEPING_SCHEMA
}

/// Whether a statement is about the bookkeeping alone. One about that and other things can be neither run nor left out.
fn names_ours(class: &sql::Statement, at: &LogPosition) -> Result<bool, AssembleError> {
    let schemas = || class.tables.iter().map(|table| &table.schema).chain(&class.schemas);
    if !schemas().any(|schema| is_ours(schema)) {
        return Ok(false);
    }
    if schemas().all(|schema| is_ours(schema)) {
        return Ok(true);
    }
    Err(AssembleError::Unexpected {
        position: at.clone(),
        what: format!("a statement names tables of {BOOKKEEPING_SCHEMA}, heddle's bookkeeping, and others"),
    })
}

fn peek_table_id(event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<u64, AssembleError> {
    RowsEvent::peek_table_id(event, format).map_err(|source| AssembleError::Corrupt {
        position: at.clone(),
        kind: event.kind().name(),
        source,
    })
}

/// LOAD DATA files under way, in bytes, all together.
const LOAD_FILES_BYTES_MAX: usize = 256 << 20;

/// A compressed transaction must not grow beyond this, in bytes.
const PAYLOAD_BYTES_MAX: u64 = 1 << 30;

/// Variables before one statement.
const CONTEXT_MAX: usize = 100_000;

/// What servers write for "no table": the greatest number in 3, 4 or 6 bytes.
const DUMMY_TABLE_IDS: [u64; 3] = [0x00ff_ffff, 0xffff_ffff, 0xffff_ffff_ffff];

/// What is kept of a row beside its event, at least: its ranges and hashes. Narrow rows take less than that in the log.
const ROW_BYTES: u64 = 80;
const COUNTED_FROM_BYTES: u64 = 128 << 10;

/// Table maps that are remembered between transactions.
const MAPS_MAX: usize = 20_000;

impl Assembler {
    pub fn new(spill_bytes: u64) -> Self {
        Self {
            spill_bytes,
            building: None,
            maps: HashMap::default(),
            context: Vec::new(),
            load_files: HashMap::default(),
            file: None,
            source_starts: 0,
            row_sessions: RowSessions::default(),
        }
    }

    /// Whether the events so far end between two transactions.
    pub fn is_between_transactions(&self) -> bool {
        self.building.is_none()
    }

    /// The stream was interrupted: what there is of a transaction comes again, whole.
    pub fn restart(&mut self) {
        self.building = None;
        self.context.clear();
        self.load_files.clear();
    }

    /// Takes the changes so far out of the transaction that is being put together, to apply it in pieces.
    pub fn take_items(&mut self) -> Vec<Item> {
        self.building.as_mut().map(|building| std::mem::take(&mut building.items)).unwrap_or_default()
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
            building.bytes += event.bytes().len() as u64;
        }
        let finished = self.take(event, format, start)?;
        if let Some(building) = &mut self.building
            && building.bytes + building.counted_rows * ROW_BYTES > self.spill_bytes
            && !building.spilled
        {
            building.spilled = true;
            building.spilled_rows = building.items.iter().map(rows_of).sum();
            building.items = Vec::new();
        }
        Ok(if finished { self.finish(end) } else { None })
    }

    /// Takes one event in; true when it ends the transaction.
    fn take(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<bool, AssembleError> {
        let kind = event.kind();
        let corrupt =
            |source: binlog::Corrupt| AssembleError::Corrupt { position: at.clone(), kind: kind.name(), source };
        match kind {
            Kind::TABLE_MAP => self.table_map(event, format).map_err(corrupt)?,
            kind if kind.is_rows() => return self.rows(event, format, at),
            Kind::XID => {
                if let Some(building) = &mut self.building {
                    building.make_one_phase();
                    building.rolls_back |= matches!(building.gtid, Some(Gtid::MySql { .. }));
                }
                return self.end_of_transaction(at);
            }
            Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => {
                let gtid = MySqlGtid::decode(event, format).map_err(corrupt)?;
                self.begin_mysql(event, &gtid, at)?;
            }
            Kind::MARIADB_GTID => {
                let gtid = MariaDbGtid::decode(event, format).map_err(corrupt)?;
                self.begin_mariadb(event, &gtid, at)?;
            }
            Kind::QUERY | Kind::QUERY_COMPRESSED => {
                if let Some(vars) = vars_of_begin(event, format) {
                    let session = self.row_sessions.of_begin(vars, event, format).map_err(corrupt)?;
                    self.opens(event, at, session)?;
                    return Ok(false);
                }
                let query = Query::decode(event, format).map_err(corrupt)?;
                return self.query(event, query, format, at);
            }
            Kind::INTVAR => {
                self.begin_unless_open(event, at);
                let context = match binlog::intvar::IntVar::decode(event, format).map_err(corrupt)? {
                    binlog::intvar::IntVar::LastInsertId(id) => Context::LastInsertId(id),
                    binlog::intvar::IntVar::InsertId(id) => Context::InsertId(id),
                };
                self.note_context(context, at)?;
            }
            Kind::RAND => {
                self.begin_unless_open(event, at);
                let rand = binlog::rand::Rand::decode(event, format).map_err(corrupt)?;
                self.note_context(Context::Rand(rand.seed1, rand.seed2), at)?;
            }
            Kind::USER_VAR => {
                self.begin_unless_open(event, at);
                let variable = binlog::user_var::UserVar::decode(event, format).map_err(corrupt)?;
                self.note_context(Context::UserVariable(variable), at)?;
            }
            Kind::BEGIN_LOAD_QUERY | Kind::APPEND_BLOCK => {
                self.begin_unless_open(event, at);
                let block = binlog::load_data::LoadBlock::decode(event, format).map_err(corrupt)?;
                self.load_block(&block, at)?;
            }
            Kind::EXECUTE_LOAD_QUERY => {
                let load = binlog::load_data::ExecuteLoadQuery::decode(event, format).map_err(corrupt)?;
                return self.load(event, load, at);
            }
            Kind::DELETE_FILE => {
                let file = binlog::load_data::DeleteFile::decode(event, format).map_err(corrupt)?;
                self.load_files.remove(&file.file_id);
            }
            Kind::XA_PREPARE => {
                let prepare = XaPrepare::decode(event, format).map_err(corrupt)?;
                if let Some(building) = &mut self.building
                    && prepare.one_phase
                {
                    building.make_one_phase();
                }
                return self.end_of_transaction(at);
            }
            Kind::TRANSACTION_PAYLOAD => return self.payload(event, format, at),
            Kind::FORMAT_DESCRIPTION => self.new_log(event, format, at)?,
            Kind::INCIDENT => {
                let incident = binlog::incident::Incident::decode(event, format).map_err(corrupt)?;
                return Err(AssembleError::Incident { position: at.clone(), message: incident.to_string() });
            }
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
            _ => {
                return Err(AssembleError::UnknownEvent { position: at.clone(), code: kind.0, name: kind.name() });
            }
        }
        Ok(false)
    }

    /// A log begins. A server that died leaves an unfinished transaction at the end of the one before, and has rolled it back
    /// when it starts the next.
    fn new_log(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<(), AssembleError> {
        self.maps.clear();
        let header = event.header();
        let artificial = header.log_pos == 0 || header.flags & binlog::Header::FLAG_ARTIFICIAL != 0;
        // One that is read again, after an interruption, is not another.
        let is_another = self.file.as_deref() != Some(&*at.file);
        self.file = Some(Arc::clone(&at.file));
        if !artificial && format.created != 0 && is_another {
            self.source_starts += 1;
        }
        match &self.building {
            Some(_) if !artificial && format.created != 0 => self.restart(),
            Some(cut) if !artificial => {
                return Err(AssembleError::Unexpected {
                    position: at.clone(),
                    what: format!("a log begins while the transaction at {} has not ended", cut.start),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// In logs without GTIDs a transaction may start with what its first statement needs.
    fn begin_unless_open(&mut self, event: &Event, at: &LogPosition) {
        if self.building.is_none() {
            self.forget_maps();
            self.building = Some(Self::new_building(event, at));
        }
    }

    /// Between two transactions: within one, a table map serves until the end of its statement.
    fn forget_maps(&mut self) {
        if self.maps.len() >= MAPS_MAX {
            self.maps.clear();
        }
    }

    fn note_context(&mut self, context: Context, at: &LogPosition) -> Result<(), AssembleError> {
        if self.context.len() >= CONTEXT_MAX {
            return Err(AssembleError::Unexpected {
                position: at.clone(),
                what: format!("more than {CONTEXT_MAX} variables for one statement"),
            });
        }
        if self.building.as_ref().is_some_and(|building| !building.spilled) {
            self.context.push(context);
        }
        Ok(())
    }

    fn begin(&mut self, building: Building) -> Result<(), AssembleError> {
        if let Some(cut) = self.building.take() {
            // A source that resends after a lost connection starts the same transaction again.
            if cut.gtid.is_none() || cut.gtid != building.gtid {
                return Err(AssembleError::Unexpected {
                    position: building.start,
                    what: format!("a transaction starts while the one at {} has not ended", cut.start),
                });
            }
        }
        self.context.clear();
        self.load_files.clear();
        self.forget_maps();
        self.building = Some(building);
        Ok(())
    }

    fn new_building(event: &Event, at: &LogPosition) -> Building {
        Building {
            gtid: None,
            tags: Tags::default(),
            start: at.clone(),
            server_id: event.header().server_id,
            commit_time_us: u64::from(event.header().timestamp) * 1_000_000,
            bytes: event.bytes().len() as u64,
            items: Vec::new(),
            spilled: false,
            barrier: None,
            open: false,
            rolls_back: false,
            rolls_back_to: false,
            skips_alter: false,
            session: None,
            counted_rows: 0,
            spilled_rows: 0,
        }
    }

    fn begin_mysql(&mut self, event: &Event, gtid: &MySqlGtid, at: &LogPosition) -> Result<(), AssembleError> {
        let mut building = Self::new_building(event, at);
        building.gtid = Gtid::of_mysql(gtid);
        building.tags.last_committed = gtid.last_committed;
        building.tags.sequence_number = gtid.sequence_number;
        if let Some(us) = gtid.original_commit_timestamp_us.or(gtid.immediate_commit_timestamp_us)
            && us > 0
        {
            building.commit_time_us = us;
        }
        self.begin(building)
    }

    fn begin_mariadb(&mut self, event: &Event, gtid: &MariaDbGtid, at: &LogPosition) -> Result<(), AssembleError> {
        // MariaDB's `binlog_alter_two_phase`: an ALTER TABLE is logged when it starts, and again when it has succeeded or failed. What
        // other sessions logged in between has the table's old definition, so the ALTER belongs where it ends.
        const ALTER_WITHOUT_EFFECT: u8 = MariaDbGtid::FL_EXTRA_START_ALTER | MariaDbGtid::FL_EXTRA_ROLLBACK_ALTER;
        let mut building = Self::new_building(event, at);
        building.gtid = Some(Gtid::of_mariadb(gtid));
        building.tags = Tags {
            commit_id: gtid.commit_id,
            domain: gtid.domain_id,
            flags: gtid.flags,
            session: gtid.thread_id.unwrap_or(0),
            ..Tags::default()
        };
        building.rolls_back = gtid.flags & MariaDbGtid::FL_TRANSACTIONAL != 0;
        building.skips_alter = gtid.flags_extra & ALTER_WITHOUT_EFFECT != 0;
        building.open = gtid.flags & (MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_COMPLETED_XA) == 0;
        if gtid.flags & (MariaDbGtid::FL_PREPARED_XA | MariaDbGtid::FL_COMPLETED_XA) != 0 {
            building.barrier = Some(BarrierCause::Xa);
        }
        self.begin(building)
    }

    fn table_map(&mut self, event: &Event, format: &FormatDescription) -> Result<(), binlog::Corrupt> {
        let body = event.body();
        // The identifier is 6 bytes in every version that has v1 or later rows events with this post-header.
        let known = body.first_chunk::<6>().and_then(|id| {
            let id = id.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            self.maps.get(&id)
        });
        if known.is_some_and(|(known, _)| known.as_ref() == body) {
            return Ok(());
        }
        let map = TableMap::decode(event, format)?;
        self.maps.insert(map.table_id, (event.body_bytes(), Arc::new(map)));
        Ok(())
    }

    fn rows(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<bool, AssembleError> {
        let unexpected = |what: String| AssembleError::Unexpected { position: at.clone(), what };
        let Some(building) = &mut self.building else {
            return Err(unexpected("a rows event outside any transaction".to_owned()));
        };
        if self.maps.get(&peek_table_id(event, format, at)?).is_some_and(|(_, map)| is_ours(&map.schema)) {
            return Ok(false);
        }
        let rows = RowsEvent::decode(event, format).map_err(|source| AssembleError::Corrupt {
            position: at.clone(),
            kind: event.kind().name(),
            source,
        })?;
        let Some((_, map)) = self.maps.get(&rows.table_id) else {
            // A dummy rows event that only ends a statement has no table.
            if rows.rows.is_empty() && DUMMY_TABLE_IDS.contains(&rows.table_id) {
                return Ok(false);
            }
            return Err(unexpected(format!("a rows event for table id {} without its table map", rows.table_id)));
        };
        if map.columns.len() != rows.width {
            return Err(unexpected(format!(
                "a rows event of {} columns for {}.{}, whose table map has {}",
                rows.width,
                map.schema,
                map.table,
                map.columns.len()
            )));
        }
        if building.spilled {
            building.spilled_rows += rows.images(map).count() as u64;
            return Ok(false);
        }
        if building.bytes > COUNTED_FROM_BYTES {
            building.counted_rows += rows.images(map).count() as u64;
        }
        // What was compressed in the event is held as it was before.
        building.bytes += (rows.rows.len() as u64).saturating_sub(event.bytes().len() as u64);
        if building.items.is_empty() {
            // Most transactions have one.
            building.items.reserve_exact(1);
        }
        building.items.push(Item::Rows(RowsItem {
            map: Arc::clone(map),
            event: rows,
            timestamp: event.header().timestamp,
            session: building.session.clone(),
            table: None,
            rows: 0..0,
        }));
        Ok(false)
    }

    fn end_of_transaction(&mut self, at: &LogPosition) -> Result<bool, AssembleError> {
        match &self.building {
            Some(_) => Ok(true),
            None => Err(AssembleError::Unexpected {
                position: at.clone(),
                what: "the end of a transaction that did not begin; start at a transaction's first event".to_owned(),
            }),
        }
    }

    fn opens(&mut self, event: &Event, at: &LogPosition, session: Arc<RowSession>) -> Result<(), AssembleError> {
        self.begin_unless_open(event, at);
        let Some(building) = &mut self.building else { return Ok(()) };
        if building.open && (building.spilled || !building.items.is_empty()) {
            return Err(AssembleError::Unexpected {
                position: at.clone(),
                what: format!("a transaction begins while the one at {} has not ended", building.start),
            });
        }
        building.server_id = event.header().server_id;
        building.open = true;
        building.session = Some(session);
        if let Some(id) = event.body().first_chunk::<4>() {
            building.tags.session = u32::from_le_bytes(*id);
        }
        Ok(())
    }

    fn query(
        &mut self,
        event: &Event,
        mut query: Query,
        format: &FormatDescription,
        at: &LogPosition,
    ) -> Result<bool, AssembleError> {
        query.vars.explicit_defaults_for_timestamp = query.vars.explicit_defaults(format);
        let class = classify(&query);
        let opens = matches!(class.class, Class::Begin | Class::XaStart { .. });
        let is_ours = names_ours(&class, at)?;
        self.begin_unless_open(event, at);
        let Some(building) = &mut self.building else { return Ok(false) };
        building.server_id = event.header().server_id;
        if building.tags.session == 0 {
            building.tags.session = query.thread_id;
        }
        if building.skips_alter {
            self.context.clear();
            return Ok(true);
        }
        match &class.class {
            Class::Begin => self.opens(event, at, Arc::new(RowSession::of(&query.vars)))?,
            // COMMIT of a non-transactional change, or of an old server; ROLLBACK when only such changes remain.
            Class::Commit if building.open => {
                building.make_one_phase();
                return Ok(true);
            }
            Class::Rollback if building.open => {
                building.make_one_phase();
                self.push_statement(event, query, class, None);
                return Ok(true);
            }
            // Rows of what was rolled back are not in the log unless ROLLBACK TO is there, too.
            Class::Savepoint if building.open => self.push_statement(event, query, class, None),
            Class::RollbackTo if building.open => {
                building.rolls_back_to = true;
                self.push_statement(event, query, class, None);
            }
            _ => {
                if opens {
                    building.session = Some(Arc::new(RowSession::of(&query.vars)));
                }
                let cause = barrier_of(&class.class);
                building.barrier = building.barrier.max(Some(cause));
                building.open |= opens;
                let ends = !building.open;
                if is_ours {
                    self.context.clear();
                } else {
                    self.push_statement(event, query, class, None);
                }
                return Ok(ends);
            }
        }
        Ok(false)
    }

    fn push_statement(&mut self, event: &Event, query: Query, class: sql::Statement, file: Option<LoadFile>) {
        let context = std::mem::take(&mut self.context);
        let Some(building) = self.building.as_mut().filter(|building| !building.spilled) else { return };
        building.items.push(Item::Statement(Box::new(StatementItem {
            query,
            timestamp: event.header().timestamp,
            suppress_use: event.header().flags & binlog::Header::FLAG_SUPPRESS_USE != 0,
            context,
            class,
            file,
        })));
    }

    fn load_block(&mut self, block: &binlog::load_data::LoadBlock, at: &LogPosition) -> Result<(), AssembleError> {
        let held: usize = self.load_files.values().map(Vec::len).sum();
        let unexpected = |what: String| AssembleError::Unexpected { position: at.clone(), what };
        if held + block.data.len() > LOAD_FILES_BYTES_MAX {
            return Err(unexpected(format!(
                "LOAD DATA files of more than {LOAD_FILES_BYTES_MAX} bytes in statement format are not supported; \
                 use binlog_format=ROW on the source"
            )));
        }
        if block.first {
            self.load_files.insert(block.file_id, block.data.to_vec());
            return Ok(());
        }
        match self.load_files.get_mut(&block.file_id) {
            Some(file) => file.extend_from_slice(&block.data),
            None => return Err(unexpected(format!("a block of file {} that did not begin", block.file_id))),
        }
        Ok(())
    }

    fn load(
        &mut self,
        event: &Event,
        load: binlog::load_data::ExecuteLoadQuery,
        at: &LogPosition,
    ) -> Result<bool, AssembleError> {
        let unexpected = |what: String| AssembleError::Unexpected { position: at.clone(), what };
        let Some(data) = self.load_files.remove(&load.file_id) else {
            return Err(unexpected(format!("LOAD DATA of file {} that is not in the log", load.file_id)));
        };
        let name_range = load.file_name_start as usize..load.file_name_end as usize;
        if load.query.sql.get(name_range.clone()).is_none() {
            return Err(unexpected("LOAD DATA whose file name lies outside its text".to_owned()));
        }
        let class = classify(&load.query);
        let is_ours = names_ours(&class, at)?;
        self.begin_unless_open(event, at);
        let Some(building) = &mut self.building else { return Ok(false) };
        building.barrier = building.barrier.max(Some(BarrierCause::LoadData));
        let ends = !building.open;
        let file = LoadFile { data, name_range, duplicates: load.duplicates as u8 };
        if !is_ours {
            self.push_statement(event, load.query, class, Some(file));
        }
        Ok(ends)
    }

    fn payload(&mut self, event: &Event, format: &FormatDescription, at: &LogPosition) -> Result<bool, AssembleError> {
        let corrupt = |source| AssembleError::Corrupt { position: at.clone(), kind: event.kind().name(), source };
        let payload = TransactionPayload::decode(event, format).map_err(corrupt)?;
        if let Some(building) = &mut self.building {
            building.bytes += payload.uncompressed_len.saturating_sub(event.bytes().len() as u64);
        }
        let mut finished = false;
        for inner in payload.events(PAYLOAD_BYTES_MAX).map_err(corrupt)? {
            let inner = inner.map_err(corrupt)?;
            if finished {
                return Err(AssembleError::Unexpected {
                    position: at.clone(),
                    what: "events after the end of a compressed transaction".to_owned(),
                });
            }
            finished = self.take(&inner, format, at)?;
        }
        Ok(finished)
    }

    fn finish(&mut self, end: &LogPosition) -> Option<Transaction> {
        let building = self.building.take()?;
        if self.file.as_ref().is_none_or(|file| !Arc::ptr_eq(file, &end.file)) {
            self.file = Some(Arc::clone(&end.file));
        }
        self.context.clear();
        self.load_files.clear();
        let mut items = building.items;
        let mut barrier = building.barrier;
        if building.rolls_back_to {
            barrier = barrier.max(Some(BarrierCause::Statement));
        } else {
            items.retain(|item| !is_plain_savepoint(item));
        }
        if barrier.is_none() && items.iter().any(|item| matches!(item, Item::Statement(_))) {
            barrier = Some(BarrierCause::Statement);
        }
        // Found out once: it may take a search through texts.
        let only_changes = barrier == Some(BarrierCause::Statement)
            && !building.spilled
            && !items.is_empty()
            && items.iter().all(Item::is_plain_change);
        let body = if building.spilled {
            // Another cause says more: after a DDL, say, definitions are read anew.
            barrier = barrier.or(Some(BarrierCause::Huge));
            Body::Spilled { rows: building.spilled_rows }
        } else {
            Body::Items(items)
        };
        Some(Transaction {
            seq: 0 as Seq,
            gtid: building.gtid,
            start: building.start,
            end: end.clone(),
            tags: building.tags,
            server_id: building.server_id,
            commit_time_us: building.commit_time_us,
            bytes: building.bytes,
            body,
            rolls_back: building.rolls_back,
            only_changes,
            beside_prepared: false,
            branch: None,
            session: None,
            source_starts: self.source_starts,
            write_set: WriteSet::default(),
            barrier,
        })
    }
}

/// The session in front of a statement that is just `BEGIN`, found without decoding it.
fn vars_of_begin<'a>(event: &'a Event, format: &FormatDescription) -> Option<&'a [u8]> {
    const POST_HEADER_LEN: usize = 13;
    let body = event.body();
    let (Some(&schema), Some(vars)) = (body.get(8), body.get(11..POST_HEADER_LEN)) else { return None };
    let vars = vars.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let is_begin = event.kind() == Kind::QUERY
        && usize::from(format.post_header_len(Kind::QUERY)) == POST_HEADER_LEN
        && body.get(POST_HEADER_LEN + vars + usize::from(schema) + 1..) == Some(b"BEGIN");
    body.get(POST_HEADER_LEN..POST_HEADER_LEN + vars).filter(|_| is_begin)
}

fn rows_of(item: &Item) -> u64 {
    match item {
        Item::Rows(rows) => rows.event.images(&rows.map).count() as u64,
        Item::Statement(_) => 0,
    }
}

fn is_plain_savepoint(item: &Item) -> bool {
    matches!(item, Item::Statement(statement) if matches!(statement.class.class, Class::Savepoint | Class::Release))
}

fn classify(query: &Query) -> sql::Statement {
    let mode = SqlMode::of(&query.vars);
    sql::classify(&query.sql, &String::from_utf8_lossy(&query.schema), mode)
}

/// What a statement that is not a transaction's frame keeps from running beside others.
fn barrier_of(class: &Class) -> BarrierCause {
    match class {
        Class::Dml { .. } | Class::Savepoint | Class::RollbackTo | Class::Release | Class::SetStatement => {
            BarrierCause::Statement
        }
        Class::XaStart { .. } | Class::XaEnd | Class::XaPrepare | Class::XaCommit { .. } | Class::XaRollback => {
            BarrierCause::Xa
        }
        Class::Ddl { kind } if kind.is_account() => BarrierCause::Account,
        Class::Ddl { .. } => BarrierCause::Ddl,
        Class::Begin | Class::Commit | Class::Rollback | Class::Unknown => BarrierCause::Unknown,
    }
}

/// Whether the statement ran with foreign key checks off.
pub fn without_foreign_keys(vars: &StatusVars) -> bool {
    vars.flags2.is_some_and(|flags| flags & StatusVars::FLAGS2_NO_FOREIGN_KEY_CHECKS != 0)
}

#[cfg(test)]
mod tests;
