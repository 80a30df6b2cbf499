//! How a reader that has caught up sleeps without a lock on the writer's way.
//!
//! The hazard: the reader sees nothing new, the writer publishes and finds nobody asleep, the reader goes to sleep and
//! misses it. So a sleeper first registers and then looks again; a publisher first publishes and then looks for
//! sleepers. Both in sequentially consistent order: at least one of them sees the other.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Parking {
    sleepers: AtomicU32,
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Parking {
    /// Sleeps until `ready` or for `timeout`, and says whether it is ready. `ready` must read what publishers write
    /// in sequentially consistent order.
    pub(crate) fn wait(&self, timeout: Duration, ready: impl Fn() -> bool) -> bool {
        if ready() {
            return true;
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condvar.wait_timeout_while(guard, timeout, |()| !ready());
        drop(waited);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        ready()
    }

    /// Call it after publishing. Takes the lock only when somebody sleeps.
    pub(crate) fn notify(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // A sleeper holds the lock from its last look until it sleeps: after this it does sleep, or has seen it.
            drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
            self.condvar.notify_all();
        }
    }
}
