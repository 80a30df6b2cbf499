//! Reads a compressed file as what it is in clear. It keeps one frame, the last one that was read.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::table::{self, FOOTER_LEN, FRAME_BYTES, Frame, bad};
use crate::fs::{ReadFile, read_full};

/// See the module.
pub struct PackedFile {
    file: Arc<dyn ReadFile>,
    frames: Vec<Frame>,
    length: u64,
    /// Which frame, and its bytes in clear.
    last: Mutex<(Option<usize>, Vec<u8>)>,
}

impl PackedFile {
    /// # Errors
    /// `InvalidData`: it has no table, or one that is damaged; or what the system says.
    pub fn new(file: Arc<dyn ReadFile>) -> io::Result<Self> {
        let length = file.len()?;
        let mut footer = [0; FOOTER_LEN];
        let at = length.checked_sub(FOOTER_LEN as u64).ok_or_else(|| bad("it is cut short"))?;
        read_full(&*file, &mut footer, at)?;
        let mut table = vec![0; table::length(&footer, length)?];
        let at = length - table.len() as u64;
        read_full(&*file, &mut table, at)?;
        let frames = table::read(&table, length)?;
        let plain = frames.last().map_or(0, |last| last.offset + u64::from(last.plain));
        Ok(Self { file, frames, length: plain, last: Mutex::default() })
    }

    fn inflate(&self, frame: &Frame, plain: &mut Vec<u8>) -> io::Result<()> {
        let mut packed = vec![0; frame.packed as usize];
        if read_full(&*self.file, &mut packed, frame.at)? != packed.len() {
            return Err(bad("it is cut short"));
        }
        plain.resize(FRAME_BYTES, 0);
        let length = zstd::bulk::decompress_to_buffer(&packed, plain).map_err(|error| bad(&error.to_string()))?;
        plain.truncate(length);
        if length == frame.plain as usize { Ok(()) } else { Err(bad("a frame is not as long as its table says")) }
    }
}

impl ReadFile for PackedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.length || buf.is_empty() {
            return Ok(0);
        }
        let number = self.frames.partition_point(|frame| frame.offset <= offset).saturating_sub(1);
        let Some(frame) = self.frames.get(number) else { return Ok(0) };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, plain) = &mut *last;
        if *kept != Some(number) {
            *kept = None;
            self.inflate(frame, plain)?;
            *kept = Some(number);
        }
        let from = usize::try_from(offset - frame.offset).unwrap_or(usize::MAX);
        let found = plain.get(from..).unwrap_or_default();
        let count = found.len().min(buf.len());
        if let (Some(into), Some(found)) = (buf.get_mut(..count), found.get(..count)) {
            into.copy_from_slice(found);
        }
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }
}

/// A file from its beginning on.
pub struct SequentialFile {
    file: Arc<dyn ReadFile>,
    offset: u64,
}

impl SequentialFile {
    /// From its first byte.
    pub fn new(file: Arc<dyn ReadFile>) -> Self {
        Self { file, offset: 0 }
    }
}

impl Read for SequentialFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
