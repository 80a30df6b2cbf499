//! `heddle run`: several channels, each in a process of its own, so that one fails, is killed or runs out of memory without the others. It starts them,
//! passes on what they say with the channel's name, starts again those that may succeed later, follows their files, and ends them. It knows nothing of
//! replication.

mod channel;
mod lines;
mod process;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use self::channel::{Channel, Look, Phase};
pub use self::channel::{ChannelState, Restarts};
pub use self::process::{PARENT, Program};

const POLL: Duration = Duration::from_millis(100);
/// So often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How it ended, over all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All have come to their end, or were asked to stop.
    Done,
    /// At least one has stopped and needs a person.
    NeedsPerson,
}

/// What signals ask for.
#[derive(Clone, Copy, Debug)]
pub struct Requests<'a> {
    pub stop: &'a AtomicBool,
    /// Look at the files now, and try again what needed a person.
    pub reload: &'a AtomicBool,
}

/// Is told what each channel does.
pub type ChannelView<'a> = dyn FnMut(&[(&Program, ChannelState)]) + 'a;

/// Runs until every channel has ended, or is asked to stop and they have stopped. `list` says which there are to be: it is asked again and again. `show` is told
/// what each of them does, whenever that may have changed.
///
/// # Errors
/// The first list, or a first start. Later ones are logged, and what runs goes on.
pub fn run(
    list: &mut dyn FnMut() -> Result<Vec<Program>>,
    restarts: Restarts,
    requests: Requests<'_>,
    show: &mut ChannelView<'_>,
) -> Result<Outcome> {
    let mut channels: Vec<Channel> = list()?.into_iter().map(Channel::new).collect();
    channels.iter_mut().try_for_each(Channel::begin)?;
    let (mut looked, mut complaint) = (Instant::now(), String::new());
    let mut newcomers = Newcomers::default();
    let states =
        |channels: &[Channel]| channels.iter().map(|channel| (channel.id().to_owned(), channel.state())).collect();
    let mut shown: Vec<(String, ChannelState)> = Vec::new();
    loop {
        let phase = if requests.stop.load(Ordering::Relaxed) { Phase::Stopping } else { Phase::Running };
        let look = if requests.reload.swap(false, Ordering::Relaxed) { Look::Asked } else { Look::Due };
        if phase == Phase::Running && (look == Look::Asked || looked.elapsed() >= LOOK_EVERY) {
            looked = Instant::now();
            match list() {
                Ok(found) => take(&mut channels, &mut newcomers, found, look),
                Err(error) => {
                    let text = format!("{error:#}");
                    if text != complaint || look == Look::Asked {
                        tracing::error!("the channels go on as they are: {text}");
                    }
                    complaint = text;
                }
            }
        }
        let running: Vec<(String, String)> = channels.iter().filter_map(Channel::running).collect();
        for channel in &mut channels {
            // Its file was renamed: the process that has what it is to have is on its way out.
            let is_taken =
                running.iter().any(|(id, subject)| id != channel.id() && *subject == channel.program().subject);
            if phase == Phase::Stopping || !is_taken || channel.state() != ChannelState::Waiting {
                channel.step(restarts, phase)?;
            }
        }
        channels.retain(|channel| !channel.is_removed());
        let now: Vec<(String, ChannelState)> = states(&channels);
        if now != shown {
            let members: Vec<_> = channels.iter().map(|channel| (channel.program(), channel.state())).collect();
            show(&members);
            shown = now;
        }
        let needs_person = channels.iter().any(|channel| channel.state() == ChannelState::NeedsPerson);
        let may_go_on = restarts.follows_folder && (channels.is_empty() || needs_person);
        if channels.iter().all(Channel::has_ended) && (phase == Phase::Stopping || !may_go_on) {
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok(if channels.iter().any(|channel| channel.state() == ChannelState::NeedsPerson) {
        Outcome::NeedsPerson
    } else {
        Outcome::Done
    })
}

/// New files that were seen once: they may be half written.
type Newcomers = BTreeMap<String, u64>;

/// What a look has found: some are new, some have changed, some are gone.
fn take(channels: &mut Vec<Channel>, newcomers: &mut Newcomers, found: Vec<Program>, look: Look) {
    // Of a file that can not be read it is not known what it has.
    let broken: Vec<PathBuf> =
        found.iter().filter(|program| !program.is_valid).map(|program| program.file.clone()).collect();
    for channel in channels.iter_mut() {
        let is_found = found.iter().any(|program| program.id == channel.id());
        if !is_found && !broken.contains(&channel.program().file) {
            channel.missing(look);
        }
    }
    let before = std::mem::take(newcomers);
    for program in found {
        if let Some(channel) = channels.iter_mut().find(|channel| channel.id() == program.id) {
            channel.found(program, look);
            continue;
        }
        let has_channels = channels.iter().any(|channel| channel.program().file == program.file);
        if !program.is_valid && has_channels {
            if before.get(&program.id) != Some(&program.version) {
                tracing::error!("{} can not be read: what it has goes on as before", program.file.display());
            }
            newcomers.insert(program.id, program.version);
        } else if look == Look::Asked || before.get(&program.id) == Some(&program.version) {
            tracing::info!(channel = program.channel, "{} is new: it starts", program.file.display());
            channels.push(Channel::new(program));
        } else {
            newcomers.insert(program.id, program.version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn after(after: Duration) -> Restarts {
        Restarts { after, needs_person: &[1, 2], follows_folder: false }
    }

    fn to_end(programs: &[Program], restarts: Restarts, stop: &AtomicBool) -> Outcome {
        run(&mut || Ok(programs.to_vec()), restarts, Requests { stop, reload: &AtomicBool::new(false) }, &mut |_| {})
            .unwrap()
    }

    fn shell(channel: &str, script: &str) -> Program {
        Program {
            id: channel.to_owned(),
            subject: channel.to_owned(),
            version: 0,
            is_valid: true,
            channel: channel.to_owned(),
            file: "x.toml".into(),
            socket: None,
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
        let outcome = to_end(&programs, after(Duration::ZERO), &AtomicBool::new(false));
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
        assert_eq!(to_end(&programs, after(Duration::from_secs(3600)), &stop), Outcome::Done);
        asker.join().unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("asked")).unwrap(), "x\n");
    }

    #[test]
    fn it_follows_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let seen = dir.path().join("seen");
        let says = |name: &str, version: u64, is_valid: bool| Program {
            version,
            is_valid,
            ..shell(
                name,
                &format!(
                    "trap 'exit 0' TERM; echo {name}{version} >> {}; while true; do sleep 0.02; done",
                    seen.display()
                ),
            )
        };
        let (stop, reload) = (AtomicBool::new(false), AtomicBool::new(false));
        let text = || std::fs::read_to_string(&seen).unwrap_or_default();
        let mut looks = vec![
            // One is changed, one is new, one is gone for a moment, one is broken.
            vec![says("a", 1, true), says("c", 1, true), says("d", 1, true)],
            vec![says("a", 2, true), says("b", 1, true), says("c", 1, true), says("d", 2, false)],
            vec![says("a", 2, true), says("b", 1, true), says("c", 1, true), says("d", 2, false)],
            vec![says("a", 2, true), says("c", 1, true), says("d", 2, false)],
            vec![says("a", 2, true), says("c", 1, true), says("d", 2, false)],
        ]
        .into_iter();
        let last = vec![says("a", 2, true), says("c", 1, true), says("d", 3, true)];
        let wait_for = |lines: usize| {
            let since = Instant::now();
            while text().lines().count() < lines && since.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let mut turn = 0;
        let mut list = || {
            turn += 1;
            // Each look sees what the one before has started.
            match turn {
                1 => {}
                2 | 3 => wait_for(3),
                _ => wait_for(5),
            }
            if turn > 7 {
                wait_for(6);
                stop.store(true, Ordering::Relaxed);
            }
            reload.store(turn == 5, Ordering::Relaxed);
            Ok(looks.next().unwrap_or_else(|| last.clone()))
        };
        let outcome =
            run(&mut list, after(Duration::ZERO), Requests { stop: &stop, reload: &reload }, &mut |_| {}).unwrap();
        assert_eq!(outcome, Outcome::Done);
        let text = text();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a1", "a2", "b1", "c1", "d1", "d3"]);
    }
}
