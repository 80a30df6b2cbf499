//! Variable-length integers of MySQL's serialization library (tagged GTID events).
//!
//! The number of trailing one bits of the first byte is the number of bytes that follow; the value is in the bits
//! above them, little-endian; 0xff is followed by eight bytes of value. Signed integers keep their sign in the lowest
//! bit. Source: "MySQL Serialization Library" in the MySQL source documentation.

use crate::corruption::Corruption;
use crate::reader::Reader;

pub(crate) fn read_u64(r: &mut Reader<'_>, field: &'static str) -> Result<u64, Corruption> {
    let first = r.u8(field)?;
    let extra = first.trailing_ones() as usize;
    if extra == 8 {
        return r.u64(field);
    }
    let mut raw = [0u8; 8];
    for (to, from) in raw.iter_mut().zip(r.bytes(extra, field)?) {
        *to = *from;
    }
    // The first byte keeps 7 - extra bits of value.
    let low_bits = 7 - extra;
    let low = (u64::from(first) >> (extra + 1)) & ((1 << low_bits) - 1);
    Ok((u64::from_le_bytes(raw) << low_bits) | low)
}

pub(crate) fn read_i64(r: &mut Reader<'_>, field: &'static str) -> Result<i64, Corruption> {
    let raw = read_u64(r, field)?;
    let magnitude = (raw >> 1) as i64;
    Ok(if raw & 1 == 0 { magnitude } else { -1 - magnitude })
}

pub(crate) fn write_u64(out: &mut Vec<u8>, value: u64) {
    let bits = (64 - value.leading_zeros()).max(1) as usize;
    let extra = (bits - 1) / 7;
    if extra >= 8 {
        out.push(0xff);
        out.extend_from_slice(&value.to_le_bytes());
        return;
    }
    let marked = (u128::from(value) << (extra + 1)) | ((1u128 << extra) - 1);
    out.extend(marked.to_le_bytes().into_iter().take(extra + 1));
}

/// Into all of these bytes, however few it needs: readers take the length from the first one. False: it has no room.
pub(crate) fn fill_i64(out: &mut [u8], value: i64) -> bool {
    let raw = zigzag(value);
    let Some((first, rest)) = out.split_first_mut() else { return false };
    let extra = rest.len();
    if extra >= 8 {
        *first = 0xff;
        let Ok(rest) = <&mut [u8; 8]>::try_from(rest) else { return false };
        *rest = raw.to_le_bytes();
        return true;
    }
    if raw >> (7 * (extra + 1)) != 0 {
        return false;
    }
    let marked = (u128::from(raw) << (extra + 1)) | ((1u128 << extra) - 1);
    let [low, others @ ..] = marked.to_le_bytes();
    *first = low;
    for (to, from) in rest.iter_mut().zip(others) {
        *to = from;
    }
    true
}

fn zigzag(value: i64) -> u64 {
    if value >= 0 { (value as u64) << 1 } else { ((-1 - value) as u64) << 1 | 1 }
}

pub(crate) fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_u64(out, zigzag(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_round_trips() {
        let mut values: Vec<u64> = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).collect();
        values.push(u64::MAX);
        for value in values {
            let mut out = Vec::new();
            write_u64(&mut out, value);
            let mut r = Reader::new(&out, 0);
            assert_eq!(read_u64(&mut r, "v"), Ok(value));
            assert!(r.is_empty());
            for signed in [value as i64, (value as i64).wrapping_neg()] {
                let mut out = Vec::new();
                write_i64(&mut out, signed);
                assert_eq!(read_i64(&mut Reader::new(&out, 0), "v"), Ok(signed));
            }
        }
    }

    #[test]
    fn documented_examples() {
        // 65535 takes three bytes, 127 one, 128 two.
        for (value, len) in [(127u64, 1usize), (128, 2), (16383, 2), (16384, 3), (65535, 3), (1 << 56, 9)] {
            let mut out = Vec::new();
            write_u64(&mut out, value);
            assert_eq!(out.len(), len, "{value}");
        }
    }

    #[test]
    fn a_small_number_fills_many_bytes() {
        for value in [0i64, 1, -1, 63, 64, -64, -65, 8191, 1 << 40, i64::MAX, i64::MIN] {
            let mut shortest = Vec::new();
            write_i64(&mut shortest, value);
            for length in 1..=9 {
                let mut out = vec![0xaa; length];
                let fits = fill_i64(&mut out, value);
                assert_eq!(fits, length >= shortest.len(), "{value} in {length}");
                let mut r = Reader::new(&out, 0);
                assert!(!fits || (read_i64(&mut r, "v"), r.remaining()) == (Ok(value), 0), "{value} in {length}");
            }
        }
        assert!(!fill_i64(&mut [], 0) && !fill_i64(&mut [0; 10], 0));
    }
}
