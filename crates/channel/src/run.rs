//! One run of one channel: opens both ends, starts the threads, waits for the end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Result, bail};
use apply::{ChannelRecord, Target};
use engine::Seq;
use engine::failure::{Failure, FailureKind};

use crate::checks;
use crate::errors::of_error;
use crate::heartbeat::Heartbeat;
use crate::monitor::Monitor;
use crate::outcome::{Outcome, RunEnd};
use crate::source::Source;
use crate::source::open;
use crate::spec::Spec;
use crate::start::Extent;
use crate::start::source_state::SourceState;
use crate::start::wrong_start::{self, WrongStart};
use crate::{start, threads};

/// Runs until the end that was asked for, a signal, or a failure: the outcome says which.
///
/// # Errors
/// The run could not begin: nothing was applied.
pub fn run(spec: &Spec, monitor: &Monitor, stop: &Arc<AtomicBool>) -> Result<RunEnd> {
    let began = Instant::now();
    let target = Arc::clone(&spec.target);
    // Before the source is asked: the other way round a running channel has applied more than the source seems to have.
    let peeked = target.peek();
    let source_reach = monitor.signals().source();
    // If the source cannot be used, no channel must be left on the target.
    let live = match &spec.source {
        Source::Live(options) => Some(open::read_state_in_time(options, spec.replica.retry_for, source_reach, stop)?),
        Source::Files(_) => None,
    };
    if live.as_ref().is_some_and(|live| live.needs_password_cache) {
        tracing::warn!("{}", wire::reach::password_cache_warning("source"));
    }
    checks::first(checks::before_opening(spec, live.as_ref()))?;
    if let Ok(peeked) = &peeked {
        checks::first(checks::unfinished_copy(spec, peeked).into_iter().collect())?;
    }
    // Of one that is there already the target remembers the failure: it has to be opened for that.
    if let Ok(new) = &peeked
        && new.mark.is_none()
    {
        checks::first(checks::of_start(spec, live.as_ref(), new).1)?;
    }
    let opened = target.open().map_err(anyhow::Error::new)?;
    let heartbeat = Heartbeat::start(&target, monitor.signals(), stop)?;
    let mut done = run_opened(spec, &opened, live, monitor, stop);
    if let (Err(error), Some(given_up)) = (&done, heartbeat.given_up())
        && is_of_node(&of_error(error))
    {
        done = Err(anyhow::Error::new(given_up));
    }
    if let Ok((_, outcome)) = &mut done {
        complete_gtids(spec, outcome);
        let given_up = heartbeat.given_up();
        if given_up.is_some() && outcome.failure.as_ref().is_none_or(is_of_node) {
            outcome.failure = given_up;
        } else if let Some(failure) = &mut outcome.failure {
            tell_fences_apart(&*target, failure);
        } else if heartbeat.is_handing_over() && outcome.stopped {
            outcome.handed_over = true;
            outcome.failure = Some(handed_over());
        }
    }
    drop(heartbeat);
    let stops = match &done {
        Ok((_, outcome)) => outcome.failure.clone(),
        Err(error) => Some(of_error(error)),
    };
    if let Some(failure) = &stops {
        target.record_stop(failure);
    }
    let (first_seq, outcome) = done?;
    target.close();
    Ok(RunEnd { first_seq, time: began.elapsed(), outcome })
}

/// Everything is applied that was under way. With `--standby` this is no end of the process.
fn handed_over() -> Failure {
    Failure::new(FailureKind::Fenced, "the channel was handed over to another process, as was asked")
        .remedy("nothing is to be done: the other process goes on. To have this one wait for its turn, start it again, with --standby")
}

/// The fence fails when another Heddle has the channel, and when something else has changed its progress. Who holds the lease tells which.
fn tell_fences_apart(target: &dyn Target, failure: &mut Failure) {
    if failure.kind != FailureKind::Fenced || target.still_held().is_err() {
        return;
    }
    failure.kind = FailureKind::Refused;
    failure.message =
        format!("the channel's progress was changed on the target, and not by another heddle: {}", failure.message);
    "find out what changes Heddle's own tables there (a person, a trigger, a second channel of replication into them), and end that; then the row of progress: \
     restore it from the last `heddle status`, or load the target anew"
        .clone_into(&mut failure.remedy);
}

/// What follows from a node that is gone.
fn is_of_node(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Stopped | FailureKind::ConnectionLost | FailureKind::Maintenance)
}

/// What is reported as applied is so by its GTIDs as well. A target that is away has them added by the next run.
fn complete_gtids(spec: &Spec, outcome: &mut Outcome) {
    let is_away = |failure: &Failure| {
        matches!(failure.kind, FailureKind::ConnectionLost | FailureKind::Fenced | FailureKind::Stopped)
    };
    if outcome.failure.as_ref().is_some_and(is_away) {
        return;
    }
    if let Err(failure) = spec.target.complete_gtids() {
        outcome.failure.get_or_insert(failure);
    }
}

/// From where the target says that the channel is. Returns the last transaction that was applied before, too.
fn run_opened(
    spec: &Spec,
    opened: &ChannelRecord,
    live: Option<SourceState>,
    monitor: &Monitor,
    stop: &Arc<AtomicBool>,
) -> Result<(Seq, Outcome)> {
    let target = &spec.target;
    let source_reach = monitor.signals().source();
    if let Some(intent) = &opened.intent {
        tracing::info!(
            "the last run ended while a statement that commits by itself was under way ({intent}): finding out what became of it"
        );
    }
    let source = match (&spec.source, live) {
        // Read again: until it gave the channel up, another process may have applied more.
        (Source::Live(options), Some(_)) => {
            Some(open::read_state_in_time(options, spec.replica.retry_for, source_reach, stop)?)
        }
        (Source::Live(_), None) => bail!("the state of the live source was not read"),
        (Source::Files(_), _) => None,
    };
    checks::first(checks::of_start(spec, source.as_ref(), opened).1)?;
    let mut opened_source = match (&spec.source, source) {
        (Source::Live(options), Some(source)) => open::server(spec, options, source, opened, monitor)?,
        (Source::Live(_), None) => bail!("the state of the live source was not read"),
        (Source::Files(files), _) => open::files(spec, files, opened)?,
    };
    if let Some(passed) = &opened_source.start.passed {
        tracing::info!("{passed}; it goes on {}", start::described(&opened_source.start.mark));
    }
    if let Some(former) = &opened_source.start.instead_of {
        tracing::info!("the source was {former} and is {} now: going on by GTID", opened_source.identity);
    }
    for warning in &opened_source.start.warnings {
        tracing::warn!("{warning}");
    }
    if opened_source.start.is_new {
        tracing::info!("a new channel: it begins {}", start::described(&opened_source.start.mark));
    }
    if spec.span.wrong_start == WrongStart::Accept {
        // The rows that are there came from somewhere else.
        opened_source.start.extent = Extent::Rest;
    }
    // Before a new channel is there: a run that is killed here begins anew.
    if opened.part.as_deref() != spec.part_text().as_deref() {
        target.record_part(spec.part_text().as_deref()).map_err(anyhow::Error::new)?;
    }
    if let Some(part) = &spec.part_text() {
        tracing::info!("only a part of the source is taken: {part}");
    }
    if opened_source.start.is_new || opened_source.start.instead_of.is_some() {
        let text = opened_source.start.source_text(&opened_source.identity);
        target.start_at(&opened_source.start.mark, &text).map_err(anyhow::Error::new)?;
    }
    monitor.signals().advance(opened_source.start.mark.clone());
    let first_seq = opened_source.start.mark.seq;
    let start = opened_source.start.clone();
    let mut outcome = threads::run(spec, opened_source, opened, monitor, stop)?;
    if spec.span.wrong_start != WrongStart::Known {
        let applied = monitor.snapshot().committed.seq;
        outcome.failure =
            outcome.failure.map(|failure| wrong_start::suspected(failure, applied, &start, spec.span.origin));
    }
    Ok((first_seq, outcome))
}
