//! Numbers that threads write and observers read, through a snapshot. Nothing is decided by them: what threads decide by is in
//! [`super::signals`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::failure::FailureKind;
use engine::schedule::{Counters, IdleCause};

#[derive(Debug, Default)]
pub struct Measures {
    /// Bytes of events that the source has sent; 0 for files.
    received_bytes: AtomicU64,
    /// Bytes of events read from the log.
    read_bytes: AtomicU64,
    /// Commit time of the last transaction that was read, microseconds since the epoch.
    read_time_us: AtomicU64,
    /// Nanoseconds that workers waited for their turn to commit, all together.
    commit_wait_ns: AtomicU64,
    /// Nanoseconds that the feeder waited for room in memory.
    memory_wait_ns: AtomicU64,
    /// It waits now.
    memory_full: AtomicBool,
    scheduled: Mutex<Scheduled>,
    /// What is tried again now.
    retried: Mutex<Option<Retried>>,
}

/// What the scheduler says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled {
    pub counters: Counters,
    /// Why nothing more is dispatched.
    pub idle_because: IdleCause,
    /// Transactions that wait to be dispatched.
    pub queued_transactions: usize,
    /// Their bytes in the log.
    pub queued_bytes: u64,
    /// Groups that workers have now.
    pub groups_in_flight: usize,
    /// Transactions above the low water, committed or not.
    pub outstanding_transactions: u64,
}

impl Default for Scheduled {
    fn default() -> Self {
        Self {
            counters: Counters::default(),
            idle_because: IdleCause::NothingQueued,
            queued_transactions: 0,
            queued_bytes: 0,
            groups_in_flight: 0,
            outstanding_transactions: 0,
        }
    }
}

/// A group's failure that is tried again.
#[derive(Clone, Debug)]
pub struct Retried {
    /// The last one.
    pub message: String,
    pub code: Option<u16>,
    /// How often the group has failed.
    pub tries: u32,
    /// When it failed first.
    pub since: Instant,
    pub kind: FailureKind,
}

/// The numbers of one moment.
#[derive(Clone, Debug)]
pub struct Measured {
    pub received_bytes: u64,
    pub read_bytes: u64,
    pub read_time_us: u64,
    pub commit_wait: Duration,
    pub memory_wait: Duration,
    pub memory_full: bool,
    pub scheduled: Scheduled,
    pub retried: Option<Retried>,
}

impl Measures {
    pub fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn read_transaction(&self, commit_time_us: u64) {
        self.read_time_us.store(commit_time_us, Ordering::Relaxed);
    }

    pub fn waited_to_commit(&self, time: Duration) {
        self.commit_wait_ns.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    /// The feeder is about to wait for memory. It has waited until the result is dropped.
    pub fn wait_for_memory(&self) -> MemoryWait<'_> {
        self.memory_full.store(true, Ordering::Relaxed);
        MemoryWait { measures: self, since: Instant::now() }
    }

    pub fn set_scheduled(&self, scheduled: Scheduled) {
        *self.scheduled.lock().unwrap_or_else(PoisonError::into_inner) = scheduled;
    }

    /// `None`: nothing is tried again.
    pub fn set_retried(&self, retried: Option<Retried>) {
        *self.retried.lock().unwrap_or_else(PoisonError::into_inner) = retried;
    }

    pub fn retried(&self) -> Option<Retried> {
        self.retried.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn measured(&self) -> Measured {
        Measured {
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            read_time_us: self.read_time_us.load(Ordering::Relaxed),
            commit_wait: Duration::from_nanos(self.commit_wait_ns.load(Ordering::Relaxed)),
            memory_wait: Duration::from_nanos(self.memory_wait_ns.load(Ordering::Relaxed)),
            memory_full: self.memory_full.load(Ordering::Relaxed),
            scheduled: *self.scheduled.lock().unwrap_or_else(PoisonError::into_inner),
            retried: self.retried(),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A wait for room in memory, counted when it ends.
pub struct MemoryWait<'a> {
    measures: &'a Measures,
    since: Instant,
}

impl Drop for MemoryWait<'_> {
    fn drop(&mut self) {
        self.measures.memory_wait_ns.fetch_add(nanoseconds(self.since.elapsed()), Ordering::Relaxed);
        self.measures.memory_full.store(false, Ordering::Relaxed);
    }
}
