//! The fast part: the source's chunks on one thread, the target's on another behind it, digests beside each other. What is not equal goes to who looks at rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender};
use wire::Row;

use super::log::follow::Waiter;
use super::log::place::{self, High, SourceLog};
use super::server::{Digest, Server};
use super::sql::{self, Range};
use super::state::Journal;
use super::tables::plan::{ChunkKey, Key, Side, TablePlan};
use crate::source::threads_running;

const ROWS_FIRST: u64 = 1000;
const ROWS_MIN: u64 = 10;
const ROWS_MAX: u64 = 1 << 20;
/// Text of one chunk: behind it a larger one is not faster.
const CHUNK_BYTES: u64 = 4 << 20;
const SPREAD_POLL: Duration = Duration::from_millis(100);
const LOAD_EVERY: Duration = Duration::from_millis(500);

/// How far a comparison is, for who shows it.
#[derive(Debug, Default)]
pub struct Counters {
    /// Of the source, compared so far.
    pub rows: AtomicU64,
    /// Of all tables, by the source's estimate.
    pub rows_estimate: AtomicU64,
    /// What the last chunks took for a row, in nanoseconds, on the slower server.
    row_ns: AtomicU64,
}

/// How gently.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// What a chunk's query should take.
    pub chunk_time: Duration,
    /// Wait while a server has more threads running.
    pub threads_running_max: Option<u64>,
}

/// A comparison that takes its time.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub began: Instant,
    pub period: Duration,
    /// That are to be read; `None`: as the source estimates them.
    pub rows: Option<u64>,
}

impl Spread {
    /// How long to wait, if so many rows are read after this time. Beyond the rows that were expected there is no wait.
    fn pause(&self, rows: u64, expected: u64, elapsed: Duration) -> Duration {
        let share = if expected == 0 { 1.0 } else { rows as f64 / expected as f64 };
        if share >= 1.0 { Duration::ZERO } else { self.period.mul_f64(share).saturating_sub(elapsed) }
    }

    /// Waits until the next chunk is due.
    fn wait(&self, counters: &Counters, is_ended: impl Fn() -> bool) {
        while !is_ended() {
            let [rows, estimate] = [&counters.rows, &counters.rows_estimate].map(|count| count.load(Ordering::Relaxed));
            let pause = self.pause(rows, self.rows.unwrap_or(estimate), self.began.elapsed());
            if pause.is_zero() {
                return;
            }
            std::thread::sleep(pause.min(SPREAD_POLL));
        }
    }
}

/// A chunk that was read on the source.
pub struct Chunk {
    pub table: usize,
    pub range: Range,
    rows: u64,
    digest: Option<Vec<u8>>,
    high: High,
}

/// What has to be looked at by rows.
pub struct Suspect {
    pub table: usize,
    /// `None`: the whole table, which has no key.
    pub range: Option<Range>,
    /// In the [`Journal`].
    pub number: u64,
}

/// Waits while a server has more to do than it should.
pub struct Throttle {
    max: Option<u64>,
    asked: Option<Instant>,
}

impl Throttle {
    pub fn new(max: Option<u64>) -> Self {
        Self { max, asked: None }
    }

    pub fn wait(&mut self, server: &mut Server, stop: &AtomicBool) -> Result<()> {
        let Some(max) = self.max else { return Ok(()) };
        if self.asked.is_some_and(|asked| asked.elapsed() < LOAD_EVERY) {
            return Ok(());
        }
        loop {
            let running = server.again(|connection| Ok(threads_running(connection)?))?;
            self.asked = Some(Instant::now());
            if running <= max || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(LOAD_EVERY);
        }
    }
}

/// A row's key.
pub fn key_of(row: &Row, key: &ChunkKey) -> Key {
    (0..key.columns.len()).map(|at| row.get(at).unwrap_or_default().to_vec()).collect()
}

pub struct SourceReader<'a> {
    pub server: Server,
    pub log: SourceLog,
    pub plans: &'a [TablePlan],
    pub counters: &'a Counters,
    pub pace: Pace,
    pub stop: &'a AtomicBool,
    /// Tables that need not be read to their end.
    pub is_done: &'a [AtomicBool],
    /// Behind which key each table is read; `None`: from its beginning.
    pub starts: Vec<Option<Key>>,
    /// `None`: as fast as the pace lets it.
    pub spread: Option<Spread>,
    pub journal: &'a Journal,
}

impl SourceReader<'_> {
    /// Reads all tables.
    pub fn run(mut self, chunks: &Sender<Chunk>, suspects: &Sender<Suspect>) -> Result<()> {
        let mut throttle = Throttle::new(self.pace.threads_running_max);
        for (table, plan) in self.plans.iter().enumerate() {
            if self.is_ended(table) {
                continue;
            }
            let Some(key) = &plan.key else {
                let number = self.journal.suspect(plan, None, 0)?;
                let _ = suspects.send(Suspect { table, range: None, number });
                continue;
            };
            let mut size = ChunkSize::new(plan, self.pace.chunk_time);
            let mut after = self.starts.get_mut(table).and_then(Option::take);
            while !self.is_ended(table) {
                if let Some(spread) = &self.spread {
                    spread.wait(self.counters, || self.is_ended(table));
                }
                throttle.wait(&mut self.server, self.stop)?;
                let chunk = self.chunk(table, plan, key, after.take(), &mut size)?;
                after.clone_from(&chunk.range.until);
                let is_last = after.is_none();
                // Who receives has ended with an error of its own.
                if chunks.send(chunk).is_err() {
                    return Ok(());
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(())
    }

    fn is_ended(&self, table: usize) -> bool {
        self.stop.load(Ordering::Relaxed) || self.is_done.get(table).is_some_and(|done| done.load(Ordering::Relaxed))
    }

    fn chunk(
        &mut self,
        table: usize,
        plan: &TablePlan,
        key: &ChunkKey,
        after: Option<Key>,
        size: &mut ChunkSize,
    ) -> Result<Chunk> {
        loop {
            let rows = size.rows(self.counters.row_ns.load(Ordering::Relaxed));
            let end = self.server.rows(&sql::chunk_end(plan, key, after.as_ref(), rows))?;
            let range = Range { after: after.clone(), until: end.first().map(|row| key_of(row, key)) };
            if plan.is_fetched() {
                let high = self.high()?;
                return Ok(Chunk { table, range, rows: 0, digest: None, high });
            }
            let began = Instant::now();
            match self.server.digest(&sql::digest(plan, key, Side::Source, &range))? {
                Digest::Cut => size.halve(rows),
                Digest::Of { rows, digest } => {
                    note_time(self.counters, began, rows, Side::Source);
                    let high = self.high()?;
                    return Ok(Chunk { table, range, rows, digest, high });
                }
            }
        }
    }

    fn high(&mut self) -> Result<High> {
        let log = self.log;
        self.server.again(|connection| place::high(connection, log))
    }
}

/// The slower server says how large chunks are.
fn note_time(counters: &Counters, began: Instant, rows: u64, side: Side) {
    let Some(ns) = (began.elapsed().as_nanos() as u64).checked_div(rows).filter(|_| rows >= ROWS_MIN) else { return };
    let before = counters.row_ns.load(Ordering::Relaxed);
    let now = match side {
        Side::Source => ns,
        Side::Target => ns.max(before),
    };
    counters.row_ns.store(u64::midpoint(before, now), Ordering::Relaxed);
}

struct ChunkSize {
    chunk_time: Duration,
    /// What fits into a chunk's text.
    rows_max: u64,
    is_first: bool,
}

impl ChunkSize {
    fn new(plan: &TablePlan, chunk_time: Duration) -> Self {
        let rows_max = (CHUNK_BYTES / plan.row_bytes.max(20)).clamp(ROWS_MIN, ROWS_MAX);
        Self { chunk_time, rows_max, is_first: true }
    }

    fn rows(&mut self, row_ns: u64) -> u64 {
        let first = std::mem::replace(&mut self.is_first, false);
        let wanted = (self.chunk_time.as_nanos() as u64).checked_div(row_ns).unwrap_or(ROWS_FIRST);
        let wanted = if first { wanted.min(ROWS_FIRST) } else { wanted };
        wanted.clamp(ROWS_MIN.min(self.rows_max), self.rows_max)
    }

    /// So many rows were too many.
    fn halve(&mut self, rows: u64) {
        self.rows_max = (rows / 2).max(1);
    }
}

pub struct TargetReader<'a> {
    pub server: Server,
    pub waiter: Waiter<'a>,
    pub plans: &'a [TablePlan],
    pub counters: &'a Counters,
    pub pace: Pace,
    pub stop: &'a AtomicBool,
    /// Rows of each table, as the source had them.
    pub rows: &'a [AtomicU64],
    pub journal: &'a Journal,
}

impl TargetReader<'_> {
    /// Reads what the source's thread has read.
    pub fn run(mut self, chunks: &Receiver<Chunk>, suspects: &Sender<Suspect>) -> Result<()> {
        let mut throttle = Throttle::new(self.pace.threads_running_max);
        for chunk in chunks {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            throttle.wait(&mut self.server, self.stop)?;
            self.counters.rows.fetch_add(chunk.rows, Ordering::Relaxed);
            if let Some(rows) = self.rows.get(chunk.table) {
                rows.fetch_add(chunk.rows, Ordering::Relaxed);
            }
            let Some(plan) = self.plans.get(chunk.table) else { continue };
            if self.is_equal(plan, &chunk)? {
                self.journal.equal(plan, &chunk.range, chunk.rows)?;
                continue;
            }
            let number = self.journal.suspect(plan, Some(&chunk.range), chunk.rows)?;
            let suspect = Suspect { table: chunk.table, range: Some(chunk.range), number };
            if suspects.send(suspect).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn is_equal(&mut self, plan: &TablePlan, chunk: &Chunk) -> Result<bool> {
        let Some(key) = plan.key.as_ref().filter(|_| !plan.is_fetched()) else { return Ok(false) };
        self.waiter.wait(&mut self.server, &chunk.high)?;
        let began = Instant::now();
        match self.server.digest(&sql::digest(plan, key, Side::Target, &chunk.range))? {
            Digest::Cut => Ok(false),
            Digest::Of { rows, digest } => {
                note_time(self.counters, began, rows, Side::Target);
                Ok(rows == chunk.rows && digest == chunk.digest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_spread_over_its_time() {
        let (hour, zero) = (Duration::from_secs(3600), Duration::ZERO);
        let spread = Spread { began: Instant::now(), period: hour, rows: None };
        let check = |rows: u64, expected: u64, elapsed: Duration, pause: Duration| {
            assert_eq!(spread.pause(rows, expected, elapsed), pause, "{rows} of {expected} after {elapsed:?}");
        };
        check(0, 1000, zero, zero);
        check(500, 1000, zero, hour / 2);
        check(500, 1000, hour / 4, hour / 4);
        check(500, 1000, hour / 2, zero);
        // It is late.
        check(500, 1000, hour * 2, zero);
        // There are more than was expected.
        check(1000, 1000, zero, zero);
        check(5000, 1000, zero, zero);
        check(0, 0, zero, zero);
    }

    #[test]
    fn chunks_by_time_and_by_bytes() {
        let size = |rows_max: u64| ChunkSize { chunk_time: Duration::from_millis(500), rows_max, is_first: true };
        let mut one = size(100_000);
        assert_eq!(
            [one.rows(0), one.rows(0), one.rows(10_000), one.rows(1), one.rows(u64::MAX)],
            [1000, 1000, 50_000, 100_000, 10]
        );
        one.halve(10);
        assert_eq!(one.rows(1), 5);
        one.halve(1);
        assert_eq!(one.rows(1), 1);
    }
}
