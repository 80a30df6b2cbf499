//! Lanes: the order inside each, and how many groups of one run at once. Only where commits may overtake each other.
//!
//! A lane's transactions are dispatched in their order. So a group that waits for its lane's turn to commit waits for groups that
//! run, never for one that still needs a worker.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

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

    pub fn has_room(&self, lane: Lane, most: usize) -> bool {
        self.lanes.get(&lane).is_none_or(|state| state.in_flight < most)
    }

    /// The next of each lane that has room.
    pub fn fronts(&self, most: usize) -> impl Iterator<Item = Seq> + '_ {
        self.lanes
            .values()
            .filter(move |state| state.in_flight < most)
            .filter_map(|state| state.queued.front().copied())
    }
}
