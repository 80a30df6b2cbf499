//! What things take on the replica: the numbers that `--calibrate` measures.

use super::trace::AppliedTransaction;

/// What things take on the replica, in microseconds. Its fields are what `heddle simulate --json` and `--costs` name.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Costs {
    /// Processor time of a transaction without rows: begin, bookkeeping, commit.
    pub transaction_us: f64,
    /// Processor time of a row.
    pub row_us: f64,
    /// Processor time that the thread which hands out work needs for a transaction.
    pub dispatch_us: f64,
    /// The part of a commit that is done one after the other.
    pub commit_us: f64,
    /// A durable commit's sync of the engine's log; 0: not durable.
    pub sync_us: f64,
    /// The sync of the binary log that comes after it; 0: there is none.
    pub log_sync_us: f64,
    /// Share of rows whose page is not cached.
    pub miss_share: f64,
    /// Reading such a page.
    pub miss_us: f64,
    /// Processors of the replica.
    pub cores: usize,
    /// Heddle: processor time of a target transaction of many, of each transaction and row in it, and of a row that was merged into another.
    pub group_us: f64,
    pub group_transaction_us: f64,
    pub group_row_us: f64,
    pub merged_row_us: f64,
    /// Heddle: what a transaction that is applied by itself costs more than by the server's own applier: statements, the row
    /// of progress, Heddle's own work.
    pub heddle_us: f64,
    /// Heddle: the same where it commits in any order.
    pub relaxed_us: f64,
    /// Heddle with several workers: from one commit's answer until the next one in order is sent.
    pub turn_us: f64,
    /// Heddle with grouping: what one thread does for all workers, as a share of what a worker does.
    pub feed_share: f64,
    /// Heddle: from statements to their answer, beside what the server does.
    pub round_trip_us: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            transaction_us: 90.0,
            row_us: 25.0,
            dispatch_us: 12.0,
            commit_us: 6.0,
            sync_us: 400.0,
            log_sync_us: 400.0,
            miss_share: 0.0,
            miss_us: 100.0,
            cores: 4,
            group_us: 400.0,
            group_transaction_us: 6.0,
            group_row_us: 14.0,
            merged_row_us: 1.5,
            heddle_us: 200.0,
            relaxed_us: 250.0,
            turn_us: 100.0,
            feed_share: 0.3,
            round_trip_us: 50.0,
        }
    }
}

/// Many rows share an event.
const DISPATCHED_ROWS_MAX: u32 = 100;

impl Costs {
    /// Both syncs of one commit.
    pub fn syncs_us(&self) -> f64 {
        self.sync_us + self.log_sync_us
    }

    /// Processor time and waiting time of a transaction's execution.
    pub(super) fn execution(&self, applied: &AppliedTransaction) -> (f64, f64) {
        let rows = f64::from(applied.rows);
        let processor = (self.transaction_us + self.row_us * rows).max(f64::from(applied.source_us));
        (processor, rows * self.miss_share * self.miss_us)
    }

    /// Processor time of the thread that hands a transaction out. It looks at each event: a row mostly has two, and a transaction four of its own.
    pub(super) fn dispatching(&self, applied: &AppliedTransaction) -> f64 {
        self.dispatch_us * (1.0 + f64::from(applied.rows.min(DISPATCHED_ROWS_MAX)) / 2.0) / 1.5
    }
}
