//! The keys of rows, as numbers for the sums and, for those that come often, in words for people.

use std::sync::Arc;

use binlog::table_map::columns;
use binlog::{Bitmap, value};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{KeyName, PieceSummary};
use crate::schema::{KeyPart, Table};
use crate::transaction::{Row, RowsItem, TableUse, WriteSet};

/// A key gets its name when it comes for this many times in a piece; in a small one, of which there may be many, at once.
const NAME_AT: u32 = 3;
const SMALL_PIECE_BYTES: usize = 64 << 10;
/// Names of a piece at the most.
const NAMES_MAX: usize = 256;
/// Longest value that is shown, in characters.
const VALUE_CHARS_MAX: usize = 40;
/// Keys that are counted in a piece.
const COUNTED_MAX: usize = 1 << 18;

/// Counts keys within a piece.
#[derive(Debug)]
pub(super) struct Counts {
    counts: HashMap<u64, u32, FixedState>,
    name_at: u32,
}

impl Counts {
    /// For a piece of so many bytes.
    pub fn new(piece_bytes: usize) -> Self {
        let name_at = if piece_bytes < SMALL_PIECE_BYTES { 1 } else { NAME_AT };
        Self { counts: HashMap::default(), name_at }
    }

    /// Moves the keys of one rows event into the piece's lists.
    pub fn take(&mut self, item: &RowsItem, table: &Table, set: &WriteSet, out: &mut PieceSummary) {
        for row in &set.rows {
            for (at, pair) in set.unique_hashes(row).chunks_exact(2).enumerate() {
                let &[before, after] = pair else { continue };
                for hash in [before, if after == before { 0 } else { after }] {
                    if hash == 0 {
                        continue;
                    }
                    out.writes.push(hash);
                    if self.count(hash) == self.name_at && out.names.len() < NAMES_MAX {
                        let side = if hash == before { Side::Before } else { Side::After };
                        out.names.extend(name(item, table, row, at, hash, side));
                    }
                }
            }
            out.reads.extend(set.reference_hashes(row).iter().filter(|&&hash| hash != 0));
        }
    }

    fn count(&mut self, hash: u64) -> u32 {
        if self.counts.len() >= COUNTED_MAX && !self.counts.contains_key(&hash) {
            return 0;
        }
        let count = self.counts.entry(hash).or_default();
        *count += 1;
        *count
    }
}

/// Adds the uses of one rows event to those of its transaction, each once.
pub(super) fn note_uses(uses: &mut Vec<TableUse>, first: usize, new: &[TableUse]) {
    for table_use in new {
        if !uses.iter().skip(first).any(|known| known == table_use) {
            uses.push(*table_use);
        }
    }
}

fn name(item: &RowsItem, table: &Table, row: &Row, index: usize, hash: u64, side: Side) -> Option<KeyName> {
    let (index, values) = key_name(item, table, row, index, side)?;
    Some(KeyName { hash, table: table.id, index, values })
}

/// Which image of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// The name of a row's unique key, and its values before or after the change.
pub(crate) fn key_name(
    item: &RowsItem,
    table: &Table,
    row: &Row,
    index: usize,
    side: Side,
) -> Option<(Arc<str>, String)> {
    let key = table.unique_keys.get(index)?;
    let (range, present) = if side == Side::Before {
        (row.before.clone(), &item.event.before_columns)
    } else {
        (row.after.clone(), &item.event.after_columns)
    };
    let image = item.event.rows.get(range.start as usize..range.end as usize)?;
    let texts: Option<Vec<String>> =
        key.parts.iter().map(|part| part_text(item, table, part, present, image)).collect();
    Some((Arc::from(key.name.as_str()), texts?.join(", ")))
}

fn part_text(item: &RowsItem, table: &Table, part: &KeyPart, present: &Bitmap, image: &[u8]) -> Option<String> {
    let found = columns(&item.map, present, image).find_map(|column| match column {
        Ok(column) if column.column == part.column => Some(Some(column)),
        Ok(_) => None,
        Err(_) => Some(None),
    })??;
    let column = item.map.columns.get(part.column)?;
    let defined = table.columns.get(part.column)?;
    let text = match found.value {
        Some(raw) => value::display(column, raw, defined.unsigned),
        None => "NULL".to_owned(),
    };
    let shown: String = text.chars().take(VALUE_CHARS_MAX).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    Some(format!("{}={shown}{more}", defined.name))
}
