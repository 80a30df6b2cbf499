//! Sizes of MariaDB's group commits, as their commit ids show them.
//!
//! Transactions with the same commit id follow each other in the log and were committed together: in the mode
//! `conservative` a replica runs them in parallel. One without a commit id was alone in its group.

use super::Histogram;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupSizes {
    /// Whole groups by their number of transactions.
    pub sizes: Histogram,
    current: Option<u64>,
    length: u64,
}

impl GroupSizes {
    /// One transaction, in the order of the log.
    pub fn add(&mut self, commit_id: Option<u64>) {
        if commit_id.is_some() && commit_id == self.current {
            self.length += 1;
            return;
        }
        self.finish();
        self.current = commit_id;
        self.length = 1;
    }

    /// Ends the group under way: at the end of the stream, and at a new file (a group does not span files).
    pub fn finish(&mut self) {
        if self.length > 0 {
            self.sizes.add(self.length);
        }
        self.length = 0;
        self.current = None;
    }

    /// Mean number of transactions in a group.
    pub fn mean(&self) -> Option<f64> {
        self.sizes.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_are_one_group() {
        let mut groups = GroupSizes::default();
        for id in [Some(1), Some(1), Some(1), None, None, Some(2), Some(3), Some(3)] {
            groups.add(id);
        }
        groups.finish();
        groups.finish();
        assert_eq!((groups.sizes.count, groups.sizes.sum, groups.sizes.max), (5, 8, 3));
        assert_eq!(groups.mean(), Some(1.6));
    }

    #[test]
    fn a_file_ends_a_group() {
        let mut groups = GroupSizes::default();
        groups.add(Some(7));
        groups.finish();
        groups.add(Some(7));
        groups.finish();
        assert_eq!(groups.sizes.count, 2);
        assert_eq!(GroupSizes::default().mean(), None);
    }
}
