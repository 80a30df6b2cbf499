//! Reads the events of one file, up to a given end. Its buffer is bounded, except for a single larger event that is wanted whole; that can also be read in pieces.

use std::io;
use std::path::Path;
use std::sync::Arc;

use binlog::{Checksum, HEADER_LEN, Header, MAX_EVENT_LEN};
use relay::fs::{ReadFile, RealFs};
use relay::packed;

use super::tail::Tail;

const BUFFER_BYTES: usize = 128 << 10;
/// Where only the beginning of a file is wanted.
const LITTLE_BYTES: usize = 8 << 10;
/// A GTID event is shorter, and what stands before the text of a statement.
const PEEK_BYTES: usize = 4 << 10;

/// Why a file could not be read. The texts are what replicas are told.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system's reason.
    #[error("I/O error reading log event ({file}: {source})")]
    Io {
        /// Which file.
        file: Arc<str>,
        /// What the operating system said.
        source: io::Error,
    },
    /// It was there, and went.
    #[error("could not find next log ({file} was removed)")]
    Removed {
        /// Which file.
        file: Arc<str>,
    },
    /// What stands there is no event.
    #[error("bogus data in log event ({file}:{offset}: {reason})")]
    Bogus {
        /// Which file.
        file: Arc<str>,
        /// Where.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
}

/// The header and first bytes of the next event.
#[derive(Debug)]
pub struct EventHead<'a> {
    /// The event's header.
    pub header: Header,
    /// The event's first bytes, header included; the whole event if it is short.
    pub bytes: &'a [u8],
}

impl EventHead<'_> {
    /// What is here of its body, without the checksum.
    pub fn body(&self, checksum: Checksum) -> &[u8] {
        let is_whole = self.bytes.len() == self.header.event_len as usize;
        let end = self.bytes.len().saturating_sub(if is_whole { checksum.len() } else { 0 });
        self.bytes.get(HEADER_LEN..end).unwrap_or_default()
    }
}

/// The file that a reader reads.
pub(super) struct FileOwner {
    pub(super) name: Arc<str>,
    pub(super) series: u64,
    pub(super) tail: Arc<Tail>,
}

/// See the module.
pub struct LogReader {
    file: Arc<dyn ReadFile>,
    name: Arc<str>,
    series: u64,
    tail: Arc<Tail>,
    /// What is read at once, unless an event is larger.
    at_once: usize,
    /// The offset of the next event.
    offset: u64,
    buffer: Vec<u8>,
    /// Where the next event begins in the buffer, and up to where it is filled.
    from: usize,
    filled: usize,
}

impl LogReader {
    /// Opens the file at an offset at which an event begins.
    pub(super) fn open(path: &Path, of: FileOwner, offset: u64) -> Result<Self, ReadError> {
        let FileOwner { name, series, tail } = of;
        match packed::open(&RealFs, path) {
            Ok(file) => {
                let at_once = BUFFER_BYTES;
                Ok(Self { file, name, series, tail, at_once, offset, buffer: Vec::new(), from: 0, filled: 0 })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ReadError::Removed { file: name }),
            Err(source) => Err(ReadError::Io { file: name, source }),
        }
    }

    /// Only a few events are wanted.
    pub(super) fn of_little(mut self) -> Self {
        self.at_once = LITTLE_BYTES;
        self
    }

    /// The offset of the next event.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on at another event.
    pub fn seek(&mut self, offset: u64) {
        if offset != self.offset {
            (self.offset, self.from, self.filled) = (offset, 0, 0);
        }
    }

    /// Gives the buffer back before a longer wait.
    pub fn rest(&mut self) {
        if self.from == self.filled {
            (self.buffer, self.from, self.filled) = (Vec::new(), 0, 0);
        }
    }

    /// The next event as it is in the file; none at `end`.
    pub fn next(&mut self, end: u64) -> Result<Option<&[u8]>, ReadError> {
        let Some(header) = self.header(end)? else { return Ok(None) };
        let length = header.event_len as usize;
        self.fill(length, end)?;
        let from = self.from;
        self.from += length;
        self.offset += length as u64;
        Ok(self.buffer.get(from..from + length))
    }

    /// The beginning of the next event, which stays the next; none at `end`.
    pub fn peek(&mut self, end: u64) -> Result<Option<EventHead<'_>>, ReadError> {
        let Some(header) = self.header(end)? else { return Ok(None) };
        let length = (header.event_len as usize).min(PEEK_BYTES);
        self.fill(length, end)?;
        let bytes = self.buffer.get(self.from..self.from + length).unwrap_or_default();
        Ok(Some(EventHead { header, bytes }))
    }

    /// True when an event of this length is better read in [`piece`](Self::piece)s.
    pub fn is_large(length: u64) -> bool {
        length > BUFFER_BYTES as u64
    }

    /// Some of the `rest` bytes that are left of the next event, which [`peek`](Self::peek) has seen; it is the next until all of it was read.
    pub fn piece(&mut self, rest: usize) -> Result<&[u8], ReadError> {
        self.fill(rest.min(1), self.offset + rest as u64)?;
        let (from, length) = (self.from, rest.min(self.filled - self.from));
        self.from += length;
        self.offset += length as u64;
        Ok(self.buffer.get(from..from + length).unwrap_or_default())
    }

    /// Leaves the next event out; [`peek`](Self::peek) has seen it.
    pub fn skip(&mut self) -> Result<(), ReadError> {
        let header = self.buffer.get(self.from..self.filled).and_then(Header::parse);
        let Some(header) = header else { return Err(self.bogus("no event to leave out".to_owned())) };
        let length = header.event_len as usize;
        self.offset += length as u64;
        if self.filled - self.from >= length {
            self.from += length;
        } else {
            (self.from, self.filled) = (0, 0);
        }
        Ok(())
    }

    /// An error at the next event.
    pub fn bogus(&self, reason: String) -> ReadError {
        ReadError::Bogus { file: Arc::clone(&self.name), offset: self.offset, reason }
    }

    fn header(&mut self, end: u64) -> Result<Option<Header>, ReadError> {
        if self.offset >= end {
            return Ok(None);
        }
        self.fill(HEADER_LEN, end)?;
        let header = self.buffer.get(self.from..self.filled).and_then(Header::parse);
        let Some(header) = header else { return Err(self.bogus("it is cut short".to_owned())) };
        let length = header.event_len as usize;
        if !(HEADER_LEN..=MAX_EVENT_LEN).contains(&length) || self.offset + length as u64 > end {
            return Err(self.bogus(format!("a length of {length} bytes")));
        }
        Ok(Some(header))
    }

    /// Makes so many bytes of the next event be in the buffer; what is read ahead ends at `end`.
    fn fill(&mut self, wanted: usize, end: u64) -> Result<(), ReadError> {
        let here = self.filled - self.from;
        if here >= wanted {
            return Ok(());
        }
        self.buffer.copy_within(self.from..self.filled, 0);
        (self.from, self.filled) = (0, here);
        let ahead = end.saturating_sub(self.offset);
        let size = wanted.max(self.at_once).min(usize::try_from(ahead).unwrap_or(usize::MAX));
        if size < wanted {
            return Err(self.bogus("it is cut short".to_owned()));
        }
        // An event that is larger than usual leaves no large buffer behind.
        self.buffer.truncate(size.max(here));
        self.buffer.shrink_to(size.max(self.at_once));
        self.buffer.resize(size.max(here), 0);
        while self.filled < wanted {
            let at = self.offset + self.filled as u64;
            let into = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let newest = self.tail.read(self.series, &self.name, at, into);
            if newest > 0 {
                self.filled += newest;
                continue;
            }
            match self.file.read_at(into, at) {
                Ok(0) => return Err(self.bogus("the file ends in it".to_owned())),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { file: Arc::clone(&self.name), source }),
            }
        }
        Ok(())
    }
}
