//! Waiting until the target has applied a place of the source's log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use apply::mysql::operator::status;
use binlog::LogPosition;
use replica::questions;
use wire::ConnectOptions;

use super::place::{AppliedPlace, Follower, High, Progress};
use super::touches;
use crate::compare::server::Server;

const POLL: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(100);
/// After so long without progress: is there anything to apply, and does somebody apply it?
const STILL: Duration = Duration::from_secs(2);
/// One transaction can take long. After so long without progress the target is taken as it is.
const STILL_MAX: Duration = Duration::from_secs(600);

/// What all connections of a comparison share.
pub struct Ends {
    pub source: ConnectOptions,
    pub target: ConnectOptions,
    /// The name of the source for itself.
    pub identity: String,
    pub channel: Option<String>,
}

pub struct Waiter<'a> {
    ends: &'a Ends,
    progress: Progress,
    /// For reading the source's log.
    server_id: u32,
    last: AppliedPlace,
    /// Up to here there is nothing to apply that is not applied.
    covered: Option<LogPosition>,
    /// Nobody applies anything beyond it.
    is_stopped: bool,
    stop: &'a AtomicBool,
}

impl<'a> Waiter<'a> {
    pub fn new(target: &mut Server, ends: &'a Ends, server_id: u32, stop: &'a AtomicBool) -> Result<Self> {
        let (identity, channel) = (&ends.identity, ends.channel.as_deref());
        let progress = target.again(|connection| Progress::find(connection, identity.clone(), channel))?;
        Ok(Self { ends, progress, server_id, last: AppliedPlace::default(), covered: None, is_stopped: false, stop })
    }

    pub fn follower(&self) -> &Follower {
        &self.progress.follower
    }

    /// Nothing was applied when it was waited for last, and nobody will.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    pub fn applied(&mut self, target: &mut Server) -> Result<AppliedPlace> {
        self.last = target.again(|connection| self.progress.applied(connection))?;
        Ok(self.last.clone())
    }

    /// Whether the target has everything before `high`; false: it does not go on.
    pub fn wait(&mut self, target: &mut Server, high: &High) -> Result<bool> {
        if *self.follower() == Follower::Nobody || self.has_reached(high) {
            return Ok(true);
        }
        let (mut pause, mut before, mut standstill) = (POLL, self.last.clone(), Standstill::new(Instant::now()));
        loop {
            self.applied(target)?;
            if self.has_reached(high) {
                self.is_stopped = false;
                return Ok(true);
            }
            if !is_same(&before, &self.last) {
                (before, standstill, self.is_stopped) = (self.last.clone(), Standstill::new(Instant::now()), false);
            }
            if self.is_stopped {
                return Ok(false);
            }
            let now = Instant::now();
            if standstill.is_due(now) {
                if self.lacks_nothing(high) {
                    self.covered = Some(high.position.clone());
                    return Ok(true);
                }
                if standstill.is_over(now) || !self.runs(target)? {
                    tracing::warn!(
                        "nothing is applied on the target: rows that the log has changed since are not compared"
                    );
                    self.is_stopped = true;
                    return Ok(false);
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                bail!("stopped by a signal");
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    fn has_reached(&self, high: &High) -> bool {
        self.last.has_reached(high) || self.covered.as_ref().is_some_and(|covered| *covered >= high.position)
    }

    fn lacks_nothing(&self, high: &High) -> bool {
        let Some(applied) = &self.last.position else { return false };
        match touches::has_changes(&self.ends.source, self.server_id, applied, &high.position) {
            Ok(has_changes) => !has_changes,
            Err(error) => {
                tracing::debug!("{error:#}");
                false
            }
        }
    }

    fn runs(&self, target: &mut Server) -> Result<bool> {
        match self.follower() {
            Follower::Channel(name) => {
                let all = status::read(&self.ends.target).map_err(anyhow::Error::new)?;
                Ok(all.iter().any(|status| status.channel == *name && status.running))
            }
            Follower::Native(name) => {
                let all = target.again(|connection| questions::channels(connection, self.progress.native()))?;
                Ok(all.iter().any(|status| status.channel == *name && status.applier_runs))
            }
            Follower::Nobody => Ok(false),
        }
    }
}

/// How long nothing has been applied, and when to ask why: each question reads the source's log.
struct Standstill {
    since: Instant,
    next: Instant,
}

impl Standstill {
    fn new(now: Instant) -> Self {
        Self { since: now, next: now + STILL }
    }

    /// Once in each [`STILL`].
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + STILL;
        }
        is_due
    }

    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= STILL_MAX
    }
}

fn is_same(one: &AppliedPlace, other: &AppliedPlace) -> bool {
    one.position == other.position && one.gtids == other.gtids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_once_in_each_standstill() {
        let began = Instant::now();
        let mut standstill = Standstill::new(began);
        let mut check = |after: Duration, due: bool, over: bool| {
            let now = began + after;
            assert_eq!((standstill.is_due(now), standstill.is_over(now)), (due, over), "{after:?}");
        };
        check(POLL_MAX, false, false);
        check(STILL, true, false);
        check(STILL + POLL_MAX, false, false);
        check(STILL + POLL_MAX * 2, false, false);
        check(STILL * 2, true, false);
        check(STILL_MAX, true, true);
        check(STILL_MAX + POLL, false, true);
    }
}
