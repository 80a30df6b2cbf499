//! Rows of one table and kind → the statements that write them.
//!
//! Rows that can be told apart by a key, and whose order does not matter, are one statement for many: `INSERT … VALUES`, or `UPDATE` and `DELETE` of a join
//! with the rows as they were. Behind a statement its number of rows is checked ([`check`]). Others are a statement each, in their order.

use std::collections::HashSet;

use binlog::{Column, ColumnKind, Flavour, RowsKind};
use engine::compact::Batch;
use engine::failure::{Failure, FailureKind};
use engine::schema::Leftovers;

use super::cells::{self, Cell, Cells};
use super::compare;
use super::literal::{self, LiteralUse};
use super::table::{Form, SqlColumn, SqlTable};
use crate::mysql::rows::images::corrupt;
use crate::mysql::rows::writer::CompareBefore;
use crate::mysql::server::info::{Engine, TargetInfo};
use crate::mysql::server::row_check::{BE_LOOSE, RowChecks};

/// How the target takes a list of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLists {
    /// `VALUES ROW(…), ROW(…)`: MySQL from 8.0.19 on.
    Rows,
    /// `VALUES (…), (…)`: MariaDB from 10.3 on.
    Values,
    /// `SELECT … UNION ALL SELECT …`
    Selects,
    /// Not at all: each row is a statement.
    None,
}

impl RowLists {
    pub fn of(info: &TargetInfo) -> Self {
        match info.flavour {
            _ if info.engine == Engine::Other => Self::None,
            Flavour::MySql if info.version >= (8, 0, 19) => Self::Rows,
            Flavour::MariaDb if info.version >= (10, 3, 0) => Self::Values,
            Flavour::MySql | Flavour::MariaDb => Self::Selects,
        }
    }

    /// What comes before row `number` of a list that begins with `SELECT`, and behind it.
    pub fn around(self, number: usize) -> (&'static [u8], &'static [u8]) {
        match (number, self) {
            (0, _) => (b"", b""),
            (_, Self::Selects | Self::None) => (b" UNION ALL SELECT ", b""),
            (1, Self::Rows) => (b" UNION ALL VALUES ROW(", b")"),
            (1, Self::Values) => (b" UNION ALL VALUES (", b")"),
            (_, Self::Rows) => (b",ROW(", b")"),
            (_, Self::Values) => (b",(", b")"),
        }
    }
}

/// Of one statement.
const ROWS_MAX: usize = 500;
/// Of one statement with more than one row: bytes of their images.
const ROWS_BYTES_MAX: usize = 128 << 10;

/// Takes each statement. Those of one row that belong together come one after the other.
pub type Sink<'a> = dyn FnMut(Vec<u8>) -> Result<(), Failure> + 'a;

#[derive(Clone, Copy)]
pub struct Statements<'a> {
    pub table: &'a SqlTable,
    pub batch: &'a Batch<'a>,
    pub compare: CompareBefore,
    pub lists: RowLists,
    pub checks: RowChecks,
    /// Of the table on the target.
    pub leftovers: Leftovers,
}

impl<'a> Statements<'a> {
    pub fn write(self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let corrupt = |error: &binlog::Corruption| corrupt(self.batch.map, error);
        let mut gathered = Gathered::default();
        cells::for_each(self.batch, corrupt, |row| match self.batch.kind {
            RowsKind::Write => self.insert(row, &mut gathered, sink),
            RowsKind::Update => self.update(row, &mut gathered, sink),
            RowsKind::Delete => self.delete(row, &mut gathered, sink),
        })?;
        self.flush(&mut gathered, sink)
    }

    fn flush(self, gathered: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let rows = std::mem::take(gathered).rows;
        let Some(first) = rows.first() else { return Ok(()) };
        match (self.batch.kind, rows.len()) {
            (RowsKind::Write, _) => {
                self.make_way(&rows, sink)?;
                sink(self.insert_text(&rows)?)
            }
            (RowsKind::Update, 1) => self.update_one(first, 0, sink),
            (RowsKind::Delete, 1) => self.delete_one(first, sink),
            (kind, count) => {
                sink(self.joined_text(kind, &rows)?)?;
                sink(self.checks.changed(count).into_bytes())
            }
        }
    }

    /// For rows that are inserted next.
    fn make_way(self, rows: &[Cells<'_>], sink: &mut Sink<'_>) -> Result<(), Failure> {
        if self.leftovers == Leftovers::Kept { self.clear_for_inserts(rows, sink) } else { Ok(()) }
    }

    /// The column and what the log says of it.
    pub(super) fn columns(self) -> impl Iterator<Item = (usize, Option<&'a SqlColumn>, &'a Column)> {
        let known = self.table.columns.iter().map(Option::as_ref);
        known.zip(&self.batch.map.columns).enumerate().map(|(at, (column, logged))| (at, column, logged))
    }

    pub(super) fn column(self, at: usize) -> Option<(&'a SqlColumn, &'a Column)> {
        Some((self.table.columns.get(at)?.as_ref()?, self.batch.map.columns.get(at)?))
    }

    pub(super) fn put(self, at: usize, cell: Cell<'_>, way: LiteralUse, out: &mut Vec<u8>) -> Result<(), Failure> {
        let (Some((column, logged)), Some(value)) = (self.column(at), cell.value()) else { return Ok(()) };
        literal::put(column, logged, value, way, out).map_err(|why| {
            let map = self.batch.map;
            let message = format!("{}.{} column {}: {why}", map.schema, map.table, column.name);
            Failure::new(FailureKind::Refused, message).remedy(
                "make the target's definition equal to the source's; what statements can not store goes with --rows binlog, or change the value on the source",
            )
        })
    }

    fn insert(self, row: Cells<'a>, gathered: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let loose = self.loose_values(&row, |_| true);
        if loose > 0 {
            self.flush(gathered, sink)?;
            self.make_way(std::slice::from_ref(&row), sink)?;
            sink(BE_LOOSE.as_bytes().to_vec())?;
            sink(self.insert_text(&[row])?)?;
            return self.checks.changed_loosely(loose).into_iter().try_for_each(|check| sink(check.into_bytes()));
        }
        if !gathered.takes(&row) {
            self.flush(gathered, sink)?;
        }
        gathered.add(row);
        Ok(())
    }

    fn insert_text(self, rows: &[Cells<'_>]) -> Result<Vec<u8>, Failure> {
        self.new_rows_text("INSERT", rows)
    }

    /// `INSERT` or `REPLACE`.
    pub(super) fn new_rows_text(self, verb: &str, rows: &[Cells<'_>]) -> Result<Vec<u8>, Failure> {
        let is_given = |&(at, column, _): &(usize, Option<&SqlColumn>, &Column)| {
            column.is_some() && self.batch.after_columns.get(at)
        };
        let given: Vec<usize> = self.columns().filter(is_given).map(|(at, ..)| at).collect();
        let mut out = format!("{verb} INTO {} (", self.table.name).into_bytes();
        for (index, (column, _)) in given.iter().filter_map(|&at| self.column(at)).enumerate() {
            separate(index, &mut out);
            out.extend_from_slice(column.name.as_bytes());
        }
        out.extend_from_slice(b") VALUES ");
        for (index, row) in rows.iter().enumerate() {
            separate(index, &mut out);
            out.push(b'(');
            for (index, &at) in given.iter().enumerate() {
                separate(index, &mut out);
                self.put(at, cell(&row.after, at), LiteralUse::Store, &mut out)?;
            }
            out.push(b')');
        }
        Ok(out)
    }

    fn update(self, row: Cells<'a>, gathered: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if !self.columns().any(|(at, column, _)| column.is_some() && self.is_changed(&row, at)) {
            self.flush(gathered, sink)?;
            let mut place = format!(" FROM {}", self.table.name).into_bytes();
            self.put_condition(&row, &mut place)?;
            return sink(self.checks.is_there(&place));
        }
        let loose = self.loose_values(&row, |at| self.is_set(&row, at));
        let changes_unique = self.table.unique_columns.iter().any(|&at| self.is_changed(&row, at));
        if changes_unique && self.leftovers == Leftovers::Kept {
            self.flush(gathered, sink)?;
            self.clear_for_update(&row, sink)?;
        }
        let key =
            self.joining_key(&row).filter(|_| loose == 0 && !changes_unique && !self.table.traits.is_unique_otherwise);
        self.gather_or(row, key, gathered, sink, |row, sink| self.update_one(row, loose, sink))
    }

    fn update_one(self, row: &Cells<'_>, loose: usize, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let mut out = format!("UPDATE {} SET ", self.table.name).into_bytes();
        let set: Vec<usize> = self.columns().map(|(at, ..)| at).filter(|&at| self.is_set(row, at)).collect();
        for (index, &at) in set.iter().enumerate() {
            separate(index, &mut out);
            out.extend_from_slice(self.column(at).map_or("", |(column, _)| &column.name).as_bytes());
            out.push(b'=');
            self.put(at, cell(&row.after, at), LiteralUse::Store, &mut out)?;
        }
        for column in self.kept(&set) {
            out.extend_from_slice(format!(",{column}={column}").as_bytes());
        }
        self.put_condition(row, &mut out)?;
        self.put_limit(row, &mut out);
        if loose > 0 {
            sink(BE_LOOSE.as_bytes().to_vec())?;
            sink(out)?;
            return self.checks.changed_loosely(loose).into_iter().try_for_each(|check| sink(check.into_bytes()));
        }
        sink(out)?;
        sink(self.checks.changed(1).into_bytes())
    }

    fn delete(self, row: Cells<'a>, gathered: &mut Gathered<'a>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let key = self.joining_key(&row);
        self.gather_or(row, key, gathered, sink, |row, sink| self.delete_one(row, sink))
    }

    fn delete_one(self, row: &Cells<'_>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let mut out = format!("DELETE FROM {}", self.table.name).into_bytes();
        self.put_condition(row, &mut out)?;
        self.put_limit(row, &mut out);
        sink(out)?;
        sink(self.checks.changed(1).into_bytes())
    }

    /// `key`: `None` for a row that is a statement by itself.
    fn gather_or(
        self,
        row: Cells<'a>,
        key: Option<Vec<u8>>,
        gathered: &mut Gathered<'a>,
        sink: &mut Sink<'_>,
        alone: impl FnOnce(&Cells<'a>, &mut Sink<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(key) = key else {
            self.flush(gathered, sink)?;
            return alone(&row, sink);
        };
        if !gathered.takes(&row) || gathered.keys.contains(&key) {
            self.flush(gathered, sink)?;
        }
        gathered.keys.insert(key);
        gathered.add(row);
        Ok(())
    }

    /// ` WHERE …` for one row. Without a key the first of several equal rows is meant: the caller says so.
    pub(super) fn put_condition(self, row: &Cells<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let key = self.key(row);
        let mut index = 0;
        let mut next = |out: &mut Vec<u8>| {
            out.extend_from_slice(if index == 0 { b" WHERE " } else { b" AND " });
            index += 1;
        };
        for &at in key.unwrap_or_default() {
            let Some((column, _)) = self.column(at) else { continue };
            next(out);
            out.extend_from_slice(format!("{}=", column.name).as_bytes());
            self.put(at, cell(&row.before, at), LiteralUse::Find, out)?;
        }
        for at in self.compared(row, key.is_none()) {
            next(out);
            out.extend_from_slice(self.side(at, "").unwrap_or_default().as_bytes());
            out.extend_from_slice(b"<=>");
            self.put(at, cell(&row.before, at), LiteralUse::Compare, out)?;
        }
        Ok(())
    }

    /// At the end of a statement that changes one row.
    fn put_limit(self, row: &Cells<'_>, out: &mut Vec<u8>) {
        if self.key(row).is_none() {
            out.extend_from_slice(b" LIMIT 1");
        }
    }

    /// See [`compare::side`].
    fn side(self, at: usize, prefix: &str) -> Option<String> {
        let (column, logged) = self.column(at)?;
        compare::side(column, logged.kind, prefix)
    }

    /// Columns that are compared. All rows of a batch have the same.
    fn compared(self, row: &Cells<'_>, all: bool) -> Vec<usize> {
        let is_key = |at: usize| !all && self.table.key.as_ref().is_some_and(|key| key.contains(&at));
        let is_equal_by_key = |at: usize, column: &SqlColumn| {
            // Text that is equal for an index may be other bytes.
            is_key(at) && !matches!(column.form, Form::Text { .. })
        };
        if !all && self.compare == CompareBefore::Key {
            return Vec::new();
        }
        let is_wanted = |&(at, column, _): &(usize, Option<&SqlColumn>, &Column)| {
            let is_different = column.is_some_and(|column| !is_equal_by_key(at, column));
            is_different && cell(&row.before, at) != Cell::Absent && self.side(at, "").is_some()
        };
        self.columns().filter(is_wanted).map(|(at, ..)| at).collect()
    }

    /// The columns by which the row is found, if its image has all of them.
    pub(super) fn key(self, row: &Cells<'_>) -> Option<&'a [usize]> {
        let key = self.table.key.as_deref()?;
        key.iter().all(|&at| matches!(cell(&row.before, at), Cell::Bytes(_))).then_some(key)
    }

    /// The key's bytes, of a row that can be found in a join.
    pub(super) fn joining_key(self, row: &Cells<'_>) -> Option<Vec<u8>> {
        let key = self.key(row)?;
        let joins = |&at: &usize| self.column(at).is_some_and(|(column, _)| compare::joins(column));
        let is_alone = self.lists == RowLists::None || self.table.traits.refers_to_itself;
        if !key.iter().all(joins) || self.has_large_number(row) || is_alone {
            return None;
        }
        let mut bytes = Vec::new();
        for &at in key {
            if let Cell::Bytes(raw) = cell(&row.before, at) {
                bytes.extend_from_slice(&(raw.len() as u32).to_le_bytes());
                bytes.extend_from_slice(raw);
            }
        }
        Some(bytes)
    }

    /// A number that is no signed one, of a type that takes no decimal: among signed ones it would become that in a temporary table.
    fn has_large_number(self, row: &Cells<'_>) -> bool {
        self.columns().any(|(at, column, logged)| {
            let is_large = |cell: Cell<'_>| match (cell, logged.real_kind()) {
                (Cell::Bytes(&[first, _, _, _, _, _, _, _]), ColumnKind::BIT) => first & 0x80 != 0,
                (Cell::Bytes(&[_, _, _, _, _, _, _, last]), ColumnKind::SET) => last & 0x80 != 0,
                _ => false,
            };
            column.is_some_and(|column| column.form == Form::Unsigned)
                && (is_large(cell(&row.before, at)) || is_large(cell(&row.after, at)))
        })
    }

    pub(super) fn is_changed(self, row: &Cells<'_>, at: usize) -> bool {
        match (cell(&row.before, at), cell(&row.after, at)) {
            (_, Cell::Absent) => false,
            (Cell::Bytes(before), Cell::Bytes(after)) if before != after => {
                let is_json = self.batch.map.columns.get(at).is_some_and(|column| column.kind == ColumnKind::JSON);
                let text = |raw| binlog::json::to_text(raw).ok();
                !is_json || text(before) != text(after)
            }
            (before, after) => before != after,
        }
    }

    /// Columns that would take the time of the change and that the source's row does not set: row events leave them as they are.
    fn kept(self, set: &[usize]) -> impl Iterator<Item = &'a str> {
        let is_left = |&(at, column, _): &(usize, Option<&SqlColumn>, &Column)| {
            column.is_some_and(|column| column.on_update) && !set.contains(&at)
        };
        let left: Vec<&str> =
            self.columns().filter(is_left).filter_map(|(_, column, _)| Some(column?.name.as_str())).collect();
        left.into_iter().chain(self.table.own_on_update.iter().map(String::as_str))
    }

    /// Whether the statement sets the column: one that would take the time of the change is kept from that.
    fn is_set(self, row: &Cells<'_>, at: usize) -> bool {
        let Some((column, _)) = self.column(at) else { return false };
        cell(&row.after, at) != Cell::Absent && (column.on_update || self.is_changed(row, at))
    }

    /// ENUM values to be stored that are the number 0.
    pub(super) fn loose_values(self, row: &Cells<'_>, is_set: impl Fn(usize) -> bool) -> usize {
        let is_zero = |&(at, column, logged): &(usize, Option<&SqlColumn>, &Column)| {
            let zero = matches!(cell(&row.after, at), Cell::Bytes(raw) if raw.iter().all(|byte| *byte == 0));
            zero && logged.real_kind() == ColumnKind::ENUM && column.is_some() && is_set(at)
        };
        self.columns().filter(is_zero).count()
    }

    /// `UPDATE` or `DELETE` of the rows that a join finds.
    pub(super) fn joined_text(self, kind: RowsKind, rows: &[Cells<'_>]) -> Result<Vec<u8>, Failure> {
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let key = self.table.key.as_deref().unwrap_or_default();
        let compared = self.compared(first, false);
        let is_set = |&at: &usize| kind == RowsKind::Update && rows.iter().any(|row| self.is_set(row, at));
        let set: Vec<usize> = (0..self.table.columns.len()).filter(is_set).collect();
        let mut out = Vec::new();
        // A table of another schema than the session's can not be named by an alias there.
        let name = &self.table.name;
        match kind {
            RowsKind::Update => out.extend_from_slice(b"UPDATE (SELECT "),
            _ => out.extend_from_slice(format!("DELETE {name} FROM (SELECT ").as_bytes()),
        }
        for (number, row) in rows.iter().enumerate() {
            let is_first = number == 0;
            let (before, after) = self.lists.around(number);
            out.extend_from_slice(before);
            let mut index = 0;
            let mut value = |letter: char, at: usize, cell: Cell<'_>, way: LiteralUse, out: &mut Vec<u8>| {
                separate(index, out);
                index += 1;
                self.put(at, cell, way, out)?;
                if is_first {
                    out.extend_from_slice(format!(" {letter}{at}").as_bytes());
                }
                Ok::<(), Failure>(())
            };
            for &at in key {
                value('k', at, cell(&row.before, at), LiteralUse::Find, &mut out)?;
            }
            for &at in &compared {
                value('c', at, cell(&row.before, at), LiteralUse::Compare, &mut out)?;
            }
            for &at in &set {
                value('s', at, cell(&row.after, at), LiteralUse::Store, &mut out)?;
            }
            out.extend_from_slice(after);
        }
        out.extend_from_slice(format!(") v STRAIGHT_JOIN {name} ON ").as_bytes());
        let prefix = format!("{name}.");
        let found = key.iter().filter_map(|&at| Some(format!("{prefix}{}=v.k{at}", self.column(at)?.0.name)));
        let equal = compared.iter().filter_map(|&at| Some(format!("{}<=>v.c{at}", self.side(at, &prefix)?)));
        let conditions: Vec<String> = found.chain(equal).collect();
        out.extend_from_slice(conditions.join(" AND ").as_bytes());
        if kind == RowsKind::Update {
            let given = set.iter().filter_map(|&at| Some(format!("{prefix}{}=v.s{at}", self.column(at)?.0.name)));
            let kept = self.kept(&set).map(|column| format!("{prefix}{column}={prefix}{column}"));
            out.extend_from_slice(format!(" SET {}", given.chain(kept).collect::<Vec<String>>().join(",")).as_bytes());
        }
        Ok(out)
    }
}

/// Rows that will be one statement.
#[derive(Default)]
pub(super) struct Gathered<'a> {
    pub rows: Vec<Cells<'a>>,
    bytes: usize,
    /// None twice.
    pub keys: HashSet<Vec<u8>>,
}

impl<'a> Gathered<'a> {
    pub fn takes(&self, row: &Cells<'_>) -> bool {
        self.rows.is_empty() || self.rows.len() < ROWS_MAX && self.bytes + bytes(row) <= ROWS_BYTES_MAX
    }

    pub fn add(&mut self, row: Cells<'a>) {
        self.bytes += bytes(&row);
        self.rows.push(row);
    }
}

fn bytes(row: &Cells<'_>) -> usize {
    let length = |cell: &Cell<'_>| if let Cell::Bytes(raw) = cell { raw.len() } else { 0 };
    row.before.iter().chain(&row.after).map(length).sum()
}

pub(super) fn cell<'a>(cells: &[Cell<'a>], at: usize) -> Cell<'a> {
    cells.get(at).copied().unwrap_or(Cell::Absent)
}

pub(super) fn separate(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}
