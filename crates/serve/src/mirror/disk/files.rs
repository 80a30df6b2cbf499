//! Operations on the folders of a mirror and the names in them: locks, lists, and small files that are whole or absent. Of a log's contents it reads only when the file began.

use std::io;
use std::path::{Path, PathBuf};

use binlog::{FIRST_OFFSET, LogPosition, errno};
use engine::failure::{Failure, FailureKind};
use relay::fs::{DirLock, Fs, read_full};
use relay::packed;

use super::owner;
use super::purge::Size;
use crate::inventory::tags_path;

const SMALL_BYTES_MAX: u64 = 1 << 20;
const LOCK: &str = "heddle-mirror.lock";

/// What the disk, or what stands on it, does not allow.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system's reason.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Another process mirrors into it.
    #[error("another heddle has the mirror {}", dir.display())]
    Locked { dir: PathBuf },
    /// Log files that no mirror has made: a server's own folder, perhaps.
    #[error("{} has log files, and no {} that names their source", dir.display(), owner::FILE)]
    NotAMirror { dir: PathBuf },
    /// A file between two others is gone.
    #[error("the mirror {} has {before} and {behind}, and nothing in between", dir.display())]
    Gap { dir: PathBuf, before: String, behind: String },
    /// An earlier write failed: what is on disk is not known.
    #[error("an earlier write into the mirror failed: its files have to be read again")]
    Unusable,
}

pub type Result<T> = std::result::Result<T, FolderError>;

/// Makes a folder, if there is none.
pub fn make(fs: &dyn Fs, dir: &Path) -> Result<()> {
    fs.create_dir_all(dir).map_err(at(dir))
}

/// All names in a folder; none if it is not a folder.
pub fn list(fs: &dyn Fs, dir: &Path) -> Result<Vec<String>> {
    match fs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Vec::new()),
        listed => listed.map_err(at(dir)),
    }
}

/// Makes the names in a folder durable.
pub fn sync(fs: &dyn Fs, dir: &Path) -> Result<()> {
    fs.sync_dir(dir).map_err(at(dir))
}

/// A folder with log files that no mirror has made: a server may be writing there.
pub fn check_owned(fs: &dyn Fs, dir: &Path) -> Result<()> {
    if logs(fs, dir)?.is_empty() || list(fs, dir)?.iter().any(|name| name == owner::FILE) {
        return Ok(());
    }
    Err(FolderError::NotAMirror { dir: dir.to_owned() })
}

/// Takes a folder for this process.
pub fn lock(fs: &dyn Fs, dir: &Path) -> Result<DirLock> {
    let path = dir.join(LOCK);
    fs.lock(&path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => FolderError::Locked { dir: dir.to_owned() },
        _ => at(&path)(error),
    })
}

/// Writes a small file, whole or not at all.
pub fn replace(fs: &dyn Fs, dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (path, new) = (dir.join(name), dir.join(format!("{name}.new")));
    if list(fs, dir)?.contains(&format!("{name}.new")) {
        fs.remove(&new).map_err(at(&new))?;
    }
    let mut file = fs.create(&new).map_err(at(&new))?;
    file.write_all(bytes).and_then(|()| file.sync_data()).map_err(at(&new))?;
    fs.rename(&new, &path).map_err(at(&path))?;
    sync(fs, dir)
}

/// A small file, if there is one.
pub fn read(fs: &dyn Fs, dir: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let path = dir.join(name);
    let file = match fs.open_read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(at(&path))?,
    };
    let mut bytes = vec![0; usize::try_from(file.len().map_err(at(&path))?.min(SMALL_BYTES_MAX)).unwrap_or(0)];
    let read = read_full(&*file, &mut bytes, 0).map_err(at(&path))?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// The sizes of these files, in their order.
pub fn sizes(fs: &dyn Fs, dir: &Path, names: &[String]) -> Result<Vec<Size>> {
    let size = |name: &String| {
        let path = dir.join(name);
        let read = || {
            let file = packed::open(fs, &path)?;
            let mut time = [0; 4];
            read_full(&*file, &mut time, FIRST_OFFSET)?;
            // What it takes on the disk.
            let bytes = fs.open_read(&path).or_else(|_| fs.open_read(&packed::packed_path(&path)))?.len()?;
            Ok(Size { bytes, begun: u32::from_le_bytes(time) })
        };
        read().map_err(at(&path))
    };
    names.iter().map(size).collect()
}

/// Removes the oldest files of a folder that is not written any more.
pub fn purge_old(fs: &dyn Fs, dir: &Path, count: usize) -> Result<()> {
    let names = logs(fs, dir)?;
    let (gone, left) = names.split_at_checked(count).unwrap_or((&names, &[]));
    // An index of no file would say nothing of the name.
    write_index(fs, dir, if left.is_empty() { gone } else { left })?;
    remove(fs, dir, gone)
}

pub fn remove(fs: &dyn Fs, dir: &Path, names: &[String]) -> Result<()> {
    for name in names {
        let path = dir.join(name);
        let whole = packed::packed_path(&path);
        // In one form, or in both.
        match (fs.remove(&path), fs.remove(&whole)) {
            (Err(error), Err(_)) => return Err(at(&path)(error)),
            (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(at(&whole)(error)),
            _ => {}
        }
        let tags = tags_path(&path);
        match fs.remove(&tags) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&tags)(error)),
            _ => {}
        }
    }
    sync(fs, dir)
}

pub fn write_index(fs: &dyn Fs, dir: &Path, names: &[String]) -> Result<()> {
    let Some(first) = names.first() else { return Ok(()) };
    let text: String = names.iter().map(|name| format!("./{name}\n")).collect();
    let index = format!("{}.index", LogPosition::new(first.as_str(), 0).base_name());
    replace(fs, dir, &index, text.as_bytes())
}

/// The log files of a folder, in clear or compressed, in the order of their source.
pub fn logs(fs: &dyn Fs, dir: &Path) -> Result<Vec<String>> {
    let found = list(fs, dir)?;
    let mut names: Vec<String> =
        found.iter().map(|name| packed::plain_name(name)).filter(|name| is_log(name)).map(str::to_owned).collect();
    names.sort_by_cached_key(|name| LogPosition::new(name.as_str(), 0));
    names.dedup();
    Ok(names)
}

/// Whether a file of this name is a log: all others in the folder are left alone.
fn is_log(name: &str) -> bool {
    let number = name.rsplit_once('.').map(|(_, number)| number);
    number.is_some_and(|number| number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

pub fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError + '_ {
    move |source| FolderError::Io { path: path.to_owned(), source }
}

/// An error of the system, as a failure of the run: refused, or worth another try.
pub fn of_machine(error: &io::Error, message: String) -> Failure {
    let kind = if errno::is_passing(error) { FailureKind::Exhausted } else { FailureKind::Refused };
    Failure::new(kind, message).remedy(errno::remedy(error))
}

/// What an error means for the run: refused, or worth another try; and what to do.
pub fn of_folder(error: &FolderError) -> Failure {
    let (kind, remedy) = match error {
        FolderError::Locked { .. } => (FailureKind::Refused, "end the other process, or give another --dir"),
        FolderError::NotAMirror { .. } => {
            (FailureKind::Refused, "give a folder that is empty, or that a mirror has made")
        }
        FolderError::Gap { .. } => (FailureKind::Refused, "put the files back, or mirror into a new --dir"),
        FolderError::Io { source, .. } if errno::is_passing(source) => (FailureKind::Exhausted, errno::remedy(source)),
        _ => {
            (FailureKind::Refused, "free the disk or repair it, then run the same command again; what is durable stays")
        }
    };
    Failure::new(kind, format!("mirror: {error}")).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Exit code 75 says "try again": a full disk may be that, one without rights is not.
    #[test]
    fn a_full_disk_may_have_space_again() {
        let kind = |kind: io::ErrorKind| {
            of_folder(&FolderError::Io { path: "/srv/mirror/b.000001".into(), source: kind.into() }).kind
        };
        assert_eq!(kind(io::ErrorKind::StorageFull), FailureKind::Exhausted);
        assert_eq!(kind(io::ErrorKind::QuotaExceeded), FailureKind::Exhausted);
        assert_eq!(kind(io::ErrorKind::PermissionDenied), FailureKind::Refused);
        // EMFILE and EROFS.
        for number in [24, 30] {
            let source = io::Error::from_raw_os_error(number);
            let path = "/srv/mirror/b.000001".into();
            assert_eq!(of_folder(&FolderError::Io { path, source }).kind, FailureKind::Exhausted);
        }
        assert_eq!(of_folder(&FolderError::Unusable).kind, FailureKind::Refused);
    }
}
