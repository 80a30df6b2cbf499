//! The chain of records. Entry N+1 is made by a conditional put: of two writers one succeeds, and the other reads what came. Nothing is ever changed.
//!
//! ```text
//! manifest/000000000042    one entry: what happened
//! snapshots/000000000040   the state after entry 40: a reader begins at the newest one
//! ```
//!
//! Entries before the last snapshot but one are removed when they are old. A writer that has seen nothing of the chain for a while reads it again before it
//! trusts its own number: that name may have been used and removed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::record::{Entry, FORMAT, Record, StoredObject};
use crate::segment::{self, ObjectDamage};
use crate::state::{BadRecord, State};
use crate::store::{Put, Store, StoreError};

/// What a writer knows of the chain is trusted for so long.
const TRUSTED_FOR: Duration = Duration::from_secs(600);
/// By the store's clock: older entries may be removed. Far more than [`TRUSTED_FOR`].
const KEPT_SECONDS: i64 = 3600;
/// Entries between two snapshots, at least.
const SNAPSHOT_ENTRIES_MIN: u64 = 64;
const ENTRIES: &str = "manifest";
const SNAPSHOTS: &str = "snapshots";
/// A reader may begin while entries are removed.
const LOAD_TRIES: usize = 4;

/// What went wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{0}")]
    Store(#[from] StoreError),
    /// There is none.
    #[error("there is no archive")]
    Nothing,
    /// An object is not what it should be.
    #[error("{object}: {reason}")]
    Damaged { object: String, reason: String },
    /// Of another version of Heddle.
    #[error("the archive's layout is of version {0}; this heddle knows {FORMAT}")]
    Format(u32),
    /// What only a person can decide.
    #[error("{0}")]
    Refused(String),
    /// Another writer was faster: its entries have been read.
    #[error("another process has written into the archive")]
    Overtaken,
    #[error("the log can not be read: {0}")]
    Log(String),
    /// The system's reason.
    #[error("the log can not be read: {0}")]
    LogIo(std::io::Error),
}

impl ArchiveError {
    pub(crate) fn damaged(object: &str, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { object: object.to_owned(), reason: reason.to_string() }
    }

    /// Another try may help.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Store(StoreError::Failed(_) | StoreError::NotFound) | Self::Overtaken => true,
            Self::LogIo(error) => binlog::errno::is_passing(error),
            _ => false,
        }
    }

    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Store(StoreError::Stopped))
    }
}

pub type Result<T> = std::result::Result<T, ArchiveError>;

/// The chain, as far as it was read.
#[derive(Debug)]
pub struct Manifest {
    store: Store,
    state: State,
    writer: String,
    /// When the chain's end was seen last.
    seen: Instant,
    /// Bytes of the entries behind the last snapshot.
    unsnapped: u64,
    snapped: u64,
    /// Of the last snapshot.
    snapshot_bytes: u64,
}

fn entry_name(version: u64) -> String {
    format!("{ENTRIES}/{version:012}")
}

fn number(name: &str) -> Option<u64> {
    name.rsplit('/').next()?.parse().ok()
}

impl Manifest {
    /// Reads all of it. An archive without an entry has a state without an owner.
    pub fn load(store: &Store, writer: &str) -> Result<Self> {
        let mut manifest = Self {
            store: store.clone(),
            state: State::default(),
            writer: writer.to_owned(),
            seen: Instant::now(),
            unsnapped: 0,
            snapped: 0,
            snapshot_bytes: 0,
        };
        manifest.reload()?;
        Ok(manifest)
    }

    /// Of an archive that has to be there.
    pub fn open(store: &Store) -> Result<Self> {
        let manifest = Self::load(store, "reader").map_err(|error| match error {
            ArchiveError::Store(StoreError::NotFound) => ArchiveError::Nothing,
            other => other,
        })?;
        if manifest.state.owner.is_none() {
            return Err(ArchiveError::Nothing);
        }
        Ok(manifest)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What came since. True: something.
    pub fn refresh(&mut self) -> Result<bool> {
        let before = self.state.version;
        let began = Instant::now();
        let listed = self.store.list(ENTRIES, Some(&entry_name(before)))?;
        match self.read(listed.into_iter().filter_map(|object| number(&object.name)).collect()) {
            Ok(()) => self.seen = began,
            Err(Some(error)) => return Err(error),
            Err(None) => self.reload()?,
        }
        Ok(self.state.version > before)
    }

    /// Reads all of it again.
    pub fn reload(&mut self) -> Result<()> {
        for _ in 0..LOAD_TRIES {
            let began = Instant::now();
            self.begin_at_snapshot()?;
            let after = (self.state.version > 0).then(|| entry_name(self.state.version));
            let listed = self.store.list(ENTRIES, after.as_deref())?;
            match self.read(listed.into_iter().filter_map(|object| number(&object.name)).collect()) {
                Ok(()) => {
                    self.seen = began;
                    return Ok(());
                }
                Err(Some(error)) => return Err(error),
                Err(None) => {}
            }
        }
        Err(ArchiveError::damaged(&entry_name(self.state.version + 1), "it is missing, and later ones are there"))
    }

    /// Appends an entry. [`ArchiveError::Overtaken`]: nothing was written, and the state is what another writer has made of it.
    pub fn commit(&mut self, records: Vec<Record>) -> Result<()> {
        if self.seen.elapsed() > TRUSTED_FOR && self.refresh()? {
            return Err(ArchiveError::Overtaken);
        }
        let mut next = self.state.clone();
        apply(&mut next, records.clone()).map_err(|error| ArchiveError::Refused(error.to_string()))?;
        next.version += 1;
        let entry = Entry { format: FORMAT, writer: self.writer.clone(), records };
        let text = serde_json::to_vec(&entry).map_err(|error| ArchiveError::Refused(error.to_string()))?;
        let (name, bytes) = (entry_name(next.version), Bytes::from(text));
        let began = Instant::now();
        if self.store.put_new(&name, &bytes)? == Put::Taken {
            self.refresh()?;
            return Err(ArchiveError::Overtaken);
        }
        if self.seen.elapsed() > TRUSTED_FOR {
            // It took so long that the name may have been used before.
            self.reload()?;
            return Err(ArchiveError::Overtaken);
        }
        (self.state, self.seen) = (next, began);
        self.unsnapped += bytes.len() as u64;
        Ok(())
    }

    /// Writes a snapshot when the entries since the last one have grown as large, and removes what nobody needs any more. It may be left out.
    pub fn tidy(&mut self) -> Result<()> {
        let since = self.state.version - self.snapped.min(self.state.version);
        if since < SNAPSHOT_ENTRIES_MIN || self.unsnapped < self.snapshot_bytes {
            return Ok(());
        }
        self.snapshot()
    }

    /// Writes one now.
    pub fn snapshot(&mut self) -> Result<()> {
        let text = serde_json::to_vec(&self.state).map_err(|error| ArchiveError::Refused(error.to_string()))?;
        let packed = segment::pack(&text).map_err(|error| ArchiveError::Refused(error.to_string()))?;
        (self.snapped, self.unsnapped, self.snapshot_bytes) = (self.state.version, 0, packed.len() as u64);
        self.store.put(&format!("{SNAPSHOTS}/{:012}", self.state.version), packed.into())?;
        self.remove_old()
    }

    fn remove_old(&self) -> Result<()> {
        let snapshots = self.store.list(SNAPSHOTS, None)?;
        let [older @ .., before, last] = snapshots.as_slice() else { return Ok(()) };
        let is_old = |modified: i64| last.modified - modified > KEPT_SECONDS;
        let mut gone: Vec<String> =
            older.iter().filter(|object| is_old(object.modified)).map(|object| object.name.clone()).collect();
        let first_kept = number(&before.name).unwrap_or(0);
        let entries = self.store.list(ENTRIES, None)?;
        let old = entries.iter().filter(|entry| is_old(entry.modified) && number(&entry.name) < Some(first_kept));
        gone.extend(old.map(|entry| entry.name.clone()));
        self.store.delete(&gone)?;
        Ok(())
    }

    fn begin_at_snapshot(&mut self) -> Result<()> {
        (self.state, self.snapped, self.unsnapped, self.snapshot_bytes) = (State::default(), 0, 0, 0);
        let Some(newest) = self.store.list(SNAPSHOTS, None)?.pop() else { return Ok(()) };
        let packed = self.store.get(&newest.name)?;
        let damaged = |reason: &str| ArchiveError::damaged(&newest.name, reason);
        let text = zstd::stream::decode_all(&*packed).map_err(|_| damaged("it can not be decompressed"))?;
        self.state = serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))?;
        if self.state.format != FORMAT {
            return Err(ArchiveError::Format(self.state.format));
        }
        (self.snapped, self.snapshot_bytes) = (self.state.version, packed.len() as u64);
        Ok(())
    }

    /// The entries of these versions. `Err(None)`: one is missing.
    fn read(&mut self, versions: VecDeque<u64>) -> std::result::Result<(), Option<ArchiveError>> {
        for version in versions {
            if version != self.state.version + 1 {
                return Err(None);
            }
            let name = entry_name(version);
            let bytes = match self.store.get(&name) {
                Err(StoreError::NotFound) => return Err(None),
                got => got.map_err(|error| Some(error.into()))?,
            };
            let damaged = |reason: String| Some(ArchiveError::damaged(&name, reason));
            let entry: Entry = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
            if entry.format != FORMAT {
                return Err(Some(ArchiveError::Format(entry.format)));
            }
            apply(&mut self.state, entry.records).map_err(|error| damaged(error.to_string()))?;
            self.state.version = version;
            self.unsnapped += bytes.len() as u64;
        }
        Ok(())
    }

    /// Whether the store refuses to put what is there. Without that two writers would tear the archive.
    pub fn check_store(&self) -> Result<()> {
        const PROBE: &str = "probe";
        let first = Bytes::from_static(b"An archive of heddle. Of two writers of the same name one must fail.\n");
        let _ = self.store.put_new(PROBE, &first)?;
        if self.store.put_new(PROBE, &Bytes::from(format!("{}\n", self.writer)))? == Put::Made {
            return Err(ArchiveError::Refused(format!(
                "{} has replaced an object that was to be made only if it is not there (If-None-Match): an archive needs that",
                self.store.url()
            )));
        }
        Ok(())
    }

    /// Stores a text under the name of its content.
    pub fn store_text(&self, folder: &str, text: &[u8]) -> Result<StoredObject> {
        let packed = segment::pack(text).map_err(|error| ArchiveError::Refused(error.to_string()))?;
        let sum = segment::checksum(text);
        let named = StoredObject { object: format!("{folder}/{sum}"), sum, length: text.len() as u64 };
        self.store.put(&named.object, packed.into())?;
        Ok(named)
    }
}

/// What an object holds that a record names.
pub fn text_of(store: &Store, named: &StoredObject) -> Result<Vec<u8>> {
    let object = store.get(&named.object)?;
    segment::unpack(&object, named.length, &named.sum)
        .map_err(|error: ObjectDamage| ArchiveError::damaged(&named.object, error))
}

fn apply(state: &mut State, records: Vec<Record>) -> std::result::Result<(), BadRecord> {
    records.into_iter().try_for_each(|record| state.apply(record))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use object_store::path::Path;

    use super::*;
    use crate::state::tests::segment;

    fn store() -> Store {
        Store::new("memory".to_owned(), Arc::new(InMemory::new()), Path::default())
    }

    fn owner() -> Record {
        Record::Owner { owner: "{}".to_owned() }
    }

    #[test]
    fn two_writers_never_tear_it() {
        let store = store();
        let (mut one, mut two) = (Manifest::load(&store, "1").unwrap(), Manifest::load(&store, "2").unwrap());
        one.check_store().unwrap();
        two.check_store().unwrap();
        one.commit(vec![owner()]).unwrap();
        assert!(matches!(two.commit(vec![owner()]), Err(ArchiveError::Overtaken)));
        assert_eq!(two.state(), one.state());
        let mut overtaken = 0;
        for step in 0..200_u64 {
            let writer = if (step * 7) % 3 == 0 { &mut one } else { &mut two };
            let from = writer.state().end().map_or(0, |end| end.offset);
            match writer.commit(vec![Record::Segment(segment("b.000001", from, from + 10, ""))]) {
                Ok(()) => writer.tidy().unwrap(),
                Err(ArchiveError::Overtaken) => overtaken += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(overtaken > 10);
        let read = Manifest::open(&store).unwrap();
        assert_eq!(read.state().end().unwrap().offset, (200 - overtaken) * 10);
        assert!(!store.list(SNAPSHOTS, None).unwrap().is_empty());
        let mut reader = Manifest::open(&store).unwrap();
        assert!(!reader.refresh().unwrap());
        one.reload().unwrap();
        let from = one.state().end().unwrap().offset;
        one.commit(vec![Record::Segment(segment("b.000001", from, from + 1, ""))]).unwrap();
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.state(), one.state());
    }

    #[test]
    fn what_is_missing_or_damaged_is_said() {
        let store = store();
        assert!(matches!(Manifest::open(&store), Err(ArchiveError::Nothing)));
        let mut manifest = Manifest::load(&store, "1").unwrap();
        manifest.commit(vec![owner()]).unwrap();
        for from in [0, 10, 20] {
            manifest.commit(vec![Record::Segment(segment("b.000001", from, from + 10, ""))]).unwrap();
        }
        store.delete(&[entry_name(3)]).unwrap();
        assert!(Manifest::open(&store).unwrap_err().to_string().contains("000000000003: it is missing"));
        store.put(&entry_name(3), Bytes::from_static(b"{")).unwrap();
        assert!(matches!(Manifest::open(&store), Err(ArchiveError::Damaged { .. })));
        store.put(&entry_name(3), Bytes::from_static(b"{\"format\":9,\"writer\":\"\",\"records\":[]}")).unwrap();
        assert!(matches!(Manifest::open(&store), Err(ArchiveError::Format(9))));
    }

    #[test]
    fn a_text_is_what_it_was() {
        let store = store();
        let manifest = Manifest::load(&store, "1").unwrap();
        let named = manifest.store_text("facts", b"some text").unwrap();
        assert_eq!(text_of(&store, &named).unwrap(), b"some text");
        store.put(&named.object, segment::pack(b"some test").unwrap().into()).unwrap();
        assert!(matches!(text_of(&store, &named), Err(ArchiveError::Damaged { .. })));
    }
}
