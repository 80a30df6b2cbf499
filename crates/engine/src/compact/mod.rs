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

mod batch;
mod entity;
mod identity;
mod scan;
#[cfg(test)]
mod tests;

pub use batch::{Batch, Images, Plan};

use std::ops::Range;
use std::sync::Arc;

use binlog::{Bitmap, Corruption, RowImages, RowsKind};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::group::Group;
use crate::schema::{Table, TableId};
use crate::transaction::{Item, Row, RowsItem, Transaction};
use batch::{Change, STMT_END, batch_like};
use entity::Entities;
use scan::Scan;

/// Rows of a transaction that makes up its group, up to which they are merged.
const ALONE_ROWS_MAX: usize = 2_000;

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

/// The same event, row by row, of whose before images the target needs the primary key's columns only ([`crate::schema::Table::lookup_columns`]). None: it needs all of the event.
///
/// # Errors
/// [`Corruption`] with an offset in the event's rows.
pub fn event_by_key<'a>(item: &'a RowsItem, key_columns: &'a Bitmap) -> Result<Option<Batch<'a>>, Corruption> {
    let event = &item.event;
    let is_whole = event.before_columns.is_full() && event.before_columns.width() == key_columns.width();
    if event.kind == RowsKind::Write || !is_whole || event.partial_json {
        return Ok(None);
    }
    let bytes = |range: Option<Range<usize>>| range.and_then(|range| event.rows.get(range)).unwrap_or_default();
    let row = |images: Result<RowImages, Corruption>| {
        images.map(|images| Images { before: bytes(images.before), after: bytes(images.after) })
    };
    let rows: Vec<Images<'_>> = event.images(&item.map).map(row).collect::<Result<_, _>>()?;
    Ok(Some(Batch { lookup_columns: Some(key_columns), rows, ..whole_event(item) }))
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
    for (transaction, deferred) in group.transactions.iter().zip(&group.deferred) {
        for (index, row) in transaction.write_set.rows.iter().enumerate() {
            if let Some(change) = change(transaction, row, deferred.row(index)) {
                visit(change);
            }
        }
    }
}

fn change<'a>(transaction: &'a Transaction, row: &'a Row, deferred: bool) -> Option<Change<'a>> {
    let Item::Rows(item) = transaction.items().get(row.item as usize)? else { return None };
    #[expect(clippy::indexing_slicing, reason = "ranges of this event, from its keying: a row must not be left out")]
    let image = |range: &Range<u32>| &item.event.rows[range.start as usize..range.end as usize];
    let images = Images { before: image(&row.before), after: image(&row.after) };
    Some(Change { item, row, set: &transaction.write_set, images, deferred })
}

/// In the source's order; all of them wait if one has to.
fn emit_ordered<'a>(changes: &[Change<'a>], plan: &mut Plan<'a>) {
    let any_deferred = changes.iter().any(|change| change.deferred);
    let batches = if any_deferred { &mut plan.deferred } else { &mut plan.independent };
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
