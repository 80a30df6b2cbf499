//! The relay log's files: how a segment is named, begins, and what its records look like.
//!
//! A segment is a header, then records, the last of which is a seal once the segment is complete:
//!
//! ```text
//! header  magic 8 | version 2 | 0 2 | length 4 | number 8 | start offset 8 | texts: source, start file, state | crc 4
//! record  magic 4 | kind 1 | flags 1 | 0 2 | length 4 | body crc 4 | start 8 | end 8 | durable 8 | head sum 4 | body
//! ```
//!
//! An event that ends in its own CRC-32 is not summed a second time: its record's flag says so, its body crc is 0.
//!
//! Everything is little-endian, CRCs are CRC-32 (IEEE), a head's sum is the low half of its XXH3. That also covers the segment's number and
//! the record's offset, so a stale or embedded copy of a record elsewhere is never taken for one. `durable` is the
//! segment offset that was already durable when the record was made: a damaged place that a later intact record calls
//! durable was not torn by a crash.
//!
//! It never opens or writes a file.

mod cursor;
mod header;
mod record;

pub(crate) use cursor::{Cursor, Step};
pub(crate) use header::{Header, HeaderError, PREFIX_LEN};
pub(crate) use record::{HEAD_LEN, Head, Kind, encode, encode_head, find};

use std::path::{Path, PathBuf};

/// Suffix of a segment that is being created and does not count yet.
const PARTIAL: &str = ".partial";

/// The file name of segment `number`.
pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("heddle-relay.{number:09}"))
}

/// The file name of segment `number` until it is complete enough to count.
pub(crate) fn partial_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("heddle-relay.{number:09}{PARTIAL}"))
}

/// What a name in the relay directory is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Segment(u64),
    Partial,
    Other,
}

pub(crate) fn classify(name: &str) -> Name {
    let Some(rest) = name.strip_prefix("heddle-relay.") else {
        return Name::Other;
    };
    if rest.ends_with(PARTIAL) {
        return Name::Partial;
    }
    if rest.len() < 9 || !rest.bytes().all(|b| b.is_ascii_digit()) {
        return Name::Other;
    }
    rest.parse().map_or(Name::Other, Name::Segment)
}

/// A cursor over bytes that were read from disk: every access is checked.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A text with its length in front.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = self.u32()?;
        std::str::from_utf8(self.take(len as usize)?).ok()
    }
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let dir = Path::new("d");
        assert_eq!(path(dir, 7), dir.join("heddle-relay.000000007"));
        assert_eq!(classify("heddle-relay.000000007"), Name::Segment(7));
        assert_eq!(classify("heddle-relay.1000000007"), Name::Segment(1_000_000_007));
        assert_eq!(classify("heddle-relay.000000007.partial"), Name::Partial);
        assert_eq!(classify("heddle-relay.7"), Name::Other);
        assert_eq!(classify("lock"), Name::Other);
    }
}
