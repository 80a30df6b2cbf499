//! Who may commit, and who gives way.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::flight::Flight;
use super::output::Output;
use super::scheduler::Scheduler;
use crate::Seq;
use crate::group::GroupId;
use crate::policy::CommitOrder;
use crate::policy::Lane;

impl Scheduler {
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
    pub(super) fn abort(&mut self, group: GroupId) {
        let Some(flight) = self.flights.get_mut(&group) else { return };
        if flight.run.granted || flight.tries.retry.is_some() {
            return;
        }
        self.counters.aborts += u64::from(!std::mem::replace(&mut flight.aborting, true));
        let (worker, attempt) = (flight.worker, flight.run.attempt);
        self.outputs.push_back(Output::Abort { worker, group, attempt });
    }

    /// Hands the grant on to the first group whose place is not taken, if all before it have theirs.
    pub(super) fn grant_next(&mut self) {
        if self.phase.failed {
            return;
        }
        let next = match self.config.order {
            CommitOrder::Preserve => self.flights.iter_mut().find(|(_, flight)| !flight.ordered),
            CommitOrder::PerLane | CommitOrder::Relaxed => {
                self.flights.iter_mut().min_by_key(|(_, flight)| flight.group.first())
            }
        };
        let Some((&id, flight)) = next else { return };
        if let Some(run) = flight.tries.retry.take() {
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

    pub(super) fn grant(outputs: &mut VecDeque<Output>, id: GroupId, flight: &mut Flight) {
        if !flight.run.granted && !flight.aborting && flight.tries.retry.is_none() {
            flight.run.granted = true;
            outputs.push_back(Output::Grant { worker: flight.worker, group: id });
        }
    }

    /// In each lane the first group whose place is not taken may commit.
    pub(super) fn grant_lanes(&mut self) {
        let mut first: HashMap<Lane, Seq, FixedState> = HashMap::default();
        for flight in self.flights.values().filter(|flight| !flight.ordered) {
            let at = flight.group.first();
            first.entry(flight.lane).and_modify(|known| *known = at.min(*known)).or_insert(at);
        }
        for (&id, flight) in &mut self.flights {
            if !flight.ordered && first.get(&flight.lane) == Some(&flight.group.first()) {
                Self::grant(&mut self.outputs, id, flight);
            }
        }
    }
}
