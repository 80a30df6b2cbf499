//! How a run went: its time, and what the workers did with it.

use super::resources::{Cores, Pool};
use super::trace::Trace;

/// What workers spent their time with, all together, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// Without work: what could have come was held back by what it has to follow.
    pub dependency_us: f64,
    /// Until all before had committed.
    pub order_us: f64,
    /// For syncs and the serial part of commits.
    pub commit_us: f64,
    /// For a processor, or for pages.
    pub machine_us: f64,
    /// Executing.
    pub work_us: f64,
}

/// How a run went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub workers: usize,
    pub transactions: u64,
    pub seconds: f64,
    /// Busy time of each worker ÷ the whole time.
    pub utilisation: f64,
    /// Of the processors.
    pub processors: f64,
    /// Transactions by worker.
    pub shares: Vec<u64>,
    pub waits: Waits,
    /// MariaDB: transactions that met an earlier one's row.
    pub conflicts: u64,
}

impl Outcome {
    pub fn transactions_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.transactions as f64 / self.seconds } else { 0.0 }
    }

    pub(super) fn new(pool: &Pool, cores: &Cores, trace: &Trace, end_us: f64, waits: Waits) -> Self {
        let workers = pool.len();
        let busy: f64 = pool.busy_us();
        let whole = end_us * workers as f64;
        let mut waits = waits;
        waits.dependency_us = (whole - busy).max(0.0);
        Self {
            workers,
            transactions: trace.transactions.len() as u64,
            seconds: end_us / 1e6,
            utilisation: if whole > 0.0 { (busy / whole).min(1.0) } else { 0.0 },
            processors: cores.utilisation(end_us),
            shares: pool.shares().to_vec(),
            waits,
            conflicts: 0,
        }
    }
}
