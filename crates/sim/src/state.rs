//! What the tables hold: the oracle that any replica of the generated log is compared with.
//!
//! Strict, as a replica is: a row that is missing, there already or different is an error.

use std::collections::BTreeMap;

use crate::schema::{Schema, TableIndex};
use crate::value::{Key, Row};
use crate::workload::{Body, Change, Transaction};

/// Rows of all tables, ordered by primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    tables: Vec<BTreeMap<Key, Row>>,
}

/// A change does not fit the rows that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Divergence {
    #[error("table {0:?} is not in the schema")]
    Table(TableIndex),
    #[error("row {1:?} of table {0:?} is not there")]
    Missing(TableIndex, Key),
    #[error("row {1:?} of table {0:?} is there already")]
    Duplicate(TableIndex, Key),
    #[error("row {1:?} of table {0:?} is not as its before image says")]
    Different(TableIndex, Key),
}

impl State {
    /// Empty tables.
    pub fn new(schema: &Schema) -> State {
        State { tables: vec![BTreeMap::new(); schema.tables().len()] }
    }

    /// One row.
    pub fn get(&self, table: TableIndex, key: Key) -> Option<&Row> {
        self.tables.get(table.0)?.get(&key)
    }

    /// A table's rows by key.
    pub fn rows(&self, table: TableIndex) -> impl Iterator<Item = (&Key, &Row)> {
        self.tables.get(table.0).into_iter().flatten()
    }

    /// A table's rows whose keys start with `first`.
    pub fn rows_below(&self, table: TableIndex, first: u64) -> impl Iterator<Item = (&Key, &Row)> {
        self.tables.get(table.0).into_iter().flat_map(move |rows| rows.range([first, 0]..=[first, u64::MAX]))
    }

    /// Rows of all tables.
    pub fn len(&self) -> usize {
        self.tables.iter().map(BTreeMap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies one change.
    ///
    /// # Errors
    /// [`Divergence`]; nothing is changed then.
    pub fn apply(&mut self, table: TableIndex, change: &Change) -> Result<(), Divergence> {
        let key = change.key;
        let rows = self.tables.get_mut(table.0).ok_or(Divergence::Table(table))?;
        match (rows.get(&key), &change.before) {
            (None, Some(_)) => return Err(Divergence::Missing(table, key)),
            (Some(_), None) => return Err(Divergence::Duplicate(table, key)),
            (Some(have), Some(before)) if have != before => return Err(Divergence::Different(table, key)),
            _ => {}
        }
        match &change.after {
            Some(after) => rows.insert(key, Row::clone(after)),
            None => rows.remove(&key),
        };
        Ok(())
    }

    /// Applies a transaction's changes in order; DDL changes no rows.
    ///
    /// # Errors
    /// [`Divergence`] of the first change that does not fit; those before it stay.
    pub fn apply_transaction(&mut self, transaction: &Transaction) -> Result<(), Divergence> {
        let Body::Rows(statements) = &transaction.body else { return Ok(()) };
        for statement in statements {
            for change in &statement.changes {
                self.apply(statement.table, change)?;
            }
        }
        Ok(())
    }
}
