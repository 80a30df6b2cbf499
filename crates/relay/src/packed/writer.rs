//! Compresses a file. The other name is complete and durable when it returns, and is to be removed by the caller when it fails.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::table::{self, FRAME_BYTES};
use crate::fs::{Fs, read_full};

/// zstd's own default: a few hundred MB/s a core.
const LEVEL: i32 = 3;
const FIRST_BYTES: usize = 16 << 10;

/// Writes the compressed form of `from`, which does not grow any more, into a new file `to`; says how long that is.
///
/// # Errors
/// What the system says; `Interrupted`: `stop` was set.
pub fn pack(fs: &dyn Fs, from: &Path, to: &Path, stop: &AtomicBool) -> io::Result<u64> {
    let file = fs.open_read(from)?;
    let mut out = fs.create(to)?;
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    let (mut plain, mut frames, mut offset, mut length) = (vec![0; FRAME_BYTES], Vec::new(), 0, 0);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // What a file begins with is read more often than all else: it costs little to inflate.
        let most = if frames.is_empty() { FIRST_BYTES } else { FRAME_BYTES };
        let read = read_full(&*file, plain.get_mut(..most).unwrap_or_default(), offset)?;
        if read == 0 {
            break;
        }
        let packed = compressor.compress(plain.get(..read).unwrap_or_default())?;
        out.write_all(&packed)?;
        frames.push((packed.len() as u32, read as u32));
        length += packed.len() as u64;
        offset += read as u64;
    }
    let table = table::write(&frames);
    out.write_all(&table)?;
    out.sync_data()?;
    Ok(length + table.len() as u64)
}
