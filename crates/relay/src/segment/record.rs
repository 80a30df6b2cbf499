//! The records of a segment: a head that stands for itself, then a body.

use twox_hash::XxHash3_64;

use super::Bytes;

const MAGIC: u32 = u32::from_le_bytes(*b"HREC");
/// The length of a record's head, in bytes.
pub(crate) const HEAD_LEN: usize = 44;

/// The flag of a record whose body has its own checksum.
const SUMMED: u8 = 1;

/// What a record's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The format description event that was in force where the segment starts.
    Format,
    /// The name of the source's file that the events after it are from.
    File,
    /// An event, byte for byte as received.
    Event,
    /// The stream was interrupted: a transaction that is open here will not go on, it may come again from its start.
    Restart,
    /// The segment is complete. Its body is the number of records, 8 bytes.
    Seal,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Format => 1,
            Kind::File => 2,
            Kind::Event => 3,
            Kind::Restart => 4,
            Kind::Seal => 5,
        }
    }

    fn from_code(code: u8) -> Option<Kind> {
        Some(match code {
            1 => Kind::Format,
            2 => Kind::File,
            3 => Kind::Event,
            4 => Kind::Restart,
            5 => Kind::Seal,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub kind: Kind,
    /// The body is an event that ends in its own CRC-32, which stands for `body_crc`.
    pub summed: bool,
    /// Bytes of body after the head.
    pub len: u32,
    pub body_crc: u32,
    /// Where the event starts and ends in the source's file.
    pub start: u64,
    pub end: u64,
    /// What of this segment was durable when the record was made.
    pub durable: u64,
}

/// Of XXH3: five times as fast as a CRC over so few bytes, and there are two heads to sum for each event.
fn head_sum(covered: &[u8; HEAD_LEN - 4], segment: u64, at: u64) -> u32 {
    let mut bytes = [0u8; HEAD_LEN + 12];
    let (fields, identity) = bytes.split_at_mut(HEAD_LEN - 4);
    fields.copy_from_slice(covered);
    let (number, offset) = identity.split_at_mut(8);
    number.copy_from_slice(&segment.to_le_bytes());
    offset.copy_from_slice(&at.to_le_bytes());
    XxHash3_64::oneshot(&bytes) as u32
}

/// Appends a record to `out` that will be at offset `at` of segment `segment`.
pub(crate) fn encode(out: &mut Vec<u8>, head: &Head, body: &[u8], segment: u64, at: u64) {
    encode_head(out, head, segment, at);
    out.extend_from_slice(body);
}

/// Of a record whose body is written from elsewhere.
pub(crate) fn encode_head(out: &mut Vec<u8>, head: &Head, segment: u64, at: u64) {
    let mut covered = [0u8; HEAD_LEN - 4];
    let mut fields: &mut [u8] = &mut covered;
    let mut put = |value: &[u8]| {
        let (field, rest) = std::mem::take(&mut fields).split_at_mut(value.len());
        field.copy_from_slice(value);
        fields = rest;
    };
    put(&MAGIC.to_le_bytes());
    put(&[head.kind.code(), if head.summed { SUMMED } else { 0 }, 0, 0]);
    put(&head.len.to_le_bytes());
    put(&head.body_crc.to_le_bytes());
    put(&head.start.to_le_bytes());
    put(&head.end.to_le_bytes());
    put(&head.durable.to_le_bytes());
    let sum = head_sum(&covered, segment, at);
    out.extend_from_slice(&covered);
    out.extend_from_slice(&sum.to_le_bytes());
}

impl Head {
    /// Decodes the head at the start of `bytes`, which is offset `at` of segment `segment`.
    pub(crate) fn decode(bytes: &[u8], segment: u64, at: u64) -> Result<Head, &'static str> {
        let incomplete = "a record's head is incomplete";
        let (covered, rest) = bytes.split_first_chunk::<{ HEAD_LEN - 4 }>().ok_or(incomplete)?;
        let sum = rest.first_chunk::<4>().ok_or(incomplete)?;
        let mut fields = Bytes(covered);
        if fields.u32() != Some(MAGIC) {
            return Err("no record starts here");
        }
        if head_sum(covered, segment, at) != u32::from_le_bytes(*sum) {
            return Err("the checksum of a record's head does not match");
        }
        (|| {
            let kind = Kind::from_code(fields.u8()?)?;
            let flags = fields.u8()?;
            fields.take(2)?;
            Some(Head {
                kind,
                summed: flags & SUMMED != 0,
                len: fields.u32()?,
                body_crc: fields.u32()?,
                start: fields.u64()?,
                end: fields.u64()?,
                durable: fields.u64()?,
            })
        })()
        .ok_or("a record of an unknown kind")
    }
}

/// Where a record might start in `bytes`, as an index.
pub(crate) fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == MAGIC.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_every_bit_counts() {
        let head = Head { kind: Kind::Event, summed: true, len: 3, body_crc: 9, start: 4, end: 1 << 40, durable: 77 };
        let mut bytes = Vec::new();
        encode(&mut bytes, &head, b"abc", 5, 100);
        assert_eq!(bytes.len(), HEAD_LEN + 3);
        assert_eq!(Head::decode(&bytes, 5, 100), Ok(head));
        assert!(Head::decode(&bytes, 6, 100).is_err(), "of another segment");
        assert!(Head::decode(&bytes, 5, 101).is_err(), "at another offset");
        for bit in 0..HEAD_LEN * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::decode(&flipped, 5, 100).is_err(), "bit {bit}");
        }
    }
}
