//! When those before a transaction have applied their rows and committed.

use super::placements::{TransactionPlacement, WaitPoint};
use crate::replica::trace::{AppliedTransaction, Trace};

/// What has got its times so far, by number from 1.
#[derive(Debug)]
pub(super) struct TraceHistory<'a> {
    trace: &'a Trace,
    done_at: Vec<f64>,
    /// When all up to each number have committed, and have begun to.
    low_water: Vec<f64>,
    begun: Vec<f64>,
}

impl<'a> TraceHistory<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        let list = || {
            let mut list = Vec::with_capacity(trace.transactions.len() + 1);
            list.push(0.0);
            list
        };
        Self { trace, done_at: list(), low_water: list(), begun: list() }
    }

    /// When all so far have committed.
    pub fn all(&self) -> f64 {
        self.low_water.last().copied().unwrap_or(0.0)
    }

    pub fn done_at(&self, number: usize) -> f64 {
        self.done_at.get(number).copied().unwrap_or(0.0)
    }

    /// When the last exact predecessor has committed; those that are in the same group do not count.
    pub fn followed(&self, applied: &AppliedTransaction) -> f64 {
        self.last_done(self.trace.follows(applied))
    }

    fn last_done(&self, numbers: &[u32]) -> f64 {
        let known = numbers.iter().filter_map(|&number| self.done_at.get(number as usize));
        known.copied().fold(0.0, f64::max)
    }

    /// When a transaction may begin; those that are in the same group do not count.
    pub fn after(&self, placed: TransactionPlacement, predecessors: &[u32]) -> f64 {
        let (times, number) = match placed.after {
            WaitPoint::Committed(number) => (&self.low_water, number),
            WaitPoint::CommitBegun(number) => (&self.begun, number),
        };
        let watermark = times.get(number as usize).or(times.last()).copied().unwrap_or(0.0);
        watermark.max(self.last_done(predecessors))
    }

    /// The next one's times.
    pub fn add(&mut self, executed: f64, done: f64) {
        let begun = self.begun.last().copied().unwrap_or(0.0);
        self.begun.push(begun.max(executed));
        self.done_at.push(done);
        self.low_water.push(self.all().max(done));
    }
}
