//! `heddle run`: several channels, each in a process of its own, so that one fails, is killed or runs out of memory without the others. It starts them,
//! passes on what they say with the channel's name, starts again those that may succeed later, and ends them. It knows nothing of replication.

mod lines;
mod process;

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use self::process::Process;
pub use self::process::{PARENT, Program};

const POLL: Duration = Duration::from_millis(100);

/// What becomes of a channel whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A server or the network is away, or the process was killed: it goes on where it was.
    Again,
    Done,
    /// Its message says what to do.
    NeedsPerson,
}

impl Next {
    /// As the systemd unit does: every code but those of success and of a failure that needs a person is tried again.
    fn of(status: ExitStatus, needs_person: &[u8]) -> Self {
        match status.code().map(u8::try_from) {
            Some(Ok(0)) => Self::Done,
            Some(Ok(code)) if needs_person.contains(&code) => Self::NeedsPerson,
            _ => Self::Again,
        }
    }
}

enum State {
    Running { process: Process, asked: bool },
    Waiting { since: Instant },
    Ended(Next),
}

struct Channel {
    program: Program,
    state: State,
}

/// When a channel whose process has ended is started again.
#[derive(Clone, Copy, Debug)]
pub struct Restarts {
    pub after: Duration,
    /// Exit codes after which a person has to change something first.
    pub needs_person: &'static [u8],
}

/// How it ended, over all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All have come to their end, or were asked to stop.
    Done,
    /// At least one has stopped and needs a person.
    NeedsPerson,
}

/// Runs until every channel has ended, or `stop` is set and they have stopped.
pub fn run(programs: Vec<Program>, restarts: Restarts, stop: &AtomicBool) -> Result<Outcome> {
    let mut channels = Vec::with_capacity(programs.len());
    for program in programs {
        let process = program.start()?;
        channels.push(Channel { program, state: State::Running { process, asked: false } });
    }
    loop {
        let stopping = stop.load(Ordering::Relaxed);
        for channel in &mut channels {
            channel.step(restarts, stopping)?;
        }
        if channels.iter().all(|channel| matches!(channel.state, State::Ended(_))) {
            break;
        }
        std::thread::sleep(POLL);
    }
    let stopped = channels.iter().any(|channel| matches!(channel.state, State::Ended(Next::NeedsPerson)));
    Ok(if stopped { Outcome::NeedsPerson } else { Outcome::Done })
}

impl Channel {
    fn step(&mut self, restarts: Restarts, stopping: bool) -> Result<()> {
        let name = &self.program.channel;
        match &mut self.state {
            State::Running { process, asked } => {
                if let Some(status) = process.ended()? {
                    let next = Next::of(status, restarts.needs_person);
                    self.state = match next {
                        Next::Again if !stopping => {
                            tracing::warn!(
                                channel = name,
                                "ended with {status}: started again in {} s",
                                restarts.after.as_secs()
                            );
                            State::Waiting { since: Instant::now() }
                        }
                        Next::Again => State::Ended(Next::Done),
                        Next::NeedsPerson => {
                            tracing::error!(
                                channel = name,
                                "stopped, and needs a person: its message is above, and in `heddle status`. The other channels go on. Then start it alone: \
                                 heddle replicate --config {}",
                                self.program.file.display()
                            );
                            State::Ended(next)
                        }
                        Next::Done => State::Ended(next),
                    };
                } else if stopping && !*asked {
                    *asked = true;
                    process.ask_to_end();
                }
            }
            State::Waiting { .. } if stopping => self.state = State::Ended(Next::Done),
            State::Waiting { since } if since.elapsed() >= restarts.after => {
                // Too many processes or open files, perhaps: the other channels run on meanwhile.
                self.state = match self.program.start() {
                    Ok(process) => State::Running { process, asked: false },
                    Err(error) => {
                        tracing::warn!(
                            channel = name,
                            "can not be started: {error:#}; tried again in {} s",
                            restarts.after.as_secs()
                        );
                        State::Waiting { since: Instant::now() }
                    }
                };
            }
            State::Waiting { .. } | State::Ended(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const fn after(after: Duration) -> Restarts {
        Restarts { after, needs_person: &[1, 2] }
    }

    #[test]
    fn only_what_can_help_is_tried_again() {
        for (code, next) in
            [(0, Next::Done), (1, Next::NeedsPerson), (2, Next::NeedsPerson), (75, Next::Again), (101, Next::Again)]
        {
            assert_eq!(Next::of(ExitStatus::from_raw(code << 8), &[1, 2]), next, "{code}");
        }
        assert_eq!(Next::of(ExitStatus::from_raw(9), &[1, 2]), Next::Again);
    }

    fn shell(channel: &str, script: &str) -> Program {
        Program {
            channel: channel.to_owned(),
            file: "x.toml".into(),
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
        }
    }

    #[test]
    fn one_fails_and_is_not_started_again_and_the_others_come_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let seen = dir.path().join("seen");
        let seen = seen.display();
        let programs = vec![
            shell("bad", &format!("echo bad >> {seen}; exit 1")),
            shell("away", &format!("echo away >> {seen}; test $(grep -c away {seen}) = 3 || exit 75")),
            shell("killed", &format!("echo killed >> {seen}; test $(grep -c killed {seen}) = 2 || kill -9 $$")),
            shell("good", &format!("echo good >> {seen}")),
        ];
        let outcome = run(programs, after(Duration::ZERO), &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome, Outcome::NeedsPerson);
        let mut lines: Vec<String> =
            std::fs::read_to_string(dir.path().join("seen")).unwrap().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["away", "away", "away", "bad", "good", "killed", "killed"]);
    }

    #[test]
    fn all_are_asked_once_and_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let script = format!(
            "trap 'echo x >> {path}/asked' TERM; touch {path}/ready; while test ! -e {path}/asked; do sleep 0.05; done; sleep 0.3; exit 0"
        );
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let asker = {
            let (stop, ready) = (std::sync::Arc::clone(&stop), dir.path().join("ready"));
            std::thread::spawn(move || {
                while !ready.exists() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                stop.store(true, Ordering::Relaxed);
            })
        };
        let programs = vec![shell("long", &script), shell("away", "exit 75")];
        assert_eq!(run(programs, after(Duration::from_secs(3600)), &stop).unwrap(), Outcome::Done);
        asker.join().unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("asked")).unwrap(), "x\n");
    }
}
