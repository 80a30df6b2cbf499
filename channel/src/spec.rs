//! What a run of a channel depends on. It only holds what was asked for; nothing is opened or decided here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apply::Target;
use engine::policy::{self, PolicyOptions, PolicySpec, Setting};
use engine::schedule::{CommitOrder, Grouping};

use crate::source::Source;
use crate::source::relay_sync::RelaySync;
use crate::start::StartAt;
use crate::until::Until;

/// Everything that a run depends on, checked as far as it can be without the servers.
pub struct Spec {
    pub source: Source,
    pub target: Arc<dyn Target>,
    /// GTIDs that the target has executed, for where a new channel starts.
    pub on_target: binlog::gtids::GtidState,
    pub workers: usize,
    pub policy: &'static PolicySpec,
    pub policy_options: PolicyOptions,
    pub order: CommitOrder,
    pub grouping: Grouping,
    /// XA branches whose end is in the log already may be left unprepared.
    pub keeps_branches: bool,
    pub until: Until,
    /// Only what an earlier run with relaxed order has left out below what it had committed.
    pub fill_gaps: bool,
    /// Live: end where the source was when the run began.
    pub until_end: bool,
    pub start: StartAt,
    pub relay_dir: PathBuf,
    /// The relay log holds what comes next already, and the source may have it no more. Otherwise a new channel begins it anew.
    pub relay_filled: bool,
    pub relay_bytes_max: u64,
    /// What is received is on the disk before it is applied. Without it a crash of the machine may cost the end of the relay log, never more: what is
    /// applied is known by the target alone.
    pub relay_sync: RelaySync,
    /// Replica number towards the source.
    pub server_id: u32,
    /// The target's own number, when transactions that began there must not come back to it.
    pub not_from: Option<u32>,
    pub memory_bytes: u64,
    pub retries_max: u32,
    /// How long to try to reach a source that is gone.
    pub source_retry: Duration,
}

impl Spec {
    /// What the policy has to know of the run.
    pub fn setting(&self) -> Setting<'_> {
        Setting { order: self.order, locks_rows: self.target.locks_rows(), options: &self.policy_options }
    }

    /// A run of our own from the beginning, without a relay log: what a caller wants to be different it says.
    pub fn new(source: Source, target: Arc<dyn Target>, workers: usize) -> Self {
        const MEMORY_BYTES: u64 = 256 << 20;
        const RETRIES_MAX: u32 = 10;
        Self {
            source,
            target,
            on_target: binlog::gtids::GtidState::None,
            workers,
            policy: policy::DEFAULT,
            policy_options: PolicyOptions::default(),
            order: CommitOrder::Preserve,
            grouping: Grouping::Auto,
            keeps_branches: false,
            until: Until::default(),
            fill_gaps: false,
            until_end: false,
            start: StartAt::Default,
            relay_dir: PathBuf::new(),
            relay_filled: false,
            relay_bytes_max: 0,
            relay_sync: RelaySync::Never,
            server_id: 0,
            not_from: None,
            memory_bytes: MEMORY_BYTES,
            retries_max: RETRIES_MAX,
            source_retry: Duration::ZERO,
        }
    }
}
