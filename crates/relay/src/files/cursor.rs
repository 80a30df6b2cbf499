//! Reads the events of one binary log file in large chunks; events share the chunks' memory.

use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, ReadFile, read_full};
use crate::place::{Place, PlaceLog, open_read};
use crate::reader::{LARGE_BYTES, LocatedEvent};
use binlog::LogPosition;
use binlog::frame::compressed_by;
use binlog::{Corruption, CorruptionKind, Event, Finish, FormatDescription, Framer, Kind, Step};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// How much is read at once, in bytes, unless an event needs more.
const CHUNK_BYTES: u64 = 1 << 20;

pub(crate) enum FileStep {
    /// [`FileCursor::located`] has it.
    Event,
    /// So much is read next for an event.
    Large(u64),
    /// The file ends after a whole event.
    Clean,
    /// The file ends inside an event.
    Torn(Error),
}

pub(crate) struct FileCursor {
    file: Arc<dyn ReadFile>,
    log: Arc<PlaceLog>,
    framer: Framer,
    read_to: u64,
    format: Option<Arc<FormatDescription>>,
    /// The last event. What is not of the event itself is kept from one to the next, as long as the format holds.
    located: Option<LocatedEvent>,
    /// Whether a large event that comes is announced, or was.
    announces: Announcement,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Announcement {
    Nothing,
    Large,
    Done,
}

impl FileCursor {
    /// At the start of a file that the source calls `source_file`.
    pub(crate) fn open(fs: Arc<dyn Fs>, path: &Path, source_file: Arc<str>) -> Result<Self> {
        Self::open_at(fs, path, source_file, None, 0)
    }

    /// At an event in the middle, for which `format` holds.
    pub(crate) fn open_at(
        fs: Arc<dyn Fs>,
        path: &Path,
        source_file: Arc<str>,
        format: Option<FormatDescription>,
        offset: u64,
    ) -> Result<Self> {
        let file = open_read(&*fs, path)?;
        let shared = format.clone().map(Arc::new);
        let framer = Framer::resume(format, offset);
        let read_to = framer.offset();
        let log = Arc::new(PlaceLog { fs, path: path.to_path_buf(), segment: None, source_file });
        Ok(FileCursor { file, log, framer, read_to, format: shared, located: None, announces: Announcement::Nothing })
    }

    /// Larger events are refused, and large ones announced.
    pub(crate) fn at_most(mut self, event_bytes_max: Option<u64>) -> Self {
        if let Some(bytes) = event_bytes_max {
            self.framer.set_event_bytes_max(bytes);
            self.announces = Announcement::Large;
        }
        self
    }

    /// Lets go of the last event if it is large.
    pub(crate) fn release(&mut self) {
        if self.located.as_ref().is_some_and(|located| located.event.bytes().len() as u64 >= LARGE_BYTES) {
            self.located = None;
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.log.path
    }

    pub(crate) fn next(&mut self) -> Result<FileStep> {
        self.release();
        loop {
            match self.framer.next() {
                Step::Event { event, offset } => {
                    if event.kind() == Kind::FORMAT_DESCRIPTION || self.format.is_none() {
                        self.format = self.framer.format().cloned().map(Arc::new);
                        self.located = None;
                    }
                    return self.take(event, offset);
                }
                Step::NeedMore { at_least } => {
                    if self.announces == Announcement::Large && at_least as u64 >= LARGE_BYTES {
                        self.announces = Announcement::Done;
                        return Ok(FileStep::Large(at_least as u64));
                    }
                    if self.fill(at_least)? == 0 {
                        return Ok(self.finish());
                    }
                }
                Step::Corrupt(corrupt) => return self.failed(corrupt),
            }
        }
    }

    fn take(&mut self, event: Event, offset: u64) -> Result<FileStep> {
        let end = offset + event.bytes().len() as u64;
        if self.announces == Announcement::Done {
            self.announces = Announcement::Large;
        }
        if let Some(located) = &mut self.located {
            located.event = event;
            located.position.offset = offset;
            located.end = end;
            located.place.offset = offset;
            return Ok(FileStep::Event);
        }
        let Some(format) = self.format.clone() else {
            return Err(self.corrupt(offset, "no format description precedes this event".to_owned()));
        };
        let position = LogPosition { file: self.log.source_file.clone(), offset };
        let place = Place { log: self.log.clone(), offset };
        self.located = Some(LocatedEvent { event, format, position, end, place, restarted: false });
        Ok(FileStep::Event)
    }

    /// The event of the last step.
    pub(crate) fn located(&self) -> Option<&LocatedEvent> {
        self.located.as_ref()
    }

    /// Reads further; says how many bytes there were.
    fn fill(&mut self, at_least: usize) -> Result<usize> {
        // Only what the file really has is allocated, whatever the length field of an event says.
        let left = self.file.len().during("read", &self.log.path)?.saturating_sub(self.read_to);
        let want = (at_least as u64).max(CHUNK_BYTES).min(left) as usize;
        // A large event is read behind its beginning, so that nobody has to put it together, in twice as much memory.
        let begun = if want as u64 > CHUNK_BYTES { self.framer.take_buffered() } else { Bytes::new() };
        let mut buf = vec![0; begun.len() + want];
        let (head, rest) = buf.split_at_mut(begun.len());
        head.copy_from_slice(&begun);
        let filled = read_full(&*self.file, rest, self.read_to).during("read", &self.log.path)?;
        buf.truncate(begun.len() + filled);
        self.read_to += filled as u64;
        self.framer.push(buf.into());
        Ok(filled)
    }

    fn finish(&self) -> FileStep {
        let path = self.log.path.clone();
        match self.framer.finish() {
            Finish::Clean if self.format.is_none() => {
                let reason = "the file has no events".to_owned();
                FileStep::Torn(Error::TornTail { path, offset: self.framer.offset(), reason })
            }
            Finish::Clean => FileStep::Clean,
            Finish::Torn { offset, have: 0, .. } => {
                FileStep::Torn(Error::TornTail { path, offset, reason: "the file is empty".to_owned() })
            }
            Finish::Torn { offset, have, want } => {
                let reason = format!("{have} of at least {want} bytes are there");
                FileStep::Torn(Error::TornTail { path, offset, reason })
            }
        }
    }

    fn failed(&self, corrupt: Corruption) -> Result<FileStep> {
        let path = self.log.path.clone();
        match &corrupt.what {
            CorruptionKind::Encrypted => Err(Error::Encrypted { path }),
            CorruptionKind::Magic(magic) if compressed_by(*magic).is_some() => Err(Error::Compressed { path }),
            CorruptionKind::Magic(_) => Err(Error::NotABinaryLog { path, reason: corrupt.to_string() }),
            // A server that crashed may leave zeros where its last events should be.
            CorruptionKind::EventLength { length: 0, .. } if self.is_zero_from(self.framer.offset())? => {
                let reason = "only zeros follow".to_owned();
                Ok(FileStep::Torn(Error::TornTail { path, offset: self.framer.offset(), reason }))
            }
            CorruptionKind::TooLarge { bytes, limit, .. } => {
                let position = LogPosition { file: self.log.source_file.clone(), offset: corrupt.offset };
                Err(Error::EventTooLarge { position, bytes: *bytes, limit: *limit })
            }
            what => Err(self.corrupt(corrupt.offset, what.to_string())),
        }
    }

    fn corrupt(&self, offset: u64, reason: String) -> Error {
        Error::Corrupt { path: self.log.path.clone(), offset, reason }
    }

    fn is_zero_from(&self, mut at: u64) -> Result<bool> {
        let mut buf = vec![0; CHUNK_BYTES as usize];
        loop {
            let filled = read_full(&*self.file, &mut buf, at).during("read", &self.log.path)?;
            if filled == 0 {
                return Ok(true);
            }
            if buf.iter().take(filled).any(|byte| *byte != 0) {
                return Ok(false);
            }
            at += filled as u64;
        }
    }
}
