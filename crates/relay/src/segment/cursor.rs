//! Walks the records of one segment, up to a limit that its user knows to be there.
//!
//! It checks every checksum of the records; what an event's own checksum covers is left to the event's parser.

use super::{HEAD_LEN, Head};
use crate::fs::{ReadFile, read_full};
use crate::reader::LARGE_BYTES;
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// How much is read at once, in bytes; events share this memory.
const CHUNK_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) enum Step {
    /// A whole record whose head starts at `at`.
    Record { at: u64, head: Head, body: Bytes },
    /// A record follows whose body is larger than the limit: see [`Cursor::set_body_bytes_max`].
    TooLarge { head: Head, limit: u64 },
    /// A record with so many bytes follows, and the next step reads it.
    Large(u64),
    /// The limit is reached, exactly.
    End,
    /// No whole record is at the cursor.
    Bad(&'static str),
}

pub(crate) struct Cursor {
    file: Arc<dyn ReadFile>,
    number: u64,
    at: u64,
    window: Bytes,
    window_at: u64,
    /// None: bodies of any size, of which nothing is said before.
    body_bytes_max: Option<u64>,
    /// The large record that comes is announced.
    announced: bool,
}

impl Cursor {
    /// At offset `at` of segment `number`, where a record starts.
    pub(crate) fn new(file: Arc<dyn ReadFile>, number: u64, at: u64) -> Self {
        Cursor { file, number, at, window: Bytes::new(), window_at: at, body_bytes_max: None, announced: false }
    }

    /// Larger records are not taken in, and large ones are announced.
    pub(crate) fn set_body_bytes_max(&mut self, bytes: u64) {
        self.body_bytes_max = Some(bytes);
    }

    /// Lets go of the memory of large records that were read.
    pub(crate) fn release(&mut self) {
        if self.at == self.window_at + self.window.len() as u64 {
            self.window = Bytes::new();
            self.window_at = self.at;
        }
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Goes back to where a record started.
    pub(crate) fn seek(&mut self, at: u64) {
        self.at = at;
        self.window = Bytes::new();
        self.window_at = at;
    }

    pub(crate) fn file(&self) -> &dyn ReadFile {
        &*self.file
    }

    /// The next record that ends at or before `limit`.
    pub(crate) fn next(&mut self, limit: u64) -> io::Result<Step> {
        if self.at == limit {
            return Ok(Step::End);
        }
        let Some(from) = self.ensure(HEAD_LEN as u64, limit)? else {
            return Ok(Step::Bad("a record's head is incomplete"));
        };
        let bytes = self.window.get(from..).unwrap_or_default();
        let head = match Head::decode(bytes, self.number, self.at) {
            Ok(head) => head,
            Err(reason) => return Ok(Step::Bad(reason)),
        };
        if let Some(limit) = self.body_bytes_max {
            let bytes = u64::from(head.len);
            if bytes > limit {
                return Ok(Step::TooLarge { head, limit });
            }
            if bytes >= LARGE_BYTES && !std::mem::replace(&mut self.announced, true) {
                return Ok(Step::Large(bytes));
            }
        }
        let record_len = HEAD_LEN + head.len as usize;
        let Some(from) = self.ensure(record_len as u64, limit)? else {
            return Ok(Step::Bad("a record's body is incomplete"));
        };
        let at = self.at;
        let body = self.window.slice(from + HEAD_LEN..from + record_len);
        if !head.summed && crc32fast::hash(&body) != head.body_crc {
            return Ok(Step::Bad("the checksum of a record's body does not match"));
        }
        self.at += record_len as u64;
        self.announced = false;
        Ok(Step::Record { at, head, body })
    }

    /// Sees to it that the next `n` bytes are in the window and says where in it they start; none when the limit or the
    /// file ends before.
    fn ensure(&mut self, n: u64, limit: u64) -> io::Result<Option<usize>> {
        let left = limit.saturating_sub(self.at);
        if n > left {
            return Ok(None);
        }
        let from = self.at - self.window_at;
        if from + n <= self.window.len() as u64 {
            return Ok(Some(from as usize));
        }
        // What is left of the old window is read again: cheaper than to copy it, it is in the page cache.
        self.window = Bytes::new();
        let mut buf = vec![0; n.max(CHUNK_BYTES).min(left) as usize];
        let filled = read_full(&*self.file, &mut buf, self.at)?;
        buf.truncate(filled);
        self.window = buf.into();
        self.window_at = self.at;
        Ok((n <= filled as u64).then_some(0))
    }
}
