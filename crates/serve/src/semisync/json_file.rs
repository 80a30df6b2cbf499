//! Small JSON files in a mirror's folder: whole or absent.

use std::path::Path;

use engine::failure::{Failure, FailureKind};
use relay::fs::Fs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::mirror::disk::files::{self, FolderError, of_folder};

/// Why one could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Folder(#[from] FolderError),
    #[error("{path}: {source}")]
    Json { path: String, source: serde_json::Error },
}

impl Error {
    pub fn failure(&self) -> Failure {
        match self {
            Self::Folder(error) => of_folder(error),
            Self::Json { .. } => Failure::new(FailureKind::Refused, self.to_string())
                .remedy("restore the file from a copy; without one read docs/binlog-server.md before you remove it"),
        }
    }
}

/// None: there is no such file.
pub fn read<T: DeserializeOwned>(fs: &dyn Fs, dir: &Path, name: &str) -> Result<Option<T>, Error> {
    let Some(bytes) = files::read(fs, dir, name)? else { return Ok(None) };
    let path = dir.join(name);
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|source| Error::Json { path: path.display().to_string(), source })
}

pub fn write<T: Serialize>(fs: &dyn Fs, dir: &Path, name: &str, value: &T) -> Result<(), Error> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|source| Error::Json { path: dir.join(name).display().to_string(), source })?;
    Ok(files::replace(fs, dir, name, &text)?)
}
