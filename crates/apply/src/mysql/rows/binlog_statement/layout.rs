//! The layout of table maps and rows events as each kind of server takes them.

use binlog::{ColumnKind, Header, Kind, RowsEvent, RowsKind, TableMap};
use engine::compact::Batch;
use engine::failure::{Failure, FailureKind};

/// In a rows event that ends a statement one number serves for all tables; the tables of one statement count from it.
pub const TABLE_ID: u8 = 1;
/// `TM_BIT_LEN_EXACT_F`
const TABLE_MAP_FLAGS: u16 = 1;

/// What differs between targets in the form of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub mariadb: bool,
    /// It knows [`RowsEvent::SQL_FOREIGN_KEYS`] (MySQL 9.6 and later).
    pub sql_foreign_keys: bool,
    /// It knows of primary keys that a server has made by itself, and leaves them out where only one side has one (MySQL 8.0.30 and later).
    pub generated_keys: bool,
}

impl Dialect {
    /// The other vendor's row applier says "Unknown error", or "syntax error", of values that it has no type for.
    pub fn check_types(self, batch: &Batch<'_>) -> Result<(), Failure> {
        let map = batch.map;
        let unknown = |column: &binlog::Column| match column.kind {
            ColumnKind::JSON => self.mariadb,
            ColumnKind::BLOB_COMPRESSED | ColumnKind::VARCHAR_COMPRESSED => !self.mariadb,
            _ => false,
        };
        let Some(at) = map.columns.iter().position(unknown) else { return Ok(()) };
        let known = batch.table.and_then(|table| table.columns.get(at));
        let column = known.map_or_else(|| format!("number {}", at + 1), |column| column.name.clone());
        let (what, target, instead) = if self.mariadb {
            ("a JSON column of MySQL", "MariaDB", "make it LONGTEXT on the source")
        } else {
            let instead = "make it one without COMPRESSED on the source (ALTER TABLE … MODIFY)";
            ("a COMPRESSED column of MariaDB", "MySQL", instead)
        };
        let message =
            format!("{}.{} has {what} ({column}), whose values can not be applied to {target}", map.schema, map.table);
        Err(Failure::new(FailureKind::Refused, message).remedy(format!("{instead}, or leave the table out there")))
    }

    /// The flags of a rows event as this server has to see them. One that does not know that cascades are in the log would do them
    /// itself, and refuse child rows that come before their parent's new key.
    pub fn rows_flags(self, flags: u16) -> u16 {
        if self.sql_foreign_keys || flags & RowsEvent::SQL_FOREIGN_KEYS == 0 {
            return flags;
        }
        flags & !RowsEvent::SQL_FOREIGN_KEYS | RowsEvent::NO_FOREIGN_KEY_CHECKS
    }

    pub fn rows_kind(self, batch: &Batch<'_>) -> Result<Kind, Failure> {
        if batch.partial_json {
            if self.mariadb {
                let message =
                    "a partial JSON update (binlog_row_value_options=PARTIAL_JSON) can not be applied to MariaDB";
                return Err(
                    Failure::new(FailureKind::Refused, message).remedy("set binlog_row_value_options='' on the source")
                );
            }
            return Ok(Kind::PARTIAL_UPDATE_ROWS);
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

/// The number of a statement's table, the first of which has index 0.
pub fn table_id(index: usize) -> u8 {
    TABLE_ID + index as u8
}

pub fn put_table_id(id: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[id, 0, 0, 0, 0, 0]);
}

pub fn begin_event(out: &mut Vec<u8>, kind: Kind, timestamp: u32, server_id: u32) {
    Header { timestamp, kind, server_id, event_len: 0, log_pos: 0, flags: 0 }.write_to(out);
}

pub fn end_event(out: &mut [u8], start: usize) -> Result<(), Failure> {
    let length =
        u32::try_from(out.len() - start).map_err(|_| Failure::new(FailureKind::Refused, "a row of more than 4 GiB"))?;
    if let Some(field) = out.get_mut(start + 9..start + 13) {
        field.copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// The protocol's length-encoded integer.
pub fn put_length(out: &mut Vec<u8>, value: usize) {
    match value {
        0..=250 => out.push(value as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfd);
            out.extend((value as u32).to_le_bytes().into_iter().take(3));
        }
    }
}

/// The table map's body as logged, up to the optional metadata (which the other server might not know), under our
/// table id.
pub fn put_table_map_body(map: &TableMap, dialect: Dialect, id: u8, out: &mut Vec<u8>) -> Result<(), Failure> {
    let raw = &map.raw;
    // MySQL 9 reads the dimensions of VECTOR columns from the metadata, and only MySQL has that type.
    let has_vector = map.columns.iter().any(|column| column.kind == ColumnKind::VECTOR);
    let end = if has_vector && !dialect.mariadb { Some(raw.len()) } else { mandatory_end(raw) };
    let Some(rest) = end.and_then(|end| raw.get(8..end)) else {
        return Err(Failure::new(
            FailureKind::Refused,
            format!("the table map of {}.{} can not be encoded for the target", map.schema, map.table),
        ));
    };
    put_table_id(id, out);
    let generated_key = if dialect.generated_keys { map.flags & TableMap::FLAG_GENERATED_KEY } else { 0 };
    out.extend_from_slice(&(TABLE_MAP_FLAGS | generated_key).to_le_bytes());
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
        let old = Dialect { mariadb: false, sql_foreign_keys: false, generated_keys: false };
        let new = Dialect { mariadb: false, sql_foreign_keys: true, generated_keys: true };
        assert_eq!(new.rows_flags(0x10), 0x10);
        assert_eq!(old.rows_flags(0x10), 0x02);
        assert_eq!(old.rows_flags(0x14), 0x06);
        assert_eq!(old.rows_flags(0x04), 0x04);
    }
}
