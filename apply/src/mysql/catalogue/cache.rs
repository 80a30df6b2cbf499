//! Definitions that were read since the last DDL, within a bound, and how many to read at once. Reads none itself.

use std::collections::HashMap;
use std::sync::Arc;

use super::definition::Definition;
use crate::mysql::rows::by_name::Name;

/// Columns of all that is held, some 100 bytes each: of 50,000 ordinary tables, or of 1,000 as wide as they can be.
const COLUMNS_MAX: usize = 500_000;

/// So many tables are read one by one; then, with each, those that follow it by name, each time twice as many: what a server takes for a part of a schema grows
/// with the schema (0.14 s for 256 of 10,000 tables, 0.8 s for all, MySQL 9.7).
const SINGLE_MAX: usize = 8;
const NEIGHBOURS: usize = 256;
/// Until they have so many columns together.
const AT_ONCE_COLUMNS: usize = 50_000;
/// When all was forgotten so often, what is read ahead is not what is needed.
const FORGOTTEN_MAX: usize = 2;

/// A table without columns takes room as well.
fn size(definition: &Definition) -> usize {
    definition.columns.len().max(1)
}

#[derive(Debug, Default)]
pub struct DefinitionCache {
    definitions: HashMap<Name, Arc<Definition>>,
    columns: usize,
    /// Tables that had to be read.
    misses: usize,
    forgotten: usize,
}

impl DefinitionCache {
    pub fn get(&self, name: &Name) -> Option<&Arc<Definition>> {
        self.definitions.get(name)
    }

    pub fn add(&mut self, name: Name, definition: Arc<Definition>) {
        self.columns += size(&definition);
        if let Some(before) = self.definitions.insert(name, definition) {
            self.columns -= size(&before);
        }
    }

    pub fn forget(&mut self, is_one: impl Fn(&Name) -> bool) {
        self.definitions.retain(|name, _| !is_one(name));
        self.columns = self.definitions.values().map(|definition| size(definition)).sum();
    }

    /// A table is not in the cache: returns how many tables to read, this one and those that follow it by name. Forgets what was read before if
    /// there is no room for more.
    pub fn missed(&mut self) -> usize {
        self.misses += 1;
        if self.columns >= COLUMNS_MAX {
            self.definitions.clear();
            self.columns = 0;
            self.forgotten += 1;
        }
        let columns_each = (self.columns / self.definitions.len().max(1)).max(1);
        if self.misses <= SINGLE_MAX || self.forgotten >= FORGOTTEN_MAX {
            1
        } else {
            let most = (AT_ONCE_COLUMNS / columns_each).clamp(NEIGHBOURS, AT_ONCE_COLUMNS / 4);
            let doublings = (self.misses - SINGLE_MAX - 1).min(10) as u32;
            (NEIGHBOURS << doublings).min(most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::keys::KeyClass;
    use engine::schema::Column;

    /// Adds so many tables with so many columns one by one; returns how many are there in the end, and how many are read with the next.
    fn held(tables: usize, columns: usize) -> (usize, usize) {
        let column = Column { name: "c".to_owned(), unsigned: false, nullable: false, key_class: KeyClass::Coarse };
        let mut definition = Definition::default();
        definition.columns = vec![column; columns];
        let definition = Arc::new(definition);
        let name = |at: usize| ("s".to_owned(), format!("t{at}"));
        let mut held = DefinitionCache::default();
        for at in 0..tables {
            held.missed();
            held.add(name(at), Arc::clone(&definition));
            held.add(name(at), Arc::clone(&definition));
        }
        let kept = (0..tables).filter(|&at| held.get(&name(at)).is_some()).count();
        (kept, held.missed())
    }

    #[test]
    fn many_tables_stay_and_wide_ones_are_bounded() {
        assert_eq!(held(10_000, 10), (10_000, 5_000));
        assert_eq!(held(40_000, 10), (40_000, 5_000));
        assert_eq!(held(1_001, 500), (1, NEIGHBOURS));
        assert_eq!(held(1_500, 0), (1_500, AT_ONCE_COLUMNS / 4));
    }

    #[test]
    fn as_many_at_once_as_will_be_used() {
        assert_eq!(held(SINGLE_MAX - 1, 4).1, 1);
        assert_eq!(held(SINGLE_MAX, 4).1, NEIGHBOURS);
        assert_eq!(held(SINGLE_MAX + 1, 4).1, 2 * NEIGHBOURS);
        assert_eq!(held(SINGLE_MAX + 9, 4).1, AT_ONCE_COLUMNS / 4);
        assert_eq!(held(SINGLE_MAX + 9, 900).1, NEIGHBOURS);
        // More than can be held.
        assert_eq!(held(2_500, 500).1, 1);
    }
}
