//! Row events over rows that the target has kept: which statements go before which rows ([`super::leftovers`] makes them). Writes no rows.

use std::sync::Arc;

use binlog::RowsKind;
use engine::compact::{Batch, Images};
use engine::failure::Failure;
use engine::schema::Leftovers;
use wire::Connection;

use super::session::{BORROW, GIVE_BACK};
use super::statements::{RowLists, Statements};
use super::table::SqlTable;
use super::{append, not_there};
use crate::mysql::rows::images;
use crate::mysql::rows::quirks::TableQuirks;
use crate::mysql::rows::writer::CompareBefore;
use crate::mysql::script::Script;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::row_check::RowChecks;

/// Statements, and the rows that are written behind them.
type Step<'a> = (Vec<Vec<u8>>, Batch<'a>);

pub struct OverLeftovers {
    quirks: Arc<TableQuirks>,
    lists: RowLists,
    packet_bytes_max: usize,
}

impl OverLeftovers {
    pub fn new(info: &TargetInfo, quirks: &Arc<TableQuirks>) -> Self {
        Self { quirks: Arc::clone(quirks), lists: RowLists::of(info), packet_bytes_max: 0 }
    }

    pub fn set_packet_bytes_max(&mut self, packet_bytes_max: usize) {
        self.packet_bytes_max = packet_bytes_max;
    }

    /// Whether the rows may have to take the place of others.
    pub fn may_have_some(&self, batch: &Batch<'_>) -> bool {
        if batch.kind == RowsKind::Delete || self.quirks.leftovers_of(batch.map) == Leftovers::None {
            return false;
        }
        self.quirks.sql_table(batch.map).is_none_or(|table| !table.unique_keys.is_empty())
    }

    /// The batch in its order.
    pub fn steps<'a>(
        &self,
        batch: &Batch<'a>,
        script: &mut Script,
        connection: &mut Connection,
    ) -> Result<Vec<Step<'a>>, Failure> {
        let table = match self.quirks.sql_table(batch.map) {
            Some(known) => Some(known),
            None => {
                script.send(connection)?;
                self.quirks.load_sql_table(batch.map, connection)?
            }
        };
        self.steps_of(table, batch)
    }

    /// The same without a question to the target.
    pub fn known_steps<'a>(&self, batch: &Batch<'a>) -> Result<Vec<Step<'a>>, Failure> {
        if !self.may_have_some(batch) {
            return Ok(vec![(Vec::new(), batch.clone())]);
        }
        self.steps_of(self.quirks.sql_table(batch.map), batch)
    }

    /// Appends a statement of a step.
    pub fn append(&self, statement: Vec<u8>, script: &mut Script, connection: &mut Connection) -> Result<(), Failure> {
        append(statement, self.packet_bytes_max, script, connection)
    }

    fn steps_of<'a>(&self, table: Option<Arc<SqlTable>>, batch: &Batch<'a>) -> Result<Vec<Step<'a>>, Failure> {
        let table = table.ok_or_else(|| not_there(batch.map))?;
        let clearing = |rows: &Batch<'_>| {
            let statements = Statements {
                table: &table,
                batch: rows,
                compare: CompareBefore::Key,
                lists: self.lists,
                checks: RowChecks::OutOfRange,
                leftovers: Leftovers::Kept,
            };
            let mut made: Vec<Vec<u8>> = Vec::new();
            let mut sink = |statement: Vec<u8>| {
                made.push(statement);
                Ok::<(), Failure>(())
            };
            match rows.kind {
                RowsKind::Write => statements.clear_for_all(&mut sink)?,
                RowsKind::Update => statements.clear_for_updates(&mut sink)?,
                RowsKind::Delete => {}
            }
            if !made.is_empty() {
                made.insert(0, BORROW.as_bytes().to_vec());
                made.push(GIVE_BACK.as_bytes().to_vec());
            }
            Ok::<_, Failure>(made)
        };
        let all = clearing(batch)?;
        if all.is_empty() || batch.kind == RowsKind::Write {
            return Ok(vec![(all, batch.clone())]);
        }
        // An update may take a value that the one before it has given up: each that changes one is written before the next.
        let mut steps: Vec<Step<'a>> = Vec::new();
        let mut unchanged: Vec<Images<'a>> = Vec::new();
        for row in images::rows(batch)? {
            let one = batch.with_row(row);
            let before = clearing(&one)?;
            if before.is_empty() {
                unchanged.push(row);
                continue;
            }
            if !unchanged.is_empty() {
                steps.push((Vec::new(), batch.with_rows(std::mem::take(&mut unchanged))));
            }
            steps.push((before, one));
        }
        if !unchanged.is_empty() {
            steps.push((Vec::new(), batch.with_rows(unchanged)));
        }
        Ok(steps)
    }
}
