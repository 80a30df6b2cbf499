//! Hands work from one thread to the next without waking a thread where that can be avoided.
//!
//! To wake a sleeping thread takes longer than the work itself when there is little of it. So each [`Stage`] (receiver, feeder,
//! coordinator, worker) sits behind a [`Handoff`]. A thread puts its work into the stage's queue. Then it wakes the stage's own thread, or,
//! for little work, runs the stage itself if no other thread is in it.
//!
//! The queues are emptied only under the handoff's lock, so their order is kept whichever thread empties them. A stage may hand work to the
//! next stage while it runs. It never blocks on another stage's lock: if that lock is taken, it wakes that stage's own thread instead.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

/// Up to so many transactions are little work: a caller runs the next stage for them itself.
pub const FEW: usize = 8;

/// What a stage says after it has run once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageState {
    /// The queues are empty.
    Sleep,
    /// There is more to do.
    Again,
    /// The stage has ended for good. Every later run says so too.
    End,
}

/// The thread in which a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The stage's own. It may wait.
    Own,
    /// The one of the stage before it. It must not wait.
    Callers,
}

/// How much work is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// The caller runs the stage inline.
    Little,
    /// The stage's own thread does it, beside the caller.
    Much,
}

impl Amount {
    pub fn of_transactions(count: usize) -> Self {
        if count <= FEW { Self::Little } else { Self::Much }
    }
}

/// A part of the channel that takes work from queues.
pub trait Stage {
    /// Takes what is in the queues and acts on it. In a caller's thread it never waits: it leaves what has to wait to its own thread and
    /// returns [`StageState::Again`].
    fn run_once(&mut self, thread: Thread) -> StageState;

    /// The longest time that its own thread sleeps.
    fn tick(&self) -> Duration;
}

/// All that a thread knows of the stage that it hands work to.
pub trait Wake: Send + Sync {
    /// Wakes the stage's own thread, because there is something in a queue.
    fn wake(&self);

    /// Runs the stage in the caller's thread, because there is something in a queue. If another thread is in it, wakes the own thread instead.
    fn run_inline(&self);

    fn hand_over(&self, amount: Amount) {
        match amount {
            Amount::Little => self.run_inline(),
            Amount::Much => self.wake(),
        }
    }
}

pub struct Handoff<S> {
    /// `None`: the stage has ended.
    stage: Mutex<Option<S>>,
    wake: Sender<()>,
    woken: Receiver<()>,
}

impl<S: Stage> Handoff<S> {
    pub fn new(stage: S) -> Self {
        // One place is enough: who has not looked yet finds everything when it does.
        let (wake, woken) = bounded(1);
        Self { stage: Mutex::new(Some(stage)), wake, woken }
    }

    /// Completes the stage before any work is handed over.
    pub fn prepare(&self, prepare: impl FnOnce(&mut S)) {
        if let Some(stage) = &mut *self.stage.lock().unwrap_or_else(PoisonError::into_inner) {
            prepare(stage);
        }
    }

    /// The loop of the stage's own thread: runs the stage whenever it is woken and at each tick, until the stage ends. `None`: the stage has
    /// panicked, in this thread or a caller's; its state is dropped.
    pub fn run_loop(&self) -> Option<S> {
        loop {
            let mut stage = match self.stage.lock() {
                Ok(stage) => stage,
                Err(poisoned) => {
                    drop(poisoned.into_inner().take());
                    return None;
                }
            };
            let own = stage.as_mut()?;
            // After a panic the state may be half changed: it is dropped at once.
            match catch_unwind(AssertUnwindSafe(|| own.run_once(Thread::Own))) {
                Err(_) => {
                    drop(stage.take());
                    return None;
                }
                Ok(StageState::End) => return stage.take(),
                Ok(StageState::Again) => {}
                Ok(StageState::Sleep) => {
                    let tick = own.tick();
                    drop(stage);
                    match self.woken.recv_timeout(tick) {
                        // This struct has the sender, too: it is never disconnected.
                        Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                    }
                }
            }
        }
    }
}

impl<S: Stage + Send> Wake for Handoff<S> {
    fn wake(&self) {
        // Full: the own thread has been woken already, and has not looked yet.
        let _ = self.wake.try_send(());
    }

    fn run_inline(&self) {
        let then = match self.stage.try_lock() {
            Ok(mut stage) => stage.as_mut().map_or(StageState::Sleep, |stage| stage.run_once(Thread::Callers)),
            // The thread that is in the stage may have looked into the queue before. After a panic the own thread has to know.
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => StageState::Again,
        };
        if then != StageState::Sleep {
            self.wake();
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
    /// Longer than the test may take: what nobody wakes it for does not arrive.
    const NEVER: Duration = Duration::from_secs(3600);

    /// Counts what comes, and sees that it comes in order.
    struct Counter {
        queue: Receiver<(u64, u64)>,
        next: HashMap<u64, u64>,
        left: u64,
    }

    impl Stage for Counter {
        fn run_once(&mut self, _: Thread) -> StageState {
            for (sender, n) in self.queue.try_iter().take(7) {
                let next = self.next.entry(sender).or_default();
                assert_eq!(*next, n, "of sender {sender}");
                *next += 1;
                self.left -= 1;
            }
            match (self.left, self.queue.is_empty()) {
                (0, _) => StageState::End,
                (_, true) => StageState::Sleep,
                (_, false) => StageState::Again,
            }
        }

        fn tick(&self) -> Duration {
            NEVER
        }
    }

    #[test]
    fn nothing_stays_in_the_queue_and_the_order_is_kept() {
        let (send, queue) = unbounded();
        let handoff = Handoff::new(Counter { queue, next: HashMap::new(), left: SENDERS * EACH });
        std::thread::scope(|scope| {
            for sender in 0..SENDERS {
                let (send, handoff) = (send.clone(), &handoff);
                scope.spawn(move || {
                    for n in 0..EACH {
                        send.send((sender, n)).expect("the handoff has the other end");
                        if (n + sender) % 3 == 0 { handoff.wake() } else { handoff.run_inline() }
                    }
                });
            }
            let counter = handoff.run_loop().expect("the stage does not panic");
            assert_eq!((counter.left, counter.next.len() as u64), (0, SENDERS));
        });
        handoff.run_inline();
    }

    struct Panics;

    impl Stage for Panics {
        fn run_once(&mut self, _: Thread) -> StageState {
            panic!("on purpose");
        }

        fn tick(&self) -> Duration {
            NEVER
        }
    }

    #[test]
    fn a_panic_in_a_callers_thread_ends_the_own_thread() {
        let handoff = Handoff::new(Panics);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| handoff.run_inline());
            assert!(other.join().is_err());
            assert!(handoff.run_loop().is_none());
        });
    }

    #[test]
    fn so_does_a_panic_in_the_own_thread() {
        let handoff = Handoff::new(Panics);
        assert!(handoff.run_loop().is_none());
        handoff.run_inline();
        assert!(handoff.run_loop().is_none());
    }

    /// Says in whose threads it has run.
    struct Waits {
        threads: Sender<Thread>,
    }

    impl Stage for Waits {
        fn run_once(&mut self, thread: Thread) -> StageState {
            self.threads.send(thread).expect("the test listens");
            match thread {
                Thread::Callers => StageState::Again,
                Thread::Own => StageState::End,
            }
        }

        fn tick(&self) -> Duration {
            NEVER
        }
    }

    #[test]
    fn what_a_caller_leaves_is_done_by_the_own_thread() {
        let (threads, seen) = unbounded();
        let handoff = Handoff::new(Waits { threads });
        handoff.hand_over(Amount::Little);
        assert_eq!(handoff.woken.try_recv(), Ok(()), "the own thread is woken");
        assert!(handoff.run_loop().is_some());
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [Thread::Callers, Thread::Own]);
    }
}
