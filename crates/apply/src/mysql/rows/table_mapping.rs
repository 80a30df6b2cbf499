//! Entries for some tables, by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use binlog::TableMap;

use crate::lock::locked;

/// Schema and table.
pub type Name = (String, String);

/// Of some kinds few tables have an entry, and most targets' none.
#[derive(Debug)]
pub struct TableMapping<T>(Mutex<HashMap<Name, Arc<T>>>);

impl<T> Default for TableMapping<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> TableMapping<T> {
    pub fn set(&self, name: &Name, entry: Option<T>) {
        match entry {
            Some(entry) => locked(&self.0).insert(name.clone(), Arc::new(entry)),
            None => locked(&self.0).remove(name),
        };
    }

    pub fn forget(&self, is_one: impl Fn(&Name) -> bool) {
        locked(&self.0).retain(|name, _| !is_one(name));
    }

    pub fn get(&self, map: &TableMap) -> Option<Arc<T>> {
        let entries = locked(&self.0);
        if entries.is_empty() {
            return None;
        }
        entries.get(&(map.schema.clone(), map.table.clone())).cloned()
    }
}
