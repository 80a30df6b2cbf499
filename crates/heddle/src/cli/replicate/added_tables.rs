//! `--copy` with a selection that takes more than the channel has taken so far: the tables that come to it are copied while it goes on, and are its own from then
//! on. The copy is a channel by itself until its place in the log is the channel's, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use apply::added_tables_channel;
use apply::mysql::BinlogChoice;
use apply::mysql::operator::stopped_channel::StoppedChannel;
use copy::{CopyPlace, RunningChannel};
use engine::failure::{Failure, FailureKind};
use engine::intake::{Changes, Filter};
use observe::summary::Summary;
use wire::ConnectOptions;

use super::first_copy::FirstCopy;
use crate::cli::copy::with_flag_of_its_own;
use crate::cli::selection::SelectionArgs;
use channel::spec::Spec;

/// So long the server may take to notice that the connections of a run have ended.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Tables that a channel does not take yet.
pub struct AddedTables {
    /// What it takes already.
    pub already: Arc<Filter>,
    /// Of their copy.
    pub channel: String,
}

impl AddedTables {
    /// `None`: the channel is new, or its selection is the one that it has had. `changes`: those of this run.
    pub fn find(channel: &str, spec: &Spec, changes: Changes) -> Result<Option<Self>> {
        let record = spec.target.peek().map_err(anyhow::Error::new)?;
        // One that takes all can not take more.
        let Some(text) = record.part.filter(|_| record.mark.is_some()) else { return Ok(None) };
        if record.is_copying || spec.part_changed || Some(&text) == spec.part_text().as_ref() {
            return Ok(None);
        }
        let already = SelectionArgs::recorded(&text, changes)
            .with_context(|| format!("the selection of channel {channel}, as the target has recorded it: {text}"))?;
        Ok(Some(Self { already: Arc::new(already), channel: added_tables_channel(channel) }))
    }

    /// From here on they are the channel's. Neither of the two runs, and both are at one place of the log.
    pub fn become_part_of(
        &self,
        channel: &str,
        options: &ConnectOptions,
        selection: Option<&str>,
        logged: BinlogChoice,
    ) -> Result<(), Failure> {
        let mut taken = StoppedChannel::take_within(options, channel, LOCK_WAIT)?;
        let _copy = StoppedChannel::take_within(options, &self.channel, LOCK_WAIT)?;
        taken.take_tables_of(&self.channel, selection, logged)
    }
}

/// Copies tables while their channel runs. Until both are at one place of the log. Returns the channel's run, if that has failed.
pub fn copy_beside(
    run: &ChannelRun<'_>,
    stop: &AtomicBool,
    first: &FirstCopy<'_>,
    spec: &Spec,
) -> Result<Option<Result<Summary>>> {
    let has_failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut beside = ChannelBeside::new(scope, run, stop, &has_failed);
        let copied = with_flag_of_its_own(&[stop, &has_failed], |stop| {
            FirstCopy { stop, ..*first }.run(spec, Some(&mut beside))
        });
        match beside.end() {
            Some(failed) => Ok(Some(failed)),
            None => copied.map(|_| None),
        }
    })
}

/// Runs the channel as it was: until its place of the log, if one is given, or until the flag is set.
pub type ChannelRun<'a> = dyn Fn(Option<&CopyPlace>, &Arc<AtomicBool>) -> Result<Summary> + Sync + 'a;

/// The channel, while tables are copied for it.
struct ChannelBeside<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    run: &'env ChannelRun<'env>,
    /// Of the process.
    stop: &'env AtomicBool,
    /// Set when the channel stops for a reason of its own: then the copy is of no use.
    has_failed: &'env AtomicBool,
    live: Option<LiveRun<'scope>>,
    failed: Option<Result<Summary>>,
}

struct LiveRun<'scope> {
    hold: Arc<AtomicBool>,
    thread: ScopedJoinHandle<'scope, Result<Summary>>,
}

impl<'scope, 'env> ChannelBeside<'scope, 'env> {
    pub fn new(
        scope: &'scope Scope<'scope, 'env>,
        run: &'env ChannelRun<'env>,
        stop: &'env AtomicBool,
        has_failed: &'env AtomicBool,
    ) -> Self {
        Self { scope, run, stop, has_failed, live: None, failed: None }
    }

    /// It does not run any more. Its run, if that has failed.
    pub fn end(mut self) -> Option<Result<Summary>> {
        // What it says is kept.
        let _ = self.hold();
        self.failed
    }

    fn ended(&mut self, run: Result<Summary>) -> Result<(), Failure> {
        if !is_failed(&run) {
            return Ok(());
        }
        self.failed = Some(run);
        Err(Failure::new(FailureKind::Stopped, "the channel stopped while tables were copied for it"))
    }
}

fn is_failed(run: &Result<Summary>) -> bool {
    run.as_ref().map_or(true, |summary| summary.error.is_some() || summary.handed_over)
}

impl RunningChannel for ChannelBeside<'_, '_> {
    fn go_on(&mut self) -> Result<(), Failure> {
        if self.live.is_some() {
            return Ok(());
        }
        let hold = Arc::new(AtomicBool::new(false));
        let (run, stop, has_failed, held) = (self.run, self.stop, self.has_failed, Arc::clone(&hold));
        let thread = self.scope.spawn(move || {
            let ended = with_flag_of_its_own(&[stop, &held], |stop| run(None, stop));
            if is_failed(&ended) {
                has_failed.store(true, Ordering::Relaxed);
            }
            ended
        });
        self.live = Some(LiveRun { hold, thread });
        Ok(())
    }

    fn hold(&mut self) -> Result<bool, Failure> {
        let Some(LiveRun { hold, thread }) = self.live.take() else { return Ok(false) };
        hold.store(true, Ordering::Relaxed);
        let ended = thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the thread of the channel has panicked")));
        self.ended(ended).map(|()| true)
    }

    fn apply_up_to(&mut self, place: &CopyPlace) -> Result<(), Failure> {
        self.hold()?;
        let (run, stop) = (self.run, self.stop);
        let ended = with_flag_of_its_own(&[stop], |stop| run(Some(place), stop));
        let was_stopped = ended.as_ref().is_ok_and(|summary| summary.stopped);
        self.ended(ended)?;
        if was_stopped {
            return Err(Failure::new(FailureKind::Stopped, "the copy was asked to end"));
        }
        Ok(())
    }
}
