//! One fsync for all writes before it: the first who waits does it, the others wait for that one.
//!
//! The journal takes no write while it is synced. So a session that is about to sync waits for the writes of sessions whose turn comes next
//! ([`PendingWrite`]). It waits no longer than the last fsync took: that costs at most twice the time, and saves up to an fsync for each of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of a write; later writes have greater numbers.
pub type Ticket = u64;

#[derive(Debug, Default)]
pub struct DurableWrites {
    written: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
    /// No write is expected any more.
    gathered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    durable: Ticket,
    syncing: bool,
    coming: usize,
    /// How long to wait for expected writes: as long as the last fsync took, or [`GATHER_MAX`].
    patience: Duration,
}

/// A session waits for its turn to write. Ends when it is dropped.
#[derive(Debug)]
pub struct PendingWrite(Arc<DurableWrites>);

impl Drop for PendingWrite {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.coming -= 1;
        if state.coming == 0 {
            self.0.gathered.notify_all();
        }
    }
}

/// To wait longer than this for other writes is not worth it: other work goes on meanwhile.
const GATHER_MAX: Duration = Duration::from_millis(20);

impl DurableWrites {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn coming(self: &Arc<Self>) -> PendingWrite {
        self.state().coming += 1;
        PendingWrite(Arc::clone(self))
    }

    /// To be called when a write is in the journal.
    pub fn written(&self) -> Ticket {
        self.written.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Waits until the write is on disk. `sync` brings all that is in the journal there.
    ///
    /// # Errors
    /// That of `sync`; who then still waits tries itself.
    pub fn wait<E>(&self, ticket: Ticket, sync: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let mut state = self.state();
        while state.durable < ticket {
            if state.syncing {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.syncing = true;
            let patience = state.patience;
            let gathering = self.gathered.wait_timeout_while(state, patience, |state| state.coming > 0);
            drop(gathering);
            // Everything up to here is in the journal before the fsync begins.
            let covered = self.written.load(Ordering::Acquire);
            let since = Instant::now();
            let outcome = sync();
            state = self.state();
            state.patience = since.elapsed().min(GATHER_MAX);
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
        let durable = DurableWrites::default();
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
    fn those_whose_turn_comes_share_the_sync() {
        let durable = Arc::new(DurableWrites::default());
        let syncs = AtomicUsize::new(0);
        let sync = || {
            syncs.fetch_add(1, Ordering::SeqCst);
            Ok::<(), ()>(())
        };
        durable.state().patience = Duration::from_secs(3600);
        let first = durable.written();
        let coming = durable.coming();
        std::thread::scope(|scope| {
            scope.spawn(|| durable.wait(first, sync).unwrap());
            scope.spawn(|| {
                let second = durable.written();
                drop(coming);
                durable.wait(second, sync).unwrap();
            });
        });
        assert_eq!(syncs.load(Ordering::SeqCst), 1);
        // A write that never comes delays no sync.
        let absent = durable.coming();
        durable.wait(durable.written(), sync).unwrap();
        drop(absent);
        assert_eq!(durable.state().coming, 0);
    }

    #[test]
    fn many_wait_together() {
        let durable = DurableWrites::default();
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
