//! One run of one channel: opens both ends, starts the threads, waits for the end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use apply::Target;
use engine::group::Grouping;
use engine::policy::{PolicyName, PolicyOptions};
use engine::scheduler::CommitOrder;

use super::start::{self, StartAt};
use super::until::Until;
use crate::coordinator::Outcome;
use crate::flow::stats::Stats;
use crate::source::Source;
use crate::source::sync::RelaySync;
use crate::{feed, threads};

/// Everything that a run depends on, checked as far as it can be without the servers.
pub struct Spec {
    pub source: Source,
    pub target: Arc<dyn Target>,
    /// GTIDs that the target has executed, for where a new channel starts.
    pub on_target: binlog::gtids::GtidState,
    pub workers: usize,
    pub policy: PolicyName,
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
    /// A run of our own from the beginning, without a relay log: what a caller wants to be different it says.
    pub fn new(source: Source, target: Arc<dyn Target>, workers: usize) -> Self {
        const MEMORY_BYTES: u64 = 256 << 20;
        const RETRIES_MAX: u32 = 10;
        Self {
            source,
            target,
            on_target: binlog::gtids::GtidState::None,
            workers,
            policy: PolicyName::Writeset,
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

/// How a run went. Numbers are in the run's [`Stats`].
pub struct Finished {
    /// The last transaction that was applied before it.
    pub first_seq: engine::Seq,
    pub time: Duration,
    pub outcome: Outcome,
}

/// Runs until the end that was asked for, a signal, or a failure: the [`Outcome`] says which.
///
/// # Errors
/// The run could not begin: nothing was applied.
pub fn run(spec: &Spec, stats: &Arc<Stats>, stop: &Arc<AtomicBool>) -> Result<Finished> {
    let began = Instant::now();
    let target = Arc::clone(&spec.target);
    // A source that can not be used must not leave a channel behind on the target.
    let live = match &spec.source {
        Source::Live(options) => Some(feed::live_state(options)?),
        Source::Files(_) => None,
    };
    if let Some(source) = &live {
        start::two_servers(source, target.machine().map_err(anyhow::Error::new)?.as_deref())?;
    }
    spec.policy.check(spec.order, target.locks_rows())?;
    target.takes_order(spec.order).map_err(anyhow::Error::new)?;
    let opened = target.open().map_err(anyhow::Error::new)?;
    if let Some(intent) = &opened.intent {
        tracing::info!(
            "the last run ended while a statement that commits by itself was under way ({intent}): finding out what became of it"
        );
    }
    let feed = match (&spec.source, live) {
        (Source::Live(options), Some(_)) => {
            // Anew: a predecessor may have applied more until it gave the channel up.
            let source = feed::live_state(options)?;
            feed::of_server(spec, options, source, &opened, stats)?
        }
        (Source::Live(_), None) => bail!("the state of the live source was not read"),
        (Source::Files(files), _) => feed::of_files(spec, files, &opened)?,
    };
    if feed.start.is_new {
        tracing::info!("a new channel: it begins {}", start::described(&feed.start.mark));
    }
    if feed.start.is_new || feed.start.instead_of.is_some() {
        let text = start::source_text(&feed.identity, feed.start.by_gtid);
        target.start_at(&feed.start.mark, &text).map_err(anyhow::Error::new)?;
    }
    stats.set_mark(feed.start.mark.clone());
    let first_seq = feed.start.mark.seq;
    let outcome = threads::run(spec, feed, &opened, stats, stop)?;
    target.close();
    Ok(Finished { first_seq, time: began.elapsed(), outcome })
}
