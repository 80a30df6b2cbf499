//! What the next group is: how far it goes, and what of it has to wait.
//!
//! Knows no worker's state; what is in flight counts only as committed or not.

use std::sync::Arc;

use binlog::gtids::Gtid;

use super::config::{Commits, Origins, Signals};
use super::flight::{DeferralCause, Flight, QueuedTransaction, Tries};
use super::keys::{Keys, KnownKeys};
use super::limits::{GroupSize, Limits, PACKET_MAX, fits_packet};
use super::output::{Output, Run};
use super::scheduler::Scheduler;
use crate::Seq;
use crate::group::{DeferredPart, Group, GroupId};
use crate::policy::CommitOrder;
use crate::policy::{Lane, Placement, Watermark};
use crate::progress::Mark;
use crate::row_session::RowSession;
use crate::transaction::Transaction;

/// A group under way is finished before a channel stops.
const DEFINITIONS_MAX: Seq = 32;
/// Transactions between two statements that go with them.
const BETWEEN_STATEMENTS_MAX: Seq = 50;

impl Scheduler {
    /// How far a group that starts at `first` goes; `None`: it waits in the queue to become larger.
    pub(super) fn group_end(&self, first: Seq) -> Option<Seq> {
        if let Some(QueuedTransaction { transaction, placement }) = self.queued_at(first)
            && placement.barrier.is_some()
        {
            let is_definition = transaction.is_definition();
            return Some(if is_definition { self.definitions_end(first) } else { self.statements_end(first) });
        }
        let limits = self.limits(first);
        let mut taken = GroupSize::default();
        let mut last = first;
        let mut seq = first;
        let mut session = None;
        while let Some(queued) = self.queued_at(seq) {
            let fits = taken.has_room(&queued.transaction, &limits)
                && queued.placement.barrier.is_none()
                && (taken.transactions == 0 || !self.commits_in_turn() || fits_packet(&queued.transaction))
                && self.phase.stop_after.is_none_or(|stop| seq <= stop)
                && (taken.transactions == 0 || self.may_join(first, &queued.placement))
                && self.is_of_origin(first, &queued.transaction)
                && is_of_session(&mut session, queued.transaction.session.as_ref());
            if !fits {
                break;
            }
            taken.add(&queued.transaction);
            last = seq;
            seq += 1;
        }
        (!self.gathers(last, &taken)).then_some(last)
    }

    /// Whether the GTID of the last of a group that begins at `first` may stand for this one.
    fn is_of_origin(&self, first: Seq, transaction: &Transaction) -> bool {
        let origin = |transaction: &Transaction| match transaction.gtid {
            Some(Gtid::MariaDb { domain, server, .. }) => Some((domain, server)),
            _ => None,
        };
        self.config.origins == Origins::Any
            || self.queued_at(first).is_some_and(|queued| origin(&queued.transaction) == origin(transaction))
    }

    /// How far a group goes that begins with a definition: definitions that follow it go with it, one after the other, each with its own commit.
    fn definitions_end(&self, first: Seq) -> Seq {
        let most = match (self.config.order, self.config.commits) {
            (CommitOrder::Preserve, Commits::Together) => DEFINITIONS_MAX.min(self.limits(first).statements_max as Seq),
            _ => 1,
        };
        let follows = |seq: &Seq| {
            self.phase.stop_after.is_none_or(|stop| *seq <= stop)
                && self.queued_at(*seq).is_some_and(|queued| queued.transaction.is_definition())
        };
        (first + 1..first + most).take_while(follows).last().unwrap_or(first)
    }

    /// How far a group goes that begins with a barrier. Statements that may share a transaction follow it in their order. What is
    /// between them comes along if it is little; more of it goes faster in groups of its own.
    fn statements_end(&self, first: Seq) -> Seq {
        let limits = self.limits(first);
        let mut taken = GroupSize::default();
        let mut last = first;
        let mut seq = first;
        while let Some(QueuedTransaction { transaction, placement }) = self.queued_at(seq) {
            let same_lane = || self.queued_at(first).is_some_and(|queued| queued.placement.lane == placement.lane);
            let fits = taken.has_room(transaction, &limits)
                && taken.transactions < limits.statements_max
                && transaction.branch.is_none()
                && if placement.barrier.is_none() {
                    seq - last <= BETWEEN_STATEMENTS_MAX
                } else {
                    transaction.takes_others()
                }
                && self.phase.stop_after.is_none_or(|stop| seq <= stop)
                && (self.config.order == CommitOrder::Preserve || same_lane());
            if !fits || self.config.commits == Commits::Each {
                break;
            }
            taken.add(transaction);
            if placement.barrier.is_some() {
                last = seq;
            }
            seq += 1;
        }
        last
    }

    /// Whether a group that ends at `last` is better formed later.
    ///
    /// In preserved order commits come one after the other. If many small groups wait for their grants, the next transaction
    /// waits for all of these commits. If the few stay in the queue instead, all of them go with the next commit. Their rows are
    /// then not applied ahead, which matters once applying them takes as long as a commit.
    ///
    /// Where each transaction commits by itself in its turn, what fits into a packet waits for its turn. One connection commits many of
    /// them without a round trip between two commits, and no other connection could commit meanwhile.
    fn gathers(&self, last: Seq, taken: &GroupSize) -> bool {
        if self.config.order != CommitOrder::Preserve || self.phase.overdue {
            return false;
        }
        let limits = &self.config.limits;
        if self.commits_in_turn() {
            // Behind a large one, which takes long, it goes ahead as well. Otherwise the next large one could not.
            let is_packet =
                |flight: &Flight| flight.group.transactions.iter().all(|transaction| fits_packet(transaction));
            let mut line = self.flights.values().filter(|flight| !flight.ordered).peekable();
            return line.peek().is_some() && self.shares_packets(last) && line.all(is_packet);
        }
        let may_grow = !self.phase.ended && last + 1 == self.queue_end() && taken.may_grow(limits);
        let in_line = if may_grow { self.in_line() } else { 0 };
        in_line > 0 && !taken.is_worth_ahead(limits, in_line)
    }

    /// Groups that have not taken their places yet.
    fn in_line(&self) -> usize {
        self.flights.values().filter(|flight| !flight.ordered).count()
    }

    /// Each transaction commits by itself, in the source's order.
    fn commits_in_turn(&self) -> bool {
        self.config.commits == Commits::Each && self.config.order == CommitOrder::Preserve
    }

    /// Where each commits in its turn: whether this one may go with others.
    fn shares_packets(&self, seq: Seq) -> bool {
        let fits = |queued: &QueuedTransaction| queued.placement.barrier.is_none() && fits_packet(&queued.transaction);
        self.config.limits.packet_max > 1 && self.queued_at(seq).is_some_and(fits)
    }

    /// Of the next group, which starts at `first`.
    fn limits(&self, first: Seq) -> Limits {
        let limits = self.config.limits;
        if self.config.commits == Commits::Together {
            return limits;
        }
        let transactions_max = if !self.commits_in_turn() {
            // What waits is spread over the workers.
            (self.queue.transactions / (2 * self.config.workers)).clamp(1, PACKET_MAX)
        } else if self.in_line() == 0 && self.shares_packets(first) {
            limits.packet_max
        } else {
            1
        };
        Limits { transactions_max, ..limits }
    }

    /// With relaxed order a transaction joins only if what it depends on is committed or in the group, which is of one lane.
    fn may_join(&self, first: Seq, placement: &Placement) -> bool {
        if self.config.order == CommitOrder::Preserve {
            return true;
        }
        let low_water = self.progress.committed.low_water();
        let watermark_met = match placement.after {
            Watermark::None => true,
            Watermark::Committed(seq) => seq <= low_water || low_water + 1 >= first,
            Watermark::CommitBegun(seq) => {
                let begun = self.begun();
                seq <= begun || begun + 1 >= first
            }
        };
        let same_lane = self.queued_at(first).is_some_and(|queued| queued.placement.lane == placement.lane);
        same_lane
            && watermark_met
            && placement.after_transactions.iter().all(|&seq| seq >= first || self.progress.committed.contains(seq))
    }

    pub(super) fn launch(&mut self, first: Seq, last: Seq) -> Output {
        let lane = self.queued_at(first).map_or(Lane::default(), |queued| queued.placement.lane);
        let granted = match self.config.order {
            CommitOrder::Relaxed => true,
            CommitOrder::PerLane => self.flights.values().all(|flight| flight.lane != lane || flight.ordered),
            CommitOrder::Preserve => self.flights.values().all(|flight| flight.ordered),
        };
        let begun = self.begun();
        let mut transactions = Vec::new();
        let mut deferred = Vec::new();
        let mut deferred_for = DeferralCause::default();
        let mut speculative = false;
        let mut has_branches = false;
        for seq in first..=last {
            let index = (seq - self.queue.first) as usize;
            #[expect(clippy::panic, reason = "a broken invariant of our own")]
            let Some(QueuedTransaction { transaction, placement }) =
                self.queue.list.get_mut(index).and_then(Option::take)
            else {
                panic!("transaction {seq} is not in the queue");
            };
            self.queue.transactions -= 1;
            self.queue.bytes -= transaction.bytes;
            let in_sequence = self.config.order == CommitOrder::Preserve;
            let rows =
                if granted || !in_sequence { DeferredPart::Nothing } else { self.deferred(first, &placement, begun) };
            deferred_for.add(first, &placement);
            speculative |= placement.speculative;
            has_branches |= transaction.branch.is_some();
            self.counters.speculative += u64::from(placement.speculative);
            if let DeferredPart::Rows(rows) = &rows {
                self.counters.rows_deferred += rows.iter().filter(|&&waits| waits).count() as u64;
            }
            deferred.push(rows);
            self.ready.remove(seq);
            self.lanes.launch(lane, seq);
            transactions.push(transaction);
        }
        let keys = KnownKeys::new();
        if speculative && !granted && self.would_be_in_the_way(keys.get_or_init(|| Keys::of(&transactions))) {
            deferred.fill(DeferredPart::Everything);
            deferred_for.committed = first - 1;
        }
        self.drop_front();
        self.phase.overdue = false;
        self.progress.dispatched = self.progress.dispatched.max(last);
        let (before, mark) = match self.config.order {
            CommitOrder::Preserve => {
                let recorded = self.progress.dispatch_marker.mark().seq;
                // Past what an earlier run has committed between the group before and this one.
                let before = Mark { seq: recorded, ..self.progress.dispatch_marker.advance(first - 1).clone() };
                (before, self.progress.dispatch_marker.advance(last).clone())
            }
            CommitOrder::PerLane | CommitOrder::Relaxed => {
                (Mark { seq: first - 1, ..Mark::default() }, Mark { seq: last, ..Mark::default() })
            }
        };
        let id = GroupId(self.progress.next_group);
        self.progress.next_group += 1;
        assert!(granted || first == last || !self.commits_in_turn(), "what commits in its turn is begun in its turn");
        let group = Arc::new(Group { id, transactions, deferred, before, mark, has_branches });
        #[expect(clippy::panic, reason = "a broken invariant of our own")]
        let Some(worker) = self.idle.pop() else { panic!("no idle worker to launch group {} on", id.0) };
        let signals = match self.config.signals {
            _ if group.is_barrier() => Signals::Commit,
            Signals::Commit if speculative && !granted => Signals::AppliedFirst,
            signals => signals,
        };
        let run = Run { attempt: 1, granted, isolate: false, signals };
        let defers = group.deferred.iter().any(|deferred| *deferred != DeferredPart::Nothing);
        self.lanes.took_off(lane);
        let flight = Flight {
            worker,
            group: Arc::clone(&group),
            run,
            ordered: false,
            aborting: false,
            tries: Tries::default(),
            lane,
            deferred_for: defers.then_some(deferred_for),
            speculative,
            keys,
        };
        self.flights.insert(id, flight);
        Output::Dispatch { worker, group, run }
    }

    /// What of a transaction has to wait, given what is committed now. Predecessors inside the group count as met.
    fn deferred(&self, first: Seq, placement: &Placement, begun: Seq) -> DeferredPart {
        let low_water = self.progress.committed.low_water();
        // Not `contains`: a row may follow earlier ones than the last, which alone is known.
        let is_open = |seq: Seq| seq < first && seq > low_water;
        let watermark_open = match placement.after {
            Watermark::None => false,
            Watermark::Committed(seq) => seq.min(first - 1) > low_water,
            Watermark::CommitBegun(seq) => seq.min(first - 1) > begun,
        };
        if !watermark_open && !placement.after_transactions.iter().any(|&seq| is_open(seq)) {
            return DeferredPart::Nothing;
        }
        if placement.row_after.is_empty() {
            return DeferredPart::Everything;
        }
        // A row whose last predecessor is in the group may have others before the group: any of the transaction's.
        let rows: Vec<bool> = placement.row_after.iter().map(|&seq| is_open(seq) || seq >= first).collect();
        if rows.contains(&true) { DeferredPart::Rows(rows) } else { DeferredPart::Nothing }
    }
}

/// Whether rows that need one session, or none, can go with others that need `session`; remembers the one that is needed.
fn is_of_session<'a>(session: &mut Option<&'a Arc<RowSession>>, needed: Option<&'a Arc<RowSession>>) -> bool {
    match (&session, needed) {
        (Some(session), Some(needed)) => session == &needed,
        (None, Some(_)) => {
            *session = needed;
            true
        }
        (_, None) => true,
    }
}
