//! What the source's own tags say, in contiguous numbers.
//!
//! The hazard: `last_committed=3` in the second log does not mean the third transaction of the first; and in a log that
//! was filtered, transaction 9 may follow 5, so that counting from the first gives the wrong one. So each log is an
//! epoch of its own, and a parent is looked up: the last transaction of the epoch whose number is not above it.
//! MariaDB's commit ids are a clock, too: transactions of one group commit were all prepared before any of them had
//! committed.
//!
//! ```text
//! log 1: (0,1) (0,2) (1,3)   log 2: (0,1) (1,2)      tags (last_committed, sequence_number)
//! ours:    1     2     3              4     5         parents 0, 0, 1, 3, 4
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Seq;
use crate::transaction::{Tags, Transaction};
use binlog::gtids::Gtid;

/// Up to where everything had committed on the source when the transaction was prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    Known(Seq),
    /// The source says nothing of it.
    Untagged,
}

#[derive(Debug, Default)]
pub struct SourceClock {
    file: Option<Arc<str>>,
    /// The last transaction that is not remembered: everybody with a parent at or before it follows it.
    epoch_after: Seq,
    last_number: i64,
    last_seq: Seq,
    /// (number in the source's log, ours), ascending; those that may still be somebody's parent.
    numbers: VecDeque<(i64, Seq)>,
    /// MariaDB: the group that the last transaction was in, and the last one before that group.
    group: Option<(u32, u64)>,
    before_group: Seq,
    gap: bool,
    began: bool,
}

/// Transactions of one log that are remembered. A parent that is older counts as the oldest of them.
const NUMBERS_MAX: usize = 1 << 20;

impl SourceClock {
    /// The next transaction, in `seq` order. One from a log without tags follows the one before it.
    pub fn next(&mut self, transaction: &Transaction) -> Parent {
        let (seq, tags) = (transaction.seq, &transaction.tags);
        let parent = match () {
            () if tags.sequence_number > 0 => self.by_number(seq, &transaction.start.file, tags),
            () if matches!(transaction.gtid, Some(Gtid::MariaDb { .. })) => self.by_group(seq, tags),
            () => Parent::Untagged,
        };
        self.began = true;
        self.last_seq = seq;
        parent
    }

    /// A native replica waits for all before: the first after a start, after a rotation and after a gap in the numbers.
    pub fn after_gap(&self) -> bool {
        self.gap
    }

    /// Up to `seq` everything is committed: who follows something before it, follows nothing.
    pub fn forget_to(&mut self, seq: Seq) {
        while self.numbers.front().is_some_and(|&(_, ours)| ours <= seq) {
            self.numbers.pop_front();
        }
        self.epoch_after = self.epoch_after.max(seq.min(self.last_seq));
    }

    fn by_number(&mut self, seq: Seq, file: &Arc<str>, tags: &Tags) -> Parent {
        let number = tags.sequence_number;
        let same_log = self.file.as_ref().is_some_and(|known| **known == **file) && number > self.last_number;
        if !same_log {
            self.file = Some(Arc::clone(file));
            self.epoch_after = seq - 1;
            self.numbers.clear();
        }
        self.gap = !same_log || number != self.last_number + 1;
        self.last_number = number;
        let at = self.numbers.partition_point(|&(known, _)| known <= tags.last_committed);
        let parent = match at.checked_sub(1).and_then(|at| self.numbers.get(at)) {
            Some(&(_, parent)) => parent,
            None => self.epoch_after,
        };
        self.numbers.push_back((number, seq));
        if self.numbers.len() > NUMBERS_MAX
            && let Some((_, dropped)) = self.numbers.pop_front()
        {
            self.epoch_after = dropped;
        }
        Parent::Known(parent)
    }

    fn by_group(&mut self, seq: Seq, tags: &Tags) -> Parent {
        let group = tags.commit_id.map(|id| (tags.domain, id));
        self.gap = !self.began;
        if group.is_none() || group != self.group {
            self.before_group = seq - 1;
            self.group = group;
        }
        Parent::Known(self.before_group)
    }
}
