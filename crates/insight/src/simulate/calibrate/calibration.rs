//! What is measured, in how large a schema, and how one figure comes of several runs.

use std::time::Instant;

use anyhow::{Result, bail};

/// The schema that is made and dropped.
pub const SCHEMA: &str = "heddle_calibration";
/// Rows of its tables.
pub const ROWS: u32 = 10_000;
/// Sessions at the same time.
pub const SESSIONS: u32 = 16;
/// Loops of each kind, of which the middle one counts.
const REPEAT: usize = 3;

/// What was measured, and what comes of it. Times are of one transaction.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Calibration {
    pub server: String,
    /// One that changes one row, and one that changes twenty, by rows events.
    pub one_row_us: f64,
    pub twenty_rows_us: f64,
    /// One of nothing but bookkeeping, inside of the server.
    pub bookkeeping_us: f64,
    /// Between two commits of 4 and of 16 sessions that do that.
    pub four_sessions_us: f64,
    pub sixteen_sessions_us: f64,
    /// A statement that does nothing.
    pub round_trip_us: f64,
    /// Heddle without grouping, one row each, in order with 1 and 4 workers.
    pub heddle_us: f64,
    pub heddle_four_us: f64,
    /// In any order with 4 and 16.
    pub heddle_relaxed_four_us: f64,
    pub heddle_relaxed_sixteen_us: f64,
    /// With grouping: one row each with 1 and 4 workers; twenty; and one of ten rows that all change.
    pub grouped_us: f64,
    pub grouped_four_us: f64,
    pub grouped_twenty_rows_us: f64,
    pub grouped_merged_us: f64,
    /// Of a row's image, in bytes, and the share of inserts and deletes.
    pub image_bytes: usize,
    pub moved_share: f64,
    /// Commits are durable (`innodb_flush_log_at_trx_commit=1`).
    pub durable: bool,
    /// A replica's commits are in its binary log too, and that is synced (`sync_binlog=1`).
    pub synced_log: bool,
    /// So were those that were measured.
    pub logged: bool,
}

pub fn us(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

pub fn middle(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    Ok(in_turns(1, |_| run())?.into_iter().sum())
}

/// The middle one of several runs of each kind, in turns: what else the machine does meanwhile then meets all of them alike.
pub fn in_turns(kinds: usize, mut run: impl FnMut(usize) -> Result<f64>) -> Result<Vec<f64>> {
    let mut found = vec![Vec::new(); kinds];
    for _ in 0..REPEAT {
        for (kind, found) in found.iter_mut().enumerate() {
            found.push(run(kind)?);
        }
    }
    let middle = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(REPEAT / 2).copied()
    };
    match found.into_iter().map(middle).collect() {
        Some(middles) => Ok(middles),
        None => bail!("no loop was run"),
    }
}
