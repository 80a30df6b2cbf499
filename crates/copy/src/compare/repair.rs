//! Writing what differs on the target: one row at a time, in a transaction that first looks whether the row is still as it was judged.
//!
//! # Why it does not meet the channel
//! A row is repaired only when it surely differs: the log does not touch it between both reads. The source's row is read again and has to be the same; the target's is
//! locked and has to be the same. So whatever the log does to the row later, the channel applies to the source's row. If the channel has the row meanwhile, it is not as it was judged, and
//! nothing is written.

use anyhow::{Context, Result, bail};
use apply::mysql::server::sql::{hex, identifier, quote};
use wire::{ConnectOptions, Connection, Row};

use super::looks::{CandidateOutcome, RowState, row_state};
use super::server::{self, Server};
use super::sql;
use super::tables::canonical::{self, Family};
use super::tables::definition::ColumnDefinition;
use super::tables::fetched_values;
use super::tables::plan::{ChunkKey, Key, Side, TablePlan};

/// What becomes of the statements that would make both sides equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    Shown,
    Written,
}

/// A session on the target that writes.
pub struct Writer {
    connection: Connection,
}

/// What came of one row.
#[derive(Debug, PartialEq, Eq)]
pub enum RepairOutcome {
    /// The statement; it was executed if that was asked for.
    By(String),
    /// The row is not as it was judged any more.
    Changed,
}

impl Writer {
    pub fn connect(options: &ConnectOptions) -> Result<Self> {
        let mut connection = server::session(options)?;
        connection.execute(
            "SET SESSION TRANSACTION READ WRITE; \
             SET SESSION foreign_key_checks=0, sql_mode='NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES', autocommit=1",
        )?;
        Ok(Self { connection })
    }

    /// Triggers would write once more what the source's have written.
    pub fn check_triggers(&mut self, plan: &TablePlan) -> Result<()> {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA={} AND EVENT_OBJECT_TABLE={}",
            quote(&plan.target.schema),
            quote(&plan.target.table)
        );
        if self.connection.scalar(sql)?.as_deref() == Some("0") {
            return Ok(());
        }
        bail!(
            "{}: the target's table has triggers, which would be executed by a repair: drop them, as the source's have written their rows already",
            plan.target
        )
    }

    pub fn repair(
        &mut self,
        source: &mut Server,
        plan: &TablePlan,
        key: &ChunkKey,
        at: &Key,
        settled: &CandidateOutcome,
        mode: Repair,
    ) -> Result<RepairOutcome> {
        let rows = source.rows(&source_row(plan, key, at))?;
        let row = rows.first();
        if row.map(|row| row_state(row, plan, key)) != settled.source {
            return Ok(RepairOutcome::Changed);
        }
        let statement = statement(plan, key, at, row, settled.target.as_ref());
        if mode == Repair::Shown {
            return Ok(RepairOutcome::By(statement));
        }
        let done = self.write(plan, key, at, settled.target.as_ref(), &statement);
        if !matches!(done, Ok(RepairOutcome::By(_))) {
            let _ = self.connection.execute("ROLLBACK");
        }
        done.with_context(|| format!("{}: {statement}", plan.target))
    }

    fn write(
        &mut self,
        plan: &TablePlan,
        key: &ChunkKey,
        at: &Key,
        judged: Option<&RowState>,
        statement: &str,
    ) -> Result<RepairOutcome> {
        self.connection.execute("BEGIN")?;
        let locked = self.connection.row(format!("{} FOR UPDATE", sql::row(plan, key, Side::Target, at)))?;
        if locked.map(|row| row_state(&row, plan, key)).as_ref() != judged {
            return Ok(RepairOutcome::Changed);
        }
        self.connection.execute(statement)?;
        self.connection.execute("COMMIT")?;
        Ok(RepairOutcome::By(statement.to_owned()))
    }
}

/// What says whether the row is as it was judged, then all values as literals are made from.
fn source_row(plan: &TablePlan, key: &ChunkKey, at: &Key) -> String {
    let values: Vec<String> = plan.columns.iter().map(|column| fetch(&column.definition)).collect();
    sql::row_and(plan, key, at, &values.join(","))
}

/// An expression whose bytes [`literal`] writes.
fn fetch(column: &ColumnDefinition) -> String {
    let name = identifier(&column.name);
    match canonical::family(column) {
        Family::Real => canonical::real(column),
        Family::Integer => canonical::number(column, name),
        Family::Text | Family::Geometry | Family::Vector => format!("CAST({name} AS BINARY)"),
        Family::Members | Family::Json => format!("CONVERT({name} USING utf8mb4)"),
        Family::Printed => format!("CAST({name} AS CHAR)"),
        Family::Decimal | Family::Date | Family::Time | Family::Moment | Family::Bytes => name,
    }
}

fn literal(column: &ColumnDefinition, value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    let text = || String::from_utf8_lossy(value).into_owned();
    let in_charset = |charset: &str| format!("_{charset} {}", hex(value));
    match canonical::family(column) {
        Family::Real => fetched_values::real(value).map_or_else(text, |value| format!("{value:e}")),
        Family::Integer | Family::Decimal if value.iter().all(|byte| byte.is_ascii_digit() || b"-.".contains(byte)) => {
            text()
        }
        Family::Date | Family::Time | Family::Moment => quote(&text()),
        Family::Text => in_charset(column.charset.as_deref().unwrap_or("utf8mb4")),
        Family::Members | Family::Json | Family::Printed => in_charset("utf8mb4"),
        Family::Integer | Family::Decimal | Family::Bytes | Family::Geometry | Family::Vector => hex(value),
    }
}

fn statement(plan: &TablePlan, key: &ChunkKey, at: &Key, source: Option<&Row>, target: Option<&RowState>) -> String {
    let name = plan.target.sql();
    let Some(row) = source else { return format!("DELETE FROM {name} WHERE {} LIMIT 1", sql::is_key(key, at)) };
    // Behind the key, the hash, and what is fetched.
    let first = row.len().saturating_sub(plan.columns.len());
    let values = plan.columns.iter().enumerate().filter(|(_, column)| column.is_written);
    let values =
        values.map(|(number, column)| (identifier(&column.name), literal(&column.definition, row.get(first + number))));
    if target.is_some() {
        let set: Vec<String> = values.map(|(name, value)| format!("{name}={value}")).collect();
        return format!("UPDATE {name} SET {} WHERE {} LIMIT 1", set.join(","), sql::is_key(key, at));
    }
    let (names, values): (Vec<String>, Vec<String>) = values.unzip();
    format!("INSERT INTO {name} ({}) VALUES ({})", names.join(","), values.join(","))
}
