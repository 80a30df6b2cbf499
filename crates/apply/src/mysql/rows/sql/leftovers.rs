//! Rows that the source has deleted and the target keeps (`--leave-out`): one with a unique value of a row that comes is deleted before that row is written.
//!
//! Each unique key of whole columns by itself. Over a prefix or an expression nothing is found: the row that comes is a duplicate then, and the channel stops. What refers to the row by a
//! foreign key stays as it is. Never deletes a row that the source has: it would have the unique value there, too.

use engine::failure::{Failure, FailureKind};

use super::cells::{self, Cell, Cells};
use super::literal::LiteralUse;
use super::statements::{Gathered, RowLists, Sink, Statements, cell, separate};
use super::table::SqlTable;
use super::{NO_FOREIGN_KEY_CHECKS, compare};
use crate::mysql::rows::images::corrupt;

/// Columns of a unique key.
type Key = [usize];

impl Statements<'_> {
    /// Before the rows of a batch of inserts.
    pub fn clear_for_all(self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let mut gathered = Gathered::default();
        cells::for_each(
            self.batch,
            |error| corrupt(self.batch.map, error),
            |row| {
                if !gathered.takes(&row) {
                    self.clear_for_inserts(&std::mem::take(&mut gathered).rows, sink)?;
                }
                gathered.add(row);
                Ok(())
            },
        )?;
        self.clear_for_inserts(&gathered.rows, sink)
    }

    /// Before each row of a batch of updates: nothing where no unique value changes.
    pub fn clear_for_updates(self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        cells::for_each(self.batch, |error| corrupt(self.batch.map, error), |row| self.clear_for_update(&row, sink))
    }

    /// The rows have no unique value twice.
    pub(super) fn clear_for_inserts(self, rows: &[Cells<'_>], sink: &mut Sink<'_>) -> Result<(), Failure> {
        let mut statements = Vec::new();
        for key in &self.table.unique_keys {
            let has_all = |row: &&Cells<'_>| key.iter().all(|&at| matches!(cell(&row.after, at), Cell::Bytes(_)));
            let whole: Vec<&Cells<'_>> = rows.iter().filter(has_all).collect();
            let joins = |&at: &usize| self.column(at).is_some_and(|(column, _)| compare::joins(column));
            if self.lists != RowLists::None && whole.len() > 1 && key.iter().all(joins) {
                statements.push(self.clear_joined(key, &whole)?);
                continue;
            }
            for row in whole {
                let mut out = format!("DELETE FROM {} WHERE ", self.table.name).into_bytes();
                self.put_equal(key, |at| cell(&row.after, at), &mut out)?;
                statements.push(out);
            }
        }
        self.send_cleared(statements, sink)
    }

    /// Of the values that the row gets; the row itself stays: its values may be equal to the new ones for the index.
    pub(super) fn clear_for_update(self, row: &Cells<'_>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let mut statements = Vec::new();
        for key in &self.table.unique_keys {
            if !key.iter().any(|&at| self.is_changed(row, at)) {
                continue;
            }
            let value = |at: usize| match cell(&row.after, at) {
                Cell::Absent => cell(&row.before, at),
                present => present,
            };
            let is_whole = key.iter().all(|&at| matches!(value(at), Cell::Bytes(_)));
            let Some(own) = self.key(row).filter(|_| is_whole) else { continue };
            let mut out = format!("DELETE FROM {} WHERE ", self.table.name).into_bytes();
            self.put_equal(key, value, &mut out)?;
            out.extend_from_slice(b" AND NOT (");
            self.put_equal(own, |at| cell(&row.before, at), &mut out)?;
            out.push(b')');
            statements.push(out);
        }
        self.send_cleared(statements, sink)
    }

    fn send_cleared(self, statements: Vec<Vec<u8>>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if statements.is_empty() {
            return Ok(());
        }
        check(self)?;
        // Nothing cascades: what refers to the row refers to the one that comes.
        let has_relations = self.batch.table.is_none_or(|table| table.has_relations);
        let is_checked = has_relations && self.batch.flags & NO_FOREIGN_KEY_CHECKS == 0;
        if is_checked {
            sink(b"SET SESSION foreign_key_checks=0".to_vec())?;
        }
        statements.into_iter().try_for_each(&mut *sink)?;
        if is_checked {
            sink(b"SET SESSION foreign_key_checks=1".to_vec())?;
        }
        Ok(())
    }

    /// `a=1 AND b=2`.
    fn put_equal<'b>(self, key: &Key, value: impl Fn(usize) -> Cell<'b>, out: &mut Vec<u8>) -> Result<(), Failure> {
        for (index, &at) in key.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b" AND ");
            }
            out.extend_from_slice(self.column(at).map_or("", |(column, _)| &column.name).as_bytes());
            out.push(b'=');
            self.put(at, value(at), LiteralUse::Find, out)?;
        }
        Ok(())
    }

    fn clear_joined(self, key: &Key, rows: &[&Cells<'_>]) -> Result<Vec<u8>, Failure> {
        let name = &self.table.name;
        let mut out = format!("DELETE {name} FROM (SELECT ").into_bytes();
        for (number, row) in rows.iter().enumerate() {
            let (before, after) = self.lists.around(number);
            out.extend_from_slice(before);
            for (index, &at) in key.iter().enumerate() {
                separate(index, &mut out);
                self.put(at, cell(&row.after, at), LiteralUse::Find, &mut out)?;
                if number == 0 {
                    out.extend_from_slice(format!(" k{at}").as_bytes());
                }
            }
            out.extend_from_slice(after);
        }
        let equal = key.iter().filter_map(|&at| Some(format!("{name}.{}=v.k{at}", self.column(at)?.0.name)));
        let conditions: Vec<String> = equal.collect();
        out.extend_from_slice(format!(") v STRAIGHT_JOIN {name} ON {}", conditions.join(" AND ")).as_bytes());
        Ok(out)
    }
}

/// Whether rows of the table may be deleted by a statement.
fn check(statements: Statements<'_>) -> Result<(), Failure> {
    let SqlTable { traits, .. } = statements.table;
    let map = statements.batch.map;
    let triggers = statements.table.fired_by(binlog::RowsKind::Delete);
    let why = if traits.is_versioned {
        "keeps its history itself (WITH SYSTEM VERSIONING)".to_owned()
    } else if !triggers.is_empty() {
        format!("has triggers on the target for rows that are deleted ({})", triggers.join(", "))
    } else {
        return Ok(());
    };
    let message = format!(
        "{}.{} {why}, and a row that comes again takes the place of the one that --leave-out has kept",
        map.schema, map.table
    );
    Err(Failure::new(FailureKind::Refused, message)
        .remedy("drop the triggers, or the versioning, of the table on the target, and run the same command again"))
}
