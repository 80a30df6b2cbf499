//! The operating system's files.

use super::{AppendFile, DirLock, Fs, ReadFile};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

/// A file of the log holds rows, and statements with passwords: nobody else reads it.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
/// Rights of the group and of others.
const OTHERS: u32 = 0o077;
/// A directory for everybody's files, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// The operating system's file system. What it creates is its user's alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl Fs for RealFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(OpenOptions::new().append(true).create_new(true).mode(FILE_MODE).open(path)?))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(OpenOptions::new().append(true).open(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(File::open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            // A name that is not UTF-8 is none of ours and cannot be a server's log either.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn make_private(&self, path: &Path) -> io::Result<()> {
        let metadata = std::fs::metadata(path)?;
        let mode = metadata.permissions().mode();
        if mode & OTHERS == 0 || mode & STICKY != 0 {
            return Ok(());
        }
        let wanted = if metadata.is_dir() { DIR_MODE } else { FILE_MODE };
        std::fs::set_permissions(path, Permissions::from_mode(mode & wanted))
    }

    fn lock(&self, path: &Path) -> io::Result<DirLock> {
        let file = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

impl AppendFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn another(&self) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(self.try_clone()?))
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }
}

impl ReadFile for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_created_is_its_user_s_alone() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("a/b");
        RealFs.create_dir_all(&log).unwrap();
        drop(RealFs.create(&log.join("file")).unwrap());
        drop(RealFs.lock(&log.join("lock")).unwrap());
        assert_eq!([mode(&log), mode(&log.join("file")), mode(&log.join("lock"))], [0o700, 0o600, 0o600]);
        // As an earlier version left them.
        for (path, before, after) in
            [(log.join("file"), 0o644, 0o600), (log.clone(), 0o755, 0o700), (log.clone(), 0o1777, 0o1777)]
        {
            std::fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            RealFs.make_private(&path).unwrap();
            assert_eq!(mode(&path), after, "{}", path.display());
        }
    }
}
