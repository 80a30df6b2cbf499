//! What a running channel does, as one frame a second: the sentence that says what limits it, the stages, where the workers' time goes, what each worker
//! has, evidence. Dashboard, `heddle top`, progress line and `heddle status` show it. Pure: functions of snapshots; no clock, no socket.

pub mod fact_values;
pub mod facts;
pub mod frame;
pub mod history;
pub mod lanes;
pub mod log_lookahead;
pub mod shares;
pub mod stages;
#[cfg(test)]
mod tests;
pub mod verdict;

use std::time::Duration;

use channel::snapshot::{HotRow, LockHolder};
use engine::quality::Forecast;

use self::fact_values::{Absence, Commits, KnownLag, StandbyFacts, StopCause};
use self::lanes::Lane;
use self::shares::Shares;

/// What the sentence is made from.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    channel: String,
    /// No process has it.
    is_down: bool,
    /// It connects, and finds out where it is.
    is_starting: bool,
    stopped: Option<StopCause>,
    paused: bool,
    /// It waits for the channel, which another process has.
    standby: Option<StandbyFacts>,
    source_lost: Option<Absence>,
    target_lost: Option<Absence>,
    /// What is tried again: message, failures, since when.
    retried: Option<(String, u32, Duration)>,
    holders: Vec<LockHolder>,
    lag: KnownLag,
    /// Transactions that were read and are not committed.
    outstanding: u64,
    forecast: Forecast,
    /// What is not applied, as far as it is known.
    left: Option<u64>,
    /// Transactions a second.
    rate: f64,
    shares: Shares,
    lanes: Vec<Lane>,
    hot: Option<HotRow>,
    /// Of the transactions, how many wait for an earlier one.
    waiting_share: f64,
    commits: Commits,
    relay_full: bool,
    memory_max_bytes: u64,
    /// Received and not read.
    unread_bytes: u64,
    /// How far what was received last is behind.
    received_lag_s: f64,
    /// This machine's clock, microseconds since 1970.
    clock_us: u64,
}
