//! One channel of those that are looked after: its process, what becomes of it when that has ended, and when its file changes.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::process::{Process, Program};

/// One that has run for so long begins anew with the shortest pause.
const STEADY_AFTER: Duration = Duration::from_secs(60);
/// The longest pause, unless the shortest is longer.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// When a channel whose process has ended is started again.
#[derive(Clone, Copy, Debug)]
pub struct Restarts {
    /// The first pause. It doubles, up to a minute.
    pub after: Duration,
    /// Exit codes after which a person has to change something first.
    pub needs_person: &'static [u8],
    /// A folder is followed: one that needs a person may get one, and files may come.
    pub follows_folder: bool,
}

impl Restarts {
    /// Before the start behind so many ends in a row.
    fn pause(&self, ends: u32) -> Duration {
        let doubled = self.after.saturating_mul(1 << ends.saturating_sub(1).min(16));
        doubled.min(PAUSE_MAX.max(self.after))
    }
}

/// What becomes of a channel whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// A server or the network is away, or the process was killed: it goes on where it was.
    Again,
    Done,
    /// Its message says what to do.
    NeedsPerson,
}

impl NextStep {
    /// As the systemd unit does: every code but those of success and of a failure that needs a person is tried again.
    fn of(status: ExitStatus, needs_person: &[u8]) -> Self {
        match status.code().map(u8::try_from) {
            Some(Ok(0)) => Self::Done,
            Some(Ok(code)) if needs_person.contains(&code) => Self::NeedsPerson,
            _ => Self::Again,
        }
    }
}

/// What a channel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelState {
    Running,
    /// It is started again.
    Waiting,
    Ended,
    NeedsPerson,
}

/// Why a process was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// All end.
    Stop,
    /// Its file has changed: it starts again.
    Restart,
    /// Its file is gone.
    Remove,
}

enum State {
    Running { process: Process, since: Instant, order: Option<Order> },
    Waiting { due: Instant },
    Ended(NextStep),
    Removed,
}

/// Why the files are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is time: what is found may be half written.
    Due,
    /// Somebody has said that the files are as they are to be.
    Asked,
}

/// What all channels are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    Stopping,
}

/// A program, as the last look has found it, and its process.
pub(super) struct Channel {
    program: Program,
    state: State,
    /// Of its process, one after the other, each soon after its start.
    ends: u32,
    /// What the last look has found instead: a file may be half written.
    candidate: Option<u64>,
    /// One that can not be read, and was named.
    refused: Option<u64>,
    /// Not there at the last look: an editor may be about to put it back.
    was_missing: bool,
}

impl Channel {
    pub fn new(program: Program) -> Self {
        let state = State::Waiting { due: Instant::now() };
        Self { program, state, ends: 0, candidate: None, refused: None, was_missing: false }
    }

    pub fn id(&self) -> &str {
        &self.program.id
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its id, and what its process has; `None`: it has none.
    pub fn running(&self) -> Option<(String, String)> {
        let is_running = matches!(self.state, State::Running { .. });
        is_running.then(|| (self.program.id.clone(), self.program.subject.clone()))
    }

    pub fn state(&self) -> ChannelState {
        match &self.state {
            State::Running { .. } => ChannelState::Running,
            State::Waiting { .. } => ChannelState::Waiting,
            State::Ended(NextStep::NeedsPerson) => ChannelState::NeedsPerson,
            State::Ended(_) | State::Removed => ChannelState::Ended,
        }
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_) | State::Removed)
    }

    pub fn is_removed(&self) -> bool {
        matches!(self.state, State::Removed)
    }

    /// Starts the process, at the first time.
    pub fn begin(&mut self) -> Result<()> {
        self.state = State::Running { process: self.program.start()?, since: Instant::now(), order: None };
        Ok(())
    }

    /// A look has found its file.
    pub fn found(&mut self, program: Program, look: Look) {
        self.was_missing = false;
        if program.version == self.program.version {
            self.candidate = None;
            if look == Look::Asked {
                self.look_again();
            }
            return;
        }
        let was_seen = self.candidate.replace(program.version) == Some(program.version);
        if !was_seen && look == Look::Due {
            return;
        }
        let is_running = matches!(self.state, State::Running { .. });
        if is_running && !program.is_valid {
            if self.refused.replace(program.version) != Some(program.version) || look == Look::Asked {
                tracing::error!(
                    channel = program.channel,
                    "{} can not be read: the channel goes on as before (heddle run --dry-run says what is wrong)",
                    program.file.display()
                );
            }
            return;
        }
        tracing::info!(channel = program.channel, "{} has changed: it starts anew", program.file.display());
        self.candidate = None;
        self.program = program;
        self.ends = 0;
        self.restart();
    }

    /// A look has not found its file.
    pub fn missing(&mut self, look: Look) {
        if !std::mem::replace(&mut self.was_missing, true) && look == Look::Due {
            return;
        }
        match &mut self.state {
            State::Running { order: Some(Order::Remove | Order::Stop), .. } | State::Removed => return,
            State::Running { process, order, .. } => {
                process.ask_to_end();
                *order = Some(Order::Remove);
            }
            State::Waiting { .. } | State::Ended(_) => self.state = State::Removed,
        }
        tracing::info!(channel = self.program.channel, "{} is gone: it ends", self.program.file.display());
    }

    /// What needed a person, or waits, is tried now; a server reads its certificates again.
    fn look_again(&mut self) {
        match &self.state {
            State::Running { process, .. } if self.program.is_server() => process.ask_to_reload(),
            State::Running { .. } | State::Removed => {}
            State::Waiting { .. } | State::Ended(_) => self.restart(),
        }
    }

    fn restart(&mut self) {
        match &mut self.state {
            State::Running { process, order, .. } => {
                if order.is_none() {
                    process.ask_to_end();
                }
                *order = Some(Order::Restart);
            }
            State::Waiting { .. } | State::Ended(_) | State::Removed => {
                self.state = State::Waiting { due: Instant::now() };
            }
        }
    }

    pub fn step(&mut self, restarts: Restarts, phase: Phase) -> Result<()> {
        match &mut self.state {
            State::Running { process, since, order } => match process.ended()? {
                Some(status) => {
                    let (since, order) = (*since, *order);
                    self.state = self.after(status, since, order, restarts, phase);
                }
                None if phase == Phase::Stopping && *order != Some(Order::Stop) => {
                    if order.is_none() {
                        process.ask_to_end();
                    }
                    *order = Some(Order::Stop);
                }
                None => {}
            },
            State::Waiting { .. } if phase == Phase::Stopping => self.state = State::Ended(NextStep::Done),
            State::Waiting { due } if *due <= Instant::now() => {
                // Too many processes or open files, perhaps: the other channels run on meanwhile.
                if let Err(error) = self.begin() {
                    self.ends += 1;
                    let pause = restarts.pause(self.ends);
                    let channel = &self.program.channel;
                    tracing::warn!(channel, "can not be started: {error:#}; tried again in {} s", pause.as_secs());
                    self.state = State::Waiting { due: Instant::now() + pause };
                }
            }
            State::Waiting { .. } | State::Ended(_) | State::Removed => {}
        }
        Ok(())
    }

    fn after(
        &mut self,
        status: ExitStatus,
        since: Instant,
        order: Option<Order>,
        restarts: Restarts,
        phase: Phase,
    ) -> State {
        let channel = &self.program.channel;
        let next = NextStep::of(status, restarts.needs_person);
        match (order, next) {
            (Some(Order::Remove), _) => State::Removed,
            (Some(Order::Restart), _) if phase == Phase::Running => State::Waiting { due: Instant::now() },
            (_, NextStep::NeedsPerson) => {
                tracing::error!(
                    channel,
                    "stopped, and needs a person: its message is above, and in `heddle status`. The other channels go on. It starts again when its file \
                     changes, or at SIGHUP (systemctl reload heddle)"
                );
                State::Ended(next)
            }
            (_, NextStep::Again) if phase == Phase::Running => {
                self.ends = if since.elapsed() < STEADY_AFTER { self.ends + 1 } else { 1 };
                let pause = restarts.pause(self.ends);
                tracing::warn!(channel, "ended with {status}: started again in {} s", pause.as_secs());
                State::Waiting { due: Instant::now() + pause }
            }
            (_, NextStep::Again | NextStep::Done) => State::Ended(NextStep::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn only_what_can_help_is_tried_again() {
        for (code, next) in [
            (0, NextStep::Done),
            (1, NextStep::NeedsPerson),
            (2, NextStep::NeedsPerson),
            (75, NextStep::Again),
            (101, NextStep::Again),
        ] {
            assert_eq!(NextStep::of(ExitStatus::from_raw(code << 8), &[1, 2]), next, "{code}");
        }
        assert_eq!(NextStep::of(ExitStatus::from_raw(9), &[1, 2]), NextStep::Again);
    }

    #[test]
    fn pauses_grow_to_a_minute() {
        let pauses = |after: u64| {
            let restarts = Restarts { after: Duration::from_secs(after), needs_person: &[], follows_folder: false };
            [1, 2, 3, 4, 50].map(|ends| restarts.pause(ends).as_secs())
        };
        assert_eq!(pauses(10), [10, 20, 40, 60, 60]);
        assert_eq!(pauses(0), [0; 5]);
        assert_eq!(pauses(300), [300; 5]);
    }
}
