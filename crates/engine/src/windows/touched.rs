//! The rows of a table that a log changes in a window. What a key's bytes are, and when two are equal, the caller decides.

use std::collections::HashSet;
use std::hash::Hash;

/// Who says what a row is at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrigin {
    /// The read: the log does not change the row.
    Select,
    /// The log.
    Log,
}

/// Of one table and window.
#[derive(Clone, Debug)]
pub struct Touched<K> {
    keys: HashSet<K>,
    /// Something may have changed rows that the log does not name: a statement, a definition, a cascade.
    is_whole: bool,
}

impl<K> Default for Touched<K> {
    fn default() -> Self {
        Self { keys: HashSet::new(), is_whole: false }
    }
}

impl<K: Eq + Hash> Touched<K> {
    /// A row event has this key, before or after the change.
    pub fn note(&mut self, key: K) {
        if !self.is_whole {
            self.keys.insert(key);
        }
    }

    /// Any row may have changed.
    pub fn note_all(&mut self) {
        self.is_whole = true;
        self.keys = HashSet::new();
    }

    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub fn is_empty(&self) -> bool {
        !self.is_whole && self.keys.is_empty()
    }

    /// Keys that are held.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn origin(&self, key: &K) -> RowOrigin {
        if self.is_whole || self.keys.contains(key) { RowOrigin::Log } else { RowOrigin::Select }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_all() {
        let mut touched = Touched::default();
        assert!(touched.is_empty());
        touched.note(1);
        assert_eq!((touched.origin(&1), touched.origin(&2)), (RowOrigin::Log, RowOrigin::Select));
        touched.note_all();
        assert_eq!((touched.origin(&2), touched.len(), touched.is_empty()), (RowOrigin::Log, 0, false));
    }
}
