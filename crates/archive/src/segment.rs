//! Bytes of a log ⇄ an object: one zstd frame. A segment is the smallest part that a reader fetches.

use std::io::Read;

use twox_hash::XxHash3_64;

/// Bytes of a log in one segment.
pub const SEGMENT_BYTES_MAX: usize = 8 << 20;
const LEVEL: i32 = 3;

/// Why an object is not what the manifest says.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ObjectDamage {
    #[error("it can not be decompressed")]
    Compression,
    #[error("it has {found} bytes of the log instead of {wanted}")]
    Length { found: u64, wanted: u64 },
    #[error("its checksum is {found} instead of {wanted}")]
    Checksum { found: String, wanted: String },
}

/// XXH3 with 64 bits, as hexadecimal digits.
pub fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", XxHash3_64::oneshot(bytes))
}

pub fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

/// The bytes of the log, when they are exactly what the manifest says. Never more than `length` is allocated.
pub fn unpack(object: &[u8], length: u64, sum: &str) -> Result<Vec<u8>, ObjectDamage> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(SEGMENT_BYTES_MAX));
    let mut decoder = zstd::stream::read::Decoder::new(object).map_err(|_| ObjectDamage::Compression)?;
    decoder.by_ref().take(length.saturating_add(1)).read_to_end(&mut bytes).map_err(|_| ObjectDamage::Compression)?;
    if bytes.len() as u64 != length {
        return Err(ObjectDamage::Length { found: bytes.len() as u64, wanted: length });
    }
    let found = checksum(&bytes);
    if found != sum {
        return Err(ObjectDamage::Checksum { found, wanted: sum.to_owned() });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_it_was_is_found() {
        let log: Vec<u8> = (0..100_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let object = pack(&log).unwrap();
        let (length, sum) = (log.len() as u64, checksum(&log));
        assert_eq!(unpack(&object, length, &sum).unwrap(), log);
        assert!(object.len() < log.len() / 2);
        assert!(matches!(unpack(&object, length - 1, &sum), Err(ObjectDamage::Length { .. })));
        assert!(matches!(unpack(&object, length, "0"), Err(ObjectDamage::Checksum { .. })));
        assert!(unpack(&object[..object.len() / 2], length, &sum).is_err());
        assert!(unpack(b"", length, &sum).is_err());
        for at in (0..object.len()).step_by(97) {
            let mut other = object.clone();
            other[at] ^= 0x10;
            assert!(unpack(&other, length, &sum).is_err(), "{at}");
        }
    }
}
