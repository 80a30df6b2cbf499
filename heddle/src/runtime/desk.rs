//! Who looks after what several threads have work for: whoever brings some and has nothing else to do, if nobody is at it; else its own thread.
//!
//! Waking a thread that sleeps takes longer than most of what there is to do when little comes. What is brought goes through queues, which
//! are emptied under the lock alone: their order is kept whoever empties them.

use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

/// Transactions that whoever brings them sees to himself; more are worth waking the other thread for, and going on beside it.
pub const FEW: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing is left in the queues.
    Sleep,
    /// There is more.
    Again,
    /// For good: every later turn says so too.
    End,
}

pub trait Turn {
    /// Takes in what is in the queues and acts on it. Never waits.
    fn turn(&mut self) -> Then;

    /// How long its own thread sleeps at most.
    fn tick(&self) -> Duration;
}

pub struct Desk<S> {
    /// None once it has ended.
    state: Mutex<Option<S>>,
    ring: Sender<()>,
    rung: Receiver<()>,
}

impl<S: Turn> Desk<S> {
    pub fn new(state: S) -> Self {
        let (ring, rung) = bounded(1);
        Self { state: Mutex::new(Some(state)), ring, rung }
    }

    /// Something is in a queue: the desk's own thread is to look.
    pub fn ring(&self) {
        // Full: it will look, and has not yet.
        let _ = self.ring.try_send(());
    }

    /// Something is in a queue. Little: the caller sees to it, as it has nothing else to do.
    pub fn bring(&self, little: bool) {
        if little { self.turn() } else { self.ring() }
    }

    /// Something is in a queue, and the caller can see to it.
    fn turn(&self) {
        let then = match self.state.try_lock() {
            Ok(mut state) => state.as_mut().map_or(Then::Sleep, Turn::turn),
            // Whoever is at it may have looked into the queue before; after a panic the own thread has to know.
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => Then::Again,
        };
        if then != Then::Sleep {
            self.ring();
        }
    }

    /// The desk's own thread: a turn when somebody rings, and each tick, until the end. None: a turn has panicked; what it was about is
    /// dropped.
    pub fn attend(&self) -> Option<S> {
        loop {
            let mut state = match self.state.lock() {
                Ok(state) => state,
                Err(poisoned) => {
                    drop(poisoned.into_inner().take());
                    return None;
                }
            };
            let own = state.as_mut()?;
            match own.turn() {
                Then::End => return state.take(),
                Then::Again => {}
                Then::Sleep => {
                    let tick = own.tick();
                    drop(state);
                    match self.rung.recv_timeout(tick) {
                        // It has the other end itself.
                        Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crossbeam_channel::unbounded;

    use super::*;

    const SENDERS: u64 = 3;
    const EACH: u64 = 20_000;
    /// Longer than the test may take: what nobody rings for does not arrive.
    const NEVER: Duration = Duration::from_secs(3600);

    /// Counts what comes, and sees that it comes in order.
    struct Counter {
        queue: Receiver<(u64, u64)>,
        next: HashMap<u64, u64>,
        left: u64,
    }

    impl Turn for Counter {
        fn turn(&mut self) -> Then {
            for (sender, n) in self.queue.try_iter().take(7) {
                let next = self.next.entry(sender).or_default();
                assert_eq!(*next, n, "of sender {sender}");
                *next += 1;
                self.left -= 1;
            }
            match (self.left, self.queue.is_empty()) {
                (0, _) => Then::End,
                (_, true) => Then::Sleep,
                (_, false) => Then::Again,
            }
        }

        fn tick(&self) -> Duration {
            NEVER
        }
    }

    #[test]
    fn nothing_is_left_lying_and_the_order_is_kept() {
        let (send, queue) = unbounded();
        let desk = Desk::new(Counter { queue, next: HashMap::new(), left: SENDERS * EACH });
        std::thread::scope(|scope| {
            for sender in 0..SENDERS {
                let (send, desk) = (send.clone(), &desk);
                scope.spawn(move || {
                    for n in 0..EACH {
                        send.send((sender, n)).expect("the desk has the other end");
                        if (n + sender) % 3 == 0 { desk.ring() } else { desk.turn() }
                    }
                });
            }
            let counter = desk.attend().expect("no turn panics");
            assert_eq!((counter.left, counter.next.len() as u64), (0, SENDERS));
        });
        desk.turn();
    }

    struct Panics;

    impl Turn for Panics {
        fn turn(&mut self) -> Then {
            panic!("on purpose");
        }

        fn tick(&self) -> Duration {
            NEVER
        }
    }

    #[test]
    fn a_turn_that_panics_in_another_thread_ends_the_own_one() {
        let desk = Desk::new(Panics);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| desk.turn());
            assert!(other.join().is_err());
            assert!(desk.attend().is_none());
        });
    }
}
