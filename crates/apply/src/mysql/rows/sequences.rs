//! MariaDB's sequences, whose state is logged as a row.
//!
//! With `binlog_row_image=MINIMAL` the row has the next value and the cycle only. A replica sets these two. `BINLOG` writes the row as it is, with
//! zeros for what is not in it, which no sequence can have (error 4085, or 1105; seen with 10.11 to 11.8). So the row is completed with what
//! the target has.

use binlog::{Bitmap, ColumnKind, RowsKind, TableMap};
use engine::compact::{Batch, Images};
use engine::failure::{Failure, FailureKind};
use wire::Row;

use super::images::Shape;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::identifier;

/// A table that is one.
#[derive(Debug)]
pub struct Sequence;

/// Whole rows in the place of those that lack columns, one behind the other.
#[derive(Debug)]
pub struct CompletedRow {
    columns: Bitmap,
    image: Vec<u8>,
}

impl CompletedRow {
    pub fn batch<'a>(&'a self, batch: &Batch<'a>) -> Batch<'a> {
        Batch { after_columns: &self.columns, rows: vec![Images { before: &[], after: &self.image }], ..batch.clone() }
    }
}

/// Whether a row of a sequence has to be completed.
pub fn lacks_columns(batch: &Batch<'_>) -> bool {
    batch.kind == RowsKind::Write && !batch.after_columns.is_full()
}

/// `rows`: asks the target, once everything that comes before in the log is executed.
pub fn complete(
    batch: &Batch<'_>,
    rows: impl FnOnce(String) -> Result<Vec<Row>, wire::Error>,
) -> Result<CompletedRow, Failure> {
    let map = batch.map;
    let sql = format!("SELECT * FROM {}.{}", identifier(&map.schema), identifier(&map.table));
    let answer = rows(sql).map_err(failed)?;
    let known = answer.first().ok_or_else(|| refused(map, "the target's has no row"))?;
    // A whole event has its rows in one piece.
    let logged: Vec<u8> = batch.rows.iter().flat_map(|row| [row.before, row.after].concat()).collect();
    let columns = Bitmap::full(map.columns.len());
    let mut image = Vec::new();
    let shape = Shape::of(batch, batch.before_columns);
    let mut at = 0;
    while let Some(row) = shape.row(&logged, at).map_err(|error| refused(map, &error.to_string()))? {
        at = row.after.end;
        put_whole(batch, logged.get(row.after).unwrap_or_default(), known, &mut image)?;
    }
    Ok(CompletedRow { columns, image })
}

fn put_whole(batch: &Batch<'_>, row: &[u8], known: &Row, image: &mut Vec<u8>) -> Result<(), Failure> {
    let map = batch.map;
    let mut values: Vec<Option<&[u8]>> = vec![None; map.columns.len()];
    for value in map.layout().columns(batch.after_columns, row) {
        let value = value.map_err(|error| refused(map, &error.to_string()))?;
        if let Some(slot) = values.get_mut(value.column) {
            *slot = value.value;
        }
    }
    // No column of a sequence is NULL.
    image.resize(image.len() + map.columns.len().div_ceil(8), 0);
    for (index, (column, logged)) in map.columns.iter().zip(values).enumerate() {
        match logged {
            Some(raw) => image.extend_from_slice(raw),
            None => {
                let number: i128 = known.required(index).map_err(failed)?;
                let width = width(column.kind).ok_or_else(|| refused(map, "a column that is not a whole number"))?;
                image.extend_from_slice(number.to_le_bytes().get(..width).unwrap_or_default());
            }
        }
    }
    Ok(())
}

/// Bytes of a whole number.
fn width(kind: ColumnKind) -> Option<usize> {
    Some(match kind {
        ColumnKind::TINY => 1,
        ColumnKind::SHORT => 2,
        ColumnKind::INT24 => 3,
        ColumnKind::LONG => 4,
        ColumnKind::LONGLONG => 8,
        _ => return None,
    })
}

fn refused(map: &TableMap, why: &str) -> Failure {
    Failure::new(
        FailureKind::Refused,
        format!("the state of sequence {}.{}, logged in part, can not be completed: {why}", map.schema, map.table),
    )
    .remedy("set binlog_row_image=FULL on the source, and make the sequence equal with ALTER SEQUENCE … RESTART")
}
