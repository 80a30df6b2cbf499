//! The errors of a copy, with remedies.

use std::path::PathBuf;

use binlog::patch::PatchError;
use engine::retag::TaggerError;

#[derive(Debug, thiserror::Error)]
pub enum RetagError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The copies would stand among other files.
    #[error("--out {} has files: give a new or an empty folder", path.display())]
    NotEmpty { path: PathBuf },
    #[error(
        "no transaction of these files can get new tags: there is none, or none has a GTID event (MySQL 5.6 without gtid_mode=ON writes none)"
    )]
    NoTags,
    #[error(transparent)]
    Read(#[from] relay::Error),
    #[error(transparent)]
    Tagger(#[from] TaggerError),
    #[error("the GTID event at {at} cannot get a new tag: {why}")]
    Patch { at: binlog::LogPosition, why: PatchError },
    #[error("stopped by a signal; the copies are removed")]
    Stopped,
}

impl RetagError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
