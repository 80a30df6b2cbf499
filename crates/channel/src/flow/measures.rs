//! Numbers that threads write and observers read, through a snapshot. Nothing is decided by them: what threads decide by is in
//! [`super::signals`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::Seq;
use engine::failure::FailureKind;
use engine::quality::Histogram;
use engine::schedule::{Counters, IdleCause, Worker};
use engine::transaction::Transaction;

use super::read_counts::{ReadCounts, ReadSample};
use super::samples::conflicts::{Conflicts, ConflictsSample};
use super::samples::source_tags::SourceTags;
use super::work::{Totals, Work, WorkerSample};
use apply::WORKERS_MAX;
use apply::locks::LockHolder;
use engine::policy::Placement;
use relay::{LocatedEvent, RelayOffset};

#[derive(Debug, Default)]
pub struct Measures {
    /// What the source has sent; nothing for files.
    received: Mutex<Amount>,
    /// What of it is on the disk, as far as is known.
    durable: Mutex<Amount>,
    reading: Mutex<ReadCounts>,
    /// Transactions with statements whose result may be another on the target.
    unsafe_transactions: AtomicU64,
    /// Nanoseconds that workers waited for their turn to commit, all together.
    commit_wait_ns: AtomicU64,
    /// Of that, with rows still to apply that earlier groups hold up.
    row_wait_ns: AtomicU64,
    /// A bit for each worker that waits so now.
    waits_to_commit: [AtomicU64; WORKERS_MAX.div_ceil(64)],
    /// Nanoseconds that the feeder waited for room in memory.
    memory_wait_ns: AtomicU64,
    /// It waits now.
    memory_full: AtomicBool,
    scheduled: Mutex<SchedulerSample>,
    /// What is tried again now.
    retried: Mutex<Option<GroupRetry>>,
    work: Mutex<Work>,
    tags: Mutex<SourceTags>,
    conflicts: Mutex<Conflicts>,
    /// Who holds what workers wait for, when the target was last asked.
    holders: Mutex<Option<(Instant, Vec<LockHolder>)>>,
    /// Microseconds of each sync of the relay log.
    syncs: Mutex<Histogram>,
}

/// What the scheduler says of itself.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerSample {
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

impl Default for SchedulerSample {
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
pub struct GroupRetry {
    /// The last one.
    pub message: String,
    pub code: Option<u16>,
    /// How often the group has failed.
    pub tries: u32,
    /// When it failed first.
    pub since: Instant,
    pub kind: FailureKind,
}

/// How much has passed a place since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Of events.
    pub bytes: u64,
    /// 0: the log does not say where they begin.
    pub transactions: u64,
    /// When the source wrote the last event, seconds since 1970; 0: none yet.
    pub time_s: u32,
    /// How old that event was when it came, by this machine's clock, in milliseconds.
    pub age_ms: u64,
}

/// What a group waits for before its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its turn: all its rows are applied.
    Commit,
    /// Rows that earlier groups change.
    Rows,
}

/// Time that threads have waited, all of a kind together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// Workers, for their turn to commit.
    pub to_commit: Duration,
    /// Of that, with rows still to apply that earlier groups change.
    pub for_rows: Duration,
    /// The feeder, for room in memory.
    pub for_memory: Duration,
}

/// The numbers of one moment.
#[derive(Clone, Debug)]
pub struct MeasuresSample {
    pub relay: RelaySample,
    pub read: ReadSample,
    pub waits: Waits,
    pub memory_full: bool,
    pub scheduled: SchedulerSample,
    pub retried: Option<GroupRetry>,
    pub holders: Vec<LockHolder>,
    pub workers: (Vec<WorkerSample>, Totals),
    pub source: SourceSample,
}

/// Of the receiver.
#[derive(Clone, Debug)]
pub struct RelaySample {
    pub received: Amount,
    pub durable: Amount,
    pub syncs: Histogram,
}

/// How parallel what was read is.
#[derive(Clone, Debug)]
pub struct SourceSample {
    pub tags: SourceTags,
    pub placed: ConflictsSample,
    /// Transactions with statements whose result may be another on the target.
    pub unsafe_transactions: u64,
}

/// What the target said of locks is not shown any longer than this.
const HOLDERS_FOR: Duration = Duration::from_secs(4);

impl Measures {
    /// So much more; a time of 0 is not known.
    pub fn received(&self, more: Amount) {
        let mut received = lock(&self.received);
        received.bytes += more.bytes;
        received.transactions += more.transactions;
        if more.time_s > 0 {
            (received.time_s, received.age_ms) = (more.time_s, more.age_ms);
        }
    }

    pub fn received_so_far(&self) -> Amount {
        *lock(&self.received)
    }

    /// All that had been received then is on the disk.
    pub fn durable(&self, amount: Amount) {
        *lock(&self.durable) = amount;
    }

    /// Who holds what workers wait for.
    pub fn set_holders(&self, holders: Vec<LockHolder>) {
        *lock(&self.holders) = Some((Instant::now(), holders));
    }

    /// The relay log has this much of earlier runs.
    pub fn begins_at(&self, end_of_relay: RelayOffset) {
        lock(&self.reading).begins_at(end_of_relay);
    }

    /// An event was read.
    pub fn read(&self, located: &LocatedEvent) {
        lock(&self.reading).event(located);
    }

    /// All events of a transaction were read.
    pub fn read_whole(&self) {
        lock(&self.reading).has_whole();
    }

    /// The transaction is the next to be applied; everything up to `low_water` is.
    pub fn read_transaction(&self, transaction: &Transaction, low_water: Seq) {
        lock(&self.reading).transaction(transaction.seq, transaction.commit_time_us, low_water);
        lock(&self.tags).read(transaction);
    }

    /// A transaction has a statement whose result may be another on the target.
    pub fn unsafe_statement(&self) {
        self.unsafe_transactions.fetch_add(1, Ordering::Relaxed);
    }

    /// The relay log was made durable, in so long.
    pub fn synced(&self, time: Duration) {
        lock(&self.syncs).add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// The policy has placed it.
    pub fn placed(&self, transaction: &Transaction, placement: &Placement) {
        lock(&self.conflicts).placed(transaction, placement);
    }

    /// What workers do: the coordinator's to write.
    pub fn work(&self) -> MutexGuard<'_, Work> {
        lock(&self.work)
    }

    /// The worker is about to wait. It has waited until the result is dropped.
    pub fn wait_to_commit(&self, worker: Worker, turn: Turn) -> CommitWait<'_> {
        if let Some(bits) = self.waits_to_commit.get(worker / 64) {
            bits.fetch_or(1 << (worker % 64), Ordering::Relaxed);
        }
        CommitWait { measures: self, worker, turn, since: Instant::now() }
    }

    fn is_waiting_to_commit(&self, worker: Worker) -> bool {
        let bits = self.waits_to_commit.get(worker / 64).map_or(0, |bits| bits.load(Ordering::Relaxed));
        bits >> (worker % 64) & 1 == 1
    }

    /// The feeder is about to wait for memory. It has waited until the result is dropped.
    pub fn wait_for_memory(&self) -> MemoryWait<'_> {
        self.memory_full.store(true, Ordering::Relaxed);
        MemoryWait { measures: self, since: Instant::now() }
    }

    pub fn scheduled(&self) -> SchedulerSample {
        *lock(&self.scheduled)
    }

    pub fn set_scheduled(&self, scheduled: SchedulerSample) {
        *lock(&self.scheduled) = scheduled;
    }

    /// `None`: nothing is tried again.
    pub fn set_retried(&self, retried: Option<GroupRetry>) {
        *lock(&self.retried) = retried;
    }

    pub fn retried(&self) -> Option<GroupRetry> {
        lock(&self.retried).clone()
    }

    /// `low_water`: everything up to it is committed.
    pub fn measured(&self, low_water: Seq) -> MeasuresSample {
        let now = Instant::now();
        let mut workers = self.work().seen(now);
        for (number, worker) in workers.0.iter_mut().enumerate() {
            worker.waits_to_commit = worker.running.is_some() && self.is_waiting_to_commit(number);
        }
        let holders =
            lock(&self.holders).clone().filter(|(then, _)| now.saturating_duration_since(*then) < HOLDERS_FOR);
        MeasuresSample {
            relay: RelaySample {
                received: *lock(&self.received),
                durable: *lock(&self.durable),
                syncs: lock(&self.syncs).clone(),
            },
            source: SourceSample {
                tags: lock(&self.tags).clone(),
                placed: lock(&self.conflicts).seen(now),
                unsafe_transactions: self.unsafe_transactions.load(Ordering::Relaxed),
            },
            holders: holders.map(|(_, holders)| holders).unwrap_or_default(),
            read: lock(&self.reading).measured(low_water),
            waits: Waits {
                to_commit: Duration::from_nanos(self.commit_wait_ns.load(Ordering::Relaxed)),
                for_rows: Duration::from_nanos(self.row_wait_ns.load(Ordering::Relaxed)),
                for_memory: Duration::from_nanos(self.memory_wait_ns.load(Ordering::Relaxed)),
            },
            memory_full: self.memory_full.load(Ordering::Relaxed),
            scheduled: *lock(&self.scheduled),
            retried: self.retried(),
            workers,
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

/// A wait for the turn to commit, counted when it ends.
pub struct CommitWait<'a> {
    measures: &'a Measures,
    worker: Worker,
    turn: Turn,
    since: Instant,
}

impl Drop for CommitWait<'_> {
    fn drop(&mut self) {
        let time = nanoseconds(self.since.elapsed());
        self.measures.commit_wait_ns.fetch_add(time, Ordering::Relaxed);
        if self.turn == Turn::Rows {
            self.measures.row_wait_ns.fetch_add(time, Ordering::Relaxed);
        }
        if let Some(bits) = self.measures.waits_to_commit.get(self.worker / 64) {
            bits.fetch_and(!(1 << (self.worker % 64)), Ordering::Relaxed);
        }
    }
}
