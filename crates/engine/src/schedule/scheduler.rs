//! Who does what when: the state machine between placed transactions and workers.
//!
//! Inputs are calls (`enqueue`, `committed`, `failed` …), outputs come from [`Scheduler::poll`]. The scheduler owns no worker,
//! only their numbers. It always knows why nothing is dispatched ([`IdleCause`]).
//!
//! **Preserved order.** Groups are formed in sequence and may run before earlier ones have committed. A group applies the rows
//! that depend on nothing uncommitted, then waits for its grant. The grant comes when all groups before it have committed. So
//! the group at the head can always finish, and with it all others: our own waits form no cycle. A later group may hold a
//! lock that an earlier one needs. [`Scheduler::lock_wait`] reports it, or the write sets show it before (`collisions.rs`).
//! The later group is then aborted, and runs again as the head.
//!
//! **Gathering.** A few transactions are not worth a group that waits for its grant. While another group is under way they stay in
//! the queue. They go together once that group has its place, or earlier when there are enough of them ([`Limits`],
//! [`Scheduler::overdue`]). So when the target keeps up, a transaction waits for the commit that is under way, then for its own.
//!
//! **Deferred rows** are released when the groups that they wait for have committed, or with the grant, whichever is first. A
//! speculative group has none: the target's locks and errors show whether it came too early.
//!
//! **Relaxed order.** A group runs when everything that it depends on has committed, and commits at once. With an **order per
//! lane** it also waits for its grant, which comes when all before it in its lane have their places (`lanes.rs`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::config::{Commits, Config};
use super::flight::{Flight, QueuedTransaction};
use super::lanes::Lanes;
use super::limits::Limits;
use super::output::{Counters, IdleCause, Output, Worker};
use super::ready_set::ReadySet;
use super::state::{Phase, Progress, Queue};
use crate::Seq;
use crate::group::GroupId;
use crate::policy::CommitOrder;
use crate::policy::{Placement, Watermark};
use crate::progress::{CommittedRanges, Mark};
use crate::transaction::Transaction;

pub struct Scheduler {
    pub(super) config: Config,
    pub(super) queue: Queue,
    pub(super) progress: Progress,
    pub(super) phase: Phase,
    pub(super) idle: Vec<Worker>,
    pub(super) flights: BTreeMap<GroupId, Flight>,
    pub(super) ready: ReadySet,
    pub(super) lanes: Lanes,
    pub(super) outputs: VecDeque<Output>,
    pub(super) counters: Counters,
}

impl Scheduler {
    /// `start`: what the target has applied already; `ranges`: committed ranges above it (an earlier relaxed run).
    pub fn new(config: Config, start: Mark, ranges: &[(Seq, Seq)]) -> Self {
        assert!(config.workers > 0, "a scheduler without workers can not make progress");
        let mut committed = CommittedRanges::new(start.seq);
        for &(first, last) in ranges {
            committed.add(first, last);
        }
        Self {
            config,
            queue: Queue::new(start.seq + 1),
            progress: Progress::new(start, committed),
            phase: Phase::default(),
            idle: (0..config.workers).rev().collect(),
            flights: BTreeMap::new(),
            ready: ReadySet::default(),
            lanes: Lanes::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub fn idle_because(&self) -> IdleCause {
        self.phase.idle_because
    }

    /// Transactions and bytes that wait to be dispatched.
    pub fn queued(&self) -> (usize, u64) {
        (self.queue.transactions, self.queue.bytes)
    }

    /// Transactions above the low water, committed or not. With relaxed order a slow one lets all others run ahead, and each
    /// of them is remembered until the low water has passed it.
    pub fn outstanding(&self) -> u64 {
        let last = self.queue_end() - 1;
        // After a start with committed ranges that touch the mark the low water is beyond what has been enqueued.
        last.saturating_sub(self.progress.committed.low_water())
    }

    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    pub fn committed_set(&self) -> &CommittedRanges {
        &self.progress.committed
    }

    pub fn limits_mut(&mut self) -> &mut Limits {
        &mut self.config.limits
    }

    /// Those that get groups.
    pub fn workers(&self) -> usize {
        self.config.workers
    }

    /// From now on the first `count` workers get groups. What others have under way, they finish.
    pub fn use_workers(&mut self, count: usize) {
        assert!(count > 0, "a scheduler without workers can not make progress");
        let before = std::mem::replace(&mut self.config.workers, count);
        self.idle.retain(|&worker| worker < count);
        let busy: BTreeSet<Worker> = self.flights.values().map(|flight| flight.worker).collect();
        // The last one is taken first: what was there before goes on to be.
        let more = (before..count).rev().filter(|worker| !busy.contains(worker));
        self.idle.splice(0..0, more);
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
        self.progress.low_marker.push(seq, gtid.clone(), end.clone(), time);
        if self.config.order == CommitOrder::Preserve {
            self.progress.dispatch_marker.push(seq, gtid, end, time);
        }
        if placement.committed && !self.progress.committed.contains(seq) {
            self.progress.committed.add(seq, seq);
        }
        if self.progress.committed.contains(seq) {
            // Committed by an earlier run, above its low water.
            self.queue.list.push_back(None);
            self.drop_front();
            self.announce_low_water();
            return false;
        }
        if let Some(cause) = placement.barrier {
            self.queue.barriers.push_back((seq, cause));
            self.counters.barriers += 1;
        }
        if self.config.order.has_gaps() {
            let begun = self.begun();
            self.ready.add(seq, &placement, &self.progress.committed, begun);
            self.lanes.enqueue(placement.lane, seq);
        }
        self.queue.transactions += 1;
        self.queue.bytes += transaction.bytes;
        self.queue.list.push_back(Some(QueuedTransaction { transaction, placement }));
        true
    }

    /// No more transactions will come.
    pub fn end(&mut self) {
        self.phase.ended = true;
    }

    pub fn has_ended(&self) -> bool {
        self.phase.ended
    }

    /// Stop without gaps: finish what runs and, with relaxed order, what lies before it.
    pub fn stop(&mut self) {
        self.phase.stop_after.get_or_insert(self.progress.dispatched);
    }

    /// Nothing was dispatched for a while: what gathers waits no longer, as what it waits for may take long.
    pub fn overdue(&mut self) {
        self.phase.overdue = self.phase.idle_because == IdleCause::Gathering;
    }

    pub fn commits(&self) -> Commits {
        self.config.commits
    }

    /// The next thing to do; call until `None`.
    pub fn poll(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.phase.failed || self.phase.finished {
            return None;
        }
        if let Some(output) = self.dispatch() {
            return Some(output);
        }
        let drained = self.flights.is_empty() && self.outputs.is_empty();
        let nothing_left = self.phase.ended && self.queue.transactions == 0;
        let stopped = self.phase.stop_after.is_some_and(|stop| self.progress.committed.low_water() >= stop);
        if drained && (nothing_left || stopped) {
            self.phase.finished = true;
            return Some(Output::Finished);
        }
        None
    }

    fn dispatch(&mut self) -> Option<Output> {
        if self.queue.transactions == 0 {
            return self.idle(IdleCause::NothingQueued);
        }
        if self.idle.is_empty() {
            return self.idle(IdleCause::AllWorkersBusy);
        }
        let first = match self.config.order {
            CommitOrder::Preserve => self.queue.first,
            CommitOrder::PerLane | CommitOrder::Relaxed => match self.candidate() {
                Some(seq) => seq,
                None => {
                    let cause = self.queue.barriers.front().map(|&(_, cause)| IdleCause::Barrier(cause));
                    return self.idle(cause.unwrap_or(IdleCause::Dependency));
                }
            },
        };
        if self.phase.stop_after.is_some_and(|stop| first > stop) {
            return self.idle(IdleCause::Stopping);
        }
        if let Some(&(barrier, cause)) = self.queue.barriers.front()
            && (first > barrier || (first == barrier && self.progress.committed.low_water() + 1 < barrier))
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
        self.phase.idle_because = cause;
        None
    }

    /// The seq of the next transaction that is enqueued.
    pub(super) fn queue_end(&self) -> Seq {
        self.queue.first + self.queue.list.len() as u64
    }

    pub(super) fn queued_at(&self, seq: Seq) -> Option<&QueuedTransaction> {
        let index = seq.checked_sub(self.queue.first)?;
        self.queue.list.get(usize::try_from(index).ok()?)?.as_ref()
    }

    pub(super) fn drop_front(&mut self) {
        while matches!(self.queue.list.front(), Some(None)) {
            self.queue.list.pop_front();
            self.queue.first += 1;
        }
    }
}
