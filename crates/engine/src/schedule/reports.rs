//! What workers report of their groups: applied, ordered, committed, failed.
//!
//! Sends nothing to a worker itself: what follows goes into the scheduler's outputs.

use std::sync::Arc;

use super::config::{Commits, Signals};
use super::flight::DeferralCause;
use super::output::{Output, Run};
use super::scheduler::Scheduler;
use crate::Seq;
use crate::failure::{Directive, Failure, FailureKind};
use crate::group::{Group, GroupId};
use crate::policy::CommitOrder;
use crate::transaction::Transaction;

impl Scheduler {
    /// All rows of the group are applied, and with them all its locks taken; only the commit is left.
    pub fn applied(&mut self, group: GroupId) {
        let Some(flight) = self.flights.get(&group) else { return };
        if flight.tries.retry.is_none() {
            self.progress.applied.insert(flight.group.first(), flight.group.last());
            self.progressed();
            self.end_collisions();
        }
    }

    /// Everything up to here has committed, or has begun to.
    pub(super) fn begun(&self) -> Seq {
        let mut begun = self.progress.committed.low_water();
        loop {
            let next = begun + 1;
            match self.progress.applied.get(&next).copied().or_else(|| self.progress.committed.end_of(next)) {
                Some(last) => begun = last,
                None => return begun,
            }
        }
    }

    /// Something has committed or begun to: whom does that let go on?
    pub(super) fn progressed(&mut self) {
        let (low_water, begun) = (self.progress.committed.low_water(), self.begun());
        if self.config.order.has_gaps() {
            self.ready.watermarks(low_water, begun);
            return;
        }
        for (&group, flight) in &mut self.flights {
            let met =
                |waits_for: &mut DeferralCause| waits_for.committed <= low_water && waits_for.commit_begun <= begun;
            if flight.deferred_for.take_if(met).is_some()
                && !flight.run.granted
                && !flight.aborting
                && flight.tries.retry.is_none()
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
        #[expect(clippy::panic, reason = "a broken invariant of our own")]
        let Some(flight) = self.flights.remove(&group) else {
            panic!("group {} committed, but it is not in flight", group.0);
        };
        let transactions = flight.group.transactions.len();
        let commits = match self.config.commits {
            Commits::Each => transactions,
            Commits::Together if flight.run.isolate => transactions.div_ceil(flight.group.piece()),
            Commits::Together => 1,
        };
        self.count(&flight.group.transactions, commits);
        if flight.worker < self.config.workers {
            self.idle.push(flight.worker);
        }
        self.progress.applied.remove(&flight.group.first());
        self.lanes.landed(flight.lane);
        self.record_committed(flight.group.first(), flight.group.last());
        self.grant_next();
    }

    /// Counts what has been committed, in so many target transactions.
    fn count(&mut self, committed: &[Arc<Transaction>], commits: usize) {
        self.counters.groups += commits as u64;
        self.counters.transactions += committed.len() as u64;
        self.counters.rows += committed.iter().map(|transaction| transaction.rows()).sum::<u64>();
    }

    /// The same of a group that failed behind this transaction: in pieces as far as whole ones were committed, then one by one.
    fn count_to(&mut self, group: &Group, run: Run, last: Seq) {
        let end = group.transactions.iter().take_while(|transaction| transaction.seq <= last).count();
        let committed = group.transactions.get(..end).unwrap_or_default();
        let commits = match self.config.commits {
            Commits::Together if run.isolate => end / group.piece() + end % group.piece(),
            Commits::Together | Commits::Each => end,
        };
        self.count(committed, commits);
    }

    pub(super) fn record_committed(&mut self, first: Seq, last: Seq) {
        self.progress.committed.add(first, last);
        while self.queue.barriers.front().is_some_and(|&(seq, _)| self.progress.committed.contains(seq)) {
            self.queue.barriers.pop_front();
        }
        if self.config.order.has_gaps() {
            self.ready.committed(first, last);
        }
        self.progressed();
        self.announce_low_water();
    }

    pub(super) fn announce_low_water(&mut self) {
        let low_water = self.progress.committed.low_water();
        if low_water > self.progress.low_marker.mark().seq {
            let mark = self.progress.low_marker.advance(low_water).clone();
            self.outputs.push_back(Output::LowWater(mark));
        }
    }

    /// The group was not committed; `committed_to` when an isolated run got that far (0: nothing).
    pub fn failed(&mut self, group: GroupId, failure: Failure, committed_to: Seq) {
        let is_head = self.is_head(group);
        #[expect(clippy::panic, reason = "a broken invariant of our own")]
        let Some(flight) = self.flights.get_mut(&group) else {
            panic!("group {} failed, but it is not in flight", group.0);
        };
        flight.aborting = false;
        flight.deferred_for = None;
        self.progress.applied.remove(&flight.group.first());
        let (attempt, first) = (flight.run.attempt, flight.group.first());
        let (ran, whole) = (flight.run, Arc::clone(&flight.group));
        let isolated = ran.isolate;
        let ran_as_head = ran.granted;
        if flight.ordered || self.phase.failed {
            // Others may have built on what was visible already; or nothing runs again anyway.
            return self.fail(group, failure, first, committed_to);
        }
        // What else is tried again ends by its limit, and a stop leaves no gaps then.
        if self.phase.stop_after.is_some() && failure.kind.directive() == Directive::Wait {
            return self.fail(group, asked_to_end(failure), first, committed_to);
        }
        let directive = failure.kind.directive();
        if self.config.has_other_nodes && matches!(directive, Directive::Wait | Directive::Reconnect) {
            return self.fail(group, failure, first, committed_to);
        }
        let isolate = match directive {
            Directive::Stop => return self.fail(group, failure, first, committed_to),
            Directive::RetryAsHead | Directive::Reconnect => isolated,
            Directive::Wait => {
                flight.tries.found_closed += 1;
                isolated
            }
            Directive::Isolate if isolated => return self.fail(group, failure, first, committed_to),
            // Not as the head: something that the write sets do not show may have come in between. Once more.
            Directive::Isolate => ran_as_head,
        };
        let counted = attempt - flight.tries.found_closed.min(attempt);
        if counted > self.config.retries_max {
            let message = format!("{} (after {counted} attempts)", failure.message);
            return self.fail(group, Failure { message, ..failure }, first, committed_to);
        }
        // Who only looks for the transaction that fails expects no other outcome.
        self.counters.retries += u64::from(directive != Directive::Isolate);
        self.counters.isolations += u64::from(isolate && !isolated);
        let run = Run { attempt: attempt + 1, granted: true, isolate, signals: Signals::Commit };
        if committed_to >= first {
            flight.group = Arc::new(flight.group.after(committed_to));
        }
        if is_head {
            flight.run = run;
            let (worker, group) = (flight.worker, Arc::clone(&flight.group));
            self.outputs.push_back(Output::Dispatch { worker, group, run });
        } else {
            flight.tries.retry = Some(run);
        }
        if committed_to >= first {
            self.count_to(&whole, ran, committed_to);
            self.record_committed(first, committed_to);
        }
    }

    pub(super) fn fail(&mut self, group: GroupId, failure: Failure, first: Seq, committed_to: Seq) {
        let flight = self.flights.remove(&group);
        if let Some(flight) = &flight {
            self.lanes.landed(flight.lane);
        }
        if committed_to >= first {
            if let Some(flight) = flight {
                self.count_to(&flight.group, flight.run, committed_to);
            }
            self.record_committed(first, committed_to);
        }
        if !std::mem::replace(&mut self.phase.failed, true) {
            self.outputs.push_back(Output::Stop(failure));
        }
    }

    /// Nothing uncommitted is before it.
    pub(super) fn is_head(&self, group: GroupId) -> bool {
        match self.config.order {
            CommitOrder::Preserve => self.flights.keys().next() == Some(&group),
            CommitOrder::PerLane | CommitOrder::Relaxed => {
                let first = self.flights.get(&group).map(|flight| flight.group.first());
                self.flights.values().all(|other| Some(other.group.first()) >= first)
            }
        }
    }
}

/// The process is asked to end while the target is closed, which may last.
fn asked_to_end(failure: Failure) -> Failure {
    let message = format!("asked to end while the target did not take the next changes: {}", failure.message);
    Failure { kind: FailureKind::Stopped, message, ..failure }.remedy("nothing is lost: run the same command again")
}
