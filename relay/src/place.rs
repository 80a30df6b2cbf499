//! Where an event's bytes are on this machine, to read them a second time.
//!
//! A transaction larger than the memory budget is not kept: it is streamed again from its place.

use crate::error::{Error, IoContext, Result};
use crate::files::cursor::{FileCursor, FileStep};
use crate::fs::Fs;
use crate::reader::Located;
use crate::relay_cursor::{RelayCursor, RelayStep};
use binlog::FormatDescription;
use binlog::LogPosition;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where an event's bytes are: a relay log segment or a binary log file, and the offset in it.
#[derive(Debug, Clone)]
pub struct Place {
    pub(crate) log: Arc<PlaceLog>,
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

/// Reads the events from the one at `from` up to and with the one at `until` again.
///
/// `format` is the description that came with the first of them. Both places must come from one reader, in this order,
/// and must not have been purged.
///
/// # Errors
/// When the file cannot be opened; the iterator's items are errors when it is damaged. It ends after an error.
pub fn reread(from: &Place, until: &Place, format: Arc<FormatDescription>) -> Result<Reread> {
    let log = &from.log;
    let cursor = match &log.segment {
        Some((dir, number)) => {
            let mut cursor = RelayCursor::open_at(log.fs.clone(), dir, *number, from.offset)?;
            cursor.set_stream(log.source_file.clone(), format);
            Walk::Relay(cursor)
        }
        None => {
            let format = Some(FormatDescription::clone(&format));
            Walk::File(FileCursor::open_at(log.fs.clone(), &log.path, log.source_file.clone(), format, from.offset)?)
        }
    };
    Ok(Reread { cursor, until: until.clone(), done: false })
}

/// Events read again, in order; see [`reread`].
pub struct Reread {
    cursor: Walk,
    until: Place,
    done: bool,
}

enum Walk {
    Relay(RelayCursor),
    File(FileCursor),
}

impl Reread {
    fn step(&mut self) -> Result<Located> {
        let until = &self.until;
        let gone = |reason: &str| Error::NoSuchPosition {
            wanted: LogPosition::new(until.log.source_file.clone(), until.offset),
            reason: reason.to_owned(),
        };
        match &mut self.cursor {
            Walk::Relay(cursor) => loop {
                let limit = cursor.file_len()?;
                match cursor.next(limit)? {
                    RelayStep::Event => return cursor.located().cloned().ok_or_else(|| gone("it is not there")),
                    RelayStep::Sealed => {
                        // Past the segment of `until` there is nothing to look for.
                        if until.log.segment.as_ref().is_none_or(|(_, last)| cursor.number() >= *last) {
                            return Err(gone("the segment ends before it"));
                        }
                        cursor.open_next()?;
                    }
                    RelayStep::End => return Err(gone("the segment ends before it")),
                }
            },
            Walk::File(cursor) => match cursor.next()? {
                FileStep::Event => cursor.located().cloned().ok_or_else(|| gone("it is not there")),
                FileStep::Clean | FileStep::Torn(_) => Err(gone("the file ends before it")),
            },
        }
    }
}

impl Iterator for Reread {
    type Item = Result<Located>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.step();
        self.done = match &item {
            Ok(located) => located.place.offset >= self.until.offset && located.place.log.path == self.until.log.path,
            Err(_) => true,
        };
        Some(item)
    }
}

/// Opens a file of a log for reading.
pub(crate) fn open_read(fs: &dyn Fs, path: &Path) -> Result<Arc<dyn crate::fs::ReadFile>> {
    fs.open_read(path).during("open", path)
}
