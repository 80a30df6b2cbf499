//! What can be served: the files of a mirror up to where they are durable, and what is known of their source.
//!
//! The mirror publishes, sessions read. Nothing here writes, and nothing beyond the durable end is ever read. A file that the mirror has removed stays readable for who has
//! it open.

mod file;
mod gtids;
mod reader;
mod source;
mod tip;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use binlog::LogPosition;
use binlog::position::file_number;

pub use self::file::{FileStart, LogFile};
pub use self::gtids::{BinlogState, DomainGtid, Gtids};
pub use self::reader::{LogReader, Peeked, ReadError};
pub use self::source::{FILE as SOURCE_FACTS, SourceFacts, VersionFamily};
use self::tip::Tip;

/// Up to where a file can be read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Behind its last durable byte.
    pub end: u64,
    /// More of it may come.
    pub grows: bool,
    /// The inventory is closed: nothing more comes at all.
    pub is_closed: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Inventory {
    state: Mutex<State>,
    grown: Condvar,
    /// The GTIDs up to the durable end, as far as somebody has asked for them.
    tip: Mutex<Option<Tip>>,
}

#[derive(Debug, Default)]
struct State {
    /// Of the last source: each has its own.
    dir: PathBuf,
    /// Oldest first.
    files: Vec<Arc<LogFile>>,
    /// Of the last file.
    end: u64,
    is_closed: bool,
    source: Option<Arc<SourceFacts>>,
    /// The numbers of the files that are being sent, by the reader.
    readers: BTreeMap<u64, Option<u64>>,
    last_reader: u64,
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
        self.inventory.state().readers.insert(self.reader, file_number(&file.name));
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
        Self { state: Mutex::new(state), grown: Condvar::new(), tip: Mutex::new(None) }
    }

    /// All files there are in the folder, oldest first, and where the last one is durable.
    pub fn hold(&self, dir: &Path, names: &[String], durable: Option<&LogPosition>) -> io::Result<()> {
        let mut state = self.state();
        dir.clone_into(&mut state.dir);
        let mut files = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            // Who reads a file goes on with it.
            let path = dir.join(name);
            let known = state.files.iter().find(|file| file.path() == path).cloned();
            let file = known.unwrap_or_else(|| Arc::new(LogFile::new(name, path)));
            if index + 1 < names.len() && file.sealed().is_none() {
                file.seal(std::fs::metadata(file.path())?.len());
            }
            files.push(file);
        }
        state.files = files;
        state.end = durable.map_or(0, |durable| durable.offset);
        drop(state);
        *self.tip() = None;
        self.grown.notify_all();
        Ok(())
    }

    /// The end has moved. The name of a new file seals the one before.
    pub fn durable(&self, end: &LogPosition) {
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
            let path = state.dir.join(&*end.file);
            state.files.push(Arc::new(LogFile::new(&end.file, path)));
        }
        state.end = end.offset;
        drop(state);
        self.grown.notify_all();
    }

    /// Files before this one are gone.
    pub fn purged_to(&self, first_kept: &str) {
        let mut state = self.state();
        if let Some(at) = state.files.iter().position(|file| &*file.name == first_kept) {
            state.files.drain(..at);
        }
    }

    /// Somebody reads from this file on.
    pub fn read_from(&self, file: &LogFile) -> Reading<'_> {
        let mut state = self.state();
        state.last_reader += 1;
        let reader = state.last_reader;
        state.readers.insert(reader, file_number(&file.name));
        Reading { inventory: self, reader }
    }

    /// How many of the oldest files nobody reads, nor will.
    pub fn unread(&self) -> usize {
        let state = self.state();
        let oldest = state.readers.values().min().copied();
        state.files.iter().take_while(|file| oldest.is_none_or(|oldest| file_number(&file.name) < oldest)).count()
    }

    /// What was learned of the source, by the mirror when it connects.
    pub fn learn(&self, facts: SourceFacts) {
        self.state().source = Some(Arc::new(facts));
    }

    /// None before the first connection to the source.
    pub fn source(&self) -> Option<Arc<SourceFacts>> {
        self.state().source.clone()
    }

    /// Ends all waiting.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.grown.notify_all();
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
        let number = file_number(&file.name);
        state.files.iter().find(|other| file_number(&other.name) > number).cloned()
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
        let state = self.state();
        let is_still = |state: &mut State| {
            let extent = Self::extent_in(state, file);
            extent.end <= offset && extent.grows && !extent.is_closed
        };
        let (state, _) =
            self.grown.wait_timeout_while(state, at_most, is_still).unwrap_or_else(PoisonError::into_inner);
        Self::extent_in(&state, file)
    }

    /// The GTIDs up to the durable end, and that end.
    pub fn gtids_at_end(&self) -> Result<(Option<LogPosition>, Gtids), ReadError> {
        let mut tip = self.tip();
        let files = self.files();
        let advanced = Tip::advance(tip.take(), &files)?;
        let found = advanced.as_ref().map_or((None, Gtids::None), |tip| (Some(tip.position()), tip.gtids().clone()));
        *tip = advanced;
        Ok(found)
    }

    fn extent_in(state: &State, file: &LogFile) -> Extent {
        let is_last = state.files.last().is_some_and(|last| last.name == file.name);
        match file.sealed() {
            Some(end) => Extent { end, grows: false, is_closed: state.is_closed },
            None => Extent { end: if is_last { state.end } else { 0 }, grows: true, is_closed: state.is_closed },
        }
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
