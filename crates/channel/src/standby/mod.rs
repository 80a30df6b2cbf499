//! Waiting for a channel that another process has: the source's log is received meanwhile, into this process's own relay log. It applies nothing, and takes nothing over itself:
//! once it is this process's turn, an ordinary run begins, with the relay log that is there.

mod standby_receiver;
mod watchman;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use apply::standby::{ChannelView, SourceContact, StandbyReport};
use apply::status::LastError;
use apply::{ChannelRecord, Standby};
use engine::failure::{Failure, FailureKind};

use self::standby_receiver::StandbyReceiver;
pub use self::watchman::Turn;
use self::watchman::{SILENCE, Verdict, Watchman};
use crate::monitor::Monitor;
use crate::snapshot::StandbyState;
use crate::source::Source;
use crate::spec::Spec;

const LOOK: Duration = Duration::from_millis(200);
/// Between two looks at how far the channel is.
const ASK_CHANNEL: Duration = Duration::from_secs(2);
/// Between two reports to the target.
const REPORT: Duration = Duration::from_secs(5);
const LOG: Duration = Duration::from_secs(60);

/// Why it waits no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// It is this process's turn.
    Turn,
    /// The process is to end.
    Stopped,
}

/// Waits until it is this process's turn, or until it is to end.
///
/// # Errors
/// Nobody can wait for this channel.
pub fn wait(spec: &Arc<Spec>, monitor: &Arc<Monitor>, stop: &AtomicBool, turn: Turn) -> Result<WaitEnd> {
    let Source::Live(_) = spec.source else { bail!("--standby: binary log files need none: from a live source only") };
    let Some(place) = spec.target.standby() else { bail!("--standby: into a server only: mysql://…") };
    let mut waiting = StandbyProcess {
        monitor,
        place,
        watchman: Watchman::new(turn, Instant::now()),
        turn,
        known: None,
        receiving: None,
        state: StandbyState::default(),
        reported: None,
        asked_channel: None,
        logged: Instant::now(),
        is_blind: false,
    };
    let end = waiting.run(spec, stop);
    let StandbyProcess { receiving, mut place, .. } = waiting;
    if let Some(receiving) = receiving {
        receiving.end();
    }
    place.leave();
    monitor.show_standby(None);
    Ok(end)
}

struct StandbyProcess<'a> {
    monitor: &'a Arc<Monitor>,
    place: Box<dyn Standby>,
    watchman: Watchman,
    turn: Turn,
    /// The run that has the channel, or had it last.
    known: Option<KnownRun>,
    receiving: Option<StandbyReceiver>,
    state: StandbyState,
    reported: Option<Instant>,
    asked_channel: Option<Instant>,
    logged: Instant,
    /// The target cannot be asked.
    is_blind: bool,
}

struct KnownRun {
    epoch: u64,
    /// When the channel had stopped with an error before this run, microseconds since 1970.
    stopped_before_us: Option<u64>,
}

/// A source that has nothing to send sends a heartbeat each second.
const HEARD_WITHIN: Duration = Duration::from_millis(1300);

const SWITCHING: &str =
    "heddle switch ends the channel; if it was killed: the same command again, or heddle switch --undo";

impl StandbyProcess<'_> {
    fn run(&mut self, spec: &Arc<Spec>, stop: &AtomicBool) -> WaitEnd {
        while !stop.load(Ordering::Relaxed) {
            match self.step(spec) {
                Ok(true) => return WaitEnd::Turn,
                Ok(false) => {
                    if std::mem::take(&mut self.is_blind) {
                        apply::retry::target_is_reached();
                    }
                }
                Err(failure) => {
                    self.is_blind = true;
                    self.watchman.lost_sight(Instant::now());
                    apply::retry::target_is_lost(&failure.to_string());
                }
            }
            std::thread::sleep(LOOK);
        }
        WaitEnd::Stopped
    }

    /// True: it is this process's turn.
    fn step(&mut self, spec: &Arc<Spec>) -> Result<bool, Failure> {
        let seen = self.place.look()?;
        let is_first = self.known.is_none();
        // Nobody had it when this process was started: then somebody wants it to run.
        if is_first && seen.holder.is_none() && seen.sign.is_none() && !seen.is_partial && self.turn == Turn::First {
            return Ok(true);
        }
        self.know_run(&seen)?;
        if is_first {
            self.begin(spec, &seen)?;
        }
        // One that has just begun has heard nothing yet. Of a source that is gone the one hears the last heartbeat up to a second later than the other: so what counts
        // is the last one, not that none is missing yet.
        let heard = self.monitor.signals().heard();
        let hears = heard.has_heard() && heard.silence() < HEARD_WITHIN;
        let own = if hears { self.monitor.signals().source_contact() } else { SourceContact::Lost };
        let verdict = self.watchman.judge(Instant::now(), &seen, own);
        match verdict {
            Verdict::Wait => {
                self.place.withdraw();
                self.tell(None);
            }
            Verdict::Ask => {
                self.place.ask()?;
                self.tell(None);
            }
            Verdict::Silent(holder) => {
                tracing::warn!(
                    "{} has given no sign of life for {:.1} s: taking the channel over",
                    self.state.owner,
                    SILENCE.as_secs_f64()
                );
                self.place.end_holder(holder)?;
                return Ok(true);
            }
            // Nothing is written meanwhile: whoever switches notes where the target's log is.
            Verdict::Free if self.place.is_being_switched()? => {
                self.tell(Some(SWITCHING.to_owned()));
                return Ok(false);
            }
            Verdict::Free => match self.obstacle(&seen)? {
                None => {
                    tracing::info!("no process has the channel: taking it over");
                    return Ok(true);
                }
                obstacle => self.tell(obstacle),
            },
        }
        self.follow_channel()?;
        self.report();
        Ok(false)
    }

    /// Each run that takes the channel is another.
    fn know_run(&mut self, seen: &ChannelView) -> Result<(), Failure> {
        let is_known = self.known.as_ref().is_some_and(|known| known.epoch == seen.epoch || seen.holder.is_none());
        if !is_known {
            let stopped_before_us = self.place.last_stop()?.map(|stop| stop.time_us);
            self.state.owner = self.place.owner()?;
            self.known = Some(KnownRun { epoch: seen.epoch, stopped_before_us });
            if self.receiving.is_some() {
                tracing::info!("standby: {} has the channel now", self.state.owner);
                self.monitor.show_standby(Some(self.state.clone()));
            }
        }
        Ok(())
    }

    fn begin(&mut self, spec: &Arc<Spec>, seen: &ChannelView) -> Result<(), Failure> {
        let who = match seen.holder {
            Some(_) => format!("{} has the channel", self.state.owner),
            None => "no process has the channel yet".to_owned(),
        };
        tracing::info!("standby: {who}; this process receives the source's log and waits");
        self.monitor.show_standby(Some(self.state.clone()));
        let receiving = StandbyReceiver::start(spec, self.monitor)
            .map_err(|error| Failure::new(FailureKind::Exhausted, format!("{error:#}")))?;
        self.receiving = Some(receiving);
        Ok(())
    }

    /// Why the channel is not taken although no process has it.
    fn obstacle(&mut self, seen: &ChannelView) -> Result<Option<String>, Failure> {
        if seen.is_asked {
            return Ok(None);
        }
        let before_us = self.known.as_ref().and_then(|known| known.stopped_before_us);
        let Some(stop) = self.place.last_stop()?.filter(|stop| Some(stop.time_us) != before_us) else {
            return Ok(None);
        };
        if !needs_person(&stop) || is_skipped(&stop, &self.place.channel()?) {
            return Ok(None);
        }
        Ok(Some(format!(
            "the channel has stopped with an error, and would stop here at the same place: {}",
            stop.message
        )))
    }

    /// What keeps this process from its turn, once.
    fn tell(&mut self, obstacle: Option<String>) {
        if self.state.obstacle == obstacle {
            return;
        }
        if let Some(why) = &obstacle {
            tracing::warn!(
                remedy = "mend it as its message and `heddle status` say; then start a process of the channel again, or have this one take it: heddle channel takeover",
                "standby: {why}"
            );
        }
        self.state.obstacle = obstacle;
        self.monitor.show_standby(Some(self.state.clone()));
        self.reported = None;
    }

    /// What is applied already need not be kept.
    fn follow_channel(&mut self) -> Result<(), Failure> {
        if self.asked_channel.is_some_and(|at| at.elapsed() < ASK_CHANNEL) {
            return Ok(());
        }
        let record = self.place.channel()?;
        if let Some(mark) = &record.mark {
            self.monitor.signals().advance(mark.clone());
        }
        if let Some(receiving) = &self.receiving {
            receiving.follow(record);
        }
        // It is recorded a moment after the lease.
        let owner = self.place.owner()?;
        if owner != self.state.owner {
            self.state.owner = owner;
            self.monitor.show_standby(Some(self.state.clone()));
        }
        self.asked_channel = Some(Instant::now());
        Ok(())
    }

    fn report(&mut self) {
        let is_due = |at: Instant| at.elapsed() >= REPORT;
        if !self.reported.is_none_or(is_due) {
            return;
        }
        self.reported = Some(Instant::now());
        let seen = self.monitor.snapshot();
        let mut report =
            StandbyReport { obstacle: self.state.obstacle.clone().unwrap_or_default(), ..StandbyReport::default() };
        if let Some(received) = &seen.received {
            report.received = seen.received_to().map(ToString::to_string).unwrap_or_default();
            report.behind_bytes = received.unreceived_bytes;
            report.behind_ms = match received.unreceived_bytes {
                Some(0) => Some(0),
                _ => (received.amount.bytes > 0).then_some(received.amount.age_ms),
            };
        }
        if self.logged.elapsed() >= LOG {
            self.logged = Instant::now();
            let behind = report.behind_bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
            tracing::info!("standby: received up to {}, {behind} bytes behind the source", report.received);
        }
        if let Err(failure) = self.place.show(&report) {
            tracing::debug!("the target does not take what this standby says of itself: {failure}");
        }
    }
}

/// Another process would stop for the same reason: it is of what the channel applies. What a relay log meets is of the one machine.
fn needs_person(stop: &LastError) -> bool {
    let is_of_channel = [FailureKind::Divergence, FailureKind::Refused].iter().any(|kind| kind.as_str() == stop.kind);
    is_of_channel && !stop.message.starts_with("relay log: ")
}

fn is_skipped(stop: &LastError, channel: &ChannelRecord) -> bool {
    stop.transaction.as_ref().is_some_and(|culprit| channel.skips.contains(culprit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::failure::Culprit;

    fn stop(kind: FailureKind, message: &str) -> LastError {
        let transaction = Some(Culprit { seq: 7, gtid: "0-1-9".to_owned(), position: "b.000001:400".to_owned() });
        let (kind, message) = (kind.as_str().to_owned(), message.to_owned());
        LastError {
            time_us: 1,
            kind,
            code: None,
            message,
            place: String::new(),
            remedy: String::new(),
            passed: false,
            transaction,
        }
    }

    #[test]
    fn what_another_process_would_meet_too_keeps_it_from_its_turn() {
        assert!(needs_person(&stop(FailureKind::Divergence, "Duplicate entry")));
        assert!(needs_person(&stop(FailureKind::Refused, "a statement")));
        assert!(!needs_person(&stop(FailureKind::Refused, "relay log: sync r: Input/output error")));
        for passing in [FailureKind::Exhausted, FailureKind::ConnectionLost, FailureKind::Conflict] {
            assert!(!needs_person(&stop(passing, "x")), "{passing:?}");
        }
    }

    #[test]
    fn a_transaction_that_is_left_out_stops_nobody() {
        let stopped = stop(FailureKind::Divergence, "Duplicate entry");
        let mut channel = ChannelRecord::default();
        assert!(!is_skipped(&stopped, &channel));
        channel.skips.extend(stopped.transaction.clone());
        assert!(is_skipped(&stopped, &channel));
    }
}
