//! Which rows may share a rows event, in the source's order.
//!
//! Updates of a table without a key: MySQL looks for all rows of such an event in one scan (`HASH_SCAN`), and takes them in the order in which it finds them. That is right for
//! rows that have nothing to do with each other. Where one update finds what another has made, or takes a unique value that another has given up,
//! the order of the source counts: each has an event of its own. (Seen with 8.0.15 for every chain, with 9.7 for rows that come back to
//! an earlier value, with both for unique values that are passed on.)
//!
//! Inserts into a table whose deleted rows the target keeps: a row whose delete was left out may be among them, and the next one with its unique value takes
//! its place. So a unique value is only once in an event.

use binlog::RowsKind;
use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::batch::Change;
use crate::schema::{Leftovers, TableOrderCause};

/// What the rows of one event have found and made.
#[derive(Default)]
pub(super) struct Scan<'a> {
    rows: HashSet<&'a [u8], FixedState>,
    /// Of unique values that have changed, or have come: NULL is none.
    values: HashSet<u64, FixedState>,
    has_inserts: bool,
}

impl<'a> Scan<'a> {
    /// Whether the change may join those before it, or is the first; it then counts as one of them.
    pub fn takes(&mut self, change: &Change<'a>) -> bool {
        if change.item.event.kind == RowsKind::Write {
            return self.takes_insert(change);
        }
        if change.item.event.kind != RowsKind::Update {
            return true;
        }
        let Some(table) = &change.item.table else { return false };
        if table.is_keyed() {
            return true;
        }
        let moved =
            || change.set.unique_hashes(change.row).as_chunks::<2>().0.iter().filter(|[before, after]| before != after);
        let values = || moved().flatten().copied().filter(|&value| value != 0);
        let is_first = self.rows.is_empty();
        let is_known = table.order_by_table == Some(TableOrderCause::NoUniqueKey) && has_full_images(change);
        let is_apart = is_known
            && !self.rows.contains(change.images.before)
            && !values().any(|value| self.values.contains(&value));
        self.rows.insert(change.images.after);
        self.values.extend(values());
        is_first || is_apart
    }

    fn takes_insert(&mut self, change: &Change<'a>) -> bool {
        let Some(table) = change.item.table.as_ref().filter(|table| table.leftovers == Leftovers::Kept) else {
            return true;
        };
        let is_first = !std::mem::replace(&mut self.has_inserts, true);
        let is_known = matches!(table.order_by_table, None | Some(TableOrderCause::NoUniqueKey));
        let mut is_apart = is_known;
        for [_, after] in change.set.unique_hashes(change.row).as_chunks::<2>().0 {
            is_apart &= *after == 0 || self.values.insert(*after);
        }
        is_first || is_apart
    }
}

/// Then a row that one has made and another finds has the same bytes.
fn has_full_images(change: &Change<'_>) -> bool {
    let event = &change.item.event;
    event.before_columns.is_full() && event.after_columns.is_full() && !event.partial_json
}
