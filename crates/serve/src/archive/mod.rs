//! Puts a mirror into an archive, on a thread of its own. The mirror and its replicas never wait for the store: the thread reads durable bytes from the disk, and keeps only the
//! removal of files from what it has not archived yet.
//!
//! Each folder of the mirror is an archive of its own. The archive of a later source is below the first one's, under the folder's name.

mod fill;
mod folder_log;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archive::store::StoreError;
use archive::writer::{Pace, PartialPut, Step, Writer};
use archive::{ArchiveError, Store};
use engine::failure::{Failure, FailureKind};

pub use self::fill::{fill, of_archive};
use self::folder_log::FolderLog;
use crate::inventory::Inventory;
use crate::mirror;

const POLL: Duration = Duration::from_millis(200);
const BACK_OFF_FIRST: Duration = Duration::from_millis(500);
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// Between two looks at what only a person can repair.
const REFUSED_AGAIN: Duration = Duration::from_secs(60);

/// The archive, and how often it is written.
#[derive(Debug, Clone)]
pub struct Settings {
    pub url: String,
    /// The mirror's.
    pub dir: PathBuf,
    pub pace: Pace,
}

/// What a run has archived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveOutcome {
    /// The end of the log in the archive, as far as this run knows.
    pub end: Option<String>,
    /// Bytes of the log that this run archived.
    pub bytes: u64,
    /// Bytes in the bodies of all requests.
    pub sent: u64,
    /// Why a part of the mirror is not in the archive.
    pub lacks: Option<String>,
}

struct Shared {
    /// What is left is put although it is young; then it ends.
    ending: AtomicBool,
    /// It ends now.
    stop: Arc<AtomicBool>,
    done: Mutex<ArchiveOutcome>,
}

/// The thread.
pub struct Archiver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Archiver {
    /// Begins. A URL that can not be understood is refused; a store that is away is tried again.
    pub fn start(settings: Settings, inventory: &Arc<Inventory>) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let open = |error: StoreError| {
            let kind =
                if matches!(error, StoreError::Refused(_)) { FailureKind::Refused } else { FailureKind::Exhausted };
            Failure::new(kind, format!("archive {}: {error}", wire::redacted(&settings.url)))
        };
        let store = Store::make(&settings.url).map_err(open)?.until(&stop);
        let shared = Arc::new(Shared { ending: AtomicBool::new(false), stop, done: Mutex::default() });
        if !settings.pace.may_leave_gap {
            // Before the mirror looks for what may be removed.
            inventory.keep_for_archive(0, None);
        }
        let mut work = Work {
            shared: Arc::clone(&shared),
            inventory: Arc::clone(inventory),
            settings,
            store,
            told: StoreNotice::Nothing,
            id: id(),
        };
        let thread = std::thread::Builder::new().name("archive".to_owned()).spawn(move || work.run());
        let thread = thread.map_err(|error| Failure::new(FailureKind::Exhausted, format!("archive: {error}")))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Puts what is left, for so long.
    pub fn finish(mut self, at_most: Duration) -> ArchiveOutcome {
        self.shared.ending.store(true, Ordering::Relaxed);
        let began = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && began.elapsed() < at_most {
            std::thread::sleep(POLL / 4);
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the archive's thread has panicked");
        }
        self.shared.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Another one for each process.
fn id() -> String {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mixed = crc32fast::hash(format!("{}-{}", since.as_nanos(), std::process::id()).as_bytes());
    format!("{:x}{mixed:08x}", since.as_secs())
}

/// What was logged last about the store: each change is logged once.
#[derive(Debug, PartialEq, Eq)]
enum StoreNotice {
    Nothing,
    Works,
    Fails,
    Refused(String),
}

struct Work {
    shared: Arc<Shared>,
    inventory: Arc<Inventory>,
    settings: Settings,
    store: Store,
    told: StoreNotice,
    id: String,
}

/// Why a folder is left.
enum FolderEnd {
    /// All of it is archived, and another one came.
    Done,
    Stopped,
}

impl Work {
    fn run(&mut self) {
        let mut at = 0;
        loop {
            let folders = mirror::folders_of(&self.settings.dir);
            let Some(folder) = folders.get(at) else { return };
            match self.folder(folder, at) {
                FolderEnd::Done => at += 1,
                FolderEnd::Stopped => return,
            }
        }
    }

    /// One folder of the mirror, until there is a later one and this one is done.
    fn folder(&mut self, folder: &Path, at: usize) -> FolderEnd {
        let store = match self.store_of(folder, at) {
            Ok(store) => store,
            Err(error) => {
                self.tell(&error);
                self.lacks(&error.to_string());
                return FolderEnd::Stopped;
            }
        };
        let mut writer = Writer::new(store.clone(), self.id.clone(), self.settings.pace);
        let growing = FolderLog::growing(Arc::clone(&self.inventory), folder);
        let closed = FolderLog::closed(folder);
        let mut back_off = BACK_OFF_FIRST;
        loop {
            if self.shared.stop.load(Ordering::Relaxed) {
                return FolderEnd::Stopped;
            }
            let is_last = mirror::folders_of(&self.settings.dir).len() == at + 1;
            let is_ending = self.shared.ending.load(Ordering::Relaxed);
            let due = if is_ending || !is_last { PartialPut::Now } else { PartialPut::WhenOld };
            let stepped = if is_last { writer.step(&growing, due) } else { writer.step(&closed, due) };
            self.record(&writer, &store, at);
            match stepped {
                Ok(step) => {
                    back_off = BACK_OFF_FIRST;
                    self.works(&writer);
                    match step {
                        Step::Put => {}
                        _ if !is_last => return FolderEnd::Done,
                        Step::AtEnd | Step::Waits | Step::Behind if is_ending => {
                            self.shared.done().lacks = None;
                            return FolderEnd::Stopped;
                        }
                        Step::AtEnd | Step::Waits | Step::Behind => self.pause(POLL),
                    }
                }
                // The other one goes on: what it does is not done twice.
                Err(ArchiveError::Overtaken) => self.pause(POLL),
                Err(error) if error.is_stop() => return FolderEnd::Stopped,
                Err(error) => {
                    self.tell(&error);
                    self.lacks(&error.to_string());
                    if error.may_pass() {
                        self.pause(back_off);
                        back_off = (back_off * 2).min(BACK_OFF_MAX);
                    } else if is_ending {
                        return FolderEnd::Stopped;
                    } else {
                        writer = Writer::new(store.clone(), self.id.clone(), self.settings.pace);
                        self.pause(REFUSED_AGAIN);
                    }
                }
            }
        }
    }

    /// The first folder's archive is where the user wants it; a later one's is below.
    fn store_of(&self, folder: &Path, at: usize) -> Result<Store, ArchiveError> {
        if at == 0 {
            return Ok(self.store.clone());
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let url = format!("{}/{name}", self.store.url());
        Ok(Store::make(&url)?.until(&self.shared.stop))
    }

    /// Up to where the archive is; what is behind it stays in the mirror.
    fn record(&self, writer: &Writer, store: &Store, folder: usize) {
        let end = writer.manifest().and_then(|manifest| manifest.state().end());
        if !self.settings.pace.may_leave_gap
            && let Some(end) = &end
        {
            self.inventory.keep_for_archive(folder, Some(&end.file));
        }
        let mut done = self.shared.done();
        if let Some(end) = end {
            done.end = Some(end.to_string());
        }
        (done.bytes, done.sent) = (writer.archived(), store.sent());
    }

    fn lacks(&self, reason: &str) {
        self.shared.done().lacks = Some(reason.to_owned());
    }

    fn works(&mut self, writer: &Writer) {
        let Some(manifest) = writer.manifest().filter(|_| self.told != StoreNotice::Works) else { return };
        let end = manifest.state().end().map_or_else(|| "nothing".to_owned(), |end| end.to_string());
        match self.told {
            StoreNotice::Nothing => tracing::info!("archive {}: it has the log up to {end}", self.settings.url),
            _ => tracing::info!("archive {}: it can be written again, from {end} on", self.settings.url),
        }
        self.told = StoreNotice::Works;
    }

    fn tell(&mut self, error: &ArchiveError) {
        let url = &self.settings.url;
        if error.may_pass() {
            if self.told != StoreNotice::Fails {
                tracing::warn!("archive {url} cannot be written, trying again; the mirror goes on without it: {error}");
                self.told = StoreNotice::Fails;
            }
            return;
        }
        let refused = StoreNotice::Refused(error.to_string());
        if self.told != refused {
            tracing::error!("archive {url} is not written, the mirror goes on without it: {error}");
            self.told = refused;
        }
    }

    /// Sleeps, but not beyond the end.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let was_ending = self.shared.ending.load(Ordering::Relaxed);
        while Instant::now() < until
            && !self.shared.stop.load(Ordering::Relaxed)
            && self.shared.ending.load(Ordering::Relaxed) == was_ending
        {
            std::thread::sleep(POLL.min(time) / 4);
        }
    }
}

impl Shared {
    fn done(&self) -> std::sync::MutexGuard<'_, ArchiveOutcome> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
