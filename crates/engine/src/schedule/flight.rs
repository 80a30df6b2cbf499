//! A queued transaction, and a group that a worker has.

use std::sync::Arc;

use super::keys::{Keys, KnownKeys};
use super::output::{Run, Worker};
use crate::Seq;
use crate::group::Group;
use crate::policy::{Lane, Placement, Watermark};
use crate::transaction::Transaction;

pub(super) struct QueuedTransaction {
    pub transaction: Arc<Transaction>,
    pub placement: Placement,
}

pub(super) struct Flight {
    pub worker: Worker,
    pub group: Arc<Group>,
    pub run: Run,
    /// Its place in the commit order is taken: the next may be granted.
    pub ordered: bool,
    pub aborting: bool,
    pub tries: Tries,
    pub lane: Lane,
    /// What its deferred rows wait for. `None`: nothing is deferred, or it has been released.
    pub deferred_for: Option<DeferralCause>,
    /// Its rows may be those that an earlier one needs.
    pub speculative: bool,
    pub keys: KnownKeys,
}

/// What became of its attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tries {
    /// It failed and waits to become the head to run again.
    pub retry: Option<Run>,
    /// Of its attempts, those that failed because the target was closed: no limit counts them.
    pub found_closed: u32,
}

/// Everything up to these has to have committed, or to have begun its commit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeferralCause {
    pub committed: Seq,
    pub commit_begun: Seq,
}

impl DeferralCause {
    /// What a transaction of a group that begins at `first` waits for outside the group.
    pub fn add(&mut self, first: Seq, placement: &Placement) {
        match placement.after {
            Watermark::None => {}
            Watermark::Committed(seq) => self.committed = self.committed.max(seq.min(first - 1)),
            Watermark::CommitBegun(seq) => self.commit_begun = self.commit_begun.max(seq.min(first - 1)),
        }
        let outside = placement.after_transactions.iter().copied().filter(|&seq| seq < first);
        self.committed = self.committed.max(outside.max().unwrap_or(0));
    }
}

impl Flight {
    pub fn may_give_way(&self) -> bool {
        self.speculative && !self.run.granted && self.tries.retry.is_none() && !self.aborting
    }

    pub fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| Keys::of(&self.group.transactions))
    }
}
