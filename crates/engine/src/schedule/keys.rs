//! The keys that a group changes or refers to, to see whether two groups meet.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::transaction::Transaction;

/// Hashes of a group's keys, each list ascending and without repetitions.
#[derive(Debug, Default)]
pub(super) struct Keys {
    written: Vec<u64>,
    /// Parents' keys.
    referred: Vec<u64>,
}

/// The same of a group in flight, from the first time that somebody asks.
pub(super) type KnownKeys = OnceCell<Keys>;

impl Keys {
    pub(super) fn of(transactions: &[Arc<Transaction>]) -> Self {
        let mut keys = Self::default();
        for set in transactions.iter().map(|transaction| &transaction.write_set) {
            for row in &set.rows {
                keys.written.extend(set.unique_hashes(row));
                keys.referred.extend(set.reference_hashes(row));
            }
        }
        for list in [&mut keys.written, &mut keys.referred] {
            // No image, or NULL in it.
            list.retain(|&hash| hash != 0);
            list.sort_unstable();
            list.dedup();
        }
        keys
    }

    /// Two may read a parent's key at the same time.
    pub(super) fn meets(&self, other: &Self) -> bool {
        have_common(&self.written, &other.written)
            || have_common(&self.written, &other.referred)
            || have_common(&self.referred, &other.written)
    }
}

/// Two ascending lists. The longer one is searched, so that a few keys beside many cost little.
fn have_common(one: &[u64], other: &[u64]) -> bool {
    let (few, mut many) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    for key in few {
        many = many.get(many.partition_point(|at| at < key)..).unwrap_or_default();
        if many.first() == Some(key) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_keys() {
        assert!(!have_common(&[], &[1]));
        assert!(!have_common(&[2, 4, 6], &[1, 3, 5, 7, 9]));
        assert!(have_common(&[9], &[1, 3, 5, 7, 9]));
        assert!(have_common(&[1, 3, 5, 7, 9], &[0, 1]));
        assert!(!have_common(&[8, 10], &[1, 3, 5, 7, 9]));
    }
}
