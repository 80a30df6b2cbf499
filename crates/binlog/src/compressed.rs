//! MariaDB's compressed statements and rows (`log_bin_compress`).
//!
//! One byte: bit 7 set, bits 4 to 6 the algorithm (0: zlib), bits 0 to 2 the number of bytes of the uncompressed length;
//! then that length, big-endian; then the zlib stream.

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};

use crate::corruption::{Corruption, CorruptionKind};
use crate::frame::MAX_EVENT_LEN;
use crate::reader::Reader;

/// How many bytes `data` says that it has uncompressed.
pub fn announced_len(data: &[u8]) -> Option<u64> {
    let (head, rest) = data.split_first()?;
    let bytes = rest.get(..usize::from(head & 0x07))?;
    Some(bytes.iter().fold(0, |length, &byte| length << 8 | u64::from(byte)))
}

/// Decompresses `data`. Takes no more than the announced length; as much of it as comes.
///
/// # Errors
/// [`Corruption`] with an offset in `data` when it is not what it announces, or longer than `limit_bytes`.
pub fn inflate(data: &[u8], field: &'static str, limit_bytes: u64) -> Result<Bytes, Corruption> {
    inflate_as(data, field, limit_bytes, true)
}

/// The value of a column with MariaDB's `COMPRESSED`, as its row image has it: nothing; a 0 and the bytes; or as above, without zlib's header where bit 3 is set
/// (`compress_zlib` in `sql/field_comp.cc`).
///
/// # Errors
/// [`Corruption`] with an offset in `data` when it is not what it announces.
pub fn column_value(data: &[u8]) -> Result<Bytes, Corruption> {
    match data.split_first() {
        None => Ok(Bytes::new()),
        Some((0, plain)) => Ok(Bytes::copy_from_slice(plain)),
        Some((head, _)) => inflate_as(data, "a compressed column", MAX_EVENT_LEN as u64, head & 0x08 == 0),
    }
}

fn inflate_as(data: &[u8], field: &'static str, limit_bytes: u64, zlib_header: bool) -> Result<Bytes, Corruption> {
    let mut r = Reader::new(data, 0);
    let head = r.u8(field)?;
    let len_len = head & 0x07;
    if head & 0xf0 != 0x80 || !(1..=4).contains(&len_len) {
        return Err(r.err(CorruptionKind::Compression { field, why: format!("unknown header byte {head:#04x}") }));
    }
    let mut want: u64 = 0;
    for byte in r.bytes(len_len.into(), field)? {
        want = want << 8 | u64::from(*byte);
    }
    let failed = |why: String| Corruption::new(1 + u64::from(len_len), CorruptionKind::Compression { field, why });
    if want > MAX_EVENT_LEN as u64 {
        return Err(failed(format!("{want} bytes are more than an event can have")));
    }
    if want > limit_bytes {
        let field = if field == "rows" { "compressed rows" } else { "a compressed statement" };
        return Err(Corruption::new(0, CorruptionKind::TooLarge { field, bytes: want, limit: limit_bytes }));
    }
    let want = want as usize;
    let mut input = r.rest();
    let mut zlib = Decompress::new(zlib_header);
    // Of what is reserved the system gives what is written to: a lie costs no more than what really comes out. One byte more tells what is too long.
    let mut out: Vec<u8> = Vec::new();
    out.try_reserve_exact(want + 1).map_err(|error| failed(error.to_string()))?;
    loop {
        if out.len() > want {
            return Err(failed(format!("more than the announced {want} bytes")));
        }
        let before = (zlib.total_in(), zlib.total_out());
        let status =
            zlib.decompress_vec(input, &mut out, FlushDecompress::None).map_err(|error| failed(error.to_string()))?;
        let used = (zlib.total_in() - before.0) as usize;
        input = input.get(used..).unwrap_or_default();
        match status {
            Status::StreamEnd => break,
            Status::Ok | Status::BufError if out.capacity() == out.len() => {}
            Status::Ok | Status::BufError if (zlib.total_in(), zlib.total_out()) == before => {
                return Err(failed("the stream ends early".to_owned()));
            }
            Status::Ok | Status::BufError => {}
        }
    }
    if out.len() != want {
        return Err(failed(format!("{} bytes instead of the announced {want}", out.len())));
    }
    Ok(Bytes::from(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_compressed_columns() {
        assert_eq!(column_value(&[]).unwrap(), Bytes::new());
        assert_eq!(column_value(b"\0abc").unwrap(), Bytes::from_static(b"abc"));
        let text = [b'x'; 300];
        for zlib_header in [false, true] {
            let mut deflate = flate2::Compress::new(flate2::Compression::default(), zlib_header);
            let mut packed = vec![0x82 | if zlib_header { 0 } else { 8 }, 1, 44];
            packed.reserve(200);
            deflate.compress_vec(&text, &mut packed, flate2::FlushCompress::Finish).unwrap();
            assert_eq!(column_value(&packed).unwrap(), Bytes::copy_from_slice(&text), "{zlib_header}");
            assert!(column_value(&packed[..packed.len() - 3]).is_err() || zlib_header);
        }
    }
}
