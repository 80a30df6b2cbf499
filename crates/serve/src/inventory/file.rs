//! One log file, and the events at its beginning. It never writes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use binlog::position::file_number;
use binlog::{Event, FormatDescription, Kind};
use bytes::Bytes;

use super::extent::Place;
use super::gtids::Gtids;
use super::reader::{FileOwner, LogReader, ReadError};
use super::tail::Tail;

/// A log file.
#[derive(Debug)]
pub struct LogFile {
    /// The file's name at the source.
    pub name: Arc<str>,
    path: PathBuf,
    /// Which of the mirror's sources it is of: files of two of them never follow each other.
    pub(super) series: u64,
    tail: Arc<Tail>,
    /// Its length when it is complete.
    sealed: OnceLock<u64>,
    start: OnceLock<Arc<FileStart>>,
    /// Where a large event could not be read to its end, and why.
    broken: Mutex<Option<(u64, String)>>,
}

/// What a file begins with.
#[derive(Debug)]
pub struct FileStart {
    /// The format description event.
    pub format_event: Bytes,
    /// Decoded.
    pub format: FormatDescription,
    /// The GTIDs of the files before it; `None`: it does not say.
    pub gtids: Option<Gtids>,
    /// The offset behind the format description.
    pub after_format: u64,
}

/// The path of the file beside a log file that has its new tags.
pub fn tags_path(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".tags");
    name.into()
}

impl LogFile {
    pub(super) fn new(name: &str, path: PathBuf, series: u64, tail: &Arc<Tail>) -> Self {
        let tail = Arc::clone(tail);
        let (sealed, start, broken) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Self { name: name.into(), path, series, tail, sealed, start, broken }
    }

    /// The file's place in the order of all files.
    pub(super) fn place(&self) -> Place {
        (self.series, file_number(&self.name))
    }

    /// The file's path on this machine.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file from an offset on, at which an event begins.
    pub fn reader(&self, offset: u64) -> Result<LogReader, ReadError> {
        let of = FileOwner { name: Arc::clone(&self.name), series: self.series, tail: Arc::clone(&self.tail) };
        LogReader::open(&self.path, of, offset)
    }

    /// The event there could not be read to its end. Who was being sent it could not be told; who asks again is.
    pub fn is_broken_at(&self, offset: u64, why: String) {
        *self.broken() = Some((offset, why));
    }

    /// Why the event there is not sent.
    pub fn why_broken(&self, offset: u64) -> Option<String> {
        self.broken().as_ref().filter(|(at, _)| *at == offset).map(|(_, why)| why.clone())
    }

    fn broken(&self) -> MutexGuard<'_, Option<(u64, String)>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn seal(&self, length: u64) {
        let _ = self.sealed.set(length);
    }

    /// The file's length, once it is complete.
    pub fn sealed(&self) -> Option<u64> {
        self.sealed.get().copied()
    }

    /// What it begins with; `end`: up to where it can be read. `None` while that is not there yet.
    pub fn start(&self, end: u64) -> Result<Option<Arc<FileStart>>, ReadError> {
        if let Some(start) = self.start.get() {
            return Ok(Some(Arc::clone(start)));
        }
        let Some((start, is_all)) = self.read_start(end)? else { return Ok(None) };
        let start = Arc::new(start);
        if is_all {
            let _ = self.start.set(Arc::clone(&start));
        }
        Ok(Some(start))
    }

    /// And whether nothing of it can come any more.
    fn read_start(&self, end: u64) -> Result<Option<(FileStart, bool)>, ReadError> {
        let mut reader = self.reader(binlog::FIRST_OFFSET)?.of_little();
        let Some(bytes) = reader.next(end)?.map(Bytes::copy_from_slice) else { return Ok(None) };
        let (_, format) = FormatDescription::decode(&bytes).map_err(|error| reader.bogus(error.to_string()))?;
        let mut start = FileStart { format_event: bytes, format, gtids: None, after_format: reader.offset() };
        loop {
            let Some(peeked) = reader.peek(end)? else { return Ok(Some((start, self.sealed().is_some()))) };
            match peeked.header.kind {
                Kind::PREVIOUS_GTIDS | Kind::MARIADB_GTID_LIST => {
                    let Some(bytes) = reader.next(end)?.map(Bytes::copy_from_slice) else { return Ok(None) };
                    let event =
                        Event::parse(bytes, start.format.checksum).map_err(|error| reader.bogus(error.to_string()))?;
                    start.gtids = Some(Gtids::of_list(&event, &start.format).map_err(|error| reader.bogus(error))?);
                    return Ok(Some((start, true)));
                }
                // In front of MariaDB's list: how the file is encrypted, which a mirror has blanked.
                Kind::START_ENCRYPTION | Kind::IGNORABLE => reader.skip()?,
                _ => return Ok(Some((start, true))),
            }
        }
    }
}
