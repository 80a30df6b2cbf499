//! Rows that were read, and the log's changes in the window: the rows at its end.
//!
//! This is the rule that a chunk follows (Netflix's DBLog, Debezium's read-only snapshots). It holds whatever the read saw of the window.

use std::collections::BTreeMap;

/// One row change of the log, with whole rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange<K, R> {
    /// The key that the row had; `None`: an insert.
    pub before: Option<K>,
    /// The row afterwards; `None`: a delete.
    pub after: Option<(K, R)>,
}

/// `read`: the rows of a range of keys. `changes`: those of the log in the window, in its order; what is out of the range changes nothing in it.
pub fn settle<K: Ord, R>(
    read: impl IntoIterator<Item = (K, R)>,
    changes: impl IntoIterator<Item = RowChange<K, R>>,
    is_in_range: impl Fn(&K) -> bool,
) -> BTreeMap<K, R> {
    let mut rows: BTreeMap<K, R> = read.into_iter().collect();
    for change in changes {
        if let Some(before) = &change.before {
            rows.remove(before);
        }
        if let Some((key, row)) = change.after
            && is_in_range(&key)
        {
            rows.insert(key, row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_move() {
        let moved = |before, after: (i32, &'static str)| RowChange { before: Some(before), after: Some(after) };
        // 1 → 9 leaves the range, 8 → 2 comes into it; the read has seen one of them.
        let rows = settle([(1, "a"), (2, "b"), (3, "c")], [moved(1, (9, "a")), moved(8, (2, "b"))], |key| *key < 5);
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [(2, "b"), (3, "c")]);
    }
}
