//! Reads a series of binary log files as one stream of events.
//!
//! A file ends with the event that names its successor (ROTATE), with STOP, or, when its server crashed, with neither.
//! Only the very last file may end inside an event, and only if that was allowed.

use super::continuity::Continuity;
use super::cursor::{FileCursor, FileStep};
use crate::error::{Error, Result};
use crate::fs::{Fs, RealFs};
use crate::packed;
use crate::reader::{LocatedEvent, LogReader, Read, ReaderStep, Start};
use binlog::FormatDescription;
use binlog::Kind;
use binlog::LogPosition;
use binlog::position::file_number;
use binlog::rotate::Rotate;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How files are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Take an incomplete event at the end of the last file for the end: the copy of a log that was being written.
    pub allow_torn_tail: bool,
    /// A larger event is refused with [`Error::EventTooLarge`]; none: as large as an event can be.
    pub event_bytes_max: Option<u64>,
}

/// A reader of binary log files in place.
pub struct FilesReader {
    fs: Arc<dyn Fs>,
    options: FileOptions,
    /// Files not yet begun.
    files: VecDeque<PathBuf>,
    cursor: Option<FileCursor>,
    /// What the last event of the file says about the next file.
    successor: Option<String>,
    continuity: Continuity,
    /// The event in the cursor has not passed `continuity`.
    unobserved: bool,
    /// The first event waits in the cursor while the format description that precedes it is delivered.
    held: bool,
    /// The wanted position, until the first event from there was read.
    wanted: Option<LogPosition>,
    /// The format description of the file in which reading starts in the middle.
    preamble: Option<LocatedEvent>,
}

/// What the source calls a file: its name without the folder.
fn source_name(path: &Path) -> Arc<str> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    packed::plain_name(&name).into()
}

impl FilesReader {
    /// Reads `files`, which must be in order (see [`FileSource::discover`](super::FileSource::discover)).
    ///
    /// # Errors
    /// A file that cannot be opened, or is not what it should be where reading starts; [`Error::NoSuchPosition`].
    pub fn open(files: Vec<PathBuf>, start: Start) -> Result<Self> {
        Self::open_with(Arc::new(RealFs), files, start, FileOptions::default())
    }

    /// Like [`FilesReader::open`], with a file system and options.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(fs: Arc<dyn Fs>, files: Vec<PathBuf>, start: Start, options: FileOptions) -> Result<Self> {
        let mut reader = FilesReader {
            fs,
            options,
            files: files.into(),
            cursor: None,
            successor: None,
            continuity: Continuity::default(),
            unobserved: false,
            held: false,
            wanted: None,
            preamble: None,
        };
        if reader.files.is_empty() {
            return Err(Error::NoLogs { path: PathBuf::new() });
        }
        match start {
            Start::Beginning => reader.open_first()?,
            Start::At(wanted) => reader.open_at(wanted)?,
        }
        Ok(reader)
    }

    fn open_first(&mut self) -> Result<()> {
        if let Some(path) = self.files.pop_front() {
            let cursor = FileCursor::open(self.fs.clone(), &path, source_name(&path))?;
            self.cursor = Some(cursor.at_most(self.options.event_bytes_max));
        }
        Ok(())
    }

    fn open_at(&mut self, wanted: LogPosition) -> Result<()> {
        let missing = |reason: &str| Error::NoSuchPosition { wanted: wanted.clone(), reason: reason.to_owned() };
        let by_name = self.files.iter().position(|path| *source_name(path) == *wanted.file);
        // A renamed copy still has its number.
        let by_number = || {
            let number = file_number(&wanted.file)?;
            self.files.iter().position(|path| file_number(&source_name(path)) == Some(number))
        };
        let index = by_name.or_else(by_number).ok_or_else(|| missing("that file is not among those given"))?;
        self.files.drain(..index);
        if wanted.offset <= binlog::MAGIC.len() as u64 {
            return self.open_first();
        }
        let path = self.files.pop_front().ok_or_else(|| missing("that file is not among those given"))?;
        let name = source_name(&path);
        let mut head = FileCursor::open(self.fs.clone(), &path, name.clone())?;
        let (FileStep::Event, Some(first)) = (head.next()?, head.located().cloned()) else {
            return Err(missing("the file is incomplete"));
        };
        if first.end > wanted.offset {
            return Err(missing("it is inside the format description event"));
        }
        if first.end < wanted.offset {
            // An encrypted file says so in its second event.
            head.next()?;
        }
        let len = packed::open(&*self.fs, &path).and_then(|file| file.len());
        if len.is_ok_and(|len| wanted.offset > len) {
            return Err(missing("the file is shorter than that"));
        }
        let format = Some(FormatDescription::clone(&first.format));
        self.continuity = Continuity::starting_at(&path, wanted.offset);
        let cursor = FileCursor::open_at(self.fs.clone(), &path, name, format, wanted.offset)?;
        self.cursor = Some(cursor.at_most(self.options.event_bytes_max));
        self.preamble = Some(first);
        self.wanted = Some(wanted);
        Ok(())
    }

    /// Goes on to the next file, if there is one.
    fn advance(&mut self) -> Result<bool> {
        let (Some(next), Some(cursor)) = (self.files.front(), &self.cursor) else {
            return Ok(false);
        };
        if let Some(expected) = &self.successor {
            let found = source_name(next);
            let same = match (file_number(expected), file_number(&found)) {
                (Some(a), Some(b)) => a == b,
                _ => **expected == *found,
            };
            if !same {
                let (path, expected) = (cursor.path().to_path_buf(), expected.clone());
                return Err(Error::WrongNextFile { path, expected, found: next.clone() });
            }
        }
        self.continuity.end(&self.fs, cursor.path());
        let cursor = FileCursor::open(self.fs.clone(), next, source_name(next))?;
        self.cursor = Some(cursor.at_most(self.options.event_bytes_max));
        self.files.pop_front();
        self.successor = None;
        Ok(true)
    }

    /// The next event, for [`FilesReader::located`].
    fn step(&mut self) -> Result<ReaderStep> {
        loop {
            let Some(cursor) = &mut self.cursor else {
                return Ok(ReaderStep::Nothing);
            };
            if let Some(located) = cursor.located().filter(|_| self.unobserved) {
                self.continuity.observe(&self.fs, cursor.path(), located)?;
                self.unobserved = false;
                let rotate = Some(located).filter(|located| located.event.kind() == Kind::ROTATE);
                self.successor =
                    rotate.and_then(|located| Rotate::decode_any(&located.event).ok()).map(|rotate| rotate.file);
                return Ok(ReaderStep::Event);
            }
            match cursor.next()? {
                FileStep::Event => self.unobserved = true,
                FileStep::Large(bytes) => return Ok(ReaderStep::Large(bytes)),
                FileStep::Clean => {
                    if !self.advance()? {
                        return Ok(ReaderStep::Nothing);
                    }
                }
                FileStep::Torn(torn) => {
                    if self.files.is_empty() && self.options.allow_torn_tail {
                        tracing::warn!(error = %torn, "the last file ends early, as allowed");
                        self.cursor = None;
                        return Ok(ReaderStep::Nothing);
                    }
                    return Err(torn);
                }
            }
        }
    }
    /// The event of the last step.
    fn located(&self) -> Option<&LocatedEvent> {
        self.cursor.as_ref().and_then(FileCursor::located)
    }

    fn read(&self) -> Read<'_> {
        self.located().map_or(Read::End, Read::Event)
    }
}

impl LogReader for FilesReader {
    fn next(&mut self) -> Result<Read<'_>> {
        if std::mem::take(&mut self.held) {
            self.preamble = None;
            return Ok(self.read());
        }
        let step = self.step();
        let Some(wanted) = self.wanted.take() else {
            return Ok(match step? {
                ReaderStep::Event => self.read(),
                ReaderStep::Nothing => Read::End,
                ReaderStep::Large(bytes) => Read::Large(bytes),
            });
        };
        match step {
            Ok(ReaderStep::Event) => {}
            Ok(ReaderStep::Nothing) => return Ok(Read::End),
            Ok(ReaderStep::Large(bytes)) => {
                self.wanted = Some(wanted);
                return Ok(Read::Large(bytes));
            }
            // What cannot be an event at the very start is a wrong position.
            Err(Error::Corrupt { offset, reason, .. }) if offset >= wanted.offset => {
                let reason = format!("no event starts there ({reason})");
                self.wanted = Some(wanted.clone());
                return Err(Error::NoSuchPosition { wanted, reason });
            }
            Err(e) => {
                self.wanted = Some(wanted);
                return Err(e);
            }
        }
        let Some(first) = self.located() else { return Ok(Read::End) };
        let (position, end) = (first.position.clone(), first.position.offset);
        if first.event.kind() == Kind::FORMAT_DESCRIPTION {
            self.preamble = None;
        } else if let Some(preamble) = &mut self.preamble {
            (preamble.position, preamble.end) = (position, end);
            self.held = true;
        }
        Ok(self.preamble.as_ref().map_or_else(|| self.read(), Read::Event))
    }

    fn release(&mut self) {
        if let Some(cursor) = self.cursor.as_mut().filter(|_| !self.held && !self.unobserved) {
            cursor.release();
        }
    }
}
