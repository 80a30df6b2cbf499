//! Numbers that threads write and observers read; nothing is decided by them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::progress::Mark;
use engine::schedule::Counters;

#[derive(Debug, Default)]
pub struct Stats {
    /// Bytes of events read from the log.
    pub read_bytes: AtomicU64,
    /// Bytes of events that the source has received, for a live source.
    pub received_bytes: AtomicU64,
    /// The newest commit time that was read, microseconds since the epoch.
    pub read_time_us: AtomicU64,
    pub low_water: AtomicU64,
    /// Nanoseconds that workers waited for their turn to commit, all together.
    grant_wait_ns: AtomicU64,
    /// Nanoseconds that the feeder waited for room in memory.
    memory_wait_ns: AtomicU64,
    /// It waits now.
    memory_full: AtomicBool,
    /// The relay log is as large as it may be: nothing is received.
    pub relay_full: AtomicBool,
    shared: Mutex<Shared>,
    moved: Condvar,
}

#[derive(Clone, Debug, Default)]
struct Shared {
    mark: Mark,
    counters: Counters,
    idle: &'static str,
    /// The source can not be reached, since then.
    source_lost: Option<Instant>,
    /// Every transaction that begins before the position has a number up to this one.
    read_to: Option<(LogPosition, u64)>,
    stopping: bool,
}

impl Stats {
    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn waited_for_grant(&self, _worker: usize, time: Duration) {
        self.grant_wait_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn grant_wait(&self) -> Duration {
        Duration::from_nanos(self.grant_wait_ns.load(Ordering::Relaxed))
    }

    /// The feeder is about to wait for memory; it has waited until what this returns is dropped.
    pub fn wait_for_memory(&self) -> MemoryWait<'_> {
        self.memory_full.store(true, Ordering::Relaxed);
        MemoryWait { stats: self, since: Instant::now() }
    }

    pub fn memory_wait(&self) -> Duration {
        Duration::from_nanos(self.memory_wait_ns.load(Ordering::Relaxed))
    }

    /// Reading waits for transactions to be committed that take up all of `--memory`.
    pub fn is_memory_full(&self) -> bool {
        self.memory_full.load(Ordering::Relaxed)
    }

    pub fn set_mark(&self, mark: Mark) {
        self.low_water.store(mark.seq, Ordering::Release);
        self.shared().mark = mark;
        self.moved.notify_all();
    }

    pub fn mark(&self) -> Mark {
        self.shared().mark.clone()
    }

    pub fn source_lost(&self, lost: bool) {
        let mut shared = self.shared();
        shared.source_lost = lost.then(|| shared.source_lost.unwrap_or_else(Instant::now));
    }

    /// For how long the source could not be reached, if it can not.
    pub fn source_lost_for(&self) -> Option<Duration> {
        self.shared().source_lost.map(|since| since.elapsed())
    }

    pub fn set_counters(&self, counters: Counters, idle: &'static str) {
        let mut shared = self.shared();
        shared.counters = counters;
        shared.idle = idle;
    }

    pub fn counters(&self) -> (Counters, &'static str) {
        let shared = self.shared();
        (shared.counters, shared.idle)
    }

    /// The log is read up to `end`, between two transactions, and the last transaction before it is `seq`.
    pub fn set_read_to(&self, end: LogPosition, seq: u64) {
        self.shared().read_to = Some((end, seq));
    }

    /// Whether all that the source's log has before `end` is committed.
    pub fn has_committed_to(&self, end: &LogPosition) -> bool {
        let shared = self.shared();
        shared.read_to.as_ref().is_some_and(|(read, seq)| read >= end && *seq <= shared.mark.seq)
    }

    /// All before it is committed: the low water, or where reading is if nothing between the two is a transaction.
    pub fn done_with(&self) -> Mark {
        let shared = self.shared();
        let mut mark = shared.mark.clone();
        if let Some((read, seq)) = &shared.read_to
            && *seq <= mark.seq
        {
            mark.position = Some(read.clone());
        }
        mark
    }

    /// Nothing more will be committed: whoever waits for the low water gives up.
    pub fn give_up(&self) {
        self.shared().stopping = true;
        self.moved.notify_all();
    }

    /// Waits until everything up to `seq` is committed; false when that will not happen.
    pub fn wait_for(&self, seq: u64) -> bool {
        let mut shared = self.shared();
        while shared.mark.seq < seq && !shared.stopping {
            shared = self.moved.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        shared.mark.seq >= seq
    }
}

/// A wait for room in memory, counted when it ends.
pub struct MemoryWait<'a> {
    stats: &'a Stats,
    since: Instant,
}

impl Drop for MemoryWait<'_> {
    fn drop(&mut self) {
        self.stats.memory_wait_ns.fetch_add(self.since.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.stats.memory_full.store(false, Ordering::Relaxed);
    }
}
