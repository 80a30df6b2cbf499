//! Which files must stay: those that replicas and the archive are reading, and those that absent replicas need. It removes no file itself.

use std::collections::BTreeMap;
use std::time::Duration;

use super::file::LogFile;
use super::needs::NeededFile;
use super::reader::ReadError;
use super::{Inventory, State};
use binlog::position::file_number;

/// The archive's place among the readers, whose numbers begin with 1.
const ARCHIVE: u64 = 0;

/// Whether files may be removed that attached replicas have not been sent yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadFiles {
    Stays,
    MayGo,
}

impl State {
    /// How many of the oldest files may go, of all sources together, but for the last file of the present source. Nobody reads them, nor will; with [`Unread::MayGo`] only the
    /// archive counts.
    pub(super) fn removable(&self, unread: UnreadFiles) -> usize {
        let first = self.former.iter().flatten().chain(&self.files).next().map(|file| file.place());
        let away = self.needs.oldest_away(first).map(|(place, _)| place);
        let oldest = match unread {
            UnreadFiles::Stays => self.readers.values().copied().chain(away).min(),
            UnreadFiles::MayGo => self.readers.get(&ARCHIVE).copied(),
        };
        let but_last = self.files.split_last().map_or(&[][..], |(_, files)| files);
        let files = self.former.iter().flatten().chain(but_last);
        files.take_while(|file| oldest.is_none_or(|oldest| file.place() < oldest)).count()
    }
}

/// The place of a reader: its file, and all files behind it, are kept while this value lives.
#[derive(Debug)]
pub struct ReaderPlace<'a> {
    inventory: &'a Inventory,
    reader: u64,
    /// By which the replica is known that is sent it, when it comes again.
    replica: Option<String>,
}

impl ReaderPlace<'_> {
    /// Moves to another file.
    pub fn moved_to(&self, file: &LogFile) {
        let mut state = self.inventory.state();
        state.readers.insert(self.reader, file.place());
        if let Some(replica) = &self.replica {
            state.needs.moves(replica, file.place());
        }
    }
}

impl Drop for ReaderPlace<'_> {
    fn drop(&mut self) {
        let mut state = self.inventory.state();
        state.readers.remove(&self.reader);
        if let Some(replica) = &self.replica {
            state.needs.leaves(replica);
        }
    }
}

impl Inventory {
    /// The archive lacks what begins with this file of the folder with this number: that stays, and all behind it. `None`: all of the folder.
    pub fn keep_for_archive(&self, folder: usize, file: Option<&str>) {
        self.state().readers.insert(ARCHIVE, (folder as u64, file.and_then(file_number)));
    }

    /// Drops at most `most` of the oldest files, those of former sources first. Returns how many: the caller removes them from the disk.
    pub fn let_go(&self, most: usize, unread: UnreadFiles) -> usize {
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

    /// Begins to read from this file on.
    pub fn read_from(&self, file: &LogFile) -> ReaderPlace<'_> {
        self.read_from_as(file, None)
    }

    /// Begins to read from this file on, for a replica. Its need is remembered for a time after its stream has ended. `replica`: its name, the same each time it attaches.
    pub fn read_from_as(&self, file: &LogFile, replica: Option<&str>) -> ReaderPlace<'_> {
        let mut state = self.state();
        state.last_reader += 1;
        let reader = state.last_reader;
        state.readers.insert(reader, file.place());
        if let Some(replica) = replica {
            state.needs.attaches(replica, file.place());
        }
        ReaderPlace { inventory: self, reader, replica: replica.map(str::to_owned) }
    }

    /// What replicas needed when the last process ended; each that is away is waited for so long.
    pub fn remember_needs(&self, replicas: BTreeMap<String, NeededFile>, patience: Duration) {
        self.state().needs.remember(replicas, patience);
    }

    /// The files that replicas need, to be stored.
    pub fn needs(&self) -> BTreeMap<String, NeededFile> {
        self.state().needs.needed()
    }

    /// Whether the needs have to be stored soon; true once for each reason.
    pub fn has_urgent_needs(&self) -> bool {
        self.state().needs.take_urgent()
    }

    /// Forgets the replicas that have been away for too long. Returns their names, and how long each was away.
    pub fn forget_needs(&self) -> Vec<(String, Duration)> {
        self.state().needs.forget()
    }

    /// The absent replica for which the oldest files stay.
    pub fn waits_for_replica(&self) -> Option<String> {
        let state = self.state();
        let first = state.former.iter().flatten().chain(&state.files).next().map(|file| file.place());
        state.needs.oldest_away(first).map(|(_, name)| name.to_owned())
    }
}
