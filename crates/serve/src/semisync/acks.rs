//! The quorum, shared by the sessions, which bring other mirrors' replies, and by this mirror, which waits for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use relay::fs::Fs;
use serde::{Deserialize, Serialize};

use super::ack::Ack;
use super::json_file;
use super::quorum::{Admission, Quorum};
use crate::inventory::wake::Wake;

/// Names the members.
pub(super) const FILE: &str = "heddle-quorum.json";

/// See the module.
#[derive(Debug)]
pub struct Acks {
    ack: Ack,
    state: Mutex<State>,
    /// The mirror's: more is confirmed.
    wake: Wake,
    confirmed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    quorum: Quorum,
    /// None before the mirror has its folder: nobody is admitted.
    kept: Option<(Arc<dyn Fs>, PathBuf)>,
    streams: u64,
    /// What was said of it last.
    said_enough: Option<bool>,
    stranger: Option<String>,
}

/// The stream of one member.
#[derive(Debug)]
pub(super) struct MemberStream<'a> {
    acks: &'a Acks,
    name: String,
    stream: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Members {
    members: Vec<String>,
}

impl Acks {
    pub fn new(ack: Ack) -> io::Result<Self> {
        Ok(Self { ack, state: Mutex::default(), wake: Wake::new()?, confirmed: Condvar::new() })
    }

    pub fn ack(&self) -> Ack {
        self.ack
    }

    /// The mirror has its folder.
    pub(crate) fn open(&self, fs: Arc<dyn Fs>, dir: &Path) -> Result<(), json_file::Error> {
        let Ack::Others { needed, of } = self.ack else { return Ok(()) };
        let kept: Members = json_file::read(&*fs, dir, FILE)?.unwrap_or_default();
        let mut state = self.state();
        state.quorum = Quorum::new(needed, of, kept.members.into_iter().take(of));
        state.kept = Some((fs, dir.to_owned()));
        Ok(())
    }

    /// Another mirror asks for the log from there: it has all before. None: it does not count.
    pub(super) fn attach(&self, name: &str, at: LogPosition) -> Option<MemberStream<'_>> {
        let mut state = self.state();
        let (fs, dir) = state.kept.clone()?;
        match state.quorum.admission(name) {
            Admission::Member => {}
            Admission::Stranger => {
                if state.stranger.as_deref() != Some(name) {
                    tracing::warn!(
                        "the mirror {name} does not count for --ack {}: {} in {} names others. If it replaces one of them, take that one's name out of the file, and start this heddle again",
                        self.ack,
                        FILE,
                        dir.display()
                    );
                    state.stranger = Some(name.to_owned());
                }
                return None;
            }
            Admission::New => {
                let members = state.quorum.members().into_iter().chain([name.to_owned()]).collect();
                if let Err(error) = json_file::write(&*fs, &dir, FILE, &Members { members }) {
                    tracing::error!("the mirror {name} does not count for --ack {}: {error}", self.ack);
                    return None;
                }
                tracing::info!("the mirror {name} counts for --ack {} from now on", self.ack);
            }
        }
        state.streams += 1;
        let stream = state.streams;
        state.quorum.attached(name, stream, at);
        self.say(&mut state);
        drop(state);
        self.news();
        Some(MemberStream { acks: self, name: name.to_owned(), stream })
    }

    /// Everything before this place is confirmed; none: nothing is. Without others everything is.
    pub(super) fn confirmed(&self) -> ConfirmedEnd {
        match self.ack {
            Ack::Others { .. } => ConfirmedEnd::Before(self.state().quorum.confirmed()),
            Ack::Off | Ack::Local => ConfirmedEnd::All,
        }
    }

    /// Waits until a place is confirmed, as long as there are enough others who may do so. False: it was not in time.
    pub(super) fn wait_for(&self, at: &LogPosition, at_most: Duration) -> bool {
        if !matches!(self.ack, Ack::Others { .. }) {
            return true;
        }
        let until = Instant::now() + at_most;
        let mut state = self.state();
        loop {
            if state.quorum.confirmed().is_some_and(|confirmed| confirmed >= *at) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !state.quorum.is_enough() {
                return false;
            }
            (state, _) = self.confirmed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn clear_wake(&self) {
        self.wake.clear();
    }

    /// Once when it begins to wait for others.
    pub(super) fn say_state(&self) {
        if matches!(self.ack, Ack::Others { .. }) {
            self.say(&mut self.state());
        }
    }

    /// Each change once.
    fn say(&self, state: &mut State) {
        let is_enough = state.quorum.is_enough();
        if state.said_enough.replace(is_enough) == Some(is_enough) {
            return;
        }
        let attached = state.quorum.attached_count();
        if is_enough {
            tracing::info!("--ack {}: {attached} other heddles are attached, commits can be acknowledged", self.ack);
        } else {
            tracing::warn!(
                "--ack {}: {attached} other heddles are attached: no commit is acknowledged. The source's own timeout decides how long its clients wait (rpl_semi_sync_source_timeout, rpl_semi_sync_master_timeout)",
                self.ack
            );
        }
    }

    fn news(&self) {
        self.wake.wake();
        self.confirmed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mirror is woken when more is confirmed.
impl AsFd for Acks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// How far the required number of other mirrors has confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConfirmedEnd {
    All,
    Before(Option<LogPosition>),
}

impl MemberStream<'_> {
    /// Everything before this place is durable there.
    pub(super) fn has(&self, at: LogPosition) {
        let is_news = self.acks.state().quorum.has(&self.name, self.stream, at);
        if is_news {
            self.acks.news();
        }
    }
}

impl Drop for MemberStream<'_> {
    fn drop(&mut self) {
        let mut state = self.acks.state();
        state.quorum.left(&self.name, self.stream);
        self.acks.say(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use relay::RealFs;

    use super::*;

    fn at(offset: u64) -> LogPosition {
        LogPosition::new("b.000001", offset)
    }

    /// Members are kept: another one does not count, before or after a restart.
    #[test]
    fn members_stay() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let acks = Acks::new("1-of:2".parse().unwrap()).unwrap();
            assert!(acks.attach("a", at(4)).is_none(), "it has no folder yet");
            acks.open(Arc::new(RealFs), dir.path()).unwrap();
            acks
        };
        let acks = open();
        assert_eq!(acks.confirmed(), ConfirmedEnd::Before(None));
        let a = acks.attach("a", at(4)).unwrap();
        let b = acks.attach("b", at(4)).unwrap();
        assert!(acks.attach("c", at(4)).is_none());
        b.has(at(900));
        drop((a, b));
        assert_eq!(acks.confirmed(), ConfirmedEnd::Before(Some(at(900))));
        assert!(acks.wait_for(&at(900), Duration::ZERO) && !acks.wait_for(&at(901), Duration::ZERO));
        let acks = open();
        assert!(acks.attach("c", at(4)).is_none() && acks.attach("b", at(4)).is_some());
    }
}
