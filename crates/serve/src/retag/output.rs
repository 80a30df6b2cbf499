//! Writes the copies, under another name until they are whole and durable. It never looks into an event.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::RetagError;

/// Files in a folder that was empty.
#[derive(Debug)]
pub(super) struct Output {
    folder: PathBuf,
    open: Option<(BufWriter<File>, PathBuf, PathBuf)>,
    written: Vec<PathBuf>,
}

impl Output {
    /// # Errors
    /// [`RetagError::NotEmpty`], or what the system says.
    pub fn new(folder: &Path) -> Result<Self, RetagError> {
        std::fs::create_dir_all(folder).map_err(RetagError::io(folder))?;
        if std::fs::read_dir(folder).map_err(RetagError::io(folder))?.next().is_some() {
            return Err(RetagError::NotEmpty { path: folder.to_owned() });
        }
        Ok(Self { folder: folder.to_owned(), open: None, written: Vec::new() })
    }

    /// Another file begins.
    pub fn begin(&mut self, name: &str) -> Result<(), RetagError> {
        self.end()?;
        let (path, temporary) = (self.folder.join(name), self.folder.join(format!(".{name}.new")));
        let file = File::create_new(&temporary).map_err(RetagError::io(&temporary))?;
        self.open = Some((BufWriter::with_capacity(1 << 20, file), temporary, path));
        self.write(&binlog::MAGIC)
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), RetagError> {
        let Some((file, temporary, _)) = &mut self.open else { return Ok(()) };
        file.write_all(bytes).map_err(RetagError::io(&*temporary))
    }

    /// The file under way is whole.
    fn end(&mut self) -> Result<(), RetagError> {
        let Some((file, temporary, path)) = self.open.take() else { return Ok(()) };
        let synced = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        self.written.push(temporary.clone());
        synced.and_then(|()| std::fs::rename(&temporary, &path)).map_err(RetagError::io(&path))?;
        self.written.push(path);
        Ok(())
    }

    /// Completes the copies: all files are whole.
    pub fn finish(mut self) -> Result<(), RetagError> {
        self.end()?;
        self.written.clear();
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(RetagError::io(&self.folder))
    }
}

/// Without [`Output::finish`] nothing stays: a part must not look like the whole.
impl Drop for Output {
    fn drop(&mut self) {
        let open = self.open.take().map(|(_, temporary, _)| temporary);
        for path in self.written.iter().chain(&open) {
            if let Err(error) = std::fs::remove_file(path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "a copy that is not whole could not be removed");
            }
        }
    }
}
