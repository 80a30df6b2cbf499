//! One event as its bytes, checked once, decoded lazily.

use std::fmt;

use bytes::Bytes;

use crate::corruption::{Corruption, CorruptionKind};
use crate::format_description::FormatDescription;
use crate::header::{HEADER_LEN, Header};
use crate::kind::Kind;
use crate::reader::Reader;

/// Length of the CRC32 at the end of a summed event, in bytes.
pub const CHECKSUM_LEN: usize = 4;

/// How events are summed (`binlog_checksum`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// No checksum.
    Off,
    /// CRC32 (IEEE) over all but the last four bytes, which hold it.
    Crc32,
}

impl Checksum {
    /// Bytes at the end of each event.
    pub fn len(self) -> usize {
        match self {
            Checksum::Off => 0,
            Checksum::Crc32 => CHECKSUM_LEN,
        }
    }

    /// Whether events end without a checksum.
    pub fn is_empty(self) -> bool {
        self == Checksum::Off
    }
}

/// Which of the two families a server, or the format of a log, belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// MySQL and Percona Server.
    MySql,
    /// MariaDB.
    MariaDb,
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flavour::MySql => "MySQL",
            Flavour::MariaDb => "MariaDB",
        })
    }
}

/// One event: its header and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    header: Header,
    bytes: Bytes,
    trailer_len: usize,
}

impl Event {
    /// Checks the length against the header, and the CRC32 when there is one. `bytes` is exactly one event.
    ///
    /// A format description says itself how it is summed: `checksum` is not used for it.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    #[inline]
    pub fn parse(bytes: Bytes, checksum: Checksum) -> Result<Event, Corruption> {
        let header = check_len(&bytes)?;
        if header.kind == Kind::FORMAT_DESCRIPTION {
            return FormatDescription::decode(&bytes).map(|(event, _)| event);
        }
        Self::checked(header, bytes, checksum)
    }

    /// `header` is that of `bytes`, which are exactly one event and no format description.
    #[inline]
    pub(crate) fn checked(header: Header, bytes: Bytes, checksum: Checksum) -> Result<Event, Corruption> {
        match checksum {
            Checksum::Off => {}
            Checksum::Crc32 => verify_crc(&bytes, crc32fast::Hasher::new(), 0)?,
        }
        Ok(Event { header, bytes, trailer_len: checksum.len() })
    }

    /// For parts of the crate that checked the bytes themselves.
    pub(crate) fn trusted(header: Header, bytes: Bytes, trailer_len: usize) -> Event {
        Event { header, bytes, trailer_len }
    }

    /// The common header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The type code.
    pub fn kind(&self) -> Kind {
        self.header.kind
    }

    /// The whole event, header and checksum included.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How this event is summed. A format description counts as summed when it has the four bytes, whether or not
    /// the events after it are.
    pub fn checksum(&self) -> Checksum {
        if self.trailer_len == 0 { Checksum::Off } else { Checksum::Crc32 }
    }

    /// Post-header and body: without the common header and the checksum.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(HEADER_LEN..self.bytes.len() - self.trailer_len).unwrap_or_default()
    }

    /// [`Event::body`] as a slice that shares the event's memory.
    pub fn body_bytes(&self) -> Bytes {
        self.bytes.slice(HEADER_LEN..self.bytes.len() - self.trailer_len)
    }

    /// Bytes before the checksum, header included.
    pub fn without_checksum(&self) -> Bytes {
        self.bytes.slice(..self.bytes.len() - self.trailer_len)
    }

    /// A reader over the body whose errors count from the start of the event.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(self.body(), HEADER_LEN as u64)
    }

    /// The part of the body that `slice`, which was read from it, covers.
    pub(crate) fn share(&self, slice: &[u8]) -> Bytes {
        self.bytes.slice_ref(slice)
    }

    pub(crate) fn expect(&self, expected: Kind) -> Result<(), Corruption> {
        if self.kind() == expected { Ok(()) } else { Err(self.wrong_kind(expected.name())) }
    }

    pub(crate) fn wrong_kind(&self, expected: &'static str) -> Corruption {
        Corruption::new(4, CorruptionKind::Kind { expected, got: self.kind() })
    }
}

/// The header of `bytes`, which must be exactly one event.
#[inline]
pub(crate) fn check_len(bytes: &[u8]) -> Result<Header, Corruption> {
    let actual = bytes.len() as u64;
    let Some(header) = Header::parse(bytes) else {
        let want = HEADER_LEN as u64;
        return Err(Corruption::new(0, CorruptionKind::Truncated { field: "event header", want, have: actual }));
    };
    if u64::from(header.event_len) != actual {
        return Err(Corruption::new(9, CorruptionKind::LengthMismatch { header: header.event_len.into(), actual }));
    }
    Ok(header)
}

/// Checks the last four bytes of `event` against the CRC32 of `hasher`'s input so far and `event[from..]` before them.
pub(crate) fn verify_crc(event: &[u8], mut hasher: crc32fast::Hasher, from: usize) -> Result<(), Corruption> {
    let have = event.len() as u64;
    let truncated = || {
        let want = (HEADER_LEN + CHECKSUM_LEN) as u64;
        Corruption::new(HEADER_LEN as u64, CorruptionKind::Truncated { field: "checksum", want, have })
    };
    if event.len() < HEADER_LEN + CHECKSUM_LEN {
        return Err(truncated());
    }
    let (summed, stored) = event.split_last_chunk::<CHECKSUM_LEN>().ok_or_else(truncated)?;
    hasher.update(summed.get(from..).unwrap_or_default());
    let (stored, computed) = (u32::from_le_bytes(*stored), hasher.finalize());
    if stored == computed {
        Ok(())
    } else {
        Err(Corruption::new(summed.len() as u64, CorruptionKind::Checksum { stored, computed }))
    }
}
