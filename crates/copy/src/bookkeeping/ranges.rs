//! Tables of a copy and their ranges, as the target has them.

use apply::mysql::progress::SCHEMA;
use apply::mysql::server::errors::failed;
use apply::mysql::server::sql::quote;
use engine::failure::Failure;
use engine::windows::Reading;
use wire::{Connection, Error};

use crate::chunk::{KeyBound, TableName};

/// What becomes of a table in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStatus {
    /// It is to be read.
    Pending,
    /// Its rows are there.
    Placed,
}

#[derive(Clone, Debug)]
pub struct TableRecord {
    pub name: TableName,
    pub status: TableStatus,
    pub reading: Reading,
}

/// A part of a table, in the order of its key.
#[derive(Clone, Debug)]
pub struct RangeRecord {
    pub number: u32,
    /// The last row that is placed, or what the range begins behind.
    pub frontier: Option<KeyBound>,
    /// The range's last row, itself included.
    pub last: Option<KeyBound>,
    pub rows: u64,
    pub is_done: bool,
}

/// Literals have no line ends.
fn text(bound: Option<&KeyBound>) -> String {
    bound.map_or_else(|| "NULL".to_owned(), |bound| quote(&bound.join("\n")))
}

fn of_table(channel: &str, name: &TableName) -> String {
    format!("channel={} AND schema_name={} AND table_name={}", quote(channel), quote(&name.schema), quote(&name.table))
}

pub fn tables_of(connection: &mut Connection, channel: &str) -> Result<Vec<TableRecord>, Failure> {
    let sql = format!(
        "SELECT schema_name, table_name, status, reading FROM {SCHEMA}.copy_tables WHERE channel={} ORDER BY 1, 2",
        quote(channel)
    );
    let rows = connection.rows(sql).map_err(failed)?;
    let record = |row: &wire::Row| -> Result<TableRecord, Error> {
        let is_placed = row.required_text(2)? == "placed";
        Ok(TableRecord {
            name: TableName::new(row.required_text(0)?, row.required_text(1)?),
            status: if is_placed { TableStatus::Placed } else { TableStatus::Pending },
            reading: if row.required_text(3)? == "whole" { Reading::Whole } else { Reading::Chunks },
        })
    };
    rows.iter().map(record).collect::<Result<_, _>>().map_err(failed)
}

/// Records a table, or what becomes of it. One that is pending has no ranges yet.
pub fn set_table(connection: &mut Connection, channel: &str, table: &TableRecord) -> Result<(), Failure> {
    let status = if table.status == TableStatus::Placed { "placed" } else { "pending" };
    let reading = if table.reading == Reading::Whole { "whole" } else { "chunks" };
    let mut statements = vec![format!(
        "REPLACE INTO {SCHEMA}.copy_tables (channel, schema_name, table_name, status, reading) VALUES ({}, {}, {}, '{status}', '{reading}')",
        quote(channel),
        quote(&table.name.schema),
        quote(&table.name.table)
    )];
    if table.status == TableStatus::Pending {
        statements.push(format!("DELETE FROM {SCHEMA}.copy_ranges WHERE {}", of_table(channel, &table.name)));
    }
    statements.iter().try_for_each(|statement| connection.execute(statement).map(|_| ())).map_err(failed)
}

/// The table is gone from the source.
pub fn forget_table(connection: &mut Connection, channel: &str, name: &TableName) -> Result<(), Failure> {
    for table in ["copy_ranges", "copy_tables"] {
        let sql = format!("DELETE FROM {SCHEMA}.{table} WHERE {}", of_table(channel, name));
        connection.execute(sql).map_err(failed)?;
    }
    Ok(())
}

pub fn ranges_of(connection: &mut Connection, channel: &str, name: &TableName) -> Result<Vec<RangeRecord>, Failure> {
    let sql = format!(
        "SELECT number, frontier, last, row_count, is_done FROM {SCHEMA}.copy_ranges WHERE {} ORDER BY number",
        of_table(channel, name)
    );
    let rows = connection.rows(sql).map_err(failed)?;
    let record = |row: &wire::Row| -> Result<RangeRecord, Error> {
        let bound = |at: usize| Ok::<_, Error>(row.text(at)?.map(|text| text.lines().map(str::to_owned).collect()));
        Ok(RangeRecord {
            number: row.required(0)?,
            frontier: bound(1)?,
            last: bound(2)?,
            rows: row.required(3)?,
            is_done: row.required_text(4)? == "1",
        })
    };
    rows.iter().map(record).collect::<Result<_, _>>().map_err(failed)
}

/// Records all ranges of a table at once.
pub fn set_ranges(
    connection: &mut Connection,
    channel: &str,
    name: &TableName,
    ranges: &[RangeRecord],
) -> Result<(), Failure> {
    let rows = ranges.iter().map(|range| {
        format!(
            "({}, {}, {}, {}, {}, {}, 0, 0)",
            quote(channel),
            quote(&name.schema),
            quote(&name.table),
            range.number,
            text(range.frontier.as_ref()),
            text(range.last.as_ref())
        )
    });
    let sql = format!(
        "INSERT INTO {SCHEMA}.copy_ranges (channel, schema_name, table_name, number, frontier, last, row_count, is_done) VALUES {}",
        rows.collect::<Vec<_>>().join(", ")
    );
    connection.execute(sql).map(|_| ()).map_err(failed)
}

/// In the transaction that places the rows before it.
pub fn record_frontier(channel: &str, name: &TableName, range: &RangeRecord) -> String {
    format!(
        "UPDATE {SCHEMA}.copy_ranges SET frontier={}, row_count={}, is_done={} WHERE {} AND number={}",
        text(range.frontier.as_ref()),
        range.rows,
        u8::from(range.is_done),
        of_table(channel, name),
        range.number
    )
}
