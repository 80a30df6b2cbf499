//! Cuts a log file that arrives in chunks into events.
//!
//! The three ways in which input ends are distinct: after a whole event ([`Finish::Clean`]), inside one
//! ([`Finish::Torn`], from [`Framer::finish`]), and at bytes that no log has ([`Step::Corruption`], for good). The framer
//! follows the format descriptions it meets. It never allocates what a length field says, only what has arrived.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use crate::corruption::{Corruption, CorruptionKind};
use crate::event::{Checksum, Event};
use crate::format_description::FormatDescription;
use crate::header::{HEADER_LEN, Header};
use crate::kind::Kind;

/// The first four bytes of a binary log.
pub const MAGIC: [u8; 4] = *b"\xfebin";
/// Where the first event of a file stands: behind [`MAGIC`].
pub const FIRST_OFFSET: u64 = MAGIC.len() as u64;
/// The first four bytes of an encrypted MySQL binary log.
pub const MAGIC_ENCRYPTED: [u8; 4] = *b"\xfdbin";
/// The longest event that is accepted, in bytes: the servers' limit of 1 GiB for a packet, and headers.
pub const MAX_EVENT_LEN: usize = (1 << 30) + (1 << 20);

/// Which program compressed a file that begins like this, and what shows what is in it.
pub fn compressed_by(magic: [u8; 4]) -> Option<(&'static str, &'static str)> {
    Some(match magic {
        [0x1f, 0x8b, ..] => ("gzip", "zcat"),
        [0x28, 0xb5, 0x2f, 0xfd] => ("zstd", "zstdcat"),
        [b'B', b'Z', b'h', _] => ("bzip2", "bzcat"),
        [0xfd, b'7', b'z', b'X'] => ("xz", "xzcat"),
        [0x04, 0x22, 0x4d, 0x18] => ("lz4", "lz4cat"),
        _ => return None,
    })
}

/// Bytes from which [`begins_log`] tells.
pub const BEGINNING_LEN: usize = MAGIC.len() + HEADER_LEN;

/// Whether these are the first bytes of a binary log. Inside of a log the magic alone may be an event's time, in 2028.
pub fn begins_log(bytes: &[u8]) -> bool {
    let behind = bytes.strip_prefix(&MAGIC).and_then(Header::parse);
    behind.is_some_and(|header| {
        header.kind == Kind::FORMAT_DESCRIPTION && (HEADER_LEN..=1 << 16).contains(&(header.event_len as usize))
    })
}

/// What [`Framer::next`] found.
#[derive(Debug)]
pub enum Step {
    /// A whole, checked event that starts at `offset` of the file.
    Event { event: Event, offset: u64 },
    /// At least so many more bytes are needed.
    NeedMore { at_least: usize },
    /// No event can be here. Every later call says the same.
    Corrupt(Corruption),
}

/// How the input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// After a whole event.
    Clean,
    /// Inside of an event (or of the magic bytes) that starts at `offset`: `have` of at least `want` bytes are there.
    Torn { offset: u64, have: usize, want: usize },
}

/// An incremental framer for one log file.
#[derive(Debug)]
pub struct Framer {
    chunks: VecDeque<Bytes>,
    available: usize,
    offset: u64,
    format: Option<FormatDescription>,
    failed: Option<Corruption>,
    event_bytes_max: u64,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new()
    }
}

impl Framer {
    /// At the start of a file: the magic bytes come first.
    pub fn new() -> Self {
        Self::resume(None, 0)
    }

    /// At `offset` of a file, where an event starts; `format` is the description in force there. Without one, the
    /// event at `offset` must be a format description. An offset below 4 means the start of the file.
    pub fn resume(format: Option<FormatDescription>, offset: u64) -> Self {
        let offset = if offset < MAGIC.len() as u64 { 0 } else { offset };
        let event_bytes_max = MAX_EVENT_LEN as u64;
        Self { chunks: VecDeque::new(), available: 0, offset, format, failed: None, event_bytes_max }
    }

    /// Larger events are refused with [`CorruptionKind::TooLarge`], before anything is taken in of them.
    pub fn set_event_bytes_max(&mut self, event_bytes_max: u64) {
        self.event_bytes_max = event_bytes_max;
    }

    /// Takes back what was pushed and not yet returned as events: to be pushed again, in one piece with what follows.
    pub fn take_buffered(&mut self) -> Bytes {
        let available = self.available;
        if available == 0 { Bytes::new() } else { self.take(available) }
    }

    /// Adds the bytes that follow those pushed so far.
    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.available += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// The next event, if it is all there.
    #[expect(clippy::should_implement_trait, reason = "an iterator would have to say None for what is not there yet")]
    pub fn next(&mut self) -> Step {
        if let Some(failed) = &self.failed {
            return Step::Corrupt(failed.clone());
        }
        match self.step() {
            Ok(step) => step,
            Err(corrupt) => {
                self.failed = Some(corrupt.clone());
                Step::Corrupt(corrupt)
            }
        }
    }

    /// Where the next event starts (0 before the magic bytes were read).
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How the input ended, when no more of it comes. Call it once [`Framer::next`] asks for more.
    pub fn finish(&self) -> Finish {
        let in_magic = self.offset == 0;
        if self.available == 0 && !in_magic {
            return Finish::Clean;
        }
        let want = if in_magic {
            MAGIC.len()
        } else {
            self.peek::<HEADER_LEN>()
                .and_then(|bytes| Header::parse(&bytes))
                .map_or(HEADER_LEN, |header| header.event_len as usize)
        };
        Finish::Torn { offset: self.offset, have: self.available, want }
    }

    /// The format description in force.
    pub fn format(&self) -> Option<&FormatDescription> {
        self.format.as_ref()
    }

    /// Bytes that were pushed and not yet returned as events.
    pub fn buffered(&self) -> usize {
        self.available
    }

    fn step(&mut self) -> Result<Step, Corruption> {
        if self.offset == 0 {
            let Some(magic) = self.peek::<4>() else {
                return Ok(Step::NeedMore { at_least: MAGIC.len() - self.available });
            };
            match magic {
                MAGIC => {}
                MAGIC_ENCRYPTED => return Err(Corruption::new(0, CorruptionKind::Encrypted)),
                other => return Err(Corruption::new(0, CorruptionKind::Magic(other))),
            }
            self.take(MAGIC.len());
            self.offset = MAGIC.len() as u64;
        }
        let Some(header) = self.peek::<HEADER_LEN>().and_then(|bytes| Header::parse(&bytes)) else {
            return Ok(Step::NeedMore { at_least: HEADER_LEN - self.available });
        };
        let is_another = || self.peek::<BEGINNING_LEN>().is_some_and(|bytes| begins_log(&bytes));
        if self.format.is_some() && self.peek::<4>() == Some(MAGIC) && is_another() {
            return Err(Corruption::new(self.offset, CorruptionKind::AnotherLog));
        }
        let len = header.event_len as usize;
        if !(HEADER_LEN..=MAX_EVENT_LEN).contains(&len) {
            let what = CorruptionKind::EventLength { length: len as u64, limit: MAX_EVENT_LEN as u64 };
            return Err(Corruption::new(self.offset + 9, what));
        }
        if len as u64 > self.event_bytes_max {
            let what = CorruptionKind::TooLarge { field: "an event", bytes: len as u64, limit: self.event_bytes_max };
            return Err(Corruption::new(self.offset, what));
        }
        if self.available < len {
            return Ok(Step::NeedMore { at_least: len - self.available });
        }
        let offset = self.offset;
        let bytes = self.take(len);
        let event = self.parse(bytes, header).map_err(|corrupt| corrupt.at(offset))?;
        self.offset = offset + len as u64;
        Ok(Step::Event { event, offset })
    }

    fn parse(&mut self, bytes: Bytes, header: Header) -> Result<Event, Corruption> {
        let kind = header.kind;
        if kind == Kind::FORMAT_DESCRIPTION {
            let (event, format) = FormatDescription::decode(&bytes)?;
            self.format = Some(format);
            return Ok(event);
        }
        let checksum: Checksum = match &self.format {
            Some(format) => format.checksum,
            None => return Err(Corruption::new(4, CorruptionKind::NoFormat(kind))),
        };
        let event = Event::checked(header, bytes, checksum)?;
        if kind == Kind::START_ENCRYPTION {
            return Err(Corruption::new(0, CorruptionKind::Encrypted));
        }
        Ok(event)
    }

    /// The next `N` bytes, wherever the chunks break.
    fn peek<const N: usize>(&self) -> Option<[u8; N]> {
        if self.available < N {
            return None;
        }
        if let Some(bytes) = self.chunks.front().and_then(|chunk| chunk.first_chunk::<N>()) {
            return Some(*bytes);
        }
        let mut out = [0u8; N];
        let bytes = self.chunks.iter().flat_map(|chunk| chunk.iter());
        for (to, from) in out.iter_mut().zip(bytes) {
            *to = *from;
        }
        Some(out)
    }

    /// The next `len` bytes, which are there: shared when they are in one chunk, else copied once.
    fn take(&mut self, len: usize) -> Bytes {
        debug_assert!(len <= self.available);
        self.available = self.available.saturating_sub(len);
        if let Some(front) = self.chunks.front_mut() {
            if front.len() > len {
                return front.split_to(len);
            }
            if front.len() == len {
                return self.chunks.pop_front().unwrap_or_default();
            }
        }
        let mut out = BytesMut::with_capacity(len);
        while out.len() < len {
            let Some(front) = self.chunks.front_mut() else {
                break;
            };
            let part = front.len().min(len - out.len());
            out.extend_from_slice(front.get(..part).unwrap_or_default());
            front.advance(part);
            if front.is_empty() {
                self.chunks.pop_front();
            }
        }
        out.freeze()
    }
}
