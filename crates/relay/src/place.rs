//! Where an event's bytes are on this machine, to read them a second time (see [`reread`](crate::reread)).

use crate::error::{IoContext, Result};
use crate::fs::Fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where an event's bytes are: a relay log segment or a binary log file, and the offset in it.
#[derive(Debug, Clone)]
pub struct Place {
    pub(crate) log: Arc<PlaceLog>,
    pub(crate) offset: u64,
}

/// A place in a relay log on this machine, whatever the source's files are called there: after restarts, and with several of the source's files in
/// one segment, positions of the source do not say how much lies behind them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelayOffset {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// The part of a place that many events share.
#[derive(Debug)]
pub(crate) struct PlaceLog {
    pub fs: Arc<dyn Fs>,
    pub path: PathBuf,
    /// The relay directory and the segment's number; none for a binary log file read in place.
    pub segment: Option<(PathBuf, u64)>,
    /// The source's file whose events are at this place.
    pub source_file: Arc<str>,
}

impl Place {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.log.path
    }

    /// Bytes from the start of that file: of the record in a segment, of the event in a binary log file.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

/// Opens a file of a log for reading.
pub(crate) fn open_read(fs: &dyn Fs, path: &Path) -> Result<Arc<dyn crate::fs::ReadFile>> {
    crate::packed::open(fs, path).during("open", path)
}
