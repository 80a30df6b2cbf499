//! Speculative groups that hold a lock which an earlier group needs.
//!
//! The write sets show them at once. To ask the target who waits for whose lock takes long.
//!
//! A group that has applied its rows holds their locks until it commits, and it may not commit before an earlier one that is still
//! applying. If the earlier one needs one of the same keys, it waits for the later one and does not finish. (The earlier one
//! may have had the row first, with its commit not reported yet. Then the later one runs again in vain, which is rare.) The
//! same holds for a stuck group: it waits for a lock of one that has applied, and holds locks that it has taken before.
//!
//! ```text
//! T1 ─?7               ? waits for the row's lock
//! T2 ─9·               · done, waits for its turn
//! T3 ─7─?9             stuck behind T2, and T1 behind it
//! ```
//!
//! Locks that the write sets do not show are for [`Scheduler::lock_wait`].

use super::flight::Flight;
use super::keys::Keys;
use super::scheduler::Scheduler;
use crate::group::GroupId;

impl Scheduler {
    /// A group has applied its rows: aborts those that hold what an earlier one needs.
    pub(super) fn end_collisions(&mut self) {
        for id in self.stuck() {
            let gives_way = |flight: &Flight| flight.may_give_way() && self.is_needed(flight.keys(), id);
            if self.flights.get(&id).is_some_and(gives_way) {
                self.abort(id);
            }
        }
    }

    /// Whether the next group would hold up an earlier one: it could only wait.
    pub(super) fn would_be_in_the_way(&self, keys: &Keys) -> bool {
        self.meets_any(keys, &self.stuck()) && self.is_needed(keys, GroupId(self.progress.next_group))
    }

    /// Those whose locks will not be free before an earlier one has committed: they have applied, or meet one that is stuck.
    fn stuck(&self) -> Vec<GroupId> {
        let mut stuck = Vec::new();
        for (&id, flight) in self.flights.iter().filter(|(_, flight)| flight.speculative) {
            if !self.is_applying(id) || self.meets_any(flight.keys(), &stuck) {
                stuck.push(id);
            }
        }
        stuck
    }

    fn meets_any(&self, keys: &Keys, others: &[GroupId]) -> bool {
        others.iter().any(|other| self.flights.get(other).is_some_and(|other| other.keys().meets(keys)))
    }

    /// One before it is still applying, and uses one of these keys.
    fn is_needed(&self, keys: &Keys, id: GroupId) -> bool {
        self.flights.range(..id).any(|(&earlier, flight)| self.is_applying(earlier) && flight.keys().meets(keys))
    }

    /// In flight, and not all of its locks are known to be taken.
    fn is_applying(&self, group: GroupId) -> bool {
        self.flights
            .get(&group)
            .is_some_and(|flight| !flight.ordered && !self.progress.applied.contains_key(&flight.group.first()))
    }
}
