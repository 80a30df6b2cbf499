//! An archive as a folder of binary log files, for everything that reads such files. Segments are fetched when they are read, and some ahead of that; every
//! one is compared with its checksum. What is kept in memory is bounded. Nothing is written, here or there.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use binlog::gtids::GtidState;
use relay::fs::{AppendFile, DirLock, Fs, ReadFile};

use crate::manifest::{ArchiveError, Manifest, Result};
use crate::record::Segment;
use crate::segment;
use crate::state::{File, State, parsed};
use crate::store::{Store, StoreError};
use crate::writer::segments_of;

/// Segments in memory, of at most 8 MiB each.
const KEPT: usize = 8;
const AHEAD: usize = 3;
const THREADS_AHEAD: usize = 2;
const TRIES: u32 = 4;
const PAUSE_FIRST: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Clone)]
pub struct ArchiveFs {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for ArchiveFs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveFs").field("store", &self.inner.store).finish_non_exhaustive()
    }
}

struct Inner {
    store: Store,
    state: State,
    lists: Mutex<HashMap<String, Arc<Vec<Segment>>>>,
    kept: Mutex<SegmentCache>,
    arrived: Condvar,
    ahead: OnceLock<SyncSender<Segment>>,
}

/// By the object's name.
#[derive(Default)]
struct SegmentCache {
    segments: HashMap<String, Option<Arc<Vec<u8>>>>,
    /// Those that are here, the one that was used last behind the others.
    order: VecDeque<String>,
}

impl ArchiveFs {
    /// As the archive is now.
    pub fn open(store: &Store) -> Result<Self> {
        let manifest = patient(|| Manifest::open(store))?;
        Ok(Self::new(store.clone(), manifest.state().clone()))
    }

    /// At one version of the manifest.
    pub fn new(store: Store, state: State) -> Self {
        let (lists, kept) = (Mutex::default(), Mutex::default());
        Self { inner: Arc::new(Inner { store, state, lists, kept, arrived: Condvar::new(), ahead: OnceLock::new() }) }
    }

    pub fn state(&self) -> &State {
        &self.inner.state
    }

    /// The files' paths, oldest first: names of the source behind the archive's URL.
    pub fn paths(&self) -> Vec<PathBuf> {
        let folder = Path::new(self.inner.store.url());
        self.inner.state.files.iter().map(|file| folder.join(&file.name)).collect()
    }

    /// Without the oldest files in which everything is in `gtids`: those that are not needed behind them.
    pub fn paths_behind(&self, gtids: &GtidState) -> Vec<PathBuf> {
        let mut before = GtidState::None;
        let mut unneeded = 0;
        for (index, file) in self.inner.state.files.iter().enumerate() {
            if file.is_behind_gap || !file.before.is_empty() {
                before = parsed(&file.before);
            }
            // What is not known to be among them is needed.
            if !before.is_empty() && gtids.contains_state(&before) {
                unneeded = index;
            }
            before = before.then(&parsed(&file.gtids));
        }
        self.paths().split_off(unneeded)
    }

    /// A file by its path or name.
    pub fn file(&self, path: &Path) -> Option<&File> {
        let name = path.file_name()?.to_str()?;
        self.inner.state.file(name)
    }

    /// Fills `into` from a place of a file; says how much there was.
    pub fn read_full(&self, name: &str, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = self.open_read(Path::new(name))?;
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + done as u64)? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }
}

impl Inner {
    fn kept(&self) -> MutexGuard<'_, SegmentCache> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn segments(&self, file: &File) -> Result<Arc<Vec<Segment>>> {
        let lists = || self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lists().get(&file.name) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(patient(|| segments_of(&self.store, file))?);
        lists().insert(file.name.clone(), Arc::clone(&found));
        Ok(found)
    }

    /// A segment's bytes; waits for whoever fetches it already.
    fn bytes(&self, segment: &Segment) -> Result<Arc<Vec<u8>>> {
        let mut kept = self.kept();
        loop {
            match kept.segments.get(&segment.object) {
                Some(Some(bytes)) => {
                    let bytes = Arc::clone(bytes);
                    kept.order.retain(|name| *name != segment.object);
                    kept.order.push_back(segment.object.clone());
                    return Ok(bytes);
                }
                Some(None) => kept = self.arrived.wait(kept).unwrap_or_else(PoisonError::into_inner),
                None => break,
            }
        }
        kept.segments.insert(segment.object.clone(), None);
        drop(kept);
        let fetched = patient(|| fetch(&self.store, segment)).map(Arc::new);
        let mut kept = self.kept();
        match &fetched {
            Ok(bytes) => {
                kept.segments.insert(segment.object.clone(), Some(Arc::clone(bytes)));
                kept.order.push_back(segment.object.clone());
                while kept.order.len() > KEPT
                    && let Some(oldest) = kept.order.pop_front()
                {
                    kept.segments.remove(&oldest);
                }
            }
            Err(_) => {
                kept.segments.remove(&segment.object);
            }
        }
        drop(kept);
        self.arrived.notify_all();
        fetched
    }
}

/// One segment, compared with its checksum.
pub fn fetch(store: &Store, segment: &Segment) -> Result<Vec<u8>> {
    let object = store.get(&segment.object)?;
    segment::unpack(&object, segment.to - segment.from, &segment.sum)
        .map_err(|error| ArchiveError::damaged(&segment.object, error))
}

/// A store may be away for a while.
pub(crate) fn patient<T>(mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    let mut pause = PAUSE_FIRST;
    for _ in 1..TRIES {
        match ask() {
            Err(ArchiveError::Store(StoreError::Failed(reason))) => {
                tracing::debug!("the archive is asked again: {reason}");
                std::thread::sleep(pause);
                pause *= 2;
            }
            answered => return answered,
        }
    }
    ask()
}

struct ArchiveFile {
    inner: Arc<Inner>,
    size: u64,
    segments: Arc<Vec<Segment>>,
}

impl ArchiveFile {
    /// Asks for those behind this one, and waits for none.
    fn look_ahead(&self, at: usize) {
        let ahead = self.inner.ahead.get_or_init(|| start_ahead(&self.inner));
        for segment in self.segments.iter().skip(at + 1).take(AHEAD) {
            if !self.inner.kept().segments.contains_key(&segment.object) && ahead.try_send(segment.clone()).is_err() {
                break;
            }
        }
    }
}

fn start_ahead(inner: &Arc<Inner>) -> SyncSender<Segment> {
    let (ask, asked) = sync_channel(AHEAD);
    let asked = Arc::new(Mutex::new(asked));
    for _ in 0..THREADS_AHEAD {
        let (inner, asked) = (Arc::downgrade(inner), Arc::clone(&asked));
        // Without it reading is slower.
        let _ = std::thread::Builder::new().name("archive-ahead".to_owned()).spawn(move || work_ahead(&inner, &asked));
    }
    ask
}

fn work_ahead(inner: &Weak<Inner>, asked: &Mutex<Receiver<Segment>>) {
    loop {
        let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let (Ok(segment), Some(inner)) = (next, inner.upgrade()) else { return };
        // Who needs it is told.
        let _ = inner.bytes(&segment);
    }
}

impl ReadFile for ArchiveFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let at = self.segments.partition_point(|segment| segment.to <= offset);
        let Some(segment) = self.segments.get(at).filter(|_| !into.is_empty()) else { return Ok(0) };
        self.look_ahead(at);
        let bytes = self.inner.bytes(segment).map_err(io::Error::other)?;
        let behind = bytes.get((offset - segment.from) as usize..).unwrap_or_default();
        let read = behind.len().min(into.len());
        if let (Some(into), Some(from)) = (into.get_mut(..read), behind.get(..read)) {
            into.copy_from_slice(from);
        }
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.size)
    }
}

fn read_only<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "an archive is only read"))
}

impl Fs for ArchiveFs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn create(&self, _: &Path) -> io::Result<Box<dyn AppendFile>> {
        read_only()
    }

    fn open_append(&self, _: &Path) -> io::Result<Box<dyn AppendFile>> {
        read_only()
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.file(path).ok_or(io::ErrorKind::NotFound)?;
        let segments = self.inner.segments(file).map_err(io::Error::other)?;
        Ok(Arc::new(ArchiveFile { inner: Arc::clone(&self.inner), size: file.size, segments }))
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(self.inner.state.files.iter().map(|file| file.name.clone()).collect())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        read_only()
    }

    fn lock(&self, _: &Path) -> io::Result<DirLock> {
        read_only()
    }
}
