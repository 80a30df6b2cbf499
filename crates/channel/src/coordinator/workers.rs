//! The workers as the coordinator knows them: how to give each an order, and what each has under way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::group::{Group, GroupId};
use engine::schedule::{Run, Worker};

use crate::flow::handoff::Amount;
use crate::flow::messages::{Order, WorkerHandle};

struct Slot {
    handle: WorkerHandle,
    /// Its group, and since when it has it.
    running: Option<(Arc<Group>, Instant)>,
    /// What it was told last to roll back: group and attempt.
    aborted: Option<(GroupId, u32)>,
}

#[derive(Default)]
pub struct Workers(Vec<Slot>);

impl Workers {
    /// One more, with the next number.
    pub fn add(&mut self, handle: WorkerHandle) {
        self.0.push(Slot { handle, running: None, aborted: None });
    }

    #[expect(
        clippy::panic,
        reason = "the scheduler was told how many workers there are: another number is a bug in it"
    )]
    fn slot(&mut self, worker: Worker) -> &mut Slot {
        let Some(slot) = self.0.get_mut(worker) else { panic!("there is no worker {worker}") };
        slot
    }

    /// Gives it a group to run. Returns the group that it had, if it has not finished that one.
    pub fn dispatch(
        &mut self,
        worker: Worker,
        group: Arc<Group>,
        run: Run,
        now: Instant,
        amount: Amount,
    ) -> Option<Arc<Group>> {
        let slot = self.slot(worker);
        let before = slot.running.replace((Arc::clone(&group), now));
        slot.handle.order(worker, Order::Run { group, run }, amount);
        before.map(|(group, _)| group)
    }

    pub fn release(&mut self, worker: Worker, group: GroupId) {
        self.slot(worker).handle.order(worker, Order::Release(group), Amount::Much);
    }

    pub fn grant(&mut self, worker: Worker, group: GroupId) {
        self.slot(worker).handle.order(worker, Order::Grant(group), Amount::Much);
    }

    /// Said again, it is not sent again: the worker still has the order, or has followed it.
    pub fn abort(&mut self, worker: Worker, group: GroupId, attempt: u32) {
        let slot = self.slot(worker);
        if slot.aborted.replace((group, attempt)) != Some((group, attempt)) {
            slot.handle.order(worker, Order::Abort { group, attempt }, Amount::Much);
        }
    }

    /// The worker that has the group is done with it: who, the group, and how long it took.
    pub fn finish(&mut self, id: GroupId) -> Option<(Worker, Arc<Group>, Duration)> {
        let has_it = |slot: &Slot| slot.running.as_ref().is_some_and(|(group, _)| group.id == id);
        let worker = self.0.iter().position(has_it)?;
        let (group, since) = self.0.get_mut(worker)?.running.take()?;
        Some((worker, group, since.elapsed()))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn group_of(&self, worker: Worker) -> Option<GroupId> {
        self.0.get(worker)?.running.as_ref().map(|(group, _)| group.id)
    }

    /// The group, if a worker has it.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.running().map(|(group, _)| &**group).find(|group| group.id == id)
    }

    fn running(&self) -> impl Iterator<Item = &(Arc<Group>, Instant)> {
        self.0.iter().filter_map(|slot| slot.running.as_ref())
    }

    /// The group that has been with a worker for the longest time, and for how long.
    pub fn oldest(&self) -> Option<(&Group, Duration)> {
        self.running().min_by_key(|(_, since)| *since).map(|(group, since)| (&**group, since.elapsed()))
    }

    /// The first group in the log's order, and how long a worker has had it.
    pub fn first(&self) -> Option<(&Group, Duration)> {
        self.running().min_by_key(|(group, _)| group.first()).map(|(group, since)| (&**group, since.elapsed()))
    }

    /// There are no more orders: each worker ends when it has carried out those that it has.
    pub fn end(&mut self) {
        for Slot { handle: WorkerHandle { orders, worker }, .. } in self.0.drain(..) {
            // A worker that is woken and finds its queue disconnected ends.
            drop(orders);
            worker.wake();
        }
    }
}

impl WorkerHandle {
    fn order(&self, worker: Worker, order: Order, amount: Amount) {
        if self.orders.send(order).is_err() {
            // A worker ends only when its orders do: it has panicked, and its thread's end is reported.
            tracing::error!("worker {worker} is gone");
        }
        self.worker.hand_over(amount);
    }
}
