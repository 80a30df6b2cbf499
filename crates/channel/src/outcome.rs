//! How a run ended. Its numbers are in the last [`crate::snapshot::Snapshot`].

use std::time::Duration;

use engine::Seq;
use engine::failure::Failure;

pub struct RunEnd {
    /// The last transaction that was applied before the run.
    pub first_seq: Seq,
    pub time: Duration,
    pub outcome: Outcome,
}

/// Everything dispatched is either committed or rolled back.
pub struct Outcome {
    pub failure: Option<Failure>,
    /// By a signal, without gaps.
    pub stopped: bool,
    /// So that another process takes the channel, as was asked.
    pub handed_over: bool,
    /// From when all sessions were ready until the last of them had done its work.
    pub applying: Duration,
}
