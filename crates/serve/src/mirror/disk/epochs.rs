//! The folders of a mirror whose source was replaced by another server. The first one is the mirror's own. Each later one is inside it, `source-N-SERVER`, because the files of another
//! server may have the same names. Only the last one is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::failure::Failure;
use relay::RealFs;
use relay::fs::{DirLock, Fs};

use super::files::{self, FolderError, of_folder};
use super::owner::{self, Owner};

const PREFIX: &str = "source-";

/// The folders, of which only one process writes.
pub struct Epochs {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    _lock: DirLock,
    /// Of the later folders, oldest first.
    names: Vec<String>,
}

impl Epochs {
    /// Takes the mirror for this process. A folder that no mirror has made is not touched.
    pub fn open(fs: Arc<dyn Fs>, dir: &Path) -> Result<Self, FolderError> {
        files::make(&*fs, dir)?;
        files::check_owned(&*fs, dir)?;
        let lock = files::lock(&*fs, dir)?;
        let names = later(&*fs, dir)?;
        Ok(Self { fs, dir: dir.to_owned(), _lock: lock, names })
    }

    /// The mirror's own, with those of later sources in it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder of the present source.
    pub fn active(&self) -> PathBuf {
        self.names.last().map_or_else(|| self.dir.clone(), |name| self.dir.join(name))
    }

    /// The folders of former sources, oldest first.
    pub fn old(&self) -> Vec<PathBuf> {
        let all = std::iter::once(self.dir.clone()).chain(self.names.iter().map(|name| self.dir.join(name)));
        all.take(self.names.len()).collect()
    }

    /// Makes the folder of the source that takes the place of the last one.
    pub fn begin(&mut self, source: &str, owner: &[u8]) -> Result<PathBuf, FolderError> {
        let last = self.names.last().and_then(|name| number(name)).unwrap_or(1);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let source: String = source.chars().filter(|letter| is_plain(*letter)).collect();
        let name = format!("{PREFIX}{}-{source}", last + 1);
        let dir = self.dir.join(&name);
        files::make(&*self.fs, &dir)?;
        files::sync(&*self.fs, &self.dir)?;
        files::replace(&*self.fs, &dir, owner::FILE, owner)?;
        self.names.push(name);
        Ok(dir)
    }
}

/// The folder of a mirror that is written, as it is now: the mirror is not taken, and nothing is made.
pub fn folder_of(dir: &Path) -> PathBuf {
    let names = later(&RealFs, dir).unwrap_or_default();
    names.last().map_or_else(|| dir.to_owned(), |name| dir.join(name))
}

/// All folders of a mirror, oldest first; the last one is written.
pub fn folders_of(dir: &Path) -> Vec<PathBuf> {
    let names = later(&RealFs, dir).unwrap_or_default();
    std::iter::once(dir.to_owned()).chain(names.iter().map(|name| dir.join(name))).collect()
}

/// Reads whose files a folder holds. `None`: the folder has no owner yet.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn owner_of(fs: &dyn Fs, dir: &Path) -> Result<Option<Owner>, Failure> {
    owner::parse(files::read(fs, dir, owner::FILE).map_err(|error| of_folder(&error))?.as_deref(), dir)
}

/// The later folders, oldest first.
fn later(fs: &dyn Fs, dir: &Path) -> Result<Vec<String>, FolderError> {
    let mut names = Vec::new();
    for name in files::list(fs, dir)? {
        // Without its owner it was only about to be made.
        if number(&name).is_some() && files::list(fs, &dir.join(&name))?.iter().any(|name| name == owner::FILE) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| number(name));
    Ok(names)
}

/// Of a later folder: from 2 on.
fn number(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &Path) -> Result<Epochs, FolderError> {
        Epochs::open(Arc::new(RealFs), dir)
    }

    #[test]
    fn folders_follow_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let mut epochs = open(dir.path()).unwrap();
        assert_eq!((epochs.active(), epochs.old().len()), (dir.path().to_owned(), 0));
        assert!(matches!(open(dir.path()), Err(FolderError::Locked { .. })));
        let second = epochs.begin("3e11fa47-71ca", b"{}").unwrap();
        assert_eq!(second, dir.path().join("source-2-3e11fa47-71ca"));
        // One that was only about to be made.
        std::fs::create_dir(dir.path().join("source-3-a")).unwrap();
        drop(epochs);
        let mut epochs = open(dir.path()).unwrap();
        assert_eq!((epochs.active(), epochs.old()), (second.clone(), vec![dir.path().to_owned()]));
        epochs.begin("../a", b"{}").unwrap();
        for number in 4..12 {
            epochs.begin("b", b"{}").unwrap();
            assert_eq!(epochs.active(), dir.path().join(format!("source-{number}-b")));
        }
        drop(epochs);
        let epochs = open(dir.path()).unwrap();
        assert_eq!(epochs.active(), dir.path().join("source-11-b"));
        assert_eq!(folder_of(dir.path()), epochs.active());
        assert_eq!(folder_of(&dir.path().join("none")), dir.path().join("none"));
        assert_eq!(epochs.old().len(), 10);
        assert_eq!(epochs.old()[1..3], [second, dir.path().join("source-3-a")]);
    }

    /// A server may be writing there: nothing is made.
    #[test]
    fn a_folder_of_something_else_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.000001"), "a log").unwrap();
        assert!(matches!(open(dir.path()), Err(FolderError::NotAMirror { .. })));
        assert_eq!(std::fs::read(dir.path().join("b.000001")).unwrap(), b"a log");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
