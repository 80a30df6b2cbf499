//! Waiting: until the target keeps up, until the source is read-only, until the target has all that the source has. Changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use apply::status::{ChannelStatus, State};
use copy::compare::log::place::{self, AppliedPlace, High, Progress, SourceLog};
use copy::compare::log::touches;
use engine::failure::{Failure, FailureKind};
use wire::{ConnectOptions, Connection};

use crate::request::ClosingMethod;
use crate::servers::read_only_state::ReadOnlyState;
use crate::servers::source;
use crate::servers::target;

/// Both servers, and what is asked of them again and again.
pub struct Drain<'a> {
    pub source: &'a mut Connection,
    pub target: &'a mut Connection,
    pub source_options: &'a ConnectOptions,
    pub target_options: &'a ConnectOptions,
    pub progress: &'a Progress,
    pub channel: &'a str,
    pub log: SourceLog,
    pub server_id: u32,
    pub timeout: Duration,
    pub stop: &'a AtomicBool,
}

const POLL: Duration = Duration::from_millis(20);
const POLL_MAX: Duration = Duration::from_millis(200);
/// A target that has applied within so long what the source had is near enough: the rest is waited for while nobody can write.
const NEAR: Duration = Duration::from_secs(2);
/// So long the source's log has to stand still.
const STILL: Duration = Duration::from_secs(1);
/// After so long without progress: is there anything to apply at all? Each question reads the source's log.
const STANDSTILL: Duration = Duration::from_secs(2);
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Between attempts to make the source read-only, in which others' statements go on.
const ATTEMPT_EVERY: Duration = Duration::from_secs(1);

/// It did not come in time, and may later.
fn late(message: String) -> anyhow::Error {
    Failure::new(FailureKind::Maintenance, message).into()
}

impl Drain<'_> {
    /// Until the target has, within [`NEAR`], what the source had: so the channel goes on, and the source is read-only for a short time only.
    pub fn catch_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let (end, noted) = (place::high(self.source, self.log)?, Instant::now());
            self.reach(&end, deadline)?;
            if noted.elapsed() <= NEAR {
                return Ok(());
            }
        }
    }

    /// Until the user has made the source read-only.
    pub fn wait_for_read_only(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        while !ReadOnlyState::read(self.source)?.is_read_only() {
            self.check_stop()?;
            if Instant::now() >= deadline {
                return Err(late(format!("the source was not made read-only within {} s", self.timeout.as_secs())));
            }
            sleep(POLL_MAX);
        }
        Ok(())
    }

    /// Makes the source read-only, between the statements of others.
    pub fn close(&mut self, state: &ReadOnlyState) -> Result<source::CloseAttempt> {
        let deadline = Instant::now() + self.timeout;
        loop {
            self.check_stop()?;
            match source::close(self.source, state)? {
                source::CloseAttempt::Busy => {}
                done => return Ok(done),
            }
            let under_way = source::statements(self.source)?.join("; ");
            if Instant::now() >= deadline {
                return Err(late(format!(
                    "statements under way on the source kept it from becoming read-only for {} s: {under_way}. Wait for them, or KILL them",
                    self.timeout.as_secs()
                )));
            }
            tracing::info!("the source becomes read-only once these statements have ended: {under_way}");
            sleep(ATTEMPT_EVERY);
        }
    }

    /// Until the target has everything and the source's log stands still. The place where it ends.
    pub fn finish(&mut self, closing: ClosingMethod) -> Result<High> {
        let deadline = Instant::now() + self.timeout;
        let mut moves = 0_u32;
        loop {
            let (end, noted) = (place::high(self.source, self.log)?, Instant::now());
            self.reach(&end, deadline)?;
            while noted.elapsed() < STILL {
                self.check_stop()?;
                sleep(POLL);
            }
            if closing != ClosingMethod::Stopped && !ReadOnlyState::read(self.source)?.is_read_only() {
                let message = "the source takes writes again: somebody made it writable, or it was restarted";
                return Err(Failure::new(FailureKind::Refused, message).into());
            }
            let now = place::high(self.source, self.log)?;
            if now.position == end.position && now.gtids == end.gtids {
                return Ok(end);
            }
            moves = moves.saturating_add(1);
            if Instant::now() >= deadline {
                let who = source::writers(self.source)?.unwrap_or_default().join(", ");
                return Err(late(format!(
                    "the source's log has not stood still for {} s ({} to {}): somebody writes to it. Accounts that may whatever read_only says: {who}",
                    self.timeout.as_secs(),
                    end.position,
                    now.position
                )));
            }
            if moves == 1 {
                tracing::warn!(
                    "the source's log goes on, from {} to {}: somebody writes to it still",
                    end.position,
                    now.position
                );
            }
        }
    }

    /// The source's log ends where it did, and the source takes no writes.
    pub fn check_stands(&mut self, end: &High, closing: ClosingMethod) -> Result<()> {
        let is_closed = closing == ClosingMethod::Stopped || ReadOnlyState::read(self.source)?.is_read_only();
        let now = place::high(self.source, self.log)?;
        if is_closed && now.position == end.position && now.gtids == end.gtids {
            return Ok(());
        }
        let message = format!(
            "the source's log has gone on since the target had all of it, from {} to {}: somebody wrote to it, made it writable, or it was restarted",
            end.position, now.position
        );
        Err(Failure::new(FailureKind::Refused, message).into())
    }

    /// Until the target has everything before `end`.
    fn reach(&mut self, end: &High, deadline: Instant) -> Result<()> {
        let (mut pause, mut told, mut asked) = (POLL, Instant::now(), Instant::now());
        let mut before = AppliedPlace::default();
        loop {
            self.check_stop()?;
            let applied = self.progress.applied(self.target)?;
            if applied.has_reached(end) {
                return Ok(());
            }
            if applied.position != before.position || applied.gtids != before.gtids {
                (before, asked) = (applied, Instant::now());
            } else if asked.elapsed() >= STANDSTILL {
                if self.lacks_nothing(&before, end) {
                    return Ok(());
                }
                asked = Instant::now();
            }
            let is_over = Instant::now() >= deadline;
            if is_over || told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                self.source.ping().context("the source is away")?;
                let channel = target::channel_status(self.target_options, self.channel)?;
                let text = standing(&channel, end);
                if is_over {
                    return Err(late(format!(
                        "the target has not applied all within {} s: {text}",
                        self.timeout.as_secs()
                    )));
                }
                tracing::info!("{text}");
            }
            sleep(pause);
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    /// A log that is rotated, or has only what is not applied, ends behind everything that there is to apply.
    fn lacks_nothing(&self, applied: &AppliedPlace, end: &High) -> bool {
        let Some(from) = &applied.position else { return false };
        match touches::has_changes(self.source_options, self.server_id, from, &end.position) {
            Ok(has_changes) => !has_changes,
            Err(error) => {
                tracing::debug!("{error:#}");
                false
            }
        }
    }

    fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::new(FailureKind::Stopped, "ended by a signal").into());
        }
        Ok(())
    }
}

/// Where the channel is, and what keeps it.
fn standing(channel: &ChannelStatus, end: &High) -> String {
    let doing = match (&channel.state, &channel.last_error, &channel.retrying) {
        (State::Stopped, ..) => "does not run: start it (heddle replicate)".to_owned(),
        (State::Failed, Some(error), _) => format!("does not run, it stopped with: {}", error.message),
        (State::Failed, None, _) => "does not run, it stopped with an error".to_owned(),
        (State::Paused, ..) => format!("is paused: heddle channel resume {}", channel.channel),
        (State::Copying, ..) => "is being copied".to_owned(),
        (State::WaitsForSource, ..) => "does not reach its source".to_owned(),
        (State::Retrying, _, Some(again)) => format!("tries again what failed on the target: {}", again.message),
        (State::Retrying, _, None) => "tries again what failed on the target".to_owned(),
        (State::WaitsForLock, ..) => "waits for a lock on the target".to_owned(),
        (State::Applying | State::Idle, ..) => "runs".to_owned(),
    };
    let at = channel.source_position.as_deref().unwrap_or("no place yet");
    format!("channel {} {doing}; applied up to {at} of {}", channel.channel, end.position)
}

#[cfg(test)]
mod tests {
    use binlog::LogPosition;

    use super::*;

    #[test]
    fn what_keeps_a_channel_is_said() {
        let end = High { position: LogPosition::new("b.000002", 900), gtids: "".parse().unwrap() };
        let check = |state: State, expected: &str| {
            let channel = ChannelStatus {
                state,
                source_position: Some("b.000002:400".to_owned()),
                ..ChannelStatus::new("shop".to_owned(), 1, Vec::new())
            };
            let text = standing(&channel, &end);
            assert!(text.contains(expected), "{text}");
            assert!(text.ends_with("applied up to b.000002:400 of b.000002:900"), "{text}");
        };
        check(State::Stopped, "does not run");
        check(State::Failed, "stopped with an error");
        check(State::Paused, "heddle channel resume shop");
        check(State::WaitsForSource, "does not reach its source");
        check(State::Retrying, "tries again");
        check(State::WaitsForLock, "waits for a lock");
        check(State::Applying, "channel shop runs;");
    }
}
