//! The few file operations that the relay log needs, as a trait, so that tests can supply disks that fail.
//!
//! It never interprets what is stored, and it never retries: an error of the disk reaches the caller as it is.

mod faulty;
mod real;

pub use faulty::{Fault, FaultyFs};
pub use real::RealFs;

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Held while a directory belongs to one process; dropping it releases the directory.
pub type DirLock = Box<dyn Any + Send + Sync>;

/// A file system as the relay log sees it. Calls follow POSIX: what is not synced may be lost in a crash, a new or
/// renamed name only survives once its directory was synced.
pub trait Fs: Send + Sync + Debug + 'static {
    /// Creates a directory and its parents; no error when it exists.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Creates a file for appending; `AlreadyExists` when the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Opens an existing file for appending at its end.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Opens an existing file for positioned reads.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;
    /// Renames within one directory, replacing the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The names (not paths) in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the rights on a file or directory away that the group and others have.
    fn make_private(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }
    /// Takes the lock file `path` for this process; `WouldBlock` when another holder has it.
    fn lock(&self, path: &Path) -> io::Result<DirLock>;
}

/// A file that grows at its end.
pub trait AppendFile: Send {
    /// Appends some of `bytes` and says how many: fewer than given is not an error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Appends all of `bytes`. After an error a part of them may be there.
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
    /// Makes the contents durable (fdatasync). After an error what was written can no longer be trusted.
    fn sync_data(&mut self) -> io::Result<()>;
    /// Another handle on the same file, with which it can be synced on another thread.
    fn another(&self) -> io::Result<Box<dyn AppendFile>>;
    /// Cuts the file to `len` bytes.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
}

/// A file read at positions; shared between readers.
#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
pub trait ReadFile: Send + Sync {
    /// Reads up to `buf.len()` bytes at `offset`; 0 is the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// The length of the file in bytes, now.
    fn len(&self) -> io::Result<u64>;
}

/// Fills `buf` from `offset` as far as the file goes and says how many bytes there were.
pub fn read_full(file: &dyn ReadFile, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
