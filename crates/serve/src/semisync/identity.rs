//! The identity of a mirror towards its source and other mirrors: a UUID in its folder, made once.
//!
//! A copy of the folder has the same UUID. So the file also records where it was made. A copy is in another place, and must not end a connection as if it were its own old one.

use std::path::Path;
use std::sync::Arc;

use rand::Rng;
use relay::fs::Fs;
use serde::{Deserialize, Serialize};

use super::json_file;

const FILE: &str = "heddle-identity.json";

/// See the module.
#[derive(Debug)]
pub(super) struct Identity {
    fs: Arc<dyn Fs>,
    dir: std::path::PathBuf,
    kept: IdentityFile,
    place: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct IdentityFile {
    uuid: String,
    /// Where it was last.
    place: String,
    /// The connection that it had last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connection: Option<SourceConnection>,
}

/// A connection to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceConnection {
    pub(super) number: u64,
    /// When it was made, by the source's clock, in seconds since 1970.
    pub(super) since: u64,
}

impl Identity {
    /// Reads it, or makes it. The folder is this process's own.
    pub(super) fn open(fs: Arc<dyn Fs>, dir: &Path) -> Result<Self, json_file::Error> {
        let place = place_of(dir);
        let found: Option<IdentityFile> = json_file::read(&*fs, dir, FILE)?;
        let kept = match found {
            Some(kept) => kept,
            None => {
                let kept = IdentityFile { uuid: new_uuid(), place: place.clone(), connection: None };
                json_file::write(&*fs, dir, FILE, &kept)?;
                kept
            }
        };
        Ok(Self { fs, dir: dir.to_owned(), kept, place })
    }

    pub(super) fn uuid(&self) -> &str {
        &self.kept.uuid
    }

    /// A number towards a source, where none was given.
    pub(super) fn server_id(&self) -> u32 {
        let first = self.kept.uuid.get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(1);
        0x8000_0000 | first
    }

    /// The connection that this very folder had last; none of a copy.
    pub(super) fn own_connection(&self) -> Option<SourceConnection> {
        self.kept.connection.filter(|_| self.kept.place == self.place)
    }

    /// Kept before it is used.
    pub(super) fn holds(&mut self, held: SourceConnection) -> Result<(), json_file::Error> {
        let kept = IdentityFile { connection: Some(held), place: self.place.clone(), ..self.kept.clone() };
        json_file::write(&*self.fs, &self.dir, FILE, &kept)?;
        self.kept = kept;
        Ok(())
    }
}

fn new_uuid() -> String {
    let mut bytes: [u8; 16] = rand::rng().random();
    // Version 4: random.
    if let Some(byte) = bytes.get_mut(6) {
        *byte = *byte & 0x0f | 0x40;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = *byte & 0x3f | 0x80;
    }
    let text = hex::encode(bytes);
    [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| text.get(part).unwrap_or_default()).join("-")
}

/// A copy has another one: machine, disk, and the folder on it.
fn place_of(dir: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (disk, folder) = std::fs::metadata(dir).map_or((0, 0), |found| (found.dev(), found.ino()));
    format!("{host}/{}/{disk}/{folder}", machine.trim())
}

#[cfg(test)]
mod tests {
    use relay::RealFs;

    use super::*;

    #[test]
    fn a_copy_has_the_identity_and_not_the_connection() {
        let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |dir: &Path| Identity::open(Arc::new(RealFs), dir).unwrap();
        let mut own = open(dir.path());
        assert_eq!((own.uuid().len(), own.own_connection()), (36, None));
        assert!(own.server_id() >= 0x8000_0000);
        let held = SourceConnection { number: 15, since: 1_700_000_000 };
        own.holds(held).unwrap();
        std::fs::copy(dir.path().join(FILE), copy.path().join(FILE)).unwrap();
        let (again, copied) = (open(dir.path()), open(copy.path()));
        assert_eq!((again.uuid(), again.own_connection()), (own.uuid(), Some(held)));
        assert_eq!((copied.uuid(), copied.own_connection()), (own.uuid(), None));
        assert_ne!(open(tempfile::tempdir().unwrap().path()).uuid(), own.uuid());
    }
}
