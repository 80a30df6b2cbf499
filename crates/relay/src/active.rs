//! The segment that is being written: its buffer, and how much of it is written and durable.

use crate::error::{Error, IoContext, Result, is_full};
use crate::fs::{AppendFile, Fs};
use crate::segment::{self, Head, Header, Kind, encode, encode_head};
use binlog::Event;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A body from this size on is not copied into the buffer.
const LARGE_BYTES: usize = 1 << 20;

pub(crate) struct ActiveSegment {
    number: u64,
    path: PathBuf,
    file: Box<dyn AppendFile>,
    /// Encoded records before those in `buffer`, whose large bodies are the events' own memory.
    full: VecDeque<Bytes>,
    buffer: Vec<u8>,
    /// Of the first of these, so many bytes are already in the file.
    taken: usize,
    /// Of all of these, not in the file.
    buffered: usize,
    /// Bytes in the file.
    written: u64,
    durable: u64,
    records: u64,
    source_file: Arc<str>,
    sealing: bool,
}

impl ActiveSegment {
    /// Creates a segment; when this returns it is durable with its header and format description.
    pub(crate) fn create(fs: &dyn Fs, dir: &Path, header: &Header, format: &Event) -> Result<ActiveSegment> {
        let (partial, path) = (segment::partial_path(dir, header.number), segment::path(dir, header.number));
        match fs.remove(&partial) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(e).during("remove", &partial);
            }
            _ => {}
        }
        let file = match fs.create(&partial) {
            Err(e) if is_full(&e) => return Err(Error::DiskFull { path: partial }),
            file => file.during("create", &partial)?,
        };
        let mut active = ActiveSegment {
            number: header.number,
            path: partial.clone(),
            file,
            full: VecDeque::new(),
            buffer: header.encode(),
            taken: 0,
            buffered: 0,
            written: 0,
            durable: 0,
            records: 0,
            source_file: header.start_file.as_str().into(),
            sealing: false,
        };
        active.buffered = active.buffer.len();
        active.put(Kind::Format, false, (header.start_offset, header.start_offset), RecordBody::Short(format.bytes()));
        active.records = 0;
        if let Err(e) = active.write() {
            // The next attempt begins anew.
            let _ = fs.remove(&partial);
            return Err(e);
        }
        active.sync()?;
        fs.rename(&partial, &path).during("rename", &partial)?;
        fs.sync_dir(dir).during("sync", dir)?;
        active.path = path;
        Ok(active)
    }

    /// Goes on with a segment that is intact and durable up to `len`.
    pub(crate) fn resume(
        number: u64,
        path: PathBuf,
        file: Box<dyn AppendFile>,
        len: u64,
        records: u64,
        source_file: Arc<str>,
    ) -> ActiveSegment {
        ActiveSegment {
            number,
            path,
            file,
            full: VecDeque::new(),
            buffer: Vec::new(),
            taken: 0,
            buffered: 0,
            written: len,
            durable: len,
            records,
            source_file,
            sealing: false,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The length in bytes once all is written.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffered as u64
    }

    /// Bytes that are not yet in the file.
    pub(crate) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Bytes in the file.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that survive a crash of the machine.
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    pub(crate) fn is_sealing(&self) -> bool {
        self.sealing
    }

    /// Records after the format description.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Notes that the events that follow are from `name`.
    pub(crate) fn put_file(&mut self, name: &Arc<str>) {
        if Arc::ptr_eq(&self.source_file, name) {
            return;
        }
        if *self.source_file != **name {
            self.put(Kind::File, false, (0, 0), RecordBody::Short(name.as_bytes()));
        }
        self.source_file = name.clone();
    }

    pub(crate) fn put_restart(&mut self, at: u64) {
        self.put(Kind::Restart, false, (at, at), RecordBody::Short(&[]));
    }

    pub(crate) fn put_event(&mut self, event: &Event, start: u64, end: u64) {
        // The checksum of a format description does not cover all of it.
        let own = event.kind() != binlog::Kind::FORMAT_DESCRIPTION && event.checksum() == binlog::Checksum::Crc32;
        let body = if event.bytes().len() < LARGE_BYTES {
            RecordBody::Short(event.bytes())
        } else {
            RecordBody::Shared(event.bytes())
        };
        self.put(Kind::Event, own, (start, end), body);
    }

    pub(crate) fn put_seal(&mut self) {
        if !self.sealing {
            self.sealing = true;
            self.put(Kind::Seal, false, (0, 0), RecordBody::Short(&self.records.to_le_bytes()));
        }
    }

    fn put(&mut self, kind: Kind, summed: bool, (start, end): (u64, u64), body: RecordBody<'_>) {
        let bytes = body.bytes();
        let body_crc = if summed { 0 } else { crc32fast::hash(bytes) };
        // A body is an event, whose own length field has 32 bits, or a few bytes.
        let head = Head { kind, summed, len: bytes.len() as u32, body_crc, start, end, durable: self.durable };
        let (at, before) = (self.len(), self.buffer.len());
        match body {
            RecordBody::Short(bytes) => {
                encode(&mut self.buffer, &head, bytes, self.number, at);
                self.buffered += self.buffer.len() - before;
            }
            RecordBody::Shared(bytes) => {
                encode_head(&mut self.buffer, &head, self.number, at);
                self.buffered += self.buffer.len() - before + bytes.len();
                self.full.push_back(std::mem::take(&mut self.buffer).into());
                self.full.push_back(bytes.clone());
            }
        }
        self.records += 1;
    }

    /// Hands all that is buffered to the system. After [`Error::DiskFull`] the rest stays in the buffer.
    pub(crate) fn write(&mut self) -> Result<()> {
        while let Some(first) = self.full.front() {
            while let Some(rest) = first.get(self.taken..).filter(|rest| !rest.is_empty()) {
                let count = write_some(&mut *self.file, rest, &self.path)?;
                self.taken += count;
                self.buffered -= count;
                self.written += count as u64;
            }
            self.full.pop_front();
            self.taken = 0;
        }
        while let Some(rest) = self.buffer.get(self.taken..).filter(|rest| !rest.is_empty()) {
            let count = write_some(&mut *self.file, rest, &self.path)?;
            self.taken += count;
            self.buffered -= count;
            self.written += count as u64;
        }
        self.taken = 0;
        self.buffer.clear();
        // What was much once must not keep its memory for ever.
        self.buffer.shrink_to(4 << 20);
        Ok(())
    }

    /// Makes all that is written durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let done = self.file.sync_data();
        self.synced(done, self.written)
    }

    /// A sync of the first `len` bytes has ended.
    pub(crate) fn synced(&mut self, done: io::Result<()>, len: u64) -> Result<()> {
        if let Err(e) = done {
            // The system counts the lost pages as clean: they would look intact until the machine restarts.
            let _ = self.file.set_len(self.durable);
            return Err(e).during("sync", &self.path);
        }
        self.durable = self.durable.max(len);
        Ok(())
    }

    /// Another handle on the file.
    pub(crate) fn another(&self) -> Result<Box<dyn AppendFile>> {
        self.file.another().during("open", &self.path)
    }
}

/// What a record holds.
#[derive(Clone, Copy)]
enum RecordBody<'a> {
    Short(&'a [u8]),
    /// Too long to be copied.
    Shared(&'a Bytes),
}

impl<'a> RecordBody<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            RecordBody::Short(bytes) => bytes,
            RecordBody::Shared(bytes) => bytes,
        }
    }
}

/// At least one byte, or why not.
fn write_some(file: &mut dyn AppendFile, bytes: &[u8], path: &Path) -> Result<usize> {
    loop {
        match file.write(bytes) {
            Ok(0) => return Err(Error::DiskFull { path: path.to_owned() }),
            Ok(count) => return Ok(count),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if is_full(&e) => return Err(Error::DiskFull { path: path.to_owned() }),
            Err(e) => return Err(e).during("write", path),
        }
    }
}
