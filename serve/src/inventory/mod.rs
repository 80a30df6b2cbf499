//! What can be served: the files of a mirror up to where they are durable, and what is known of their source.
//!
//! The mirror publishes, sessions read. Nothing here writes, and nothing beyond the durable end is ever read. A file that the mirror has removed stays readable for who has
//! it open.
//!
//! When another server takes the source's place, its files are a series of their own: a stream is of one series from its begin to its end. Those of former sources stay
//! readable for who asks by GTID and lacks what only they have.

mod extent;
mod file;
mod gtids;
mod reader;
mod source;
mod tail;
mod tip;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use binlog::LogPosition;
use binlog::position::file_number;
use bytes::Bytes;
use relay::fs::RealFs;
use relay::packed;

pub use self::extent::Extent;
use self::extent::{Place, Tagged};
pub use self::file::{FileStart, LogFile};
pub use self::gtids::{BinlogState, DomainGtid, Gtids};
pub use self::reader::{LogReader, Peeked, ReadError};
pub use self::source::{FILE as SOURCE_FACTS, SourceFacts, VersionFamily};
use self::tail::Tail;
use self::tip::Tip;
use crate::semisync::wake::Wakes;

/// The archive's place among the readers, whose numbers begin with 1.
const ARCHIVE: u64 = 0;

/// What becomes of files that attached replicas are still to be sent, when they may go by all else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    Stays,
    MayGo,
}

/// How the mirror stands to its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is about to get what the source had when it was connected to.
    Settling,
    /// It has all of that, or there is no source at the moment.
    Settled,
}

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
    source: Option<Arc<SourceFacts>>,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB) of the last source.
    identity: Option<String>,
    /// The source whose positions replicas have, as an operator says.
    positions_of: Option<String>,
    /// The files that are being sent, by the reader.
    readers: BTreeMap<u64, Place>,
    last_reader: u64,
    /// Up to where replicas are sent what is here; `None`: all of it.
    tagged: Option<Tagged>,
}

impl State {
    /// How many of the oldest files may go, of all sources together, but for the last file of the present source. Nobody reads them, nor will; with [`Unread::MayGo`] only the
    /// archive counts.
    fn removable(&self, unread: Unread) -> usize {
        let oldest = match unread {
            Unread::Stays => self.readers.values().min(),
            Unread::MayGo => self.readers.get(&ARCHIVE),
        };
        let oldest = oldest.copied();
        let but_last = self.files.split_last().map_or(&[][..], |(_, files)| files);
        let files = self.former.iter().flatten().chain(but_last);
        files.take_while(|file| oldest.is_none_or(|oldest| place(file) < oldest)).count()
    }
}

fn place(file: &LogFile) -> Place {
    (file.series, file_number(&file.name))
}

/// A reader's place: the file, and all behind it, stay while it is there.
#[derive(Debug)]
pub struct Reading<'a> {
    inventory: &'a Inventory,
    reader: u64,
}

impl Reading<'_> {
    /// It goes on with another file.
    pub fn moved_to(&self, file: &LogFile) {
        self.inventory.state().readers.insert(self.reader, place(file));
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.inventory.state().readers.remove(&self.reader);
    }
}

impl Inventory {
    /// Of a folder in which nothing is known yet.
    pub fn new(dir: &Path) -> Self {
        let state = State { dir: dir.to_owned(), ..State::default() };
        let (tail, wakes) = (Arc::default(), Wakes::default());
        Self { state: Mutex::new(state), grown: Condvar::new(), wakes, tail, tip: Mutex::new(None) }
    }

    /// The archive lacks what begins with this file of the folder with this number: that stays, and all behind it. `None`: all of the folder.
    pub fn keep_for_archive(&self, folder: usize, file: Option<&str>) {
        self.state().readers.insert(ARCHIVE, (folder as u64, file.and_then(file_number)));
    }

    /// All files there are in the folder, oldest first, and where the last one is durable.
    pub fn hold(&self, dir: &Path, names: &[String], durable: Option<&LogPosition>) -> io::Result<()> {
        let mut state = self.state();
        dir.clone_into(&mut state.dir);
        let files = self.open(&state.files, state.series, dir, names)?;
        state.files = files;
        state.end = durable.map_or(0, |durable| durable.offset);
        drop(state);
        self.tail.forget();
        *self.tip() = None;
        self.announce();
        Ok(())
    }

    /// Another server has taken the place of the source: from now on its files are held. Those of the source before it are complete up to `end`, behind which nothing is sent any more.
    pub fn succeed(&self, end: u64) {
        let mut state = self.state();
        if let Some(last) = state.files.last() {
            last.seal(end.min(state.end));
        }
        let files = std::mem::take(&mut state.files);
        state.former.push(files);
        state.series += 1;
        state.end = 0;
        drop(state);
        *self.tip() = None;
        self.announce();
    }

    /// The files of a former source as they are found, up to where the next one has taken its place; the oldest source first, before the present one's are held.
    pub fn hold_former(&self, dir: &Path, names: &[String], end: u64) -> io::Result<()> {
        let mut state = self.state();
        let files = self.open(&[], state.series, dir, names)?;
        if let Some(last) = files.last() {
            last.seal(end.min(packed::open(&RealFs, last.path())?.len()?));
        }
        state.former.push(files);
        state.series += 1;
        Ok(())
    }

    /// The end has moved. The name of a new file seals the one before.
    pub fn durable(&self, end: &LogPosition) {
        self.durable_with(end, &[]);
    }

    /// The same; `newest`: the events up to there, as far as they are still in memory.
    pub fn durable_with(&self, end: &LogPosition, newest: &[Bytes]) {
        let mut state = self.state();
        // A file counts from its first event on: without one a crash takes it away again.
        if end.offset <= binlog::FIRST_OFFSET {
            return;
        }
        if state.files.last().is_none_or(|last| *last.name != *end.file) {
            let sealed = state.end;
            if let Some(last) = state.files.last() {
                last.seal(sealed);
            }
            let file = LogFile::new(&end.file, state.dir.join(&*end.file), state.series, &self.tail);
            state.files.push(Arc::new(file));
        }
        state.end = end.offset;
        let length: u64 = newest.iter().map(|event| event.len() as u64).sum();
        if let Some(offset) = end.offset.checked_sub(length).filter(|_| length > 0) {
            self.tail.push((state.series, Arc::clone(&end.file)), offset, newest);
        }
        drop(state);
        self.announce();
    }

    /// At most so many of the oldest files are not here any more, those of former sources first; who calls removes them then. How many they are.
    pub fn let_go(&self, most: usize, unread: Unread) -> usize {
        let mut state = self.state();
        let count = most.min(state.removable(unread));
        let mut left = count;
        let state = &mut *state;
        for files in state.former.iter_mut().chain([&mut state.files]) {
            let gone = left.min(files.len());
            files.drain(..gone);
            left -= gone;
        }
        state.removals += u64::from(count > 0);
        count
    }

    /// Another number than before: files were let go in between, so that one that was here may be gone.
    pub fn removals(&self) -> u64 {
        self.state().removals
    }

    /// The answer of what may read any file: asked again when a file went meanwhile.
    pub fn read_again<T>(&self, mut ask: impl FnMut() -> Result<T, ReadError>) -> Result<T, ReadError> {
        loop {
            let removals = self.removals();
            match ask() {
                Err(ReadError::Removed { .. }) if self.removals() != removals => {}
                answer => return answer,
            }
        }
    }

    /// Somebody reads from this file on.
    pub fn read_from(&self, file: &LogFile) -> Reading<'_> {
        let mut state = self.state();
        state.last_reader += 1;
        let reader = state.last_reader;
        state.readers.insert(reader, place(file));
        Reading { inventory: self, reader }
    }

    /// The folder of the present source.
    pub fn dir(&self) -> PathBuf {
        self.state().dir.clone()
    }

    /// Replicas that attach by file and position have the positions of this server.
    pub fn take_positions_of(&self, identity: &str) {
        self.state().positions_of = Some(identity.to_owned());
    }

    /// The present source is this server.
    pub fn is_of(&self, identity: &str) {
        self.state().identity = Some(identity.to_owned());
    }

    /// Whether a place in the files of this server is one in those of the present source. `None`: who asks does not say whose; where there never was another source there is no
    /// doubt.
    pub fn takes_positions_of(&self, identity: Option<&str>) -> bool {
        let state = self.state();
        let said = identity.or(state.positions_of.as_deref());
        state.series == 0 || (said.is_some() && said == state.identity.as_deref())
    }

    /// Of the present source, and of the former ones, the latest first; each with its files and their readable lengths.
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

    /// What was learned of the source, by the mirror when it connects.
    pub fn learn(&self, facts: SourceFacts) {
        self.state().source = Some(Arc::new(facts));
    }

    /// None before the first connection to the source.
    pub fn source(&self) -> Option<Arc<SourceFacts>> {
        self.state().source.clone()
    }

    /// The mirror is about to get all that its source has, or has it, or has no source at the moment.
    pub fn stand(&self, standing: Standing) {
        self.state().is_settling = standing == Standing::Settling;
    }

    /// Whether the mirror is about to get what its source had when it connected.
    pub fn is_settling(&self) -> bool {
        self.state().is_settling
    }

    /// Ends all waiting.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.announce();
    }

    /// Woken when [`wait_beyond`](Self::wait_beyond) would look again.
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

    /// Where the durable part ends.
    pub fn end(&self) -> Option<LogPosition> {
        let state = self.state();
        state.files.last().map(|last| LogPosition::new(Arc::clone(&last.name), state.end))
    }

    /// Up to where a file can be read.
    pub fn extent(&self, file: &LogFile) -> Extent {
        Self::extent_in(&self.state(), file)
    }

    /// Waits until the file can be read beyond `offset`, is complete, or the time is over.
    pub fn wait_beyond(&self, file: &LogFile, offset: u64, at_most: Duration) -> Extent {
        self.wait(offset, at_most, |state| Self::extent_in(state, file))
    }

    /// Up to where a replica is sent a file: where tags are made anew, not beyond the last one.
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

    /// From now on replicas are sent only what has its tags made anew: nothing so far.
    pub fn serve_tagged(&self) {
        self.state().tagged = Some(Tagged::default());
    }

    /// Whether tags are made anew.
    pub fn is_tagged(&self) -> bool {
        self.state().tagged.is_some()
    }

    /// Whether nothing is here that was not looked at.
    pub fn is_all_tagged(&self) -> bool {
        let state = self.state();
        let last = state.files.last().map(|last| place(last));
        state.tagged.is_none_or(|tagged| last.is_none_or(|last| tagged.place == last && tagged.seen >= state.end))
    }

    /// All files before this one have their tags, and of this one what is before `end`; `seen`: up to there the log was looked at.
    pub fn tagged_to(&self, file: &LogFile, end: u64, seen: u64) {
        self.state().tagged = Some(Tagged { place: place(file), end, seen });
        self.announce();
    }

    /// The first file of all sources that is behind this one; the oldest one.
    pub fn behind(&self, file: Option<&LogFile>) -> Option<Arc<LogFile>> {
        let state = self.state();
        let mut files = state.former.iter().flatten().chain(&state.files);
        files.find(|other| file.is_none_or(|file| place(other) > place(file))).cloned()
    }

    /// The GTIDs up to the durable end, and that end.
    pub fn gtids_at_end(&self) -> Result<(Option<LogPosition>, Gtids), ReadError> {
        let mut tip = self.tip();
        let advanced = self.read_again(|| Tip::advance(tip.take(), &self.files()))?;
        let found = advanced.as_ref().map_or((None, Gtids::None), |tip| (Some(tip.position()), tip.gtids().clone()));
        *tip = advanced;
        Ok(found)
    }

    /// Files by their names. All but the last are complete.
    fn open(&self, known: &[Arc<LogFile>], series: u64, dir: &Path, names: &[String]) -> io::Result<Vec<Arc<LogFile>>> {
        let mut files = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            // Who reads a file goes on with it.
            let path = dir.join(name);
            let known = known.iter().find(|file| file.path() == path).cloned();
            let file = known.unwrap_or_else(|| Arc::new(LogFile::new(name, path, series, &self.tail)));
            if index + 1 < names.len() && file.sealed().is_none() {
                file.seal(packed::open(&RealFs, file.path())?.len()?);
            }
            files.push(file);
        }
        Ok(files)
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
        state.tagged.map_or(extent, |tagged| tagged.limit(place(file), extent))
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
