//! A target that changes rows in place under locks, as InnoDB does: whoever needs a row that another has changed waits for
//! it; a row that is missing, a value that is taken, a parent that is not there are errors.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use binlog::RowsKind;

use crate::testing::{Row, RowChange, TestTable, Value};

type Lock = (u32, usize, Vec<Value>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyStop {
    /// By a lock of this session.
    Blocked(usize),
    Refused,
}

#[derive(Clone, Debug, Default)]
pub struct Database {
    rows: BTreeMap<u32, Vec<Row>>,
    undo: HashMap<usize, Vec<(u32, Row, Row)>>,
    exclusive: HashMap<Lock, usize>,
    shared: HashMap<Lock, BTreeSet<usize>>,
}

/// Prepared XA transactions are numbered behind all sessions.
pub const PREPARED: usize = 1 << 20;

/// Of rows that no key identifies.
const WHOLE_ROW: usize = 99;

fn keys(table: &TestTable, row: &Row) -> Vec<Lock> {
    let id = table.def.id.0;
    if row.is_empty() {
        return Vec::new();
    }
    if table.def.unique_keys.is_empty() {
        return vec![(id, WHOLE_ROW, row.clone())];
    }
    let key = |(index, key): (usize, &crate::schema::UniqueKey)| {
        let values: Vec<Value> = key.parts.iter().map(|part| row[part.column].clone()).collect();
        (!values.contains(&Value::Null)).then_some((id, index, values))
    };
    table.def.unique_keys.iter().enumerate().filter_map(key).collect()
}

/// The parents' keys that a row refers to.
fn references(table: &TestTable, row: &Row) -> Vec<Lock> {
    if row.is_empty() {
        return Vec::new();
    }
    let key = |key: &crate::schema::ForeignKey| {
        let values: Vec<Value> = key.columns.iter().map(|&column| row[column].clone()).collect();
        (!values.contains(&Value::Null)).then_some((key.parent.0, 0, values))
    };
    table.def.foreign_keys.iter().filter_map(key).collect()
}

impl Database {
    pub fn rows(&self, table: &TestTable) -> Vec<Row> {
        self.rows.get(&table.def.id.0).cloned().unwrap_or_default()
    }

    /// What a reader sees: nothing of what is not committed, in no particular order.
    pub fn visible(&self) -> BTreeMap<u32, Vec<Row>> {
        let mut state = self.clone();
        let open: Vec<usize> = state.undo.keys().copied().collect();
        open.into_iter().for_each(|session| state.rollback(session));
        state.rows.retain(|_, rows| !rows.is_empty());
        state.rows.values_mut().for_each(|rows| rows.sort());
        state.rows
    }

    fn holder(&self, session: usize, lock: &Lock, exclusive: bool) -> Option<usize> {
        let other = self.exclusive.get(lock).copied().filter(|&other| other != session);
        let readers = self.shared.get(lock).into_iter().flatten().copied().find(|&other| exclusive && other != session);
        other.or(readers)
    }

    /// All of the change, or nothing of it.
    pub fn apply(
        &mut self,
        tables: &[TestTable],
        session: usize,
        table: &TestTable,
        change: &RowChange,
    ) -> Result<(), ApplyStop> {
        let id = table.def.id.0;
        let mut exclusive = keys(table, &change.before);
        exclusive.extend(keys(table, &change.after));
        let shared = references(table, &change.after);
        let waits = exclusive.iter().map(|lock| (lock, true)).chain(shared.iter().map(|lock| (lock, false)));
        for (lock, is_exclusive) in waits {
            if let Some(other) = self.holder(session, lock, is_exclusive) {
                return Err(ApplyStop::Blocked(other));
            }
        }
        // A row is found by its key, whatever else the image says.
        let mut replaced = None;
        if change.kind != RowsKind::Write {
            let wanted = keys(table, &change.before).into_iter().next();
            let rows = self.rows.entry(id).or_default();
            let at = rows.iter().position(|row| keys(table, row).into_iter().next() == wanted);
            replaced = Some(at.ok_or(ApplyStop::Refused)?);
        }
        let after = keys(table, &change.after);
        for (at, row) in self.rows.get(&id).into_iter().flatten().enumerate() {
            let taken = !table.def.unique_keys.is_empty() && keys(table, row).iter().any(|key| after.contains(key));
            if taken && Some(at) != replaced {
                return Err(ApplyStop::Refused);
            }
        }
        let exists = |lock: &Lock| {
            let parent = tables.iter().find(|table| table.def.id.0 == lock.0);
            parent.is_some_and(|parent| self.rows(parent).iter().any(|row| keys(parent, row).contains(lock)))
        };
        if !shared.iter().all(exists) {
            return Err(ApplyStop::Refused);
        }
        self.check_children(tables, session, table, change)?;
        let rows = self.rows.entry(id).or_default();
        let before = replaced.map(|at| rows.remove(at)).unwrap_or_default();
        if !change.after.is_empty() {
            rows.push(change.after.clone());
        }
        self.undo.entry(session).or_default().push((id, before, change.after.clone()));
        self.exclusive.extend(exclusive.into_iter().map(|lock| (lock, session)));
        for lock in shared {
            self.shared.entry(lock).or_default().insert(session);
        }
        Ok(())
    }

    /// A parent does not go while it has children.
    fn check_children(
        &self,
        tables: &[TestTable],
        session: usize,
        table: &TestTable,
        change: &RowChange,
    ) -> Result<(), ApplyStop> {
        let kept = keys(table, &change.after);
        let gone: Vec<Lock> = keys(table, &change.before).into_iter().filter(|key| !kept.contains(key)).collect();
        for child in tables {
            for row in self.rows(child) {
                if references(child, &row).iter().any(|reference| gone.contains(reference)) {
                    let holder = keys(child, &row).iter().find_map(|lock| self.holder(session, lock, true));
                    return Err(holder.map_or(ApplyStop::Refused, ApplyStop::Blocked));
                }
            }
        }
        Ok(())
    }

    fn unlock(&mut self, session: usize) {
        self.exclusive.retain(|_, holder| *holder != session);
        for holders in self.shared.values_mut() {
            holders.remove(&session);
        }
    }

    /// What the session has changed stays locked and unseen, apart from any session, until it is decided.
    pub fn prepare(&mut self, session: usize, number: usize) {
        let prepared = PREPARED + number;
        if let Some(undo) = self.undo.remove(&session) {
            self.undo.insert(prepared, undo);
        }
        self.exclusive.values_mut().filter(|holder| **holder == session).for_each(|holder| *holder = prepared);
        for holders in self.shared.values_mut() {
            if holders.remove(&session) {
                holders.insert(prepared);
            }
        }
    }

    pub fn end_xa(&mut self, number: usize, commits: bool) {
        if commits { self.commit(PREPARED + number) } else { self.rollback(PREPARED + number) }
    }

    pub fn commit(&mut self, session: usize) {
        self.undo.remove(&session);
        self.unlock(session);
    }

    pub fn rollback(&mut self, session: usize) {
        for (id, before, after) in self.undo.remove(&session).unwrap_or_default().into_iter().rev() {
            let rows = self.rows.entry(id).or_default();
            if !after.is_empty() {
                let at = rows.iter().position(|row| *row == after).expect("what was done is there to be undone");
                rows.remove(at);
            }
            if !before.is_empty() {
                rows.push(before);
            }
        }
        self.unlock(session);
    }
}
