//! One fsync for all writes before it: the first who waits does it, the others wait for that one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Number of a write; later writes have greater numbers.
pub type Ticket = u64;

#[derive(Debug, Default)]
pub struct Durable {
    written: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    durable: Ticket,
    syncing: bool,
}

impl Durable {
    /// To be called when a write is in the journal.
    pub fn written(&self) -> Ticket {
        self.written.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Waits until the write is on disk. `sync` brings all that is in the journal there.
    ///
    /// # Errors
    /// That of `sync`; who then still waits tries itself.
    pub fn wait<E>(&self, ticket: Ticket, sync: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.durable < ticket {
            if state.syncing {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.syncing = true;
            drop(state);
            // Everything up to here is in the journal before the fsync begins.
            let covered = self.written.load(Ordering::Acquire);
            let outcome = sync();
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.syncing = false;
            self.changed.notify_all();
            outcome?;
            state.durable = state.durable.max(covered);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn one_sync_covers_all_before_it() {
        let durable = Durable::default();
        let syncs = AtomicUsize::new(0);
        let sync = || {
            syncs.fetch_add(1, Ordering::SeqCst);
            Ok::<(), ()>(())
        };
        let tickets: Vec<Ticket> = (0..5).map(|_| durable.written()).collect();
        for &ticket in tickets.iter().rev() {
            durable.wait(ticket, sync).unwrap();
        }
        assert_eq!(syncs.load(Ordering::SeqCst), 1);
        let late = durable.written();
        assert!(durable.wait(late, || Err::<(), ()>(())).is_err());
        durable.wait(late, sync).unwrap();
        assert_eq!(syncs.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn many_wait_together() {
        let durable = Durable::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let ticket = durable.written();
                        durable.wait(ticket, || Ok::<(), ()>(())).unwrap();
                    }
                });
            }
        });
        assert_eq!(durable.written(), 1601);
    }
}
