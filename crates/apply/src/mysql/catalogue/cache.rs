//! Definitions that were read since the last DDL, within a bound, and how many to read at once. Reads none itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::definition::Definition;
use crate::mysql::rows::table_mapping::Name;

/// Columns of all that is held, some 100 bytes each: of 50,000 ordinary tables, or of 1,000 as wide as they can be.
const COLUMNS_MAX: usize = 500_000;

/// So many tables are read one by one; then, with each, its neighbours by name, then a whole schema: what a server takes for a part of a schema
/// grows with the schema (0.14 s for 256 of 10,000 tables, 0.8 s for all, MySQL 9.7), and MariaDB opens each table that it describes (1 ms where the
/// table was not open).
const SINGLE_MAX: usize = 8;
const NEIGHBOURS: usize = 256;
/// More than these are not read at once: a channel waits for it.
const AT_ONCE_TABLES: usize = 5_000;
/// Until they have so many columns together.
const AT_ONCE_COLUMNS: usize = 100_000;
/// When all was forgotten so often, what is read ahead is not what is needed.
const FORGOTTEN_MAX: usize = 2;
/// Of more tables than these it is not remembered that a DDL has named them.
const NAMED_MAX: usize = 20_000;

/// A table without columns takes room as well.
fn size(definition: &Definition) -> usize {
    definition.columns.len().max(1)
}

#[derive(Debug, Default)]
pub struct DefinitionCache {
    definitions: HashMap<Name, Arc<Definition>>,
    columns: usize,
    /// Tables that had to be read, but for those of the next line.
    misses: usize,
    /// Tables that a DDL has named, and that were not read since: they are read one by one, as what is around them is still known.
    named: HashSet<Name>,
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

    /// `names`: as a DDL has them.
    pub fn forget(&mut self, is_one: impl Fn(&Name) -> bool, names: impl Iterator<Item = Name>) {
        self.named.extend(names);
        let named = &mut self.named;
        self.definitions.retain(|name, _| {
            let is_one = is_one(name);
            if is_one {
                named.insert(name.clone());
            }
            !is_one
        });
        if self.named.len() > NAMED_MAX {
            self.named.clear();
        }
        self.columns = self.definitions.values().map(|definition| size(definition)).sum();
    }

    /// A table is not in the cache: returns how many tables to read, this one and its neighbours by name. Forgets what was read before if
    /// there is no room for more.
    pub fn missed(&mut self, name: &Name) -> usize {
        let is_named = self.named.remove(name);
        self.misses += usize::from(!is_named);
        if self.columns >= COLUMNS_MAX {
            self.definitions.clear();
            self.columns = 0;
            self.forgotten += 1;
        }
        let columns_each = (self.columns / self.definitions.len().max(1)).max(1);
        if is_named || self.misses <= SINGLE_MAX || self.forgotten >= FORGOTTEN_MAX {
            1
        } else {
            let is_first = self.misses == SINGLE_MAX + 1;
            if is_first { NEIGHBOURS } else { (AT_ONCE_COLUMNS / columns_each).clamp(NEIGHBOURS, AT_ONCE_TABLES) }
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
            held.missed(&name(at));
            held.add(name(at), Arc::clone(&definition));
            held.add(name(at), Arc::clone(&definition));
        }
        let kept = (0..tables).filter(|&at| held.get(&name(at)).is_some()).count();
        (kept, held.missed(&name(tables)))
    }

    #[test]
    fn many_tables_stay_and_wide_ones_are_bounded() {
        assert_eq!(held(10_000, 10), (10_000, 5_000));
        assert_eq!(held(40_000, 10), (40_000, 5_000));
        assert_eq!(held(1_001, 500), (1, NEIGHBOURS));
        assert_eq!(held(1_500, 0), (1_500, AT_ONCE_TABLES));
    }

    /// However often: a DDL that is followed by rows of its table would else have a whole schema read again.
    #[test]
    fn what_a_ddl_names_is_read_alone() {
        let (mut held, name) = (DefinitionCache::default(), |table: &str| ("s".to_owned(), table.to_owned()));
        for at in 0..=SINGLE_MAX {
            held.missed(&name(&format!("t{at}")));
        }
        for table in ["known", "new"] {
            for _ in 0..100 {
                held.add(name("known"), Arc::default());
                held.forget(|one| one.1 == "known", ["new", "NEW"].into_iter().map(name));
                assert!(held.get(&name("known")).is_none());
                assert_eq!(held.missed(&name(table)), 1);
            }
        }
        assert_eq!(held.missed(&name("another")), AT_ONCE_TABLES);
        assert_eq!(held.missed(&name("new")), AT_ONCE_TABLES);
    }

    #[test]
    fn as_many_at_once_as_will_be_used() {
        assert_eq!(held(SINGLE_MAX - 1, 4).1, 1);
        assert_eq!(held(SINGLE_MAX, 4).1, NEIGHBOURS);
        assert_eq!(held(SINGLE_MAX + 1, 4).1, AT_ONCE_TABLES);
        assert_eq!(held(SINGLE_MAX + 9, 4).1, AT_ONCE_TABLES);
        assert_eq!(held(SINGLE_MAX + 9, 900).1, NEIGHBOURS);
        // More than can be held.
        assert_eq!(held(2_500, 500).1, 1);
    }
}
