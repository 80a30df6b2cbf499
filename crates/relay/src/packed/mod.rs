//! Log files that zstd has compressed and that can be read anywhere: many frames, and behind them a table of where each begins (the "seekable format" of zstd's contrib folder).
//! `zstd -d` inflates them as any other.
//!
//! It compresses only what is complete, and knows nothing of what stands in a file.

mod reader;
mod table;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::{Fs, ReadFile};
pub use reader::{PackedFile, SequentialFile};
pub use writer::pack;

/// What a compressed file's name has behind the log's.
pub const SUFFIX: &str = ".zst";

/// The compressed form's path.
pub fn packed_path(path: &Path) -> PathBuf {
    let mut packed = path.as_os_str().to_owned();
    packed.push(SUFFIX);
    packed.into()
}

/// The log's name, whichever form a file has.
pub fn plain_name(name: &str) -> &str {
    name.strip_suffix(SUFFIX).unwrap_or(name)
}

/// Opens a log's file as what it is in clear: under this name, or, where there is none, compressed beside it.
///
/// # Errors
/// What the system says; `InvalidData` for a compressed file without a table.
pub fn open(fs: &dyn Fs, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
    if path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes()) {
        return Ok(Arc::new(PackedFile::new(fs.open_read(path)?)?));
    }
    match fs.open_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs.open_read(&packed_path(path)) {
            Ok(packed) => Ok(Arc::new(PackedFile::new(packed)?)),
            Err(_) => Err(error),
        },
        opened => opened,
    }
}

/// Whether a file is a compressed one that can be read anywhere.
pub fn is_packed(fs: &dyn Fs, path: &Path) -> bool {
    fs.open_read(path).is_ok_and(|file| PackedFile::new(file).is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::fs::{RealFs, read_full};

    /// Bytes that compress, and differ everywhere.
    fn sample(length: usize) -> Vec<u8> {
        (0..length).map(|at| ((at / 7) as u32).wrapping_mul(2_654_435_761).to_le_bytes()[at % 3]).collect()
    }

    #[test]
    fn what_was_packed_is_read_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        for length in [0, 1, 1 << 20, (5 << 20) + 17] {
            let plain = sample(length);
            std::fs::write(&path, &plain).unwrap();
            pack(&RealFs, &path, &packed_path(&path), &AtomicBool::new(false)).unwrap();
            std::fs::remove_file(&path).unwrap();
            let file = open(&RealFs, &path).unwrap();
            assert_eq!(file.len().unwrap(), length as u64);
            let mut all = vec![0; length + 9];
            assert_eq!(read_full(&*file, &mut all, 0).unwrap(), length);
            assert_eq!(&all[..length], &plain);
            for offset in [length / 2, length.saturating_sub(3), length, length + 5, (1 << 20) - 1, 3 << 20] {
                let mut some = [0; 100];
                let read = read_full(&*file, &mut some, offset as u64).unwrap();
                assert_eq!(
                    &some[..read],
                    plain.get(offset..).unwrap_or_default().get(..read).unwrap(),
                    "{length} {offset}"
                );
                assert_eq!(read, length.saturating_sub(offset).min(100));
            }
            let mut sequential = Vec::new();
            io::Read::read_to_end(&mut SequentialFile::new(file), &mut sequential).unwrap();
            assert!(sequential == plain);
            // As `zstd -d` reads it.
            let packed = std::fs::read(packed_path(&path)).unwrap();
            assert!(zstd::decode_all(&packed[..]).unwrap() == plain);
            std::fs::remove_file(packed_path(&path)).unwrap();
        }
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        let plain = sample(3 << 20);
        std::fs::write(&path, &plain).unwrap();
        let to = packed_path(&path);
        pack(&RealFs, &path, &to, &AtomicBool::new(false)).unwrap();
        let stopped = pack(&RealFs, &path, &dir.path().join("c"), &AtomicBool::new(true)).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        assert!(is_packed(&RealFs, &to) && !is_packed(&RealFs, &path));
        std::fs::remove_file(&path).unwrap();
        let good = std::fs::read(&to).unwrap();
        for cut in (0..good.len()).step_by(good.len() / 300 + 1) {
            std::fs::write(&to, &good[..cut]).unwrap();
            assert!(open(&RealFs, &path).is_err(), "{cut}");
        }
        let behind = good.len() - 64;
        for at in (0..behind).step_by(good.len() / 100 + 1).chain(behind..good.len()) {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            std::fs::write(&to, &bad).unwrap();
            let mut all = vec![0; plain.len()];
            let read = open(&RealFs, &path).and_then(|file| read_full(&*file, &mut all, 0));
            assert!(read.is_err() || all == plain, "{at}");
        }
    }
}
