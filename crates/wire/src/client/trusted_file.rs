//! Text files that say where passwords go, or hold one: option files, configuration files, accounts. A file that every user of the machine can write is
//! refused; so is one of a size that such a file never has. It never reads what the text means.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const WRITABLE_BY_ALL: u32 = 0o002;
const READABLE_BY_ALL: u32 = 0o004;
/// A file larger than this is something else.
const BYTES_MAX: u64 = 1 << 20;

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustedFileError {
    /// It cannot be read.
    #[error("cannot read the {kind} {}: {source}", path.display())]
    Read {
        /// What it is, for the message: `option file`.
        kind: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Every user of the machine can write it, and so decide where a password goes.
    #[error(
        "the {kind} {path} can be written by every user of this machine, who could send the password elsewhere: chmod o-w {path}",
        path = path.display()
    )]
    WritableByAll {
        /// What it is, for the message.
        kind: &'static str,
        /// The file.
        path: PathBuf,
    },
}

/// A file as it was read.
#[derive(Debug)]
pub struct TrustedFile {
    /// Up to 1 MiB of UTF-8.
    pub text: String,
    /// Every user of the machine can read it: a password in it is no secret.
    pub is_readable_by_all: bool,
}

impl TrustedFile {
    /// Reads it. `kind` is what messages call it. A pipe has no rights that count.
    pub fn read(path: &Path, kind: &'static str) -> Result<Self, TrustedFileError> {
        let failed = |source| TrustedFileError::Read { kind, path: path.to_owned(), source };
        let refused = |why: &str| failed(std::io::Error::other(why.to_owned()));
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let mode = if about.is_file() { about.permissions().mode() } else { 0 };
        if mode & WRITABLE_BY_ALL != 0 {
            return Err(TrustedFileError::WritableByAll { kind, path: path.to_owned() });
        }
        let mut bytes = Vec::new();
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(refused("it is larger than 1 MiB"));
        }
        let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))?;
        Ok(Self { text, is_readable_by_all: mode & READABLE_BY_ALL != 0 })
    }
}
