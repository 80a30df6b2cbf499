//! Lanes: the order inside each, and how many groups of one run at once. Only where commits may overtake each other.
//!
//! A lane's transactions are dispatched in their order, so whoever waits for its lane's turn to commit waits for groups that
//! run, never for one that would still need a worker.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{CommitOrder, Scheduler};
use crate::Seq;
use crate::policy::Lane;

#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: HashMap<Lane, State, FixedState>,
}

#[derive(Debug, Default)]
struct State {
    /// Not dispatched yet.
    queued: VecDeque<Seq>,
    /// Groups that run.
    in_flight: usize,
}

impl Lanes {
    pub fn enqueue(&mut self, lane: Lane, seq: Seq) {
        self.lanes.entry(lane).or_default().queued.push_back(seq);
    }

    /// With relaxed order it need not be the first of its lane.
    pub fn launch(&mut self, lane: Lane, seq: Seq) {
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        if let Ok(at) = state.queued.binary_search(&seq) {
            state.queued.remove(at);
        }
    }

    pub fn took_off(&mut self, lane: Lane) {
        self.lanes.entry(lane).or_default().in_flight += 1;
    }

    /// A group of it is committed, or was given up.
    pub fn landed(&mut self, lane: Lane) {
        let Some(state) = self.lanes.get_mut(&lane) else { return };
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.in_flight == 0 && state.queued.is_empty() {
            self.lanes.remove(&lane);
        }
    }

    fn has_room(&self, lane: Lane, most: usize) -> bool {
        self.lanes.get(&lane).is_none_or(|state| state.in_flight < most)
    }

    /// The next of each lane that has room.
    fn fronts(&self, most: usize) -> impl Iterator<Item = Seq> + '_ {
        self.lanes
            .values()
            .filter(move |state| state.in_flight < most)
            .filter_map(|state| state.queued.front().copied())
    }
}

impl Scheduler {
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
