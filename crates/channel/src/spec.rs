//! What a run of a channel depends on. It holds what was asked for; it opens and decides nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apply::Target;
use binlog::gtids::GtidState;
use engine::intake::{Filter, Selection};
use engine::policy::CommitOrder;
use engine::policy::{self, PolicyOptions, PolicySpec, Setting};
use engine::schedule::Grouping;

use relay::RealFs;
use relay::fs::Fs;

use crate::flow::memory::event_memory::EventMemory;
use crate::source::Source;
use crate::source::relay_sync::RelaySync;
use crate::start::wrong_start::{StartOrigin, WrongStart};
use crate::start::{RelayContents, StartRequest};
use crate::stop_condition::StopCondition;
use crate::workforce;

/// Everything that a run depends on, checked as far as it can be without the servers.
pub struct Spec {
    pub source: Source,
    /// Where the files of [`Source::Files`] are: on this machine, or in an archive.
    pub log_fs: Arc<dyn Fs>,
    pub target: Arc<dyn Target>,
    /// GTIDs that the target has executed, for where a new channel starts.
    pub on_target: GtidState,
    pub span: Span,
    pub applying: ApplySettings,
    pub relay: RelaySpec,
    pub replica: Replica,
    /// The part of the source that is taken; `None`: all.
    pub part: Option<Arc<Filter>>,
    /// The part is another than that of an earlier run, and the target's rows were made to fit.
    pub part_changed: bool,
}

/// From where to where in the source's log.
#[derive(Default)]
pub struct Span {
    pub start: StartRequest,
    pub origin: StartOrigin,
    pub wrong_start: WrongStart,
    pub until: StopCondition,
    pub end: End,
    /// The log of the time in which the target's rows are copied.
    pub of_copy: bool,
}

/// What ends a run beside [`StopCondition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Nothing.
    #[default]
    AsAsked,
    /// Live: the place where the source was when the run began.
    AtSourceEnd,
    /// Only what an earlier run has left out below what it had committed is applied.
    GapsFilled,
}

/// How transactions are ordered and applied.
#[derive(Clone)]
pub struct ApplySettings {
    pub workers: usize,
    /// There may be more of them while the target reads rows from its disk, if that [makes it faster](Target::reads_in_parallel).
    pub more_workers: bool,
    pub policy: &'static PolicySpec,
    pub policy_options: PolicyOptions,
    pub order: CommitOrder,
    pub grouping: Grouping,
    /// XA branches whose end is in the log already may be left unprepared.
    pub defers_branches: bool,
    pub memory_bytes: u64,
    /// How often one group may be retried before the channel stops.
    pub retries_max: u32,
    pub unsafe_statements: UnsafeResponse,
}

/// What follows from a statement whose result may be another on the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsafeResponse {
    /// A warning, once for each kind.
    #[default]
    Warn,
    /// The channel stops before it.
    Stop,
}

/// The relay log of a live source.
pub struct RelaySpec {
    pub dir: PathBuf,
    pub contents: RelayContents,
    pub bytes_max: u64,
    /// Without it a crash of the machine may cost the end of the relay log, never more: the target alone knows what is applied.
    pub sync: RelaySync,
}

/// What Heddle is towards the source.
#[derive(Default)]
pub struct Replica {
    pub server_id: u32,
    /// The target's own number, when transactions that began there must not come back to it.
    pub not_from: Option<u32>,
    /// For how long to try to reach a source that is gone.
    pub retry_for: Duration,
    /// The channel can be fed from another node: one that has left its group ends the run.
    pub has_other_nodes: bool,
}

impl Spec {
    /// What the policy has to know of the run.
    pub fn setting(&self) -> Setting<'_> {
        let ApplySettings { order, policy_options, .. } = &self.applying;
        Setting { order: *order, locks_rows: self.target.locks_rows(), options: policy_options }
    }

    /// How many workers there may come to be. More than at first only in the source's order, and where groups share target transactions: elsewhere
    /// each worker has its part of what waits from the start.
    pub(crate) fn most_workers(&self) -> usize {
        let ApplySettings { workers, more_workers, order, grouping, .. } = self.applying;
        let may_grow = more_workers && order == CommitOrder::Preserve && grouping != Grouping::Off;
        if may_grow && self.target.reads_in_parallel() { workforce::most(workers) } else { workers }
    }

    /// How large an event may be.
    pub(crate) fn event_memory(&self) -> EventMemory {
        EventMemory::new(self.applying.memory_bytes, self.target.footprint())
    }

    /// From the beginning to the end, without a relay log; callers change what they need.
    pub fn new(source: Source, target: Arc<dyn Target>, workers: usize) -> Self {
        Self {
            source,
            log_fs: Arc::new(RealFs),
            target,
            on_target: GtidState::None,
            span: Span::default(),
            applying: ApplySettings::new(workers),
            relay: RelaySpec::default(),
            replica: Replica::default(),
            part: None,
            part_changed: false,
        }
    }

    /// What of the source goes on.
    pub(crate) fn selection(&self) -> Selection {
        self.target.selection().filtered(self.part.clone())
    }

    /// The part of the source, as the target records it.
    pub fn part_text(&self) -> Option<String> {
        self.part.as_deref().map(ToString::to_string).filter(|text| !text.is_empty())
    }
}

impl ApplySettings {
    pub fn new(workers: usize) -> Self {
        const MEMORY_BYTES: u64 = 256 << 20;
        const RETRIES_MAX: u32 = 10;
        Self {
            workers,
            more_workers: false,
            policy: policy::DEFAULT,
            policy_options: PolicyOptions::default(),
            order: CommitOrder::Preserve,
            grouping: Grouping::Auto,
            defers_branches: false,
            memory_bytes: MEMORY_BYTES,
            retries_max: RETRIES_MAX,
            unsafe_statements: UnsafeResponse::default(),
        }
    }
}

impl Default for RelaySpec {
    fn default() -> Self {
        Self { dir: PathBuf::new(), contents: RelayContents::Nothing, bytes_max: 0, sync: RelaySync::Never }
    }
}
