//! Turns the records of segments into located events: follows the names of the source's files and its formats.
//!
//! It does not know how far it may read: its user does.

use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, ReadFile, read_full};
use crate::place::{Place, PlaceLog, open_read};
use crate::reader::{LARGE_BYTES, LocatedEvent};
use crate::segment::{self, Cursor, Head, Header, HeaderError, Kind, PREFIX_LEN, Step};
use binlog::LogPosition;
use binlog::{Checksum, Corruption, Event, FormatDescription};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) enum RelayStep {
    /// [`RelayCursor::located`] has it.
    Event,
    /// An event of so many bytes is read next.
    Large(u64),
    /// The limit is reached.
    End,
    /// The segment is complete: the next one goes on.
    Sealed,
}

pub(crate) struct RelayCursor {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    number: u64,
    cursor: Cursor,
    log: Arc<PlaceLog>,
    format: Option<Arc<FormatDescription>>,
    /// The format description event in force, and its place.
    format_event: Option<(Event, Place)>,
    restarted: bool,
    /// The last event. What is not of the event itself is kept from one to the next; none once that has changed.
    located: Option<LocatedEvent>,
    event_bytes_max: Option<u64>,
}

impl RelayCursor {
    /// At the first record of segment `number`.
    pub(crate) fn open(fs: Arc<dyn Fs>, dir: &Path, number: u64) -> Result<Self> {
        let path = segment::path(dir, number);
        let file = open_read(&*fs, &path)?;
        let (header, header_len) = read_header(&*file, &path, number)?;
        let mut cursor = Self::with(fs, dir, number, file, header_len, path);
        cursor.set_file(header.start_file.into());
        Ok(cursor)
    }

    /// At a record in the middle; [`RelayCursor::set_stream`] must follow.
    pub(crate) fn open_at(fs: Arc<dyn Fs>, dir: &Path, number: u64, at: u64) -> Result<Self> {
        let path = segment::path(dir, number);
        let file = open_read(&*fs, &path)?;
        Ok(Self::with(fs, dir, number, file, at, path))
    }

    fn with(fs: Arc<dyn Fs>, dir: &Path, number: u64, file: Arc<dyn ReadFile>, at: u64, path: PathBuf) -> Self {
        let log =
            PlaceLog { fs: fs.clone(), path, segment: Some((dir.to_path_buf(), number)), source_file: Arc::from("") };
        RelayCursor {
            fs,
            dir: dir.to_path_buf(),
            number,
            cursor: Cursor::new(file, number, at),
            log: Arc::new(log),
            format: None,
            format_event: None,
            restarted: false,
            located: None,
            event_bytes_max: None,
        }
    }

    /// Larger events are refused, and large ones announced.
    pub(crate) fn at_most(mut self, event_bytes_max: Option<u64>) -> Self {
        self.event_bytes_max = event_bytes_max;
        if let Some(bytes) = event_bytes_max {
            self.cursor.set_body_bytes_max(bytes);
        }
        self
    }

    /// Lets go of the last event if it is large.
    pub(crate) fn release(&mut self) {
        if self.located.as_ref().is_some_and(|located| located.event.bytes().len() as u64 >= LARGE_BYTES) {
            self.located = None;
            self.cursor.release();
        }
    }

    pub(crate) fn set_stream(&mut self, file: Arc<str>, format: Arc<FormatDescription>) {
        self.set_file(file);
        self.set_format(format);
    }

    fn set_file(&mut self, source_file: Arc<str>) {
        let (fs, path, segment) = (self.fs.clone(), self.log.path.clone(), self.log.segment.clone());
        self.log = Arc::new(PlaceLog { fs, path, segment, source_file });
        self.located = None;
    }

    fn set_format(&mut self, format: Arc<FormatDescription>) {
        self.format = Some(format);
        self.located = None;
    }

    /// The event of the last step.
    pub(crate) fn located(&self) -> Option<&LocatedEvent> {
        self.located.as_ref()
    }

    /// Goes on at the start of the next segment.
    pub(crate) fn open_next(&mut self) -> Result<()> {
        let mut next = Self::open(self.fs.clone(), &self.dir, self.number + 1)?.at_most(self.event_bytes_max);
        next.restarted = self.restarted;
        *self = next;
        Ok(())
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn at(&self) -> u64 {
        self.cursor.at()
    }

    pub(crate) fn format_event(&self) -> Option<&(Event, Place)> {
        self.format_event.as_ref()
    }

    /// How long the segment is now, in bytes.
    pub(crate) fn file_len(&self) -> Result<u64> {
        self.cursor.file().len().during("read", &self.log.path)
    }

    pub(crate) fn damaged(&self, reason: impl ToString) -> Error {
        Error::Damaged { path: self.log.path.clone(), offset: self.at(), reason: reason.to_string() }
    }

    /// The next event in a record that ends at or before `limit`. After damage the cursor is at the damaged record.
    pub(crate) fn next(&mut self, limit: u64) -> Result<RelayStep> {
        let step = self.step(limit);
        if let Err(Error::Damaged { offset, .. }) = &step {
            self.cursor.seek(*offset);
        }
        step
    }

    fn step(&mut self, limit: u64) -> Result<RelayStep> {
        self.release();
        loop {
            let (at, head, body) = match self.cursor.next(limit).during("read", &self.log.path)? {
                Step::Record { at, head, body } => (at, head, body),
                Step::TooLarge { head, limit } => {
                    let position = LogPosition { file: self.log.source_file.clone(), offset: head.start };
                    return Err(Error::EventTooLarge { position, bytes: u64::from(head.len), limit });
                }
                Step::Large(bytes) => return Ok(RelayStep::Large(bytes)),
                Step::End => return Ok(RelayStep::End),
                Step::Bad(reason) => return Err(self.damaged(reason)),
            };
            let damaged = |path: &Path, reason: String| Error::Damaged { path: path.to_path_buf(), offset: at, reason };
            match head.kind {
                Kind::Event | Kind::Format => {
                    let event = parse(&head, body).map_err(|corrupt| damaged(&self.log.path, corrupt.to_string()))?;
                    if event.kind() == binlog::Kind::FORMAT_DESCRIPTION {
                        let decoded = FormatDescription::decode(event.bytes());
                        let (_, format) = decoded.map_err(|corrupt| damaged(&self.log.path, corrupt.to_string()))?;
                        self.set_format(Arc::new(format));
                        self.format_event = Some((event.clone(), Place { log: self.log.clone(), offset: at }));
                    }
                    if head.kind == Kind::Format {
                        continue;
                    }
                    let restarted = std::mem::take(&mut self.restarted);
                    if let Some(located) = &mut self.located {
                        located.event = event;
                        located.position.offset = head.start;
                        located.end = head.end;
                        located.place.offset = at;
                        located.restarted = restarted;
                        return Ok(RelayStep::Event);
                    }
                    let Some(format) = self.format.clone() else {
                        let reason = "an event comes before the format description".to_owned();
                        return Err(damaged(&self.log.path, reason));
                    };
                    self.located = Some(LocatedEvent {
                        event,
                        format,
                        position: LogPosition { file: self.log.source_file.clone(), offset: head.start },
                        end: head.end,
                        place: Place { log: self.log.clone(), offset: at },
                        restarted,
                    });
                    return Ok(RelayStep::Event);
                }
                Kind::File => match std::str::from_utf8(&body) {
                    Ok(name) => self.set_file(name.into()),
                    Err(_) => {
                        return Err(damaged(&self.log.path, "the name of the source's file is not a text".to_owned()));
                    }
                },
                Kind::Restart => self.restarted = true,
                Kind::Seal => return Ok(RelayStep::Sealed),
            }
        }
    }
}

/// Checks and takes an event out of its record.
pub(crate) fn parse(head: &Head, body: Bytes) -> Result<Event, Corruption> {
    Event::parse(body, if head.summed { Checksum::Crc32 } else { Checksum::Off })
}

/// Reads and checks a segment's header; also says its length.
pub(crate) fn read_header(file: &dyn ReadFile, path: &Path, number: u64) -> Result<(Header, u64)> {
    let damaged = |reason: &str| Error::Damaged { path: path.to_path_buf(), offset: 0, reason: reason.to_owned() };
    let mut want = PREFIX_LEN;
    loop {
        // The length field is believed only as far as the file goes.
        let there = file.len().during("read", path)?;
        if want as u64 > there {
            return Err(damaged("the header is incomplete"));
        }
        let mut bytes = vec![0; want];
        let filled = read_full(file, &mut bytes, 0).during("read", path)?;
        bytes.truncate(filled);
        match Header::decode(&bytes) {
            Ok((header, _)) if header.number != number => {
                return Err(damaged("it is another segment that was renamed"));
            }
            Ok((header, len)) => return Ok((header, len as u64)),
            Err(HeaderError::NeedMore(more)) if more > want => want = more,
            Err(HeaderError::NeedMore(_)) => return Err(damaged("the header is incomplete")),
            Err(HeaderError::OtherVersion) => return Err(Error::OtherVersion { path: path.to_path_buf() }),
            Err(HeaderError::Bad(reason)) => return Err(damaged(reason)),
        }
    }
}
