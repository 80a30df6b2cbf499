//! A sync that another thread does, while the writer appends and the readers read.
//!
//! It decides nothing: when to sync is the writer's owner's business, and what an error means is the writer's.

use crate::fs::AppendFile;
use binlog::LogPosition;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How a sync went; none while it is under way. `Ok(false)`: it was not done at all.
type Outcome = Option<io::Result<bool>>;

/// What the writer and the thread that syncs share.
#[derive(Debug, Default)]
struct SyncState {
    outcome: Mutex<Outcome>,
    landed: Condvar,
}

impl SyncState {
    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn land(&self, outcome: io::Result<bool>) {
        let mut slot = self.lock();
        if slot.is_none() {
            *slot = Some(outcome);
        }
        self.landed.notify_all();
    }
}

/// A sync that is to be done: [`SegmentSync::run`] it on any thread. Dropped, it is not done, and the writer begins another one when it is asked.
pub struct SegmentSync {
    file: Box<dyn AppendFile>,
    flight: Arc<SyncState>,
}

impl SegmentSync {
    /// Makes durable what was written when it was begun. The writer learns how that went.
    pub fn run(mut self) {
        let done = self.file.sync_data().map(|()| true);
        self.flight.land(done);
    }
}

impl Drop for SegmentSync {
    fn drop(&mut self) {
        self.flight.land(Ok(false));
    }
}

/// The writer's end of a [`SegmentSync`].
pub(crate) struct RunningSync {
    flight: Arc<SyncState>,
    /// The segment, and how much of it will be durable.
    pub number: u64,
    pub len: u64,
    pub position: Option<LogPosition>,
}

impl RunningSync {
    pub fn new(file: Box<dyn AppendFile>, number: u64, len: u64, position: Option<LogPosition>) -> (Self, SegmentSync) {
        let flight = Arc::new(SyncState::default());
        (Self { flight: Arc::clone(&flight), number, len, position }, SegmentSync { file, flight })
    }

    /// How it went, if it has ended; or when it has.
    pub fn outcome(&self, wait: bool) -> Outcome {
        let mut outcome = self.flight.lock();
        while wait && outcome.is_none() {
            outcome = self.flight.landed.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
        outcome.take()
    }
}
