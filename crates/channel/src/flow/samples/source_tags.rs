//! How parallel the source's own tags are: AMIL of MySQL's logical clock, sizes of MariaDB's group commits. Counted as transactions are read.

use std::sync::Arc;

use engine::quality::{GroupSizes, Intervals};
use engine::transaction::Transaction;

#[derive(Clone, Debug, Default)]
pub struct SourceTags {
    /// Of transactions with MySQL's tags.
    pub intervals: Intervals,
    /// Of all others: without a group commit id a transaction is alone in its group.
    pub groups: GroupSizes,
    file: Option<Arc<str>>,
}

impl SourceTags {
    pub fn read(&mut self, transaction: &Transaction) {
        let file = &transaction.start.file;
        if self.file.as_ref() != Some(file) {
            // MySQL's numbers begin again with each file, and no group of MariaDB's spans two.
            self.intervals.rotate();
            self.groups.finish();
            self.file = Some(Arc::clone(file));
        }
        let tags = &transaction.tags;
        if tags.sequence_number > 0 {
            self.intervals.add(tags.last_committed, tags.sequence_number);
        } else {
            self.groups.add(tags.commit_id);
        }
    }
}
