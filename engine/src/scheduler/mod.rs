//! Who does what when: the state machine between placed transactions and workers.
//!
//! Inputs are calls (`enqueue`, `committed`, `failed` …), outputs come from [`Scheduler::poll`]. It owns no worker,
//! only their numbers, and always knows why nothing is dispatched ([`IdleCause`]).
//!
//! With preserved order groups are formed in sequence and may run before earlier ones have committed: they apply the rows that
//! depend on nothing uncommitted, then wait for their grant, which comes when all before them have committed. So
//! the group at the head can always finish, and with it all others: no cycle among our own waits. A lock that a
//! later group holds and an earlier one needs is reported by [`Scheduler::lock_wait`], or seen before that in what both of them
//! change ([`collisions`]): the later is aborted and runs again as the head.
//!
//! A few transactions are not worth a group that waits for its grant: while another is under way they gather in the queue, and go together
//! once it has its place, or before, when there are enough of them ([`crate::group::Limits`], [`Scheduler::overdue`]). So when the
//! target keeps up a transaction waits for the commit that is under way, then for its own.
//!
//! Rows that wait for earlier groups are released when those have committed, or with the grant, whichever is first. A group
//! that was placed to run speculatively has none: whether it may, its locks and the target's errors say.
//!
//! With relaxed order a group runs when everything that it depends on has committed, and commits at once. With an order per
//! lane it waits for its grant, too, which comes when all before it in its lane have their places ([`lanes`]).

mod collisions;
mod forming;
mod lanes;
mod ready;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::Seq;
use crate::failure::{Directive, Failure};
use crate::group::{Group, GroupId, Limits};
use crate::policy::{Lane, Placement, Watermark};
use crate::progress::{Committed, Mark, Marker};
use crate::transaction::{BarrierCause, Transaction};
use collisions::KnownKeys;
use forming::HeldFor;
use lanes::Lanes;
use ready::ReadySet;

/// `--commit-order`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOrder {
    /// As the source.
    Preserve,
    /// As the source in each lane.
    PerLane,
    Relaxed,
}

impl CommitOrder {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preserve => "preserve",
            Self::PerLane => "per-lane",
            Self::Relaxed => "relaxed",
        }
    }

    /// Whether transactions may commit before earlier ones have: progress is then noted in islands.
    pub fn has_gaps(self) -> bool {
        self != Self::Preserve
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub workers: usize,
    pub order: CommitOrder,
    pub limits: Limits,
    /// How often one group may be retried before the channel stops.
    pub retries_max: u32,
    /// The most groups of one lane that run at once; not with preserved order.
    pub lane_groups_max: usize,
    /// Placements count on commits that have begun: workers say when all is applied, before they commit.
    pub announce: bool,
    /// The transactions of a group commit one by one and only share a packet. In relaxed order a group takes no more than its share of what waits; in
    /// the source's it is begun in its turn, if it has more than one.
    pub apart: bool,
}

impl Config {
    /// Without a limit for lanes, and without announcements.
    pub fn new(workers: usize, order: CommitOrder, limits: Limits, retries_max: u32) -> Self {
        Self { workers, order, limits, retries_max, lane_groups_max: workers, announce: false, apart: false }
    }
}

/// Index of a worker, below `Config::workers`.
pub type Worker = usize;

/// How a worker is to run a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// 1 for the first try.
    pub attempt: u32,
    /// All before it have committed: nothing has to wait, it may commit at once.
    pub granted: bool,
    /// Apply each transaction by itself, so that a failure names its culprit.
    pub isolate: bool,
    /// Say when all rows are applied and only the commit is left, or the grant and the commit.
    pub announce: bool,
}

#[derive(Debug)]
pub enum Output {
    Dispatch {
        worker: Worker,
        group: Arc<Group>,
        run: Run,
    },
    /// What the group's held rows wait for has committed: they may be applied, ahead of the grant.
    Release {
        worker: Worker,
        group: GroupId,
    },
    /// The group may commit.
    Grant {
        worker: Worker,
        group: GroupId,
    },
    /// Roll back what was applied of the group and report it as failed by a conflict.
    Abort {
        worker: Worker,
        group: GroupId,
        attempt: u32,
    },
    /// Everything up to here is committed.
    LowWater(Mark),
    /// Nothing is left to do (end of the stream, or stopped without gaps).
    Finished,
    /// The channel can not go on.
    Stop(Failure),
}

/// Why no transaction is being dispatched right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdleCause {
    NothingQueued,
    AllWorkersBusy,
    /// It waits to run alone, or one runs alone.
    Barrier(BarrierCause),
    /// Every queued transaction depends on one that has not committed.
    Dependency,
    /// What waits becomes one group, with what comes until it may commit.
    Gathering,
    Stopping,
}

impl IdleCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NothingQueued => "nothing_queued",
            Self::AllWorkersBusy => "all_workers_busy",
            Self::Barrier(_) => "barrier",
            Self::Dependency => "dependency",
            Self::Gathering => "gathering",
            Self::Stopping => "stopping",
        }
    }
}

/// Counters since the start; they only grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub groups: u64,
    pub transactions: u64,
    pub rows: u64,
    pub retries: u64,
    pub aborts: u64,
    pub isolations: u64,
    pub barriers: u64,
    /// Rows that had to wait for an earlier group.
    pub rows_held: u64,
    /// Transactions that were run without knowing what they may conflict with.
    pub speculative: u64,
}

struct Queued {
    transaction: Arc<Transaction>,
    placement: Placement,
}

struct Flight {
    worker: Worker,
    group: Arc<Group>,
    run: Run,
    /// Its place in the commit order is taken: the next may be granted.
    ordered: bool,
    aborting: bool,
    /// It failed and waits to become the head to run again.
    retry: Option<Run>,
    lane: Lane,
    /// What its held rows wait for; `None`: nothing is held, or it has been released.
    held_for: Option<HeldFor>,
    /// Its rows may be those that an earlier one needs.
    speculative: bool,
    keys: KnownKeys,
}

pub struct Scheduler {
    config: Config,
    /// `queue[i]` has seq `queue_first + i`; `None` once it has been dispatched (relaxed order only).
    queue: VecDeque<Option<Queued>>,
    queue_first: Seq,
    queued_transactions: usize,
    queued_bytes: u64,
    /// Uncommitted barriers, ascending.
    barriers: VecDeque<(Seq, BarrierCause)>,
    idle: Vec<Worker>,
    flights: BTreeMap<GroupId, Flight>,
    next_group: u64,
    /// Greatest seq that was ever dispatched.
    dispatched: Seq,
    committed: Committed,
    /// In preserved order the mark of the last group dispatched, for the next group to carry.
    dispatch_marker: Marker,
    low_marker: Marker,
    ready: ReadySet,
    lanes: Lanes,
    /// first → last of groups of which only the commit is left.
    applied: BTreeMap<Seq, Seq>,
    outputs: VecDeque<Output>,
    stop_after: Option<Seq>,
    /// What waits to become a larger group has waited long enough.
    overdue: bool,
    ended: bool,
    finished: bool,
    failed: bool,
    idle_because: IdleCause,
    counters: Counters,
}

impl Scheduler {
    /// `start`: what the target has applied already; `islands`: committed ranges above it (an earlier relaxed run).
    pub fn new(config: Config, start: Mark, islands: &[(Seq, Seq)]) -> Self {
        assert!(config.workers > 0, "a scheduler without workers can not make progress");
        let mut committed = Committed::new(start.seq);
        for &(first, last) in islands {
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
        // After a start with islands that touch the mark the low water is beyond what has been enqueued.
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

    /// All rows of the group are applied, and with them all its locks taken; only the commit is left.
    pub fn applied(&mut self, group: GroupId) {
        let Some(flight) = self.flights.get(&group) else { return };
        if flight.retry.is_none() {
            self.applied.insert(flight.group.first(), flight.group.last());
            self.progressed();
            self.end_collisions();
        }
    }

    /// Everything up to here has committed, or has begun to.
    fn begun(&self) -> Seq {
        let mut begun = self.committed.low_water();
        loop {
            let next = begun + 1;
            match self.applied.get(&next).copied().or_else(|| self.committed.end_of(next)) {
                Some(last) => begun = last,
                None => return begun,
            }
        }
    }

    /// Something has committed or begun to: whom does that let go on?
    fn progressed(&mut self) {
        let (low_water, begun) = (self.committed.low_water(), self.begun());
        if self.config.order.has_gaps() {
            self.ready.watermarks(low_water, begun);
            return;
        }
        for (&group, flight) in &mut self.flights {
            let met = |held: &mut HeldFor| held.committed <= low_water && held.commit_begun <= begun;
            if flight.held_for.take_if(met).is_some()
                && !flight.run.granted
                && !flight.aborting
                && flight.retry.is_none()
            {
                self.outputs.push_back(Output::Release { worker: flight.worker, group });
            }
        }
    }

    /// The group's place in the commit order is taken: the next one can not become visible before it any more.
    pub fn ordered(&mut self, group: GroupId) {
        if let Some(flight) = self.flights.get_mut(&group) {
            flight.ordered = true;
        }
        self.grant_next();
    }

    /// The group is durable on the target, and its worker is free.
    pub fn committed(&mut self, group: GroupId) {
        let Some(flight) = self.flights.remove(&group) else {
            panic!("group {} committed, but it is not in flight", group.0);
        };
        self.counters.groups += if self.config.apart { flight.group.transactions.len() as u64 } else { 1 };
        self.counters.transactions += flight.group.transactions.len() as u64;
        self.counters.rows += flight.group.rows() as u64 + flight.group.spilled_rows();
        self.idle.push(flight.worker);
        self.applied.remove(&flight.group.first());
        self.lanes.landed(flight.lane);
        self.note_committed(flight.group.first(), flight.group.last());
        self.grant_next();
    }

    fn note_committed(&mut self, first: Seq, last: Seq) {
        self.committed.add(first, last);
        while self.barriers.front().is_some_and(|&(seq, _)| self.committed.contains(seq)) {
            self.barriers.pop_front();
        }
        if self.config.order.has_gaps() {
            self.ready.committed(first, last);
        }
        self.progressed();
        self.announce_low_water();
    }

    fn announce_low_water(&mut self) {
        let low_water = self.committed.low_water();
        if low_water > self.low_marker.mark().seq {
            let mark = self.low_marker.advance(low_water).clone();
            self.outputs.push_back(Output::LowWater(mark));
        }
    }

    /// The group was not committed; `committed_to` when an isolated run got that far (0: nothing).
    pub fn failed(&mut self, group: GroupId, failure: Failure, committed_to: Seq) {
        let is_head = self.is_head(group);
        let Some(flight) = self.flights.get_mut(&group) else {
            panic!("group {} failed, but it is not in flight", group.0);
        };
        flight.aborting = false;
        flight.held_for = None;
        self.applied.remove(&flight.group.first());
        let (attempt, first) = (flight.run.attempt, flight.group.first());
        let isolated = flight.run.isolate;
        let ran_as_head = flight.run.granted;
        if flight.ordered || self.failed {
            // Others may have built on what was visible already; or nothing runs again anyway.
            return self.fail(group, failure, first, committed_to);
        }
        let isolate = match failure.kind.directive() {
            Directive::Stop => return self.fail(group, failure, first, committed_to),
            Directive::RetryAsHead | Directive::Reconnect => isolated,
            Directive::Isolate if isolated => return self.fail(group, failure, first, committed_to),
            // Not as the head: something that the write sets do not show may have come in between. Once more.
            Directive::Isolate => ran_as_head,
        };
        if attempt > self.config.retries_max {
            let message = format!("{} (after {attempt} attempts)", failure.message);
            return self.fail(group, Failure { message, ..failure }, first, committed_to);
        }
        self.counters.retries += 1;
        self.counters.isolations += u64::from(isolate && !isolated);
        let run = Run { attempt: attempt + 1, granted: true, isolate, announce: false };
        if committed_to >= first {
            flight.group = Arc::new(flight.group.after(committed_to));
        }
        if is_head {
            flight.run = run;
            let (worker, group) = (flight.worker, Arc::clone(&flight.group));
            self.outputs.push_back(Output::Dispatch { worker, group, run });
        } else {
            flight.retry = Some(run);
        }
        if committed_to >= first {
            self.counters.transactions += committed_to - first + 1;
            self.note_committed(first, committed_to);
        }
    }

    fn fail(&mut self, group: GroupId, failure: Failure, first: Seq, committed_to: Seq) {
        if let Some(flight) = self.flights.remove(&group) {
            self.lanes.landed(flight.lane);
        }
        if committed_to >= first {
            self.counters.transactions += committed_to - first + 1;
            self.note_committed(first, committed_to);
        }
        if !std::mem::replace(&mut self.failed, true) {
            self.outputs.push_back(Output::Stop(failure));
        }
    }

    /// Nothing uncommitted is before it.
    fn is_head(&self, group: GroupId) -> bool {
        match self.config.order {
            CommitOrder::Preserve => self.flights.keys().next() == Some(&group),
            CommitOrder::PerLane | CommitOrder::Relaxed => {
                let first = self.flights.get(&group).map(|flight| flight.group.first());
                self.flights.values().all(|other| Some(other.group.first()) >= first)
            }
        }
    }

    /// Whether the transactions of a group commit one by one.
    pub fn commits_apart(&self) -> bool {
        self.config.apart
    }

    /// Whether [`Scheduler::lock_wait`] could end anything: with relaxed order every group may commit at once.
    pub fn aborts_for_locks(&self) -> bool {
        self.config.order != CommitOrder::Relaxed
    }

    /// `waiter` waits on the target for a lock that `blocker` holds. Said again, the blocker is told again: an interruption that met
    /// its session between two statements has ended nothing, and the next one may itself be waiting.
    pub fn lock_wait(&mut self, waiter: GroupId, blocker: GroupId) {
        let Some(waiting) = self.flights.get(&waiter).filter(|_| waiter != blocker) else { return };
        // One that may commit goes before one that may not, whatever its lane.
        let (goes_first, first) = (waiting.run.granted, waiting.group.first());
        let Some(flight) = self.flights.get(&blocker) else { return };
        if goes_first || flight.group.first() >= first {
            self.abort(blocker);
        }
    }

    /// Unless it may commit already, or is not running.
    fn abort(&mut self, group: GroupId) {
        let Some(flight) = self.flights.get_mut(&group) else { return };
        if flight.run.granted || flight.retry.is_some() {
            return;
        }
        self.counters.aborts += u64::from(!std::mem::replace(&mut flight.aborting, true));
        let (worker, attempt) = (flight.worker, flight.run.attempt);
        self.outputs.push_back(Output::Abort { worker, group, attempt });
    }

    /// Hands the grant on to the first group whose place is not taken, if all before it have theirs.
    fn grant_next(&mut self) {
        if self.failed {
            return;
        }
        let next = match self.config.order {
            CommitOrder::Preserve => self.flights.iter_mut().find(|(_, flight)| !flight.ordered),
            CommitOrder::PerLane | CommitOrder::Relaxed => {
                self.flights.iter_mut().min_by_key(|(_, flight)| flight.group.first())
            }
        };
        let Some((&id, flight)) = next else { return };
        if let Some(run) = flight.retry.take() {
            flight.run = run;
            let (worker, group) = (flight.worker, Arc::clone(&flight.group));
            self.outputs.push_back(Output::Dispatch { worker, group, run });
        } else if self.config.order == CommitOrder::Preserve {
            Self::grant(&mut self.outputs, id, flight);
        }
        if self.config.order == CommitOrder::PerLane {
            self.grant_lanes();
        }
    }

    fn grant(outputs: &mut VecDeque<Output>, id: GroupId, flight: &mut Flight) {
        if !flight.run.granted && !flight.aborting && flight.retry.is_none() {
            flight.run.granted = true;
            outputs.push_back(Output::Grant { worker: flight.worker, group: id });
        }
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

    fn idle(&mut self, cause: IdleCause) -> Option<Output> {
        self.idle_because = cause;
        None
    }

    /// The seq of the next transaction that is enqueued.
    fn queue_end(&self) -> Seq {
        self.queue_first + self.queue.len() as u64
    }

    fn queued_at(&self, seq: Seq) -> Option<&Queued> {
        let index = seq.checked_sub(self.queue_first)?;
        self.queue.get(usize::try_from(index).ok()?)?.as_ref()
    }

    fn drop_front(&mut self) {
        while matches!(self.queue.front(), Some(None)) {
            self.queue.pop_front();
            self.queue_first += 1;
        }
    }
}
