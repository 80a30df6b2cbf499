//! Numbers that threads write and observers read, through a snapshot. Nothing is decided by them: what threads decide by is in
//! [`super::signals`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::failure::FailureKind;
use engine::quality::Histogram;
use engine::schedule::{Counters, IdleCause};
use engine::transaction::Transaction;

use super::source_tags::SourceTags;
use super::work::{Totals, Work, WorkerSeen};

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
    work: Mutex<Work>,
    tags: Mutex<SourceTags>,
    /// Microseconds of each sync of the relay log.
    syncs: Mutex<Histogram>,
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

/// Time that threads have waited, all of a kind together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// Workers, for their turn to commit.
    pub to_commit: Duration,
    /// The feeder, for room in memory.
    pub for_memory: Duration,
}

/// The numbers of one moment.
#[derive(Clone, Debug)]
pub struct Measured {
    pub received_bytes: u64,
    pub read_bytes: u64,
    pub read_time_us: u64,
    pub waits: Waits,
    pub memory_full: bool,
    pub scheduled: Scheduled,
    pub retried: Option<Retried>,
    pub workers: (Vec<WorkerSeen>, Totals),
    pub tags: SourceTags,
    pub syncs: Histogram,
}

impl Measures {
    pub fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn read_transaction(&self, transaction: &Transaction) {
        self.read_time_us.store(transaction.commit_time_us, Ordering::Relaxed);
        lock(&self.tags).read(transaction);
    }

    /// The relay log was made durable, in so long.
    pub fn synced(&self, time: Duration) {
        lock(&self.syncs).add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// What workers do: the coordinator's to write.
    pub fn work(&self) -> MutexGuard<'_, Work> {
        lock(&self.work)
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
        *lock(&self.scheduled) = scheduled;
    }

    /// `None`: nothing is tried again.
    pub fn set_retried(&self, retried: Option<Retried>) {
        *lock(&self.retried) = retried;
    }

    pub fn retried(&self) -> Option<Retried> {
        lock(&self.retried).clone()
    }

    pub fn measured(&self) -> Measured {
        Measured {
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            read_time_us: self.read_time_us.load(Ordering::Relaxed),
            waits: Waits {
                to_commit: Duration::from_nanos(self.commit_wait_ns.load(Ordering::Relaxed)),
                for_memory: Duration::from_nanos(self.memory_wait_ns.load(Ordering::Relaxed)),
            },
            memory_full: self.memory_full.load(Ordering::Relaxed),
            scheduled: *lock(&self.scheduled),
            retried: self.retried(),
            workers: self.work().seen(Instant::now()),
            tags: lock(&self.tags).clone(),
            syncs: lock(&self.syncs).clone(),
        }
    }
}

/// A thread that panicked has left whole numbers.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
