//! A parent in our numbers → `last_committed` of its file.
//!
//! Facts of MySQL's applier (`rpl_mta_submode.cc`): a `last_committed` of 0, and a gap in the sequence numbers, make it wait for everything before. So
//! only the first of a file keeps its 0, and the numbers themselves never change.

use crate::Seq;
use crate::transaction::Tags;

use super::waits::{Cause, WaitRecord};

#[derive(Debug, Default)]
pub(super) struct LogicalClock {
    /// Where the numbers without a gap begin: ours, and the file's.
    began: Option<(Seq, i64)>,
    last_number: i64,
    /// Of a file without numbers.
    counted: i64,
}

impl LogicalClock {
    pub fn new_file(&mut self) {
        *self = Self::default();
    }

    /// The next transaction of a file that has no tags: as a source would tag it that commits one by one.
    pub fn counted(&mut self) -> Tags {
        self.counted += 1;
        Tags { last_committed: self.counted - 1, sequence_number: self.counted, ..Tags::default() }
    }

    /// The new `last_committed` of a transaction with these tags, and why it is that.
    pub fn next(&mut self, seq: Seq, tags: &Tags, waited: WaitRecord) -> (i64, Cause) {
        let number = tags.sequence_number;
        let begins = self.began.is_none();
        let follows = self.last_number.checked_add(1) == Some(number);
        self.last_number = number;
        let Some((first, first_number)) = self.began.filter(|_| follows) else {
            self.began = Some((seq, number));
            return (tags.last_committed, if begins { Cause::FileBegins } else { Cause::Gap });
        };
        // What is before the first has been waited for there.
        let ours = first_number.saturating_add_unsigned(waited.parent.saturating_sub(first));
        match tags.last_committed {
            source if source > 0 && source < ours => (source, Cause::Source),
            _ => (ours, waited.cause),
        }
    }
}
