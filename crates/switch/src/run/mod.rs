//! A switch from start to end: looks, closes the source, waits for the target, ends the channel, does what was asked for after that; and the way back from each step.
//!
//! The steps are elsewhere (`drain`, `source`, `target`); this puts them in order, records what is changed, and sets it back when one fails.

mod finish;
mod plan;
mod undo;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use apply::mysql::raise_lease;
use channel::errors::chain;
use copy::compare::log::place::{self, Follower, Progress, SourceLog};
use copy::compare::log::touches;
use copy::compare::{self, Counters, report as comparison};
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::drain::Drain;
use crate::findings::{self, Facts};
use crate::record::{self, Phase, Record, SavedState};
use crate::report::{Outcome, Report, SwitchedState};
use crate::request::{ClosingMethod, Request, Task};
use crate::servers::coordinates::Coordinates;
use crate::servers::read_only_state::{OPENING, ReadOnlyState};
use crate::servers::source::{self, CloseAttempt, SourceFacts};
use crate::servers::target::{self, ChannelEnd, TargetFacts};
use crate::servers::uninterrupted;

/// One run, with a connection to each server.
struct Switch<'r, 'a> {
    request: &'r Request<'a>,
    stop: &'r AtomicBool,
    source: Connection,
    /// The source's name for itself.
    identity: String,
    target: Connection,
    progress: Progress,
    channel: String,
    /// The connection that may still wait to make the source read-only; 0: none.
    closer: u64,
    closed_at: Option<Instant>,
    channel_ended: bool,
    /// What the source is to be again, whatever happens before the target has everything.
    before: Option<ReadOnlyState>,
    /// Since an earlier run has switched, somebody has written to the target.
    was_written: bool,
    report: Report,
}

/// Runs as far as it comes. The error is in the report as text.
pub fn run(request: &Request<'_>, stop: &AtomicBool) -> (Report, Option<anyhow::Error>) {
    let began = Instant::now();
    let (mut report, error) = match Switch::open(request, stop) {
        Err(error) => (Report { outcome: Outcome::Failed, ..Report::default() }, Some(error)),
        Ok(mut switch) => {
            let error = switch.run().err();
            if error.is_some() && switch.report.outcome == Outcome::Looked {
                switch.report.outcome = Outcome::Failed;
            }
            (std::mem::take(&mut switch.report), error)
        }
    };
    report.error = error.as_ref().map(chain);
    report.seconds = began.elapsed().as_secs_f64();
    (report, error)
}

fn refused(message: impl Into<String>) -> anyhow::Error {
    Failure::new(FailureKind::Refused, message).into()
}

impl<'r, 'a> Switch<'r, 'a> {
    fn open(request: &'r Request<'a>, stop: &'r AtomicBool) -> Result<Self> {
        let mut source = source::connect(&request.source)?;
        let identity = wire::source::identity(&mut source).context("who the source is")?;
        let mut target = target::connect(&request.target)?;
        let progress = Progress::find(&mut target, identity.clone(), request.channel.as_deref())?;
        let channel = match &progress.follower {
            Follower::Channel(name) => name.clone(),
            Follower::Native(_) => {
                bail!("the target is fed by its own replication: a switch is for a channel of heddle")
            }
            Follower::Nobody => {
                bail!("no channel of heddle has run into this target: start one (heddle replicate --copy)")
            }
        };
        let report = Report {
            source: request.source.address(),
            target: request.target.address(),
            channel: channel.clone(),
            ..Report::default()
        };
        Ok(Self {
            request,
            stop,
            source,
            identity,
            target,
            progress,
            channel,
            closer: 0,
            closed_at: None,
            channel_ended: false,
            before: None,
            was_written: false,
            report,
        })
    }

    fn say(&self, text: &str) {
        self.request.say(text);
    }

    fn run(&mut self) -> Result<()> {
        // What is read here stays so: nobody else switches the channel from now on.
        if self.request.task != Task::DryRun {
            record::lock(&mut self.target, &self.channel)?;
        }
        let found = record::read(&mut self.target, &self.channel)?;
        if let Some(found) = &found {
            self.report.continued = Some(found.phase.name());
            self.say(&format!(
                "record    an earlier switch of channel {} (begun {}) has come to: {}",
                self.channel,
                found.began,
                found.phase.name()
            ));
            self.check_source(&found.saved)?;
        }
        match (self.request.task, found) {
            (Task::DryRun, found) => self.dry_run(found.as_ref()),
            (Task::Undo, None) => {
                self.say(&format!(
                    "no switch of channel {} is recorded on the target: nothing was changed",
                    self.channel
                ));
                Ok(())
            }
            (Task::Undo, Some(found)) => self.undo(&found),
            (Task::Switch, Some(found)) if found.phase == Phase::Switched => self.go_on(found.saved),
            (Task::Switch, Some(found)) if found.phase == Phase::Ending => {
                record::save(&mut self.target, &self.channel, Phase::Closing, &found.saved)?;
                self.switch(Some(Record { phase: Phase::Closing, ..found }))
            }
            (Task::Switch, found) => self.switch(found),
        }
    }

    fn check_source(&mut self, saved: &SavedState) -> Result<()> {
        let identity = &self.identity;
        if saved.source != *identity {
            return Err(refused(format!(
                "the recorded switch is of the source {}, and --from is {identity}",
                saved.source
            )));
        }
        Ok(())
    }

    fn drain(&mut self, log: SourceLog) -> Drain<'_> {
        Drain {
            source: &mut self.source,
            target: &mut self.target,
            source_options: &self.request.source,
            target_options: &self.request.target,
            progress: &self.progress,
            channel: &self.channel,
            log,
            server_id: self.request.server_id,
            timeout: self.request.timeout,
            stop: self.stop,
        }
    }

    /// Looks at both, and says what is found.
    fn look(&mut self, found: Option<&Record>) -> Result<(SourceFacts, TargetFacts)> {
        let source = SourceFacts::read(&mut self.source).context("looking at the source")?;
        let target = TargetFacts::read(&mut self.target, &self.request.target, &self.channel)
            .context("looking at the target")?;
        let earlier = found.map(|found| found.phase);
        let (closing, after) = (self.request.closing, &self.request.after);
        let facts = Facts { source: &source, target: &target, closing, after, earlier };
        self.report.findings = findings::judge(&facts);
        self.say(&format!("source    {} at {}: {}", source.describe, self.report.source, source.read_only.describe()));
        self.say(&format!(
            "target    {} at {}: {}, channel {}",
            target.describe,
            self.report.target,
            target.read_only.describe(),
            self.channel
        ));
        for (kind, texts) in [
            ("refused", &self.report.findings.refused),
            ("warning", &self.report.findings.warnings),
            ("note   ", &self.report.findings.notes),
        ] {
            for text in texts {
                self.say(&format!("{kind}   {text}"));
            }
        }
        Ok((source, target))
    }

    fn switch(&mut self, found: Option<Record>) -> Result<()> {
        let (source, _) = self.look(found.as_ref())?;
        if !self.report.findings.refused.is_empty() {
            self.report.outcome = if found.is_some() { Outcome::Unfinished } else { Outcome::Refused };
            if found.is_some() {
                self.say("the source is as the earlier switch has left it: --undo sets it back");
            } else {
                self.say("nothing was changed");
            }
            return Ok(());
        }
        if !source.read_only.is_read_only() {
            self.say(&format!("keeps up  waiting until channel {} has applied what the source has now", self.channel));
            self.drain(source.log).catch_up().context("nothing was changed")?;
        }
        let closes = self.request.closing == ClosingMethod::ReadOnly && source.cannot_close.is_none();
        let is_new = found.is_none();
        let mut saved = found.map_or_else(|| new_record(&source), |found| found.saved);
        if closes && saved.source_before.is_none() {
            saved.source_before = Some(source.read_only.clone());
        }
        if is_new {
            record::begin(&mut self.target, &self.channel, &saved)?;
        } else {
            record::save(&mut self.target, &self.channel, Phase::Closing, &saved)?;
        }
        self.before.clone_from(&saved.source_before);
        let done = self.close_and_drain(&source, &mut saved);
        self.before = None;
        if let Err(error) = done {
            self.set_back(&saved);
            return Err(error);
        }
        self.finish(saved)
    }

    /// All that can be set back.
    fn close_and_drain(&mut self, source: &SourceFacts, saved: &mut SavedState) -> Result<()> {
        self.close(source, saved)?;
        self.closed_at = Some(Instant::now());
        if let Some(count @ 1..) = source::prepared(&mut self.source)? {
            return Err(refused(format!(
                "{count} XA transactions are prepared on the source (XA RECOVER): stop who uses XA, end them, and switch then"
            )));
        }
        let closing = self.request.closing;
        let mut end = self.drain(source.log).finish(closing)?;
        self.say(&format!("applied   the target has all of the source's log, which ends at {}", end.position));
        if self.request.comparison.is_some() {
            self.compare()?;
            // That takes its time.
            end = self.drain(source.log).finish(closing)?;
        }
        saved.end = Some(end.position.to_string());
        record::save(&mut self.target, &self.channel, Phase::Ending, saved)?;
        self.end_channel()?;
        raise_lease(&mut self.target, &self.channel, None).map_err(anyhow::Error::new)?;
        // Also where its process runs still: it ends with its next commit.
        self.channel_ended = true;
        self.drain(source.log).check_stands(&end, closing)?;
        saved.coordinates = Coordinates::read(&mut self.target)?;
        record::save(&mut self.target, &self.channel, Phase::Switched, saved)
    }

    /// What is not recorded is not changed.
    fn close(&mut self, source: &SourceFacts, saved: &mut SavedState) -> Result<()> {
        let closes = self.request.closing == ClosingMethod::ReadOnly && saved.source_before.is_some();
        let mut waits = self.request.closing != ClosingMethod::Stopped && !closes;
        if closes {
            self.closer = self.source.server().connection_id;
            match self.drain(source.log).close(&source.read_only)? {
                CloseAttempt::Denied(why) => {
                    self.say(&format!("the account may not make the source read-only: {why}"));
                    saved.source_before = None;
                    record::save(&mut self.target, &self.channel, Phase::Closing, saved)?;
                    waits = true;
                }
                CloseAttempt::Closed | CloseAttempt::Busy => {
                    let now = ReadOnlyState::read(&mut self.source)?;
                    let undoing = saved.source_before.as_ref().map_or(OPENING, ReadOnlyState::undoing);
                    self.say(&format!("closed    the source is {}. Undo: {undoing}", now.describe()));
                }
            }
        }
        if waits {
            let is_closed = ReadOnlyState::read(&mut self.source)?.is_read_only();
            if !is_closed {
                self.say(&format!("waiting   execute on the source: {}", source.read_only.closing()));
            }
            self.drain(source.log).wait_for_read_only()?;
            self.say(&format!("closed    the source is read-only. Undo: {OPENING}"));
        }
        if self.request.closing == ClosingMethod::Stopped {
            self.say("closed    by you: nobody writes to the source (--writes-stopped)");
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<()> {
        let Some(asked) = &self.request.comparison else { return Ok(()) };
        self.say("compare   reading the rows of both");
        let report = compare::compare(&asked.request, asked.choice, &Counters::default(), None, self.stop);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::new(FailureKind::Stopped, "ended by a signal").into());
        }
        let report = report?;
        self.say(report.text().trim_end());
        let outcome = report.outcome;
        self.report.comparison = Some(report);
        match outcome {
            comparison::Outcome::Equal => Ok(()),
            comparison::Outcome::Different => {
                Err(Failure::new(FailureKind::Divergence, "the rows of source and target differ").into())
            }
            comparison::Outcome::Repaired | comparison::Outcome::Unsettled => Err(refused(
                "some rows could not be compared: is the channel stopped, or does somebody write to the target?",
            )),
        }
    }

    fn end_channel(&mut self) -> Result<()> {
        let end = target::end_channel(&self.request.target, &self.channel)?;
        let runs = match end {
            ChannelEnd::Ended => {
                self.channel_ended = true;
                self.say(&format!(
                    "channel   {} has ended. Do not start it again: switch its service off",
                    self.channel
                ));
                None
            }
            ChannelEnd::Runs { owner, why } => {
                let text = format!("{owner}: {why}");
                self.say(&format!(
                    "channel   {} runs still ({text}): end it, before the channel back is started",
                    self.channel
                ));
                Some(text)
            }
        };
        self.report.switched = Some(SwitchedState { channel_runs: runs, ..SwitchedState::default() });
        Ok(())
    }

    /// After a failure: the source is what it was, or that is said.
    fn set_back(&mut self, saved: &SavedState) {
        self.report.switched = None;
        let is_different =
            self.report.comparison.as_ref().is_some_and(|report| report.outcome == comparison::Outcome::Different);
        self.report.outcome = if is_different { Outcome::Different } else { Outcome::Failed };
        let Some(before) = &saved.source_before else {
            self.say(&format!(
                "the source is as you have made it, heddle has not changed it. To take writes there: {OPENING}"
            ));
            self.forget_record();
            return self.say_channel();
        };
        match source::restore(&self.request.source, &self.identity, before, self.closer) {
            Ok(_) => {
                self.say(&format!("set back  the source is {}, as it was", before.describe()));
                self.forget_record();
            }
            Err(error) => {
                self.report.outcome = Outcome::Unfinished;
                self.say(&format!(
                    "THE SOURCE MAY STILL BE READ-ONLY: setting it back failed ({}). Execute there: {}; or run the same command with --undo",
                    chain(&error),
                    before.undoing()
                ));
            }
        }
        self.say_channel();
    }

    fn say_channel(&self) {
        if self.channel_ended {
            self.say(&format!("channel {} was ended: start it again, it goes on where it was", self.channel));
        }
    }

    /// What is set back needs no record. The target may be away: then the record stays, and says what is so anyway.
    fn forget_record(&self) {
        let remove = || record::remove(&mut target::connect(&uninterrupted(&self.request.target))?, &self.channel);
        if let Err(error) = remove() {
            tracing::warn!(
                "the record of the switch stays on the target ({}): heddle switch --undo removes it",
                chain(&error)
            );
        }
    }

    /// A switch that was interrupted behind its end.
    fn go_on(&mut self, saved: SavedState) -> Result<()> {
        let source = SourceFacts::read(&mut self.source).context("looking at the source")?;
        let is_open = saved.source_before.is_some() && !source.read_only.is_read_only();
        if is_open || self.has_changes_since(&saved, &source)? {
            return Err(refused(
                "channel was switched before, and the source takes writes again: what is written there reaches the target no more. To make it the source again, \
                 bring its rows up to the target's with the channel back; then heddle channel forget this channel on the target",
            ));
        }
        let runs = match target::end_channel(&self.request.target, &self.channel)? {
            ChannelEnd::Ended => None,
            ChannelEnd::Runs { owner, why } => Some(format!("{owner}: {why}")),
        };
        self.report.switched = Some(SwitchedState { channel_runs: runs, ..SwitchedState::default() });
        self.was_written = Coordinates::read(&mut self.target)?.as_ref() != saved.rest();
        self.finish(saved)
    }

    /// Something was written to the source behind the place where an earlier switch has found its end.
    fn has_changes_since(&self, saved: &SavedState, source: &SourceFacts) -> Result<bool> {
        let end = saved.end.as_deref().context("the record of the switch has no end of the source's log")?;
        let end = end.parse().map_err(|error| anyhow!("the record of the switch: {end:?}: {error}"))?;
        let mut connection = source::connect(&self.request.source)?;
        let now = place::high(&mut connection, source.log)?;
        touches::has_changes(&self.request.source, self.request.server_id, &end, &now.position)
    }

    /// The target has everything: what is left is done there. A failure from here on does not open the source.
    fn finish(&mut self, mut saved: SavedState) -> Result<()> {
        self.report.outcome = Outcome::Unfinished;
        let done = self.finish_target(&mut saved);
        if done.is_err() {
            let is_closed = ReadOnlyState::read(&mut self.source).is_ok_and(|state| state.is_read_only());
            let source = if is_closed {
                "the source stays read-only"
            } else {
                "the source was not seen to be read-only: keep applications away from it"
            };
            self.say(&format!(
                "the target has everything, and {source}: the same command again does the rest, --undo sets the source back"
            ));
        }
        done?;
        self.report.outcome = Outcome::Switched;
        self.say("switched  point the applications to the target");
        Ok(())
    }
}

/// A bug that ends the process on its way does not leave the source closed.
impl Drop for Switch<'_, '_> {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        if let Err(error) = source::restore(&self.request.source, &self.identity, &before, self.closer) {
            tracing::error!(
                "the source may still be read-only: {}. Execute there: {}",
                chain(&error),
                before.undoing()
            );
        }
    }
}

fn new_record(source: &SourceFacts) -> SavedState {
    SavedState {
        heddle: env!("CARGO_PKG_VERSION").to_owned(),
        source: source.identity.clone(),
        source_before: None,
        target_before: None,
        end: None,
        coordinates: None,
        rest: None,
    }
}
