//! A worker's orders, in the order of their arrival; those that came too early for what is under way wait here.

use std::collections::VecDeque;

use crossbeam_channel::{Receiver, TryRecvError};
use engine::group::GroupId;

use crate::flow::messages::Order;

#[derive(Debug)]
pub struct Orders {
    queue: Receiver<Order>,
    /// Taken from the queue before the worker could do anything about them. No more than the queue holds.
    early: VecDeque<Order>,
}

/// What a worker that waits for its grant is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantAnswer {
    Yes,
    /// Not yet, but the deferred rows may be applied.
    DeferredRows,
    Aborted,
}

impl Orders {
    pub fn new(queue: Receiver<Order>) -> Self {
        Self { queue, early: VecDeque::new() }
    }

    /// The next order, without waiting.
    pub fn next(&mut self) -> Result<Order, TryRecvError> {
        self.early.pop_front().map_or_else(|| self.queue.try_recv(), Ok)
    }

    /// The next order that nobody has looked at, without waiting.
    pub fn next_new(&mut self) -> Result<Order, TryRecvError> {
        self.queue.try_recv()
    }

    /// Whether the attempt has been told to roll back.
    pub fn is_aborted(&mut self, group: GroupId, attempt: u32) -> bool {
        self.early.extend(self.queue.try_iter());
        let is_abort = |order: &Order| matches!(order, Order::Abort { group: id, attempt: tried } if *id == group && *tried == attempt);
        self.early.iter().any(is_abort)
    }

    /// Waits for what the attempt may do next. `None`: the coordinator is gone.
    pub fn wait_for_grant(&mut self, group: GroupId, attempt: u32) -> Option<GrantAnswer> {
        loop {
            match self.early.pop_front().map_or_else(|| self.queue.recv(), Ok) {
                Ok(Order::Grant(id)) if id == group => return Some(GrantAnswer::Yes),
                Ok(Order::Release(id)) if id == group => return Some(GrantAnswer::DeferredRows),
                Ok(Order::Abort { group: id, attempt: tried }) if id == group && tried == attempt => {
                    return Some(GrantAnswer::Aborted);
                }
                // Left over from an attempt that has ended.
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}
