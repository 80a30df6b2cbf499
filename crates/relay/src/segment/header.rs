//! The header of a segment: which one it is, whose events it has, and what was known where it starts.

use super::{Bytes, put_text};

/// The first bytes of every segment.
pub(crate) const MAGIC: [u8; 8] = *b"HEDDLERL";
/// 1 summed the heads of records with CRC-32.
const VERSION: u16 = 2;
/// Bytes up to and with the length field.
pub(crate) const PREFIX_LEN: usize = 16;
/// The longest header, in bytes: the state holds a GTID set, which has thousands of intervals at worst.
const LEN_MAX: u32 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub number: u64,
    /// Who the events come from, as the caller identifies its source.
    pub source: String,
    /// Where in the source the first event of this segment starts.
    pub start_file: String,
    pub start_offset: u64,
    /// What the writer knows of the stream at that place, see `stream`.
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The header says that it is this long, in bytes.
    NeedMore(usize),
    /// The format of an earlier or later heddle.
    OtherVersion,
    Bad(&'static str),
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend([0; 2]);
        out.extend([0; 4]);
        out.extend(self.number.to_le_bytes());
        out.extend(self.start_offset.to_le_bytes());
        put_text(&mut out, &self.source);
        put_text(&mut out, &self.start_file);
        put_text(&mut out, &self.state);
        let len = (out.len() + 4) as u32;
        if let Some(field) = out.get_mut(12..16) {
            field.copy_from_slice(&len.to_le_bytes());
        }
        let crc = crc32fast::hash(&out);
        out.extend(crc.to_le_bytes());
        out
    }

    /// Decodes the header at the start of `bytes`; also says its length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Header, usize), HeaderError> {
        let mut prefix = Bytes(bytes.get(..PREFIX_LEN).ok_or(HeaderError::NeedMore(PREFIX_LEN))?);
        let bad = |(): ()| HeaderError::Bad("the header is incomplete");
        if prefix.array() != Some(MAGIC) {
            return Err(HeaderError::Bad("not a relay log segment"));
        }
        let version = prefix.u16().ok_or(()).map_err(bad)?;
        prefix.u16().ok_or(()).map_err(bad)?;
        let len = prefix.u32().ok_or(()).map_err(bad)?;
        if len > LEN_MAX {
            return Err(HeaderError::Bad("the header's length is impossible"));
        }
        let whole = bytes.get(..len as usize).ok_or(HeaderError::NeedMore(len as usize))?;
        let (covered, crc) = whole.split_last_chunk::<4>().ok_or(()).map_err(bad)?;
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(HeaderError::Bad("the header's checksum does not match"));
        }
        // What is damaged is not taken for another version.
        if version != VERSION {
            return Err(HeaderError::OtherVersion);
        }
        let mut rest = Bytes(covered.get(PREFIX_LEN..).unwrap_or_default());
        let header = (|| {
            Some(Header {
                number: rest.u64()?,
                start_offset: rest.u64()?,
                source: rest.text()?.to_owned(),
                start_file: rest.text()?.to_owned(),
                state: rest.text()?.to_owned(),
            })
        })();
        header.map(|header| (header, len as usize)).ok_or(()).map_err(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Header {
        Header {
            number: 7,
            source: "mysql 3E11FA47".into(),
            start_file: "bin.000001".into(),
            start_offset: 1 << 33,
            state: "open a:1-5".into(),
        }
    }

    #[test]
    fn another_version() {
        let mut bytes = sample().encode();
        bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
        let end = bytes.len() - 4;
        let crc = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::decode(&bytes), Err(HeaderError::OtherVersion));
    }

    #[test]
    fn round_trip_and_every_bit_counts() {
        let bytes = sample().encode();
        assert_eq!(Header::decode(&bytes), Ok((sample(), bytes.len())));
        for len in 0..bytes.len() {
            assert!(matches!(Header::decode(&bytes[..len]), Err(HeaderError::NeedMore(_))), "cut at {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Two bytes are reserved: also covered by the checksum.
            assert!(Header::decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
