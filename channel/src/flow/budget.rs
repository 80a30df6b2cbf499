//! Bounds the memory of what is under way: transactions between the feeder and their commit, events between the source and the relay log.

use std::sync::{Condvar, Mutex, PoisonError};

use engine::transaction::{Body, Transaction};

/// What a transaction takes beside its events: structures, hashes, placement. An event takes less.
const TRANSACTION_BYTES: u64 = 1024;

/// What placing a transaction's rows and merging them takes beside its write set, in write sets: the policy remembers their keys, and a worker
/// looks them up.
const SETS: u64 = 3;

/// Bytes that a transaction holds until it is committed, once it has its write set.
pub fn transaction_bytes(transaction: &Transaction) -> u64 {
    match transaction.body {
        Body::Spilled { .. } => 0,
        Body::Items(_) => transaction.bytes + (1 + SETS) * transaction.write_set.heap_bytes(),
    }
}

/// An upper bound of [`transaction_bytes`] for a transaction that has no write set yet: a row takes at least some bytes in the log.
pub fn transaction_bytes_max(transaction: &Transaction) -> u64 {
    const TIMES: u64 = 64;
    TIMES * transaction.bytes
}

#[derive(Debug)]
pub struct Budget {
    bytes_max: u64,
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
        Self { bytes_max, state: Mutex::default(), freed: Condvar::new() }
    }

    /// What was compressed by itself (an event, a statement) is taken in up to so many bytes: that size is not the log's, and nobody could see it before.
    pub fn inflated_bytes_max(&self) -> u64 {
        /// MySQL's default `max_allowed_packet`: a row is no longer on most servers.
        const PACKET_BYTES: u64 = 64 << 20;
        self.bytes_max.max(PACKET_BYTES)
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

    fn take(&self, state: &mut State, bytes: u64) -> bool {
        let fits = self.fits(state, bytes);
        if fits {
            state.used += bytes;
        }
        fits
    }

    fn fits(&self, state: &State, bytes: u64) -> bool {
        state.used == 0 || state.used + bytes <= self.bytes_max
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
