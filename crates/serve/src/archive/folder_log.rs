//! A folder of a mirror as a log for an archive: the folder that grows, or one of a former source. It only reads.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use archive::writer::{Log, LogFile};
use relay::fs::{ReadFile, RealFs};
use relay::packed;

use crate::inventory::{Inventory, SOURCE_FACTS};
use crate::mirror::disk::{files, owner};

/// The file that was read last stays open: it can be read although it is removed.
#[derive(Default)]
struct Files(Mutex<Option<(PathBuf, Arc<dyn ReadFile>)>>);

impl Files {
    fn read_at(&self, path: &Path, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = open.as_ref().filter(|(known, _)| known == path) {
            return file.read_at(into, offset);
        }
        // In clear, whichever form it has.
        let file = packed::open(&RealFs, path)?;
        let read = file.read_at(into, offset);
        *open = Some((path.to_owned(), file));
        read
    }
}

fn small_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// The log of one folder of a mirror.
pub struct FolderLog {
    dir: PathBuf,
    files: Files,
    /// The mirror writes the folder; without it nobody does any more.
    inventory: Option<Arc<Inventory>>,
}

impl FolderLog {
    /// The folder that the mirror writes, as the inventory has it.
    pub fn growing(inventory: Arc<Inventory>, dir: &Path) -> Self {
        Self { dir: dir.to_owned(), files: Files::default(), inventory: Some(inventory) }
    }

    /// A folder that is not written any more.
    pub fn closed(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), files: Files::default(), inventory: None }
    }

    fn files_of(&self, inventory: &Inventory) -> Vec<LogFile> {
        let files = inventory.files();
        // It may be of the folder before still.
        let of_folder = files.into_iter().filter(|(file, _)| file.path().parent() == Some(&self.dir));
        of_folder
            .map(|(file, end)| LogFile {
                name: file.name.as_ref().to_owned(),
                end,
                is_complete: file.sealed().is_some(),
            })
            .filter(|file| file.end > binlog::FIRST_OFFSET)
            .collect()
    }

    fn closed_files(&self) -> io::Result<Vec<LogFile>> {
        files::logs(&RealFs, &self.dir)
            .map_err(io::Error::other)?
            .into_iter()
            .map(|name| {
                let end = packed::open(&RealFs, &self.dir.join(&name))?.len()?;
                Ok(LogFile { name, end, is_complete: true })
            })
            .collect()
    }
}

impl Log for FolderLog {
    fn files(&self) -> io::Result<Vec<LogFile>> {
        match &self.inventory {
            Some(inventory) => Ok(self.files_of(inventory)),
            None => self.closed_files(),
        }
    }

    fn read_at(&self, file: &str, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.files.read_at(&self.dir.join(file), into, offset)
    }

    fn owner(&self) -> io::Result<Option<String>> {
        let text = small_file(&self.dir.join(owner::FILE))?;
        text.map(|text| String::from_utf8(text).map_err(io::Error::other)).transpose()
    }

    fn facts(&self) -> io::Result<Option<Vec<u8>>> {
        small_file(&self.dir.join(SOURCE_FACTS))
    }
}
