//! Batches of rows → binary log events that the target's `BINLOG` statement takes.
//!
//! Each rows event comes with its table map and ends a statement, so that events can be cut anywhere into
//! `BINLOG` statements; or all of a transaction are one statement, which commits by itself. No checksums: the format
//! description that a session begins with says so.

use std::sync::Arc;

use binlog::{Corrupt, Header, Kind, RowsEvent, RowsKind, TableMap};
use engine::compact::{Batch, Images};
use engine::failure::{Failure, FailureKind};

use crate::mysql::rows::by_name::ByName;
use crate::mysql::rows::images::Shape;
use crate::mysql::rows::row_end::{self, RowEnd};

/// Rows of one event, in bytes; one row more than that makes an event of its own.
const EVENT_ROWS_BYTES: usize = 1 << 20;

/// What differs between targets in the form of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub mariadb: bool,
    /// It knows [`SQL_FOREIGN_KEYS`] (MySQL 9.6 and later).
    pub sql_foreign_keys: bool,
}

/// Flag of a rows event, `USE_SQL_FOREIGN_KEY_F` in MySQL 9.6 and later: what cascades is in the log, child rows before
/// their parent's.
const SQL_FOREIGN_KEYS: u16 = 0x10;
/// `NO_FOREIGN_KEY_CHECKS_F`
const NO_FOREIGN_KEY_CHECKS: u16 = 0x02;

impl Dialect {
    /// MariaDB's row applier says no more than "Unknown error" of values that it has no type for.
    fn check_types(self, map: &TableMap) -> Result<(), Failure> {
        let unknown = |column: &binlog::Column| column.kind == binlog::ColumnKind::JSON;
        if !(self.mariadb && map.columns.iter().any(unknown)) {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Refused,
            format!(
                "{}.{} has a JSON column of MySQL, whose values can not be applied to MariaDB",
                map.schema, map.table
            ),
        )
        .remedy("make it LONGTEXT on the source, or leave the table out there"))
    }

    /// The flags of a rows event as this server has to see them. One that does not know that cascades are in the log would do them
    /// itself, and refuse child rows that come before their parent's new key.
    fn rows_flags(self, flags: u16) -> u16 {
        if self.sql_foreign_keys || flags & SQL_FOREIGN_KEYS == 0 {
            return flags;
        }
        flags & !SQL_FOREIGN_KEYS | NO_FOREIGN_KEY_CHECKS
    }

    fn rows_kind(self, batch: &Batch<'_>) -> Result<Kind, Failure> {
        if batch.partial_json {
            return match self.mariadb {
                false => Ok(Kind::PARTIAL_UPDATE_ROWS),
                true => Err(Failure::new(
                    FailureKind::Refused,
                    "a partial JSON update (binlog_row_value_options=PARTIAL_JSON) can not be applied to MariaDB",
                )
                .remedy("set binlog_row_value_options='' on the source")),
            };
        }
        Ok(match (self.mariadb, batch.kind) {
            (false, RowsKind::Write) => Kind::WRITE_ROWS,
            (false, RowsKind::Update) => Kind::UPDATE_ROWS,
            (false, RowsKind::Delete) => Kind::DELETE_ROWS,
            (true, RowsKind::Write) => Kind::WRITE_ROWS_V1,
            (true, RowsKind::Update) => Kind::UPDATE_ROWS_V1,
            (true, RowsKind::Delete) => Kind::DELETE_ROWS_V1,
        })
    }
}

/// Encodes batches one after the other.
#[derive(Debug)]
pub struct Encoder {
    dialect: Dialect,
    /// The most bytes of a table map and its rows event that the target takes, if there is more than one row.
    piece_bytes_max: usize,
    server_id: u32,
    /// The last table map's body, and of which map it is.
    map: Option<(Arc<TableMap>, Vec<u8>)>,
    /// Of tables whose rows may end earlier than the target's do, if there can be any.
    row_ends: Option<Arc<ByName<RowEnd>>>,
}

/// Where each rows event ends a statement one number serves for all tables; the tables of one statement count from it.
const TABLE_ID: u8 = 1;
/// Bytes of a table's number at the start of the bodies of its events.
const TABLE_ID_BYTES: usize = 6;
/// Tables of one statement, and their rows in bytes.
const STATEMENT_TABLES_MAX: usize = 100;
pub const STATEMENT_ROWS_BYTES: usize = 64 << 10;
const TABLE_MAP_FLAGS: u16 = 1;

impl Encoder {
    pub fn new(dialect: Dialect, piece_bytes_max: usize, row_ends: Option<Arc<ByName<RowEnd>>>) -> Self {
        Self { dialect, piece_bytes_max, server_id: 1, map: None, row_ends }
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
            self.dialect.check_types(batch.map)?;
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
            extend_ends(self.row_ends.as_deref(), batch, &mut piece[first_row..])?;
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
        for batch in batches.iter() {
            if maps.iter().any(|map| same_table(map, batch.map)) {
                continue;
            }
            self.dialect.check_types(batch.map)?;
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
            extend_ends(self.row_ends.as_deref(), batch, &mut out[first_row..])?;
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

fn extend_ends(row_ends: Option<&ByName<RowEnd>>, batch: &Batch<'_>, rows: &mut [u8]) -> Result<(), Failure> {
    let Some(row_end) = row_ends.and_then(|row_ends| row_ends.get(batch.map)) else { return Ok(()) };
    let shape = Shape::of(batch, batch.lookup_columns.unwrap_or(batch.before_columns));
    row_end::extend(*row_end, batch.map, shape, rows).map_err(|error| corrupt(batch.map, &error))
}

fn corrupt(map: &TableMap, error: &Corrupt) -> Failure {
    Failure::new(FailureKind::Refused, format!("a row of {}.{}: {error}", map.schema, map.table))
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
/// source without a word in its log (`sql_log_bin=0`).
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

/// The number of a statement's table.
fn table_id(index: usize) -> u8 {
    TABLE_ID + index as u8
}

fn put_table_id(id: u8, out: &mut Vec<u8>) {
    let mut bytes = [0; TABLE_ID_BYTES];
    bytes[0] = id;
    out.extend_from_slice(&bytes);
}

fn begin_event(out: &mut Vec<u8>, kind: Kind, timestamp: u32, server_id: u32) {
    Header { timestamp, kind, server_id, event_len: 0, log_pos: 0, flags: 0 }.write_to(out);
}

fn end_event(out: &mut [u8], start: usize) -> Result<(), Failure> {
    let length =
        u32::try_from(out.len() - start).map_err(|_| Failure::new(FailureKind::Refused, "a row of more than 4 GiB"))?;
    if let Some(field) = out.get_mut(start + 9..start + 13) {
        field.copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// The protocol's length-encoded integer.
fn put_length(out: &mut Vec<u8>, value: usize) {
    match value {
        0..=250 => out.push(value as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfd);
            out.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
    }
}

/// The table map's body as logged, up to the optional metadata (which the other server might not know), under our
/// table id.
fn put_table_map_body(map: &TableMap, dialect: Dialect, id: u8, out: &mut Vec<u8>) -> Result<(), Failure> {
    let raw = &map.raw;
    // MySQL 9 reads the dimensions of VECTOR columns from the metadata, and only MySQL has that type.
    let has_vector = map.columns.iter().any(|column| column.kind == binlog::ColumnKind::VECTOR);
    let end = if has_vector && !dialect.mariadb { Some(raw.len()) } else { mandatory_end(raw) };
    let Some(rest) = end.and_then(|end| raw.get(8..end)) else {
        return Err(Failure::new(
            FailureKind::Refused,
            format!("the table map of {}.{} can not be encoded for the target", map.schema, map.table),
        ));
    };
    put_table_id(id, out);
    out.extend_from_slice(&TABLE_MAP_FLAGS.to_le_bytes());
    out.extend_from_slice(rest);
    Ok(())
}

/// Offset behind the null bitmap. Layout: id 6, flags 2, schema (length, text, NUL), table likewise, column count,
/// types, metadata with its length, null bitmap.
fn mandatory_end(raw: &[u8]) -> Option<usize> {
    let mut at = 8;
    for _ in 0..2 {
        at += usize::from(*raw.get(at)?) + 2;
    }
    let (count, used) = get_length(raw.get(at..)?)?;
    at += used + count;
    let (meta, used) = get_length(raw.get(at..)?)?;
    at += used + meta + count.div_ceil(8);
    Some(at)
}

fn get_length(bytes: &[u8]) -> Option<(usize, usize)> {
    match *bytes.first()? {
        small @ 0..=250 => Some((usize::from(small), 1)),
        0xfc => Some((usize::from(u16::from_le_bytes([*bytes.get(1)?, *bytes.get(2)?])), 3)),
        0xfd => Some((u32::from_le_bytes([*bytes.get(1)?, *bytes.get(2)?, *bytes.get(3)?, 0]) as usize, 4)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_cascades_are_not_done_again() {
        let old = Dialect { mariadb: false, sql_foreign_keys: false };
        let new = Dialect { mariadb: false, sql_foreign_keys: true };
        assert_eq!(new.rows_flags(0x10), 0x10);
        assert_eq!(old.rows_flags(0x10), 0x02);
        assert_eq!(old.rows_flags(0x14), 0x06);
        assert_eq!(old.rows_flags(0x04), 0x04);
    }
}
