//! Table maps of a log, by their number, and the rows events that refer to them.
//!
//! Used by the assembler and by the survey. Most maps repeat the one before: only a new one is decoded, and goes through
//! the [`Selection`]. Nothing here knows a table's keys.

use std::sync::Arc;

use binlog::{Corruption, Event, FormatDescription, RowsEvent, TableMap};
use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::selection::{ForeignObject, Refusal, Selected, Selection};

/// What servers write for "no table": the greatest number in 3, 4 or 6 bytes.
const DUMMY_TABLE_IDS: [u64; 3] = [0x00ff_ffff, 0xffff_ffff, 0xffff_ffff_ffff];

/// Table maps that are remembered between transactions.
pub(super) const MAPS_MAX: usize = 20_000;
/// The same in bytes of memory.
const MAPS_BYTES_MAX: usize = 16 << 20;

/// `T`: what the user keeps beside a table's map.
#[derive(Debug)]
pub struct Tables<T> {
    selection: Selection,
    known: HashMap<u64, Known<T>, FixedState>,
    bytes: usize,
}

/// A table map, by its number.
#[derive(Debug)]
struct Known<T> {
    /// As in the log.
    body: Bytes,
    use_of: UseOf<T>,
}

/// What becomes of a table's rows.
#[derive(Debug)]
enum UseOf<T> {
    Taken(MappedTable<T>),
    LeftOut,
    Foreign(ForeignObject),
    Refused(Refusal),
}

impl<T> Known<T> {
    fn taken(&self) -> Option<&MappedTable<T>> {
        match &self.use_of {
            UseOf::Taken(mapped) => Some(mapped),
            UseOf::LeftOut | UseOf::Foreign(_) | UseOf::Refused(_) => None,
        }
    }
}

/// A table whose rows are taken.
#[derive(Debug)]
pub struct MappedTable<T> {
    pub map: Arc<TableMap>,
    pub beside: T,
    /// Memory of the map, as long as no transaction holds it.
    pub uncounted_bytes: u64,
}

/// What stands behind the table number of a rows event.
pub enum Lookup<'a, T> {
    Table(&'a mut MappedTable<T>),
    /// Its rows are not taken.
    LeftOut,
    /// It is another's, in the schema of Heddle's own.
    Foreign(&'a ForeignObject),
    /// Its rows can be neither taken nor left out.
    Refused(&'a Refusal),
    /// The number of no table: the event only ends a statement.
    Dummy(u64),
    /// Its table map has not come.
    Missing(u64),
}

impl<T: Default> Tables<T> {
    pub fn new(selection: Selection) -> Self {
        Self { selection, known: HashMap::default(), bytes: 0 }
    }

    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Before the first table map.
    pub fn select(&mut self, selection: Selection) {
        self.selection = selection;
    }

    /// A TABLE_MAP event. Returns whether the table's rows are taken.
    pub fn add(&mut self, event: &Event, format: &FormatDescription) -> Result<bool, Corruption> {
        let body = event.body();
        // The identifier is 6 bytes in every version that has v1 or later rows events with this post-header.
        let known = body.first_chunk::<6>().and_then(|id| {
            let id = id.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            self.known.get(&id)
        });
        if let Some(known) = known.filter(|known| known.body.as_ref() == body) {
            return Ok(known.taken().is_some());
        }
        let map = TableMap::decode(event, format)?;
        let id = map.table_id;
        let use_of = match self.selection.table(map) {
            Selected::Taken(map) => UseOf::Taken(MappedTable {
                uncounted_bytes: map_bytes(&map) as u64,
                map: Arc::new(map),
                beside: T::default(),
            }),
            Selected::LeftOut => UseOf::LeftOut,
            Selected::Foreign(foreign) => UseOf::Foreign(foreign),
            Selected::Refused(refusal) => UseOf::Refused(refusal),
        };
        // A copy: a slice would keep all that was read with it.
        let known = Known { body: Bytes::copy_from_slice(body), use_of };
        let is_taken = known.taken().is_some();
        self.bytes += known_bytes(&known);
        if let Some(before) = self.known.insert(id, known) {
            self.bytes = self.bytes.saturating_sub(known_bytes(&before));
        }
        Ok(is_taken)
    }

    /// The table of a rows event.
    pub fn of_rows(&mut self, event: &Event, format: &FormatDescription) -> Result<Lookup<'_, T>, Corruption> {
        let id = RowsEvent::peek_table_id(event, format)?;
        Ok(match self.known.get_mut(&id) {
            Some(Known { use_of: UseOf::Taken(mapped), .. }) => Lookup::Table(mapped),
            Some(Known { use_of: UseOf::LeftOut, .. }) => Lookup::LeftOut,
            Some(Known { use_of: UseOf::Foreign(foreign), .. }) => Lookup::Foreign(foreign),
            Some(Known { use_of: UseOf::Refused(refusal), .. }) => Lookup::Refused(refusal),
            None if DUMMY_TABLE_IDS.contains(&id) => Lookup::Dummy(id),
            None => Lookup::Missing(id),
        })
    }

    /// Memory of the maps that are remembered, about.
    pub fn held_bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// How many maps are remembered.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.known.len()
    }

    /// Those that are known and taken.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TableMap>> {
        self.known.values().filter_map(Known::taken).map(|mapped| &mapped.map)
    }

    /// Another log begins: numbers have other meanings.
    pub fn clear(&mut self) {
        self.known.clear();
        self.bytes = 0;
    }

    /// Between two transactions. Within one, a table map serves until the end of its statement.
    pub fn between_transactions(&mut self) {
        if self.known.len() >= MAPS_MAX {
            self.clear();
        }
        self.statement_ends();
    }

    /// Each statement comes with its table maps.
    pub fn statement_ends(&mut self) {
        if self.bytes >= MAPS_BYTES_MAX {
            self.clear();
        }
    }
}

/// Roughly, decoded and as in the log.
fn known_bytes<T>(known: &Known<T>) -> usize {
    known.body.len() + known.taken().map_or(MAP_BYTES, |mapped| map_bytes(&mapped.map))
}

/// Of a map without its columns.
const MAP_BYTES: usize = 400;

/// Roughly, decoded.
pub(super) fn map_bytes(map: &TableMap) -> usize {
    /// Of a column, with its name.
    const COLUMN_BYTES: usize = 160;
    map.columns.len() * COLUMN_BYTES + MAP_BYTES
}
