//! What the scheduler remembers beside its groups: the queue, the progress, the phase of its run.

use std::collections::{BTreeMap, VecDeque};

use super::flight::QueuedTransaction;
use super::output::IdleCause;
use crate::Seq;
use crate::progress::{CommittedRanges, Mark, Marker};
use crate::transaction::BarrierCause;

/// Placed transactions that wait to be dispatched.
pub(super) struct Queue {
    /// `list[i]` has seq `first + i`; `None` once it has been dispatched (relaxed order only).
    pub list: VecDeque<Option<QueuedTransaction>>,
    pub first: Seq,
    pub transactions: usize,
    pub bytes: u64,
    /// Uncommitted barriers, ascending.
    pub barriers: VecDeque<(Seq, BarrierCause)>,
}

impl Queue {
    pub fn new(first: Seq) -> Self {
        Self { list: VecDeque::new(), first, transactions: 0, bytes: 0, barriers: VecDeque::new() }
    }
}

/// How far the channel is.
pub(super) struct Progress {
    pub next_group: u64,
    /// Greatest seq that was ever dispatched.
    pub dispatched: Seq,
    pub committed: CommittedRanges,
    /// In preserved order the mark of the last group dispatched, for the next group to carry.
    pub dispatch_marker: Marker,
    pub low_marker: Marker,
    /// first → last of groups of which only the commit is left.
    pub applied: BTreeMap<Seq, Seq>,
}

impl Progress {
    pub fn new(start: Mark, committed: CommittedRanges) -> Self {
        Self {
            next_group: 1,
            dispatched: start.seq,
            committed,
            dispatch_marker: Marker::new(start.clone()),
            low_marker: Marker::new(start),
            applied: BTreeMap::new(),
        }
    }
}

/// Where a run is between its start and its end.
pub(super) struct Phase {
    pub stop_after: Option<Seq>,
    /// What waits to become a larger group has waited long enough.
    pub overdue: bool,
    pub ended: bool,
    pub finished: bool,
    pub failed: bool,
    pub idle_because: IdleCause,
}

impl Default for Phase {
    fn default() -> Self {
        Self {
            stop_after: None,
            overdue: false,
            ended: false,
            finished: false,
            failed: false,
            idle_because: IdleCause::NothingQueued,
        }
    }
}
