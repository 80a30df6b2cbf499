//! The rows of a group, as few and as large as they can be.
//!
//! For a keyed table without foreign keys the rows of a group become a set: one net change for each key, in no
//! order. Deletes go first, then updates, then inserts, and an update that changes any unique key becomes a delete and
//! an insert: so every value of a unique index is free again before it is taken. Rows of other tables keep the
//! order of the source; only neighbours of the same table and kind share a rows event.
//!
//! The hazard of merging: T1 inserts (1, 'x'), T2 deletes it, T3 inserts (2, 'x'). The net effect of key 1 is
//! nothing, but a row 1 that the target should not have would go unnoticed: so a row that comes and goes inside a
//! group is still inserted and deleted, after the deletes and before the inserts; where it shares a unique value with
//! another row of the group, the table keeps its order. Likewise a value of a unique index that is there only for a
//! while: T1 sets it, T2 sets another; a row that has it and should not be on the target would go unnoticed.
//!
//! Never changes what a reader can see after the group's commit, and never hides a divergence that applying the
//! transactions one by one would have shown.

mod entity;
mod identity;
mod scan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use binlog::{Bitmap, RowsKind, TableMap};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::group::Group;
use crate::row_session::RowSession;
use crate::schema::{Table, TableId};
use crate::transaction::{Item, Row, RowsItem, Transaction, WriteSet};
use entity::Entities;
use scan::Scan;

/// What to apply, in order, first the rows that need not wait for an earlier group's commit.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    pub free: Vec<Batch<'a>>,
    pub held: Vec<Batch<'a>>,
}

/// Rows of one table and kind: one rows event, or several when it would be too large.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    pub map: &'a Arc<TableMap>,
    pub table: Option<&'a Arc<Table>>,
    pub kind: RowsKind,
    pub before_columns: &'a Bitmap,
    pub after_columns: &'a Bitmap,
    /// Of full before images, the columns that are enough for the target to find each row.
    pub lookup_columns: Option<&'a Bitmap>,
    /// Of the rows event, without STMT_END.
    pub flags: u16,
    pub partial_json: bool,
    /// Seconds since the epoch.
    pub timestamp: u32,
    /// Of the rows, if the server needs it.
    pub session: Option<&'a Arc<RowSession>>,
    pub rows: Vec<Images<'a>>,
}

/// The images of one row as in the rows event; empty where the kind has none.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    pub before: &'a [u8],
    pub after: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Whether the server may change rows of other tables with these, by foreign keys.
    pub fn may_cascade(&self) -> bool {
        self.kind != RowsKind::Write && self.table.is_none_or(|table| !table.cascades_to.is_empty())
    }

    /// The same with a single row.
    pub fn with_row(&self, row: Images<'a>) -> Batch<'a> {
        Batch { rows: vec![row], ..self.clone() }
    }

    /// Whether the target gives the rows the time of the event, or what follows from it.
    pub fn takes_time(&self) -> bool {
        self.table.is_some_and(|table| table.takes_time(self.kind, self.after_columns))
    }

    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.before.len() + row.after.len()).sum()
    }
}

/// Rows of a transaction that makes up its group, up to which they are merged.
const ALONE_ROWS_MAX: usize = 2_000;

/// `STMT_END_F` of a rows event: the applier closes its tables there, so it is set anew for each batch.
const STMT_END: u16 = 1;

/// One row with all that is around it.
#[derive(Clone, Copy)]
struct Change<'a> {
    item: &'a RowsItem,
    row: &'a Row,
    set: &'a WriteSet,
    images: Images<'a>,
    held: bool,
}

/// Merges and orders the rows of a group. `merge` off: every transaction's rows in the source's order.
pub fn plan(group: &Group, merge: bool) -> Plan<'_> {
    // One transaction hardly changes a row twice, and to find out takes time and memory.
    let merges = merge && !(group.transactions.len() == 1 && group.rows() > ALONE_ROWS_MAX);
    let modes = if merges { table_modes(group) } else { HashMap::default() };
    let mut keyed: Vec<(TableId, Vec<Change<'_>>)> = Vec::new();
    let mut index: HashMap<TableId, usize, FixedState> = HashMap::default();
    let mut ordered = Vec::new();
    for_each_change(group, |change| {
        let id = change.item.table.as_ref().map(|table| table.id);
        match id.filter(|id| modes.get(id) == Some(&Mode::Merged)) {
            Some(id) => {
                let at = *index.entry(id).or_insert_with(|| {
                    keyed.push((id, Vec::new()));
                    keyed.len() - 1
                });
                if let Some((_, changes)) = keyed.get_mut(at) {
                    changes.push(change);
                }
            }
            None => ordered.push(change),
        }
    });
    let replaces = !group.transactions.iter().any(|transaction| transaction.beside_prepared);
    let mut plan = Plan::default();
    for (_, changes) in &keyed {
        match Entities::merge(changes, replaces) {
            Some(entities) => entities.emit(&mut plan),
            None => emit_ordered(changes, &mut plan),
        }
    }
    emit_ordered(&ordered, &mut plan);
    plan
}

/// A rows event as it is, all its rows together: for what keeps its order and is not looked into.
pub fn whole_event(item: &RowsItem) -> Batch<'_> {
    Batch {
        map: &item.map,
        table: item.table.as_ref(),
        kind: item.event.kind,
        before_columns: &item.event.before_columns,
        after_columns: &item.event.after_columns,
        lookup_columns: None,
        flags: item.event.flags & !STMT_END,
        partial_json: item.event.partial_json,
        timestamp: item.timestamp,
        session: item.session.as_ref(),
        rows: vec![Images { before: &item.event.rows, after: &[] }],
    }
}

/// Of all rows among the items, in their order.
pub fn whole_events(items: &[Item]) -> Vec<Batch<'_>> {
    items.iter().filter_map(|item| if let Item::Rows(rows) = item { Some(whole_event(rows)) } else { None }).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Merged,
    Ordered,
}

/// A table is merged only if all of its rows in the group can be.
fn table_modes(group: &Group) -> HashMap<TableId, Mode, FixedState> {
    let mut modes = HashMap::default();
    let mut firsts: HashMap<TableId, &RowsItem, FixedState> = HashMap::default();
    for item in group.transactions.iter().flat_map(|t| t.items()) {
        let Item::Rows(rows) = item else { continue };
        let Some(table) = &rows.table else { continue };
        let first = *firsts.entry(table.id).or_insert(rows);
        let same_columns = Arc::ptr_eq(&first.map, &rows.map) || first.map.columns == rows.map.columns;
        // `unique_checks=0` and its like of one session say nothing about the rows of another.
        let same_flags = (first.event.flags ^ rows.event.flags) & !STMT_END == 0;
        if same_columns && same_flags && can_merge(table, rows) {
            modes.entry(table.id).or_insert(Mode::Merged);
        } else {
            modes.insert(table.id, Mode::Ordered);
        }
    }
    modes
}

/// Not where the target's row shows when it was changed: merged, several changes would have one time.
fn can_merge(table: &Table, rows: &RowsItem) -> bool {
    let full = |columns: &Bitmap| columns.is_full() && columns.width() == rows.event.width;
    let images_full = match rows.event.kind {
        RowsKind::Write => full(&rows.event.after_columns),
        RowsKind::Delete => full(&rows.event.before_columns),
        RowsKind::Update => full(&rows.event.before_columns) && full(&rows.event.after_columns),
    };
    table.is_keyed()
        && !table.has_relations
        && images_full
        && !rows.event.partial_json
        && !table.takes_time(rows.event.kind, &rows.event.after_columns)
}

fn for_each_change<'a>(group: &'a Group, mut visit: impl FnMut(Change<'a>)) {
    for (transaction, held) in group.transactions.iter().zip(&group.deferred) {
        for (index, row) in transaction.write_set.rows.iter().enumerate() {
            if let Some(change) = change(transaction, row, held.row(index)) {
                visit(change);
            }
        }
    }
}

fn change<'a>(transaction: &'a Transaction, row: &'a Row, held: bool) -> Option<Change<'a>> {
    let Item::Rows(item) = transaction.items().get(row.item as usize)? else { return None };
    #[expect(clippy::indexing_slicing, reason = "ranges of this event, from its keying: a row must not be left out")]
    let image = |range: &std::ops::Range<u32>| &item.event.rows[range.start as usize..range.end as usize];
    let images = Images { before: image(&row.before), after: image(&row.after) };
    Some(Change { item, row, set: &transaction.write_set, images, held })
}

/// In the source's order; all of them wait if one has to.
fn emit_ordered<'a>(changes: &[Change<'a>], plan: &mut Plan<'a>) {
    let any_held = changes.iter().any(|change| change.held);
    let batches = if any_held { &mut plan.held } else { &mut plan.free };
    let mut open: Option<Batch<'a>> = None;
    let mut scan = Scan::default();
    for change in changes {
        match &mut open {
            Some(batch) if continues(batch, change) && scan.takes(change) => batch.rows.push(change.images),
            _ => {
                scan = Scan::default();
                scan.takes(change);
                let mut batch = batch_like(change, change.item.event.kind);
                batch.rows.push(change.images);
                batches.extend(open.replace(batch));
            }
        }
    }
    batches.extend(open);
}

fn continues(batch: &Batch<'_>, change: &Change<'_>) -> bool {
    let item = change.item;
    batch.kind == item.event.kind
        && (Arc::ptr_eq(batch.map, &item.map)
            || (batch.map.table == item.map.table
                && batch.map.schema == item.map.schema
                && batch.map.columns == item.map.columns))
        && batch.flags == item.event.flags & !STMT_END
        && batch.partial_json == item.event.partial_json
        && batch.before_columns == &item.event.before_columns
        && batch.after_columns == &item.event.after_columns
        && (batch.timestamp == item.timestamp || !batch.takes_time())
}

/// Of the before images of an event, if they have all columns.
fn lookup_columns(item: &RowsItem) -> Option<&Bitmap> {
    let event = &item.event;
    // All images of a group that is merged are full, those that an insert has left behind, too.
    let before = if event.kind == RowsKind::Write { &event.after_columns } else { &event.before_columns };
    let lookup = item.table.as_ref()?.lookup_columns.as_ref()?;
    (before.is_full() && !event.partial_json && lookup.width() == before.width()).then_some(lookup)
}

/// An empty batch for the table of a change.
fn batch_like<'a>(change: &Change<'a>, kind: RowsKind) -> Batch<'a> {
    let event = &change.item.event;
    Batch {
        map: &change.item.map,
        table: change.item.table.as_ref(),
        kind,
        before_columns: &event.before_columns,
        after_columns: &event.after_columns,
        lookup_columns: if kind == RowsKind::Write { None } else { lookup_columns(change.item) },
        flags: event.flags & !STMT_END,
        partial_json: event.partial_json,
        timestamp: change.item.timestamp,
        session: change.item.session.as_ref(),
        rows: Vec::new(),
    }
}
