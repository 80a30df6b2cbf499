//! Parts of a table that are copied beside each other: large tables by the first column of their key, where that is a whole number.

use wire::{Connection, Error};

use crate::bookkeeping::RangeRecord;
use crate::chunk::{ChunkKey, ChunkQuery, TableDefinition};

/// A table with fewer rows is one range.
const RANGE_ROWS_MIN: u64 = 200_000;
const RANGES_MAX: u64 = 64;

/// `workers`: so many copy.
pub fn plan(source: &mut Connection, table: &TableDefinition, workers: usize) -> Result<Vec<RangeRecord>, Error> {
    let wanted = (table.rows / RANGE_ROWS_MIN).min(workers as u64 * 4).min(RANGES_MAX);
    let lasts = if wanted > 1 { lasts(source, table, wanted)? } else { Vec::new() };
    Ok(between(&lasts))
}

/// Ranges that end with these values, and one behind the last of them.
fn between(lasts: &[i128]) -> Vec<RangeRecord> {
    let bound = |value: &i128| vec![value.to_string()];
    let ranges = (0..=lasts.len()).map(|at| RangeRecord {
        number: at as u32,
        frontier: at.checked_sub(1).and_then(|before| lasts.get(before)).map(bound),
        last: lasts.get(at).map(bound),
        rows: 0,
        is_done: false,
    });
    ranges.collect()
}

fn lasts(source: &mut Connection, table: &TableDefinition, wanted: u64) -> Result<Vec<i128>, Error> {
    let ChunkKey::Index { columns, .. } = &table.key else { return Ok(Vec::new()) };
    let first = columns.first().filter(|key| !key.is_descending).and_then(|key| table.columns.get(key.column));
    let is_whole_number =
        |data_type: &str| matches!(data_type, "tinyint" | "smallint" | "mediumint" | "int" | "bigint");
    let Some(column) = first.filter(|column| is_whole_number(&column.data_type)) else { return Ok(Vec::new()) };
    let all = ChunkQuery { table, after: None, until: None, limit: None };
    let name = column.expression();
    let ends = source.row(all.summing(&format!("MIN({name}), MAX({name})")))?;
    let Some((least, most)) = ends.and_then(|row| Some((number(row.text(0).ok()??)?, number(row.text(1).ok()??)?)))
    else {
        return Ok(Vec::new());
    };
    Ok(split(least, most, i128::from(wanted)))
}

fn number(text: &str) -> Option<i128> {
    text.parse().ok()
}

/// The last values of all parts but the last one.
fn split(least: i128, most: i128, parts: i128) -> Vec<i128> {
    let parts = parts.min(most - least + 1);
    (1..parts).map(|part| least + (most - least) * part / parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_meet() {
        assert_eq!(split(-10, 10, 4), [-5, 0, 5]);
        assert_eq!(split(1, 2, 9), [1]);
        assert_eq!(split(7, 7, 9), []);
        assert_eq!(split(0, i128::from(u64::MAX), 2), [i128::from(u64::MAX) / 2]);
        let ranges = between(&[5, 9]);
        let ends: Vec<_> = ranges.iter().map(|range| (range.frontier.clone(), range.last.clone())).collect();
        let bound = |value: i32| Some(vec![value.to_string()]);
        assert_eq!(ends, [(None, bound(5)), (bound(5), bound(9)), (bound(9), None)]);
    }
}
