//! Batches of rows → binary log events that the target's `BINLOG` statement takes.
//!
//! Each rows event comes with its table map and ends a statement, so that events can be cut anywhere into
//! `BINLOG` statements; or all of a transaction are one statement, which commits by itself. No checksums: the format
//! description that a session begins with says so.

use std::sync::Arc;

use binlog::{Kind, RowsEvent, RowsKind, TableMap};
use engine::compact::{Batch, Images};
use engine::failure::Failure;

use super::layout::{
    Dialect, TABLE_ID, begin_event, end_event, put_length, put_table_id, put_table_map_body, table_id,
};
use crate::mysql::rows::images::{Shape, corrupt};
use crate::mysql::rows::quirks::TableQuirks;
use crate::mysql::rows::row_end;

/// Rows of one event, in bytes; one row more than that makes an event of its own.
const EVENT_ROWS_BYTES: usize = 1 << 20;

/// Encodes batches one after the other.
#[derive(Debug)]
pub struct Encoder {
    dialect: Dialect,
    /// The most bytes of a table map and its rows event that the target takes, if there is more than one row.
    piece_bytes_max: usize,
    server_id: u32,
    /// The last table map's body, and of which map it is.
    map: Option<(Arc<TableMap>, Vec<u8>)>,
    quirks: Arc<TableQuirks>,
}

/// Tables of one statement.
const STATEMENT_TABLES_MAX: usize = 100;

impl Encoder {
    pub fn new(dialect: Dialect, quirks: Arc<TableQuirks>) -> Self {
        Self { dialect, piece_bytes_max: 0, server_id: 1, map: None, quirks }
    }

    pub fn set_piece_bytes_max(&mut self, bytes: usize) {
        self.piece_bytes_max = bytes;
    }

    /// The server whose change the next events are, for the target's own binary log.
    pub fn set_server_id(&mut self, server_id: u32) {
        self.server_id = server_id;
    }

    /// Hands each piece, a table map and its rows event, to `sink`.
    pub fn encode(
        &mut self,
        batch: &Batch<'_>,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let kind = self.dialect.rows_kind(batch)?;
        let same = self.map.as_ref().is_some_and(|(map, _)| Arc::ptr_eq(map, batch.map));
        if !same {
            self.dialect.check_types(batch)?;
            let mut body = Vec::new();
            put_table_map_body(batch.map, self.dialect, TABLE_ID, &mut body)?;
            self.map = Some((Arc::clone(batch.map), body));
        }
        let Some((_, map_body)) = &self.map else { return Ok(()) };
        let mut piece = Vec::new();
        let mut rows = batch.rows.as_slice();
        while !rows.is_empty() {
            piece.clear();
            begin_event(&mut piece, Kind::TABLE_MAP, batch.timestamp, self.server_id);
            piece.extend_from_slice(map_body);
            end_event(&mut piece, 0)?;
            let start = piece.len();
            begin_event(&mut piece, kind, batch.timestamp, self.server_id);
            self.rows_head(batch, TABLE_ID, RowsEvent::STMT_END, &mut piece);
            let rows_bytes_max = self.piece_bytes_max.saturating_sub(piece.len()).min(EVENT_ROWS_BYTES);
            let (first_row, mut count) = (piece.len(), 0);
            for row in rows {
                let end = piece.len();
                put_row(batch, row, &mut piece)?;
                if count > 0 && piece.len() - first_row > rows_bytes_max {
                    piece.truncate(end);
                    break;
                }
                count += 1;
            }
            rows = rows.get(count..).unwrap_or_default();
            extend_ends(&self.quirks, batch, piece.get_mut(first_row..).unwrap_or_default())?;
            end_event(&mut piece, start)?;
            sink(&piece)?;
        }
        Ok(())
    }

    /// Whether the batches can be one statement: its flags and tables are those of its first rows event, with MariaDB its time, too.
    pub fn is_one_statement(&self, batches: &[Batch<'_>], rows_bytes_max: usize) -> bool {
        let Some(first) = batches.first() else { return false };
        let flags = self.dialect.rows_flags(first.flags);
        batches.iter().map(Batch::bytes).sum::<usize>() <= rows_bytes_max
            && batches.iter().all(|batch| self.dialect.rows_flags(batch.flags) == flags)
            && have_one_map_each(batches)
            && (!self.dialect.mariadb || show_one_time(batches) && cascade_as_opened(batches))
    }

    /// Appends the batches as one statement: the tables, then the rows, of which the last event ends it.
    pub fn encode_statement(&self, batches: &[Batch<'_>], out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut maps: Vec<&Arc<TableMap>> = Vec::with_capacity(batches.len());
        for batch in batches {
            if maps.iter().any(|map| same_table(map, batch.map)) {
                continue;
            }
            self.dialect.check_types(batch)?;
            maps.push(batch.map);
            let start = out.len();
            begin_event(out, Kind::TABLE_MAP, batch.timestamp, self.server_id);
            put_table_map_body(batch.map, self.dialect, table_id(maps.len() - 1), out)?;
            end_event(out, start)?;
        }
        for (index, batch) in batches.iter().enumerate() {
            let table = maps.iter().position(|map| same_table(map, batch.map)).unwrap_or_default();
            let end = if index + 1 == batches.len() { RowsEvent::STMT_END } else { 0 };
            let start = out.len();
            begin_event(out, self.dialect.rows_kind(batch)?, batch.timestamp, self.server_id);
            self.rows_head(batch, table_id(table), end, out);
            let first_row = out.len();
            for row in &batch.rows {
                put_row(batch, row, out)?;
            }
            extend_ends(&self.quirks, batch, out.get_mut(first_row..).unwrap_or_default())?;
            end_event(out, start)?;
        }
        Ok(())
    }

    fn rows_head(&self, batch: &Batch<'_>, table_id: u8, end: u16, out: &mut Vec<u8>) {
        put_table_id(table_id, out);
        out.extend_from_slice(&(self.dialect.rows_flags(batch.flags) | end).to_le_bytes());
        if !self.dialect.mariadb {
            // Version 2: the length of no extra data, itself counted.
            out.extend_from_slice(&2u16.to_le_bytes());
        }
        put_length(out, batch.map.columns.len());
        if batch.kind != RowsKind::Write {
            out.extend_from_slice(batch.lookup_columns.unwrap_or(batch.before_columns).as_bytes());
        }
        if batch.kind != RowsKind::Delete {
            out.extend_from_slice(batch.after_columns.as_bytes());
        }
    }
}

/// Of the row before, no more than the target needs to find it: it does not compare the rest with what it finds by a primary key, and
/// logs what it has found (seen in the logs of all supported versions).
fn put_row(batch: &Batch<'_>, row: &Images<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
    match batch.lookup_columns {
        Some(columns) => {
            let selected = batch.map.layout().select(batch.before_columns, row.before, columns, out);
            selected.map_err(|error| corrupt(batch.map, &error))?;
        }
        None => out.extend_from_slice(row.before),
    }
    out.extend_from_slice(row.after);
    Ok(())
}

fn extend_ends(quirks: &TableQuirks, batch: &Batch<'_>, rows: &mut [u8]) -> Result<(), Failure> {
    let Some(row_end) = quirks.row_end(batch.map) else { return Ok(()) };
    let shape = Shape::of(batch, batch.lookup_columns.unwrap_or(batch.before_columns));
    row_end::extend(*row_end, batch.map, shape, rows).map_err(|error| corrupt(batch.map, &error))
}

/// MariaDB opens the tables that foreign keys lead to when a statement's first rows event comes, for what an event of that kind does to them (in
/// `Rows_log_event::do_apply_event`). One of another kind that cascades finds them closed, or open for reading, and the server may crash.
fn cascade_as_opened(batches: &[Batch<'_>]) -> bool {
    let first = batches.first().map(|batch| batch.kind);
    batches.iter().all(|batch| Some(batch.kind) == first || !batch.may_cascade())
}

/// What the rows show of the time of their change is that of the first batch.
fn show_one_time(batches: &[Batch<'_>]) -> bool {
    let first = batches.first().map(|batch| batch.timestamp);
    batches.iter().all(|batch| Some(batch.timestamp) == first || !batch.takes_time())
}

/// Whether they are of few tables, and the rows of each are laid out alike: a statement has one map for a table, whose types may have changed on the
/// source unlogged (`sql_log_bin=0`).
fn have_one_map_each(batches: &[Batch<'_>]) -> bool {
    let mut tables: Vec<&Arc<TableMap>> = Vec::new();
    batches.iter().all(|batch| match tables.iter().find(|map| same_table(map, batch.map)) {
        Some(map) => Arc::ptr_eq(map, batch.map) || map.columns == batch.map.columns,
        None => {
            tables.push(batch.map);
            tables.len() <= STATEMENT_TABLES_MAX
        }
    })
}

/// A table's maps differ only by their numbers as long as nothing but rows comes between them.
fn same_table(one: &Arc<TableMap>, other: &Arc<TableMap>) -> bool {
    Arc::ptr_eq(one, other) || (one.table == other.table && one.schema == other.schema)
}
