//! A transaction that is being put together, until its last event has come.

use std::sync::Arc;

use binlog::gtids::Gtid;
use binlog::{Event, LogPosition, MariaDbGtid, MySqlGtid, RowsEvent};

use super::super::tables::MappedTable;
use crate::Seq;
use crate::intake::selection::Refusal;
use crate::row_session::RowSession;
use crate::sql::{self, Class, SqlMode};
use crate::transaction::{
    BarrierCause, Body, Item, RowsItem, StatementItem, Tags, Transaction, UnsafeStatement, WriteSet,
};

/// What is kept of a row beside its event, at least: its ranges and hashes. Narrow rows take less than that in the log.
const ROW_BYTES: u64 = 80;
/// Rows are counted once the events have so many bytes; before that they weigh too little.
const COUNTED_FROM_BYTES: u64 = 128 << 10;

pub(super) struct Building {
    pub gtid: Option<Gtid>,
    pub tags: Tags,
    pub start: LogPosition,
    pub server_id: u32,
    commit_time_us: u64,
    original_commit_us: u64,
    bytes: u64,
    /// See [`Transaction::map_bytes`].
    map_bytes: u64,
    /// Of both, those of items that were taken out.
    taken_bytes: u64,
    items: Vec<Item>,
    pub spilled: bool,
    pub barrier: Option<BarrierCause>,
    /// See [`Transaction::rolls_back`].
    pub rolls_back: bool,
    /// A ROLLBACK TO SAVEPOINT was seen: its statements have to run in order.
    pub rolls_back_to: bool,
    /// It ends with ROLLBACK.
    is_rolled_back: bool,
    /// The announcement, or the withdrawal, of a two-phase ALTER: its statement is not executed.
    pub skips_alter: bool,
    /// Of its BEGIN.
    pub session: Option<Arc<RowSession>>,
    counted_rows: u64,
    /// Rows that were let go of.
    spilled_rows: u64,
    /// Of the largest event, inflated.
    event_bytes: u64,
    /// See [`Transaction::unsafe_statements`].
    unsafe_statements: Vec<UnsafeStatement>,
    /// See [`Transaction::left_out`].
    left_out: Vec<String>,
    /// Something of it was left out.
    is_cut: bool,
    /// See [`Transaction::refusal`].
    refusal: Option<Box<Refusal>>,
}

impl Building {
    #[inline]
    pub fn new(event: &Event, at: &LogPosition) -> Self {
        Self {
            gtid: None,
            tags: Tags::default(),
            start: at.clone(),
            server_id: event.header().server_id,
            commit_time_us: u64::from(event.header().timestamp) * 1_000_000,
            original_commit_us: u64::from(event.header().timestamp) * 1_000_000,
            bytes: event.bytes().len() as u64,
            map_bytes: 0,
            taken_bytes: 0,
            items: Vec::new(),
            spilled: false,
            barrier: None,
            rolls_back: false,
            rolls_back_to: false,
            is_rolled_back: false,
            skips_alter: false,
            session: None,
            counted_rows: 0,
            spilled_rows: 0,
            event_bytes: 0,
            unsafe_statements: Vec::new(),
            left_out: Vec::new(),
            is_cut: false,
            refusal: None,
        }
    }

    #[inline]
    pub fn of_mysql(event: &Event, gtid: &MySqlGtid, at: &LogPosition) -> Self {
        let mut building = Self::new(event, at);
        building.gtid = Gtid::of_mysql(gtid);
        building.tags.last_committed = gtid.last_committed;
        building.tags.sequence_number = gtid.sequence_number;
        if let Some(us) = gtid.immediate_commit_timestamp_us.filter(|us| *us > 0) {
            building.commit_time_us = us;
            building.original_commit_us = gtid.original_commit_timestamp_us.filter(|us| *us > 0).unwrap_or(us);
        }
        building
    }

    #[inline]
    pub fn of_mariadb(event: &Event, gtid: &MariaDbGtid, at: &LogPosition) -> Self {
        // MariaDB's `binlog_alter_two_phase`: an ALTER TABLE is logged when it starts, and again when it has succeeded or failed. What
        // other sessions logged in between has the table's old definition, so the ALTER belongs where it ends.
        const ALTER_WITHOUT_EFFECT: u8 = MariaDbGtid::FL_EXTRA_START_ALTER | MariaDbGtid::FL_EXTRA_ROLLBACK_ALTER;
        let mut building = Self::new(event, at);
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
        if gtid.flags & (MariaDbGtid::FL_PREPARED_XA | MariaDbGtid::FL_COMPLETED_XA) != 0 {
            building.barrier = Some(BarrierCause::Xa);
        }
        building
    }

    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.event_bytes = self.event_bytes.max(bytes);
    }

    pub fn leave_out_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// An event of so many bytes is not applied.
    pub fn leaves_out(&mut self, bytes: u64) {
        self.leave_out_bytes(bytes);
        self.is_cut = true;
    }

    /// Likewise of a statement; `note`: it is said.
    pub fn leave_out_statement(&mut self, bytes: u64, note: Option<String>) {
        /// Of one transaction.
        const NOTES_MAX: usize = 20;
        self.leaves_out(bytes);
        if self.left_out.len() < NOTES_MAX {
            self.left_out.extend(note);
        }
    }

    /// It can be neither applied nor left out: the first reason counts.
    pub fn refuse(&mut self, refusal: &Refusal) {
        if self.refusal.is_none() {
            self.refusal = Some(Box::new(refusal.clone()));
        }
    }

    pub fn held_bytes(&self) -> u64 {
        (self.bytes + self.map_bytes).saturating_sub(self.taken_bytes)
    }

    /// Adds the rows of an event, or counts them if nothing is held any more.
    #[inline]
    pub fn push_rows<T>(&mut self, event: &Event, rows: RowsEvent, table: &mut MappedTable<T>) {
        let map = &table.map;
        self.event_bytes = self.event_bytes.max(rows.rows.len() as u64);
        let count = || rows.images(map).count() as u64;
        if self.spilled {
            self.spilled_rows += count();
            return;
        }
        if self.bytes > COUNTED_FROM_BYTES {
            self.counted_rows += count();
        }
        self.map_bytes += std::mem::take(&mut table.uncounted_bytes);
        // What was compressed in the event is held as it was before.
        self.bytes += (rows.rows.len() as u64).saturating_sub(event.bytes().len() as u64);
        if self.items.is_empty() {
            // Most transactions have one.
            self.items.reserve_exact(1);
        }
        self.items.push(Item::Rows(RowsItem {
            map: Arc::clone(map),
            event: rows,
            timestamp: event.header().timestamp,
            session: self.session.clone(),
            table: None,
            rows: 0..0,
        }));
    }

    pub fn push_statement(&mut self, statement: StatementItem) {
        if !self.spilled {
            self.items.push(Item::Statement(Box::new(statement)));
        }
    }

    /// Also of one that is too large to hold.
    pub fn note_unsafe(&mut self, statement: &StatementItem) {
        const SHOWN_CHARACTERS: usize = 160;
        let (query, mode) = (&statement.query, SqlMode::of(&statement.query.vars));
        for found in sql::unsafeties(&query.sql, &statement.class.class, mode, statement.logged_context()) {
            if !self.unsafe_statements.iter().any(|known| known.found.kind == found.kind) {
                let text = sql::shown(&query.sql, mode, SHOWN_CHARACTERS);
                self.unsafe_statements.push(UnsafeStatement { found, text });
            }
        }
    }

    pub fn take_items(&mut self) -> Vec<Item> {
        self.taken_bytes = self.bytes + self.map_bytes;
        std::mem::take(&mut self.items)
    }

    /// Lets go of the items once they need more than so many bytes.
    pub fn spill_above(&mut self, bytes: u64) {
        if self.bytes + self.map_bytes + self.counted_rows * ROW_BYTES > bytes && !self.spilled {
            self.spilled = true;
            self.spilled_rows = self.items.iter().map(rows_of).sum();
            self.items = Vec::new();
            self.map_bytes = 0;
        }
    }

    /// Something that would be lost if another transaction began here.
    pub fn has_items(&self) -> bool {
        self.spilled || !self.items.is_empty()
    }

    /// Nothing in it is applied, and nobody misses its GTID: MySQL's are a set, MariaDB's a position. (MySQL does not write such with GTIDs.)
    pub fn can_begin_the_next(&self) -> bool {
        let is_empty = self.items.is_empty() && self.spilled_rows == 0 && self.barrier.is_none();
        is_empty && !matches!(self.gtid, Some(Gtid::MySql { .. }))
    }

    /// XA COMMIT … ONE PHASE is a commit like any other: what is left of XA in it goes. So is any other end but a prepare: MySQL 5.7 logs a
    /// change after a deadlock in a branch, which it commits by itself, behind the XA START.
    pub fn make_one_phase(&mut self) {
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

    /// ROLLBACK: only what can not be rolled back remains.
    pub fn ends_rolled_back(&mut self) {
        self.make_one_phase();
        self.is_rolled_back = true;
    }

    /// The whole transaction, which ends at `end`. The source has started `source_starts` times before it.
    #[inline]
    pub fn finish(self, end: &LogPosition, source_starts: u32) -> Transaction {
        let mut items = self.items;
        let mut barrier = self.barrier;
        if self.is_cut && !self.spilled && items.iter().all(is_frame) && barrier <= Some(BarrierCause::Statement) {
            // Nothing of it is left: only its progress is recorded.
            items.clear();
            barrier = None;
        } else if self.rolls_back_to {
            barrier = barrier.max(Some(BarrierCause::Statement));
        } else {
            items.retain(|item| !is_plain_savepoint(item));
        }
        if barrier.is_none() && items.iter().any(|item| matches!(item, Item::Statement(_))) {
            barrier = Some(BarrierCause::Statement);
        }
        // Found out once: it may take a search through texts.
        let only_changes = barrier == Some(BarrierCause::Statement)
            && !self.spilled
            && !items.is_empty()
            && items.iter().all(Item::is_plain_change);
        let body = if self.spilled {
            // Another cause says more: after a DDL, say, table definitions are read anew.
            barrier = barrier.or(Some(BarrierCause::Huge));
            Body::Spilled {
                rows: self.spilled_rows,
                event_bytes: self.event_bytes,
                is_rolled_back: self.is_rolled_back,
            }
        } else {
            Body::Items(items)
        };
        Transaction {
            seq: 0 as Seq,
            gtid: self.gtid,
            start: self.start,
            end: end.clone(),
            tags: self.tags,
            server_id: self.server_id,
            commit_time_us: self.commit_time_us,
            original_commit_us: self.original_commit_us,
            bytes: self.bytes,
            map_bytes: self.map_bytes,
            body,
            rolls_back: self.rolls_back,
            only_changes,
            beside_prepared: false,
            unsafe_statements: self.unsafe_statements,
            left_out: self.left_out,
            refusal: self.refusal,
            branch: None,
            session: None,
            source_starts,
            write_set: WriteSet::default(),
            barrier,
        }
    }
}

fn rows_of(item: &Item) -> u64 {
    match item {
        Item::Rows(rows) => rows.event.images(&rows.map).count() as u64,
        Item::Statement(_) => 0,
    }
}

/// Savepoints, and the end of what is rolled back.
fn is_frame(item: &Item) -> bool {
    let Item::Statement(statement) = item else { return false };
    matches!(statement.class.class, Class::Savepoint | Class::Release | Class::RollbackTo | Class::Rollback)
}

fn is_plain_savepoint(item: &Item) -> bool {
    matches!(item, Item::Statement(statement) if matches!(statement.class.class, Class::Savepoint | Class::Release))
}
