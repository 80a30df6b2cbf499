//! What there was before the channel was pointed to Heddle: a file beside the mirror. Without it the way back is not known.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use relay::fs::{Fs, RealFs};
use serde::{Deserialize, Serialize};

use crate::state::SavedChannel;

const FILE: &str = "via-serve.json";
const MIRROR: &str = "mirror";

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The replica's own name of itself: `server_uuid` (MySQL), `server_id` (MariaDB). Groups are noted under it.
    pub replica: String,
    pub channel: String,
    pub source: Address,
    /// Where the replica reaches Heddle.
    pub heddle: Address,
    pub saved: SavedChannel,
}

/// The folder of one rescue.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub fn mirror(&self) -> PathBuf {
        self.0.join(MIRROR)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn read(&self) -> Result<Option<Note>> {
        let path = self.0.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .with_context(|| format!("{}: was it written by another version of heddle?", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(anyhow!("{}: {error}", path.display())),
        }
    }

    /// Durable when it returns.
    pub fn write(&self, note: &Note) -> Result<()> {
        let (text, new) = (serde_json::to_string(note)?, self.0.join(format!("{FILE}.new")));
        let write = || -> io::Result<()> {
            RealFs.create_dir_all(&self.0)?;
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            RealFs.rename(&new, &self.0.join(FILE))?;
            RealFs.sync_dir(&self.0)
        };
        write().with_context(|| new.display().to_string())
    }

    /// It is over: nothing of it is needed any more.
    pub fn remove(&self) {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        let removed =
            gone(std::fs::remove_file(self.0.join(FILE))).and_then(|()| gone(std::fs::remove_dir_all(self.mirror())));
        if let Err(error) = removed {
            tracing::warn!("{} is not needed any more and can not be removed: {error}", self.0.display());
        }
    }
}
