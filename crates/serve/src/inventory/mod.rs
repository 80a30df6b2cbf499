//! What can be served: the files of a mirror up to their durable end, and facts about their source.
//!
//! The mirror publishes, sessions read. Nothing here writes, and nothing reads beyond the durable end. A removed file stays readable for those who have it open.
//!
//! When another server replaces the source, its files are a new series. A stream has files of one series only. The files of former sources stay readable for replicas that attach by GTID
//! and need them.

mod extent;
mod file;
mod gtids;
mod needs;
mod publish;
mod reader;
mod readers;
mod source;
mod tail;
mod tip;
pub(crate) mod wake;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use binlog::LogPosition;
use binlog::position::file_number;

pub use self::extent::Extent;
use self::extent::{Place, TagExtent};
pub use self::file::{FileStart, LogFile, tags_path};
pub use self::gtids::{BinlogState, DomainGtid, Gtids};
pub use self::needs::NeededFile;
use self::needs::Needs;
pub use self::publish::MirrorPhase;
pub use self::reader::{EventHead, LogReader, ReadError};
pub use self::readers::{ReaderPlace, UnreadFiles};
pub use self::source::{FILE as SOURCE_FACTS, SourceFacts, VersionFamily};
use self::tail::Tail;
use self::tip::Tip;
use self::wake::Wakes;

/// See the module.
#[derive(Debug)]
pub struct Inventory {
    state: Mutex<State>,
    grown: Condvar,
    tail: Arc<Tail>,
    /// Of those that wait for a socket as well.
    wakes: Wakes,
    /// The GTIDs up to the durable end, as far as somebody has asked for them.
    tip: Mutex<Option<Tip>>,
}

#[derive(Debug, Default)]
struct State {
    /// Of the last source: each has its own.
    dir: PathBuf,
    /// Of the files of the last source.
    series: u64,
    /// Oldest first.
    files: Vec<Arc<LogFile>>,
    /// Of the last file.
    end: u64,
    /// Files of former sources, all complete, the oldest source first.
    former: Vec<Vec<Arc<LogFile>>>,
    /// How often files were let go.
    removals: u64,
    is_closed: bool,
    /// The mirror has just connected, and has not got all yet that the source had then.
    is_settling: bool,
    /// The source's stream comes without a pause.
    is_streaming: bool,
    source: Option<Arc<SourceFacts>>,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB) of the last source.
    identity: Option<String>,
    /// The source whose positions replicas have, as an operator says.
    positions_of: Option<String>,
    /// The files that are being sent, by the reader.
    readers: BTreeMap<u64, Place>,
    /// What replicas need that are away.
    needs: Needs,
    last_reader: u64,
    /// Up to where replicas are sent what is here; `None`: all of it.
    tagged: Option<TagExtent>,
}

impl Inventory {
    /// An inventory without files.
    pub fn new(dir: &Path) -> Self {
        let state = State { dir: dir.to_owned(), ..State::default() };
        let (tail, wakes) = (Arc::default(), Wakes::default());
        Self { state: Mutex::new(state), grown: Condvar::new(), wakes, tail, tip: Mutex::new(None) }
    }

    /// The folder of the present source.
    pub fn dir(&self) -> PathBuf {
        self.state().dir.clone()
    }

    /// Whether a place in the files of this server is one in those of the present source. `None`: who asks does not say whose; where there never was another source there is no
    /// doubt.
    pub fn takes_positions_of(&self, identity: Option<&str>) -> bool {
        let state = self.state();
        let said = identity.or(state.positions_of.as_deref());
        state.series == 0 || (said.is_some() && said == state.identity.as_deref())
    }

    /// The files of the present source, then those of former sources, the latest first; each file with its readable length.
    pub fn all_series(&self) -> Vec<Vec<(Arc<LogFile>, u64)>> {
        let state = self.state();
        let of = |file: &Arc<LogFile>| (Arc::clone(file), file.sealed().unwrap_or(state.end));
        std::iter::once(&state.files)
            .chain(state.former.iter().rev())
            .map(|files| files.iter().map(of).collect())
            .collect()
    }

    /// Whether the present source's log goes on behind this file.
    pub fn is_present(&self, file: &LogFile) -> bool {
        self.state().series == file.series
    }

    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB) of the present source, once it is known.
    pub fn identity(&self) -> Option<String> {
        self.state().identity.clone()
    }

    /// None before the first connection to the source.
    pub fn source(&self) -> Option<Arc<SourceFacts>> {
        self.state().source.clone()
    }

    /// Whether the mirror is about to get what its source had when it connected.
    pub fn is_settling(&self) -> bool {
        self.state().is_settling
    }

    /// Whether the source has more than what is here, and it is on its way.
    pub fn more_is_coming(&self) -> bool {
        let state = self.state();
        state.is_settling || state.is_streaming
    }

    /// Woken whenever [`wait_beyond`](Self::wait_beyond) would look again.
    pub(crate) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    fn announce(&self) {
        self.grown.notify_all();
        self.wakes.wake_all();
    }

    /// The files with their readable lengths, oldest first.
    pub fn files(&self) -> Vec<(Arc<LogFile>, u64)> {
        let state = self.state();
        state.files.iter().map(|file| (Arc::clone(file), file.sealed().unwrap_or(state.end))).collect()
    }

    /// A file by its name.
    pub fn find(&self, name: &str) -> Option<Arc<LogFile>> {
        self.state().files.iter().find(|file| &*file.name == name).cloned()
    }

    /// The oldest file.
    pub fn first(&self) -> Option<Arc<LogFile>> {
        self.state().files.first().cloned()
    }

    /// The file behind this one; none if it is the last.
    pub fn next_after(&self, file: &LogFile) -> Option<Arc<LogFile>> {
        let state = self.state();
        let former = usize::try_from(file.series).ok().and_then(|series| state.former.get(series));
        let files = if file.series == state.series { Some(&state.files) } else { former };
        let number = file_number(&file.name);
        let next = files?.iter().find(|other| file_number(&other.name) > number)?;
        // Where files behind it were removed there is none: a gap is never passed over.
        let follows = file_number(&next.name).zip(number).is_some_and(|(next, number)| next == number + 1);
        follows.then(|| Arc::clone(next))
    }

    /// The durable end.
    pub fn end(&self) -> Option<LogPosition> {
        let state = self.state();
        state.files.last().map(|last| LogPosition::new(Arc::clone(&last.name), state.end))
    }

    /// How far a file can be read.
    pub fn extent(&self, file: &LogFile) -> Extent {
        Self::extent_in(&self.state(), file)
    }

    /// Waits until the file can be read beyond `offset`, is complete, or the time is over.
    pub fn wait_beyond(&self, file: &LogFile, offset: u64, at_most: Duration) -> Extent {
        self.wait(offset, at_most, |state| Self::extent_in(state, file))
    }

    /// How far replicas are sent a file; with new tags, not beyond the last tag.
    pub fn sendable(&self, file: &LogFile) -> Extent {
        Self::sendable_in(&self.state(), file)
    }

    /// Waits until a replica can be sent more of a file than up to `offset`, or all of it, or the time is over.
    pub fn wait_sendable(&self, file: &LogFile, offset: u64, at_most: Duration) -> Extent {
        self.wait(offset, at_most, |state| Self::sendable_in(state, file))
    }

    fn wait(&self, offset: u64, at_most: Duration, extent: impl Fn(&State) -> Extent) -> Extent {
        let is_still = |state: &mut State| {
            let extent = extent(state);
            extent.end <= offset && extent.grows && !extent.is_closed
        };
        let waited = self.grown.wait_timeout_while(self.state(), at_most, is_still);
        extent(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Whether tags are made anew.
    pub fn is_tagged(&self) -> bool {
        self.state().tagged.is_some()
    }

    /// Whether nothing is here that was not looked at.
    pub fn is_all_tagged(&self) -> bool {
        let state = self.state();
        let last = state.files.last().map(|last| last.place());
        state.tagged.is_none_or(|tagged| last.is_none_or(|last| tagged.place == last && tagged.seen >= state.end))
    }

    /// The first file of all sources that is behind this one; the oldest one.
    pub fn behind(&self, file: Option<&LogFile>) -> Option<Arc<LogFile>> {
        let state = self.state();
        let mut files = state.former.iter().flatten().chain(&state.files);
        files.find(|other| file.is_none_or(|file| other.place() > file.place())).cloned()
    }

    /// The GTIDs up to the durable end, and that end.
    pub fn gtids_at_end(&self) -> Result<(Option<LogPosition>, Gtids), ReadError> {
        let mut tip = self.tip();
        let advanced = self.read_again(|| Tip::advance(tip.take(), &self.files()))?;
        let found = advanced.as_ref().map_or((None, Gtids::None), |tip| (Some(tip.position()), tip.gtids().clone()));
        *tip = advanced;
        Ok(found)
    }

    fn extent_in(state: &State, file: &LogFile) -> Extent {
        let is_last = state.files.last().is_some_and(|last| last.name == file.name && last.series == file.series);
        match file.sealed() {
            Some(end) => Extent { end, grows: false, is_closed: state.is_closed, awaits_tags: false },
            None => Extent {
                end: if is_last { state.end } else { 0 },
                grows: true,
                is_closed: state.is_closed,
                awaits_tags: false,
            },
        }
    }

    fn sendable_in(state: &State, file: &LogFile) -> Extent {
        let extent = Self::extent_in(state, file);
        state.tagged.map_or(extent, |tagged| tagged.limit(file.place(), extent))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tip(&self) -> MutexGuard<'_, Option<Tip>> {
        self.tip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
