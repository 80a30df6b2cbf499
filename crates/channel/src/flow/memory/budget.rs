//! Bounds the memory of what is under way: transactions between the feeder and their commit, events between the source and the relay log.

use std::sync::{Condvar, Mutex, PoisonError};

use engine::transaction::{Body, Transaction};

use super::event_memory::{EventMemory, LARGE_BYTES};

/// What a transaction takes beside its events: structures, hashes, placement. An event takes less.
const TRANSACTION_BYTES: u64 = 1024;

/// What placing a transaction's rows and merging them takes beside its write set, in write sets: the policy remembers their keys, and a worker
/// looks them up.
const SETS: u64 = 3;

/// An upper bound of [`Budget::transaction_bytes`] for a transaction that has no write set yet: a row takes at least some bytes in the log.
pub fn transaction_bytes_max(transaction: &Transaction) -> u64 {
    const TIMES: u64 = 64;
    TIMES * transaction.bytes + transaction.map_bytes
}

#[derive(Debug)]
pub struct Budget {
    bytes_max: u64,
    /// With copies of what is large. None: everything counts as it is.
    events: Option<EventMemory>,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    closed: bool,
}

impl Budget {
    pub fn new(bytes_max: u64) -> Self {
        Self { bytes_max, events: None, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Of transactions that are under way.
    pub fn of_events(events: EventMemory) -> Self {
        Self { events: Some(events), ..Self::new(events.waiting_bytes_max()) }
    }

    /// Bytes that a transaction holds until it is committed, once it has its write set.
    pub fn transaction_bytes(&self, transaction: &Transaction) -> u64 {
        let (events, sets) = match transaction.body {
            Body::Spilled { event_bytes, .. } => (self.events.map_or(0, |events| events.in_pieces(event_bytes)), 0),
            Body::Items(_) => {
                (self.with_copies(transaction.bytes) + transaction.map_bytes, transaction.write_set.heap_bytes())
            }
        };
        events + (1 + SETS) * sets
    }

    fn with_copies(&self, bytes: u64) -> u64 {
        self.events.map_or(bytes, |events| events.with_copies(bytes))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room if there is enough. What is larger than the whole budget gets in when nothing else is in it.
    pub fn try_acquire(&self, bytes: u64) -> bool {
        self.take(&mut self.state(), bytes + TRANSACTION_BYTES)
    }

    /// Whether [`Budget::try_acquire`] would get it now.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.fits(&self.state(), bytes + TRANSACTION_BYTES)
    }

    pub fn used(&self) -> u64 {
        self.state().used
    }

    pub fn max(&self) -> u64 {
        self.bytes_max
    }

    /// Waits for room. False: closed.
    pub fn acquire(&self, bytes: u64) -> bool {
        let mut state = self.state();
        while !state.closed && !self.take(&mut state, bytes + TRANSACTION_BYTES) {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    /// Waits until an event of so many bytes may be read: it is not counted before its transaction is. False: closed.
    pub fn wait_for(&self, bytes: u64) -> bool {
        let mut state = self.state();
        while !state.closed && !self.fits(&state, bytes) {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    /// Waits until nothing is in it. False: closed.
    pub fn drain(&self) -> bool {
        let mut state = self.state();
        while !state.closed && state.used > 0 {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    fn take(&self, state: &mut State, bytes: u64) -> bool {
        let fits = self.fits(state, bytes);
        if fits {
            state.used += bytes;
        }
        fits
    }

    fn fits(&self, state: &State, bytes: u64) -> bool {
        let bytes_max = match self.events {
            Some(events) if bytes >= LARGE_BYTES => events.large_bytes_max().max(self.bytes_max),
            _ => self.bytes_max,
        };
        state.used == 0 || state.used + bytes <= bytes_max
    }

    pub fn release(&self, bytes: u64, transactions: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_sub(bytes + transactions * TRANSACTION_BYTES);
        self.freed.notify_one();
    }

    /// Ends all waits: nothing will be released any more.
    pub fn close(&self) {
        self.state().closed = true;
        self.freed.notify_all();
    }
}
