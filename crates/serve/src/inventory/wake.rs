//! Wakes threads that wait for a socket and for an event of this process at the same time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::event::{EventfdFlags, eventfd};

/// A file descriptor that threads can wait for together with a socket.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn wake(&self) {
        // It fails when it is woken already, many times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// What has happened before this call is seen by who looks after it.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The wakes of all waiting threads.
#[derive(Debug, Default)]
pub(crate) struct Wakes(Mutex<Vec<Weak<Wake>>>);

impl Wakes {
    /// Adds a wake, for as long as the caller holds it.
    pub(crate) fn add(&self) -> io::Result<Arc<Wake>> {
        let wake = Arc::new(Wake::new()?);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|wake| wake.strong_count() > 0);
        all.push(Arc::downgrade(&wake));
        Ok(wake)
    }

    pub(crate) fn wake_all(&self) {
        for wake in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade) {
            wake.wake();
        }
    }
}
