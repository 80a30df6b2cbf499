//! Who does what when: the state machine between placed transactions and workers.
//!
//! Inputs are calls (`enqueue`, `committed`, `failed` …), outputs come from [`Scheduler::poll`]. It owns no worker,
//! only their numbers, and always knows why nothing is dispatched ([`IdleCause`]).
//!
//! With preserved order groups are formed in sequence and may run before earlier ones have committed: they apply the rows that
//! depend on nothing uncommitted, then wait for their grant, which comes when all before them have committed. So
//! the group at the head can always finish, and with it all others: no cycle among our own waits. A lock that a
//! later group holds and an earlier one needs is reported by [`Scheduler::lock_wait`], or seen before that in what both of them
//! change (`collisions.rs`): the later is aborted and runs again as the head.
//!
//! A few transactions are not worth a group that waits for its grant: while another is under way they gather in the queue, and go together
//! once it has its place, or before, when there are enough of them ([`Limits`], [`Scheduler::overdue`]). So when the
//! target keeps up a transaction waits for the commit that is under way, then for its own.
//!
//! Rows that wait for earlier groups are released when those have committed, or with the grant, whichever is first. A group
//! that was placed to run speculatively has none: whether it may, its locks and the target's errors say.
//!
//! With relaxed order a group runs when everything that it depends on has committed, and commits at once. With an order per
//! lane it waits for its grant, too, which comes when all before it in its lane have their places (`lanes.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::commit_order::CommitOrder;
use super::config::{Commits, Config};
use super::flight::{Flight, Queued};
use super::lanes::Lanes;
use super::limits::Limits;
use super::output::{Counters, IdleCause, Output, Worker};
use super::ready::ReadySet;
use crate::Seq;
use crate::group::GroupId;
use crate::policy::{Placement, Watermark};
use crate::progress::{Committed, Mark, Marker};
use crate::transaction::{BarrierCause, Transaction};

pub struct Scheduler {
    pub(super) config: Config,
    /// `queue[i]` has seq `queue_first + i`; `None` once it has been dispatched (relaxed order only).
    pub(super) queue: VecDeque<Option<Queued>>,
    pub(super) queue_first: Seq,
    pub(super) queued_transactions: usize,
    pub(super) queued_bytes: u64,
    /// Uncommitted barriers, ascending.
    pub(super) barriers: VecDeque<(Seq, BarrierCause)>,
    pub(super) idle: Vec<Worker>,
    pub(super) flights: BTreeMap<GroupId, Flight>,
    pub(super) next_group: u64,
    /// Greatest seq that was ever dispatched.
    pub(super) dispatched: Seq,
    pub(super) committed: Committed,
    /// In preserved order the mark of the last group dispatched, for the next group to carry.
    pub(super) dispatch_marker: Marker,
    pub(super) low_marker: Marker,
    pub(super) ready: ReadySet,
    pub(super) lanes: Lanes,
    /// first → last of groups of which only the commit is left.
    pub(super) applied: BTreeMap<Seq, Seq>,
    pub(super) outputs: VecDeque<Output>,
    pub(super) stop_after: Option<Seq>,
    /// What waits to become a larger group has waited long enough.
    pub(super) overdue: bool,
    pub(super) ended: bool,
    pub(super) finished: bool,
    pub(super) failed: bool,
    pub(super) idle_because: IdleCause,
    pub(super) counters: Counters,
}

impl Scheduler {
    /// `start`: what the target has applied already; `ranges`: committed ranges above it (an earlier relaxed run).
    pub fn new(config: Config, start: Mark, ranges: &[(Seq, Seq)]) -> Self {
        assert!(config.workers > 0, "a scheduler without workers can not make progress");
        let mut committed = Committed::new(start.seq);
        for &(first, last) in ranges {
            committed.add(first, last);
        }
        Self {
            config,
            queue: VecDeque::new(),
            queue_first: start.seq + 1,
            queued_transactions: 0,
            queued_bytes: 0,
            barriers: VecDeque::new(),
            idle: (0..config.workers).rev().collect(),
            flights: BTreeMap::new(),
            next_group: 1,
            dispatched: start.seq,
            committed,
            dispatch_marker: Marker::new(start.clone()),
            low_marker: Marker::new(start),
            ready: ReadySet::default(),
            lanes: Lanes::default(),
            applied: BTreeMap::new(),
            outputs: VecDeque::new(),
            stop_after: None,
            overdue: false,
            ended: false,
            finished: false,
            failed: false,
            idle_because: IdleCause::NothingQueued,
            counters: Counters::default(),
        }
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub fn idle_because(&self) -> IdleCause {
        self.idle_because
    }

    /// Transactions and bytes that wait to be dispatched.
    pub fn queued(&self) -> (usize, u64) {
        (self.queued_transactions, self.queued_bytes)
    }

    /// Transactions above the low water, committed or not. With relaxed order a slow one lets all others run ahead, and each
    /// of them is remembered until the low water has passed it.
    pub fn outstanding(&self) -> u64 {
        let last = self.queue_end() - 1;
        // After a start with committed ranges that touch the mark the low water is beyond what has been enqueued.
        last.saturating_sub(self.committed.low_water())
    }

    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    pub fn committed_set(&self) -> &Committed {
        &self.committed
    }

    pub fn limits_mut(&mut self) -> &mut Limits {
        &mut self.config.limits
    }

    /// The next transaction in `seq` order. The caller bounds how much it enqueues by [`Scheduler::queued`] and
    /// [`Scheduler::outstanding`]. False: an earlier run has committed it, nothing more will be heard of it.
    pub fn enqueue(&mut self, transaction: Arc<Transaction>, mut placement: Placement) -> bool {
        let seq = transaction.seq;
        if placement.speculative && self.config.order.has_gaps() {
            // A conflict is only found out while the earlier one is not committed: here it might be the later that is.
            placement.after = Watermark::Committed(seq - 1);
        }
        assert_eq!(seq, self.queue_end(), "transactions come in seq order");
        let (gtid, end, time) = (transaction.gtid.clone(), transaction.end.clone(), transaction.commit_time_us);
        self.low_marker.push(seq, gtid.clone(), end.clone(), time);
        if self.config.order == CommitOrder::Preserve {
            self.dispatch_marker.push(seq, gtid, end, time);
        }
        if placement.committed && !self.committed.contains(seq) {
            self.committed.add(seq, seq);
        }
        if self.committed.contains(seq) {
            // Committed by an earlier run, above its low water.
            self.queue.push_back(None);
            self.drop_front();
            self.announce_low_water();
            return false;
        }
        if let Some(cause) = placement.barrier {
            self.barriers.push_back((seq, cause));
            self.counters.barriers += 1;
        }
        if self.config.order.has_gaps() {
            let begun = self.begun();
            self.ready.add(seq, &placement, &self.committed, begun);
            self.lanes.enqueue(placement.lane, seq);
        }
        self.queued_transactions += 1;
        self.queued_bytes += transaction.bytes;
        self.queue.push_back(Some(Queued { transaction, placement }));
        true
    }

    /// No more transactions will come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Stop without gaps: finish what runs and, with relaxed order, what lies before it.
    pub fn stop(&mut self) {
        self.stop_after.get_or_insert(self.dispatched);
    }

    /// Nothing was dispatched for a while: what gathers waits no longer, as what it waits for may take long.
    pub fn overdue(&mut self) {
        self.overdue = self.idle_because == IdleCause::Gathering;
    }

    pub fn commits(&self) -> Commits {
        self.config.commits
    }

    /// The next thing to do; call until `None`.
    pub fn poll(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.failed || self.finished {
            return None;
        }
        if let Some(output) = self.dispatch() {
            return Some(output);
        }
        let drained = self.flights.is_empty() && self.outputs.is_empty();
        let nothing_left = self.ended && self.queued_transactions == 0;
        let stopped = self.stop_after.is_some_and(|stop| self.committed.low_water() >= stop);
        if drained && (nothing_left || stopped) {
            self.finished = true;
            return Some(Output::Finished);
        }
        None
    }

    fn dispatch(&mut self) -> Option<Output> {
        if self.queued_transactions == 0 {
            return self.idle(IdleCause::NothingQueued);
        }
        if self.idle.is_empty() {
            return self.idle(IdleCause::AllWorkersBusy);
        }
        let first = match self.config.order {
            CommitOrder::Preserve => self.queue_first,
            CommitOrder::PerLane | CommitOrder::Relaxed => match self.candidate() {
                Some(seq) => seq,
                None => {
                    let cause = self.barriers.front().map(|&(_, cause)| IdleCause::Barrier(cause));
                    return self.idle(cause.unwrap_or(IdleCause::Dependency));
                }
            },
        };
        if self.stop_after.is_some_and(|stop| first > stop) {
            return self.idle(IdleCause::Stopping);
        }
        if let Some(&(barrier, cause)) = self.barriers.front()
            && (first > barrier || (first == barrier && self.committed.low_water() + 1 < barrier))
        {
            return self.idle(IdleCause::Barrier(cause));
        }
        match self.group_end(first) {
            Some(last) => Some(self.launch(first, last)),
            None => self.idle(IdleCause::Gathering),
        }
    }

    /// The earliest transaction that may be dispatched.
    pub(super) fn candidate(&self) -> Option<Seq> {
        let most = self.config.lane_groups_max;
        match self.config.order {
            CommitOrder::PerLane => self.lanes.fronts(most).filter(|&seq| self.ready.contains(seq)).min(),
            CommitOrder::Preserve | CommitOrder::Relaxed if most >= self.config.workers => self.ready.first(),
            CommitOrder::Preserve | CommitOrder::Relaxed => {
                let has_room = |&seq: &Seq| {
                    self.queued_at(seq).is_some_and(|queued| self.lanes.has_room(queued.placement.lane, most))
                };
                self.ready.iter().find(has_room)
            }
        }
    }

    fn idle(&mut self, cause: IdleCause) -> Option<Output> {
        self.idle_because = cause;
        None
    }

    /// The seq of the next transaction that is enqueued.
    pub(super) fn queue_end(&self) -> Seq {
        self.queue_first + self.queue.len() as u64
    }

    pub(super) fn queued_at(&self, seq: Seq) -> Option<&Queued> {
        let index = seq.checked_sub(self.queue_first)?;
        self.queue.get(usize::try_from(index).ok()?)?.as_ref()
    }

    pub(super) fn drop_front(&mut self) {
        while matches!(self.queue.front(), Some(None)) {
            self.queue.pop_front();
            self.queue_first += 1;
        }
    }
}
