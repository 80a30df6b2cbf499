//! The store's folder: what is in it, who may open it, and fjall's errors as failures.
//!
//! `heddle-store` says the format, `db/` is fjall's database. fjall locks it: one process at a time.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::Write;
use std::ops::Bound;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use binlog::errno;
use engine::failure::{Failure, FailureKind};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch};

const MARKER: &str = "heddle-store";
/// What the marker holds; the number changes when an older heddle could not read the store, or would damage it.
const FORMAT: &str = "heddle store, format 1\n";
const DATABASE: &str = "db";
/// The marker while it is written.
const MARKER_BEGUN: &str = "heddle-store.new";
/// The store holds rows: its folder is its user's alone, whatever the rights of the files in it.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Blocks of tables that are kept in memory, in bytes.
const CACHE_BYTES: u64 = 8 << 20;
/// From so many bytes on a row is not kept among the others. A store that is there stays as it was made.
const LARGE_ROW_BYTES: u32 = 64 << 10;
/// A keyspace's newest writes are kept in memory up to so many bytes, and several times as many while they are written out.
const MEMTABLE_BYTES: u64 = 12 << 20;
/// Newest writes of both keyspaces together: above it, who writes waits until some are on the disk. More than both may have that are not yet written out.
const WRITE_BUFFER_BYTES_MAX: u64 = 2 * MEMTABLE_BYTES + (8 << 20);
/// What all of these may take.
pub const BUFFERS_BYTES: u64 = CACHE_BYTES + WRITE_BUFFER_BYTES_MAX;
/// Who waits for that goes on once nothing has been written out for so long: fjall then says what is wrong, or waits itself.
const STALLED_AFTER: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);
/// With less free space than this no commit is begun, so that one that was begun can be finished: a journal and a few tables, in bytes.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// fjall's handles.
pub struct Files {
    pub path: PathBuf,
    pub db: Database,
    /// Rows and everything that is known of them, so that one write is atomic over both.
    pub data: Keyspace,
    /// Rows of one large transaction before its commit.
    pub staging: Keyspace,
}

impl Files {
    /// Opens the store, or makes it in a folder that is empty or not there.
    pub fn open_or_make(path: &Path) -> Result<Self, Failure> {
        let is_new = inspect(path)? == FolderContent::Nothing;
        let made = if is_new { make(path).map_err(|error| io_failure(path, &error)) } else { Ok(()) };
        made.and_then(|()| Self::open(path)).inspect_err(|_| {
            // What is half made is no store: the same command begins anew.
            if is_new {
                unmake(path);
            }
        })
    }

    /// Opens a store that is there.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if inspect(path)? == FolderContent::Nothing {
            return Err(no_store(path));
        }
        make_private(path);
        let db_path = path.join(DATABASE);
        if db_path.exists() && !db_path.join("version").exists() {
            return Err(refused(format!(
                "the store {} is damaged, or making it was interrupted: {DATABASE}/version is missing",
                path.display()
            ))
            .remedy("if it is a new store, remove the folder and start again"));
        }
        let opened = || -> fjall::Result<Self> {
            let db = Database::builder(&db_path).cache_size(CACHE_BYTES).manual_journal_persist(true).open()?;
            // Large rows are in files of their own: sorting tables anew does not read them, nor hold several of them.
            let large = KvSeparationOptions::default()
                .separation_threshold(LARGE_ROW_BYTES)
                .compression(fjall::CompressionType::None);
            let options = || {
                KeyspaceCreateOptions::default()
                    .manual_journal_persist(true)
                    .max_memtable_size(MEMTABLE_BYTES)
                    .with_kv_separation(Some(large.clone()))
            };
            let data = db.keyspace("data", options)?;
            let staging = db.keyspace("staging", options)?;
            Ok(Self { path: path.to_owned(), db, data, staging })
        };
        opened().map_err(|error| failure(path, &error))
    }

    /// Hands the entries of a keyspace whose keys begin with `prefix` to `add`, in their order, which adds to a batch and says whether the
    /// batch is full. `go_on` is asked after each that is written; false when it did not.
    ///
    /// A piece is read, reading ends, then it is written: while a snapshot is open fjall keeps the memory of everything that is written
    /// meanwhile, in any keyspace. Keys are copied, as one that was read keeps its whole block in memory.
    pub fn in_pieces(
        &self,
        keyspace: &Keyspace,
        prefix: &[u8],
        mut add: impl FnMut(&mut OwnedWriteBatch, &[u8], &[u8]) -> bool,
        go_on: impl Fn() -> bool,
    ) -> fjall::Result<bool> {
        let mut from = Bound::Included(prefix.to_vec());
        loop {
            let mut batch = self.db.batch();
            let mut last = None;
            for entry in keyspace.range((from, Bound::Unbounded)) {
                let (key, value) = entry.into_inner()?;
                if !key.starts_with(prefix) {
                    break;
                }
                let is_full = add(&mut batch, &key, &value);
                last = Some(key.to_vec());
                if is_full {
                    break;
                }
            }
            let Some(last) = last else { return Ok(true) };
            batch.commit()?;
            self.wait_for_memory();
            if !go_on() {
                return Ok(false);
            }
            from = Bound::Excluded(last);
        }
    }

    /// Waits until what was written takes no more memory than it may. fjall makes a new table of newest writes when one of its threads comes to it: a fast
    /// writer is far ahead by then.
    pub fn wait_for_memory(&self) {
        let (mut least, mut since) = (u64::MAX, Instant::now());
        loop {
            let buffered = self.db.write_buffer_size();
            if buffered <= WRITE_BUFFER_BYTES_MAX {
                return;
            }
            if buffered < least {
                (least, since) = (buffered, Instant::now());
            } else if since.elapsed() >= STALLED_AFTER {
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Refuses while it can still be repeated: once a write has failed, fjall takes no more.
    pub fn check_space(&self) -> Result<(), Failure> {
        match free_bytes(&self.path) {
            Some(free) if free < FREE_BYTES_MIN => Err(Failure::new(
                FailureKind::Exhausted,
                format!("the disk of the store {} is full: {} MiB are left", self.path.display(), free >> 20),
            )
            .remedy("make room and run the same command again")),
            _ => Ok(()),
        }
    }
}

fn refused(message: String) -> Failure {
    Failure::new(FailureKind::Refused, message)
}

fn no_store(path: &Path) -> Failure {
    refused(format!("{} is not a heddle store", path.display()))
        .remedy("give the folder of a store, or for a new one a folder that is empty or not there")
}

/// What is in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderContent {
    Store,
    /// Room for a new one.
    Nothing,
}

/// Looks without opening; anything else in the folder is refused.
pub fn inspect(path: &Path) -> Result<FolderContent, Failure> {
    use std::io::ErrorKind as E;
    match std::fs::read_to_string(path.join(MARKER)) {
        Ok(text) if text == FORMAT => return Ok(FolderContent::Store),
        Ok(text) => {
            return Err(refused(format!(
                "the store {} is of another version: {:?}, this heddle reads {:?}",
                path.display(),
                text.trim_end(),
                FORMAT.trim_end()
            ))
            .remedy("use the heddle that wrote it, or feed a new store"));
        }
        Err(error) if matches!(error.kind(), E::NotFound | E::NotADirectory) => {}
        Err(error) => return Err(io_failure(path, &error)),
    }
    match std::fs::read_dir(path) {
        Ok(mut entries) => {
            // The marker was not yet in place: nothing is lost with what there is of it.
            let is_begun =
                |entry: std::io::Result<std::fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == MARKER_BEGUN);
            if entries.all(is_begun) { Ok(FolderContent::Nothing) } else { Err(no_store(path)) }
        }
        Err(error) if error.kind() == E::NotFound => Ok(FolderContent::Nothing),
        Err(error) if error.kind() == E::NotADirectory => Err(no_store(path)),
        Err(error) => Err(io_failure(path, &error)),
    }
}

/// Whether a store can be made where there is none. Makes a folder in the part of its path that exists, and removes it again: neither rights nor
/// the kind of file system tell for sure.
pub fn try_making(path: &Path) -> Result<(), Failure> {
    let above = path.ancestors().find(|above| above.as_os_str().is_empty() || above.exists()).unwrap_or(path);
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let tried = above.join(format!("heddle-store.try-{}", std::process::id()));
    std::fs::create_dir(&tried)
        .and_then(|()| std::fs::remove_dir(&tried))
        .map_err(|error| io_failure(path, &error).remedy("choose a folder that heddle may write to"))
}

fn make(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)?;
    let begun = path.join(MARKER_BEGUN);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&begun)?;
    file.write_all(FORMAT.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&begun, path.join(MARKER))?;
    std::fs::File::open(path)?.sync_all()
}

/// Takes away what there is of a store that could not be made. The folder stays: it may have been there.
fn unmake(path: &Path) {
    let removed = [
        std::fs::remove_file(path.join(MARKER_BEGUN)),
        std::fs::remove_dir_all(path.join(DATABASE)),
        std::fs::remove_file(path.join(MARKER)),
    ];
    for error in
        removed.into_iter().filter_map(Result::err).filter(|error| error.kind() != std::io::ErrorKind::NotFound)
    {
        tracing::warn!("the store {} could not be made, and a part of it is left: {error}", path.display());
    }
}

/// A store of an earlier version, or a copy, may be everybody's to read.
fn make_private(path: &Path) {
    let mend = |path: &Path, mode: u32| -> std::io::Result<()> {
        let now = std::fs::metadata(path)?.permissions().mode();
        let others = now & 0o777 & !mode;
        if others == 0 { Ok(()) } else { std::fs::set_permissions(path, Permissions::from_mode(mode)) }
    };
    for (path, mode) in [(path.to_owned(), DIR_MODE), (path.join(MARKER), FILE_MODE)] {
        if let Err(error) = mend(&path, mode) {
            tracing::warn!("{} can be read by others, and that can not be changed: {error}", path.display());
        }
    }
}

fn io_failure(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("store {}: {error}", path.display());
    if errno::is_passing(error) {
        Failure::new(FailureKind::Exhausted, message).remedy(errno::remedy(error))
    } else {
        refused(message)
    }
}

/// What an error of fjall means for the transaction under way.
pub fn failure(path: &Path, error: &fjall::Error) -> Failure {
    let at = path.display();
    match error {
        fjall::Error::Locked => {
            Failure::new(FailureKind::Fenced, format!("the store {at} is in use by another process"))
                .remedy("only one heddle can open a store; stop the other one, or use another store")
        }
        fjall::Error::InvalidVersion(_) => {
            refused(format!("the store {at} was written by another version of its database"))
                .remedy("use the heddle that wrote it, or feed a new store")
        }
        fjall::Error::Io(error) => io_failure(path, error),
        fjall::Error::Storage(fjall::LsmError::Io(error)) => io_failure(path, error),
        fjall::Error::Poisoned => {
            // Opened anew it takes writes again, if the cause is gone.
            let message = format!("the store {at} takes no more writes after an earlier error of its disk");
            Failure::new(FailureKind::Exhausted, message)
                .remedy("look for the error in the log, cure it, and run the same command again")
        }
        other => refused(format!("store {at}: {other}"))
            .remedy("the store may be damaged: restore it from a copy, or feed a new one"),
    }
}

/// Bytes that an ordinary user can still write; `None`: not known.
fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
