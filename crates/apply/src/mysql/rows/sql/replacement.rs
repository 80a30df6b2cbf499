//! Rows of the log that are written whatever the target has: a row takes the place of what stands there or has its unique values, a deleted one goes if it is there.
//!
//! For the log of the time in which a copy was made, when rows on the target are from before and from behind a change: `engine::windows::Round` says why this is
//! right. It needs rows with all columns, and a key.

use binlog::RowsKind;
use engine::failure::{Failure, FailureKind};

use super::cells::{self, Cell, Cells};
use super::statements::{Gathered, Sink, Statements, cell};
use crate::mysql::rows::images::corrupt;
use crate::mysql::server::row_check as check;

impl<'a> Statements<'a> {
    pub fn overwrite(self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        self.check_columns()?;
        let damaged = |error: &binlog::Corruption| corrupt(self.batch.map, error);
        let (mut old, mut new) = (Gathered::default(), Gathered::default());
        cells::for_each(self.batch, damaged, |row| match self.batch.kind {
            RowsKind::Delete => self.remove(row, &mut old, sink),
            RowsKind::Write => self.place(row, &mut new, sink),
            RowsKind::Update => {
                if self.moves(&row) {
                    // What comes after it may take the key that it had.
                    self.flush_new(&mut new, sink)?;
                    self.remove_one(&row, sink)?;
                }
                self.place(row, &mut new, sink)
            }
        })?;
        self.flush_old(&mut old, sink)?;
        self.flush_new(&mut new, sink)
    }

    fn check_columns(self) -> Result<(), Failure> {
        let map = self.batch.map;
        let refused = |why: &str, remedy: &str| {
            let message = format!("the log of the copy's time has rows of {}.{} {why}", map.schema, map.table);
            Err(Failure::new(FailureKind::Refused, message).remedy(remedy.to_owned()))
        };
        // Columns that the server works out may be missing.
        let mut columns = self.columns();
        let lacks_columns = columns.any(|(at, column, _)| column.is_some() && !self.batch.after_columns.get(at));
        if self.batch.kind != RowsKind::Delete && lacks_columns {
            return refused("without all columns", "set binlog_row_image=FULL on the source, and copy again");
        }
        if self.table.key.is_none() {
            return refused(
                "and it has no key by which the target finds them",
                "leave the table out, or give it a key on the source, and copy again",
            );
        }
        Ok(())
    }

    /// Whether its key is another one afterwards, if only in its bytes.
    fn moves(self, row: &Cells<'_>) -> bool {
        let key = self.table.key.as_deref().unwrap_or_default();
        key.iter().any(|&at| cell(&row.before, at) != Cell::Absent && cell(&row.before, at) != cell(&row.after, at))
    }

    fn place(self, row: Cells<'a>, new: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if self.loose_values(&row, |_| true) > 0 {
            self.flush_new(new, sink)?;
            sink(check::BE_LOOSE.as_bytes().to_vec())?;
            sink(self.new_rows_text("REPLACE", &[row])?)?;
            return sink(check::BE_STRICT.as_bytes().to_vec());
        }
        if !new.takes(&row) {
            self.flush_new(new, sink)?;
        }
        new.add(row);
        Ok(())
    }

    fn flush_new(self, new: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let rows = std::mem::take(new).rows;
        if rows.is_empty() { Ok(()) } else { sink(self.new_rows_text("REPLACE", &rows)?) }
    }

    fn remove(self, row: Cells<'a>, old: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let Some(key) = self.joining_key(&row) else { return self.remove_one(&row, sink) };
        if !old.takes(&row) || old.keys.contains(&key) {
            self.flush_old(old, sink)?;
        }
        old.keys.insert(key);
        old.add(row);
        Ok(())
    }

    fn flush_old(self, old: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let rows = std::mem::take(old).rows;
        match rows.as_slice() {
            [] => Ok(()),
            [row] => self.remove_one(row, sink),
            rows => sink(self.joined_text(RowsKind::Delete, rows)?),
        }
    }

    fn remove_one(self, row: &Cells<'_>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let mut out = format!("DELETE FROM {}", self.table.name).into_bytes();
        if self.key(row).is_none() {
            let map = self.batch.map;
            let message =
                format!("the log has rows of {}.{} before their change without their key", map.schema, map.table);
            return Err(Failure::new(FailureKind::Refused, message)
                .remedy("set binlog_row_image=FULL on the source, and copy again"));
        }
        self.put_condition(row, &mut out)?;
        sink(out)
    }
}
