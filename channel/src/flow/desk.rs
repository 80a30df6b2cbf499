//! Who looks after what several threads have work for: whoever brings some and has nothing else to do, if nobody is at it; else its own thread.
//!
//! Waking a thread that sleeps takes longer than most of what there is to do when little comes. What is brought goes through queues, which
//! are emptied under the lock alone: their order is kept whoever empties them. A turn may bring something to the next desk; whoever is at one
//! waits for no other: it is tried, and rung at if somebody is there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError, TryLockError};
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

/// Whose thread takes a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The desk's own.
    Own,
    /// Of one who brings something: it has other things to see to soon.
    Bringer,
}

pub trait Turn {
    /// Takes in what is in the queues and acts on it. A bringer's thread never waits in it: what has to wait is left to the own one, with
    /// [`Then::Again`].
    fn turn(&mut self, by: By) -> Then;

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

    /// Before anything is brought.
    pub fn prepare(&self, prepare: impl FnOnce(&mut S)) {
        if let Some(state) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            prepare(state);
        }
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
            Ok(mut state) => state.as_mut().map_or(Then::Sleep, |state| state.turn(By::Bringer)),
            // Whoever is at it may have looked into the queue before; after a panic the own thread has to know.
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => Then::Again,
        };
        if then != Then::Sleep {
            self.ring();
        }
    }

    /// The desk's own thread: a turn when somebody rings, and each tick, until the end. None: a turn has panicked, in whatever thread; what it
    /// was about is dropped.
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
            // What may be left half done is dropped at once.
            match catch_unwind(AssertUnwindSafe(|| own.turn(By::Own))) {
                Err(_) => {
                    drop(state.take());
                    return None;
                }
                Ok(Then::End) => return state.take(),
                Ok(Then::Again) => {}
                Ok(Then::Sleep) => {
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
        fn turn(&mut self, _: By) -> Then {
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
        fn turn(&mut self, _: By) -> Then {
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

    #[test]
    fn so_does_one_that_panics_in_it() {
        let desk = Desk::new(Panics);
        assert!(desk.attend().is_none());
        desk.turn();
        assert!(desk.attend().is_none());
    }

    /// Says whose turns it had.
    struct Waits {
        bys: Sender<By>,
    }

    impl Turn for Waits {
        fn turn(&mut self, by: By) -> Then {
            self.bys.send(by).expect("the test listens");
            match by {
                By::Bringer => Then::Again,
                By::Own => Then::End,
            }
        }

        fn tick(&self) -> Duration {
            NEVER
        }
    }

    #[test]
    fn what_a_bringer_leaves_is_seen_to_by_the_own_thread() {
        let (bys, seen) = unbounded();
        let desk = Desk::new(Waits { bys });
        desk.bring(true);
        assert_eq!(desk.rung.try_recv(), Ok(()), "the own thread is woken");
        assert!(desk.attend().is_some());
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [By::Bringer, By::Own]);
    }
}
