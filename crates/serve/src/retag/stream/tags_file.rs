//! The new tags of one log file, in a file beside it. It never looks into an event.
//!
//! Records of 24 bytes, in the order of the log: first the log file's identity; then a new tag with the offset of its GTID event, or an offset up to which all is tagged. A transaction
//! without a record keeps the source's tag. What is behind the last "up to" was never sent, and is removed when the file is opened again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use relay::fs::{AppendFile, Fs, ReadFile, RealFs, read_full};

use crate::inventory::tags_path;

const MAGIC: &[u8; 8] = b"HDLTAGS1";
const RECORD: usize = 24;
/// In the place of a tag, which is never below 0.
const UP_TO: i64 = -1;
/// Records that are read at once.
const AT_ONCE: usize = 512;

/// The new tag of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The offset of its GTID event.
    pub offset: u64,
    /// See [`value`](crate::retag::value).
    pub value: i64,
    /// CRC32 of the GTID event as the source has it.
    pub event: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    Tag(Tag),
    UpTo(u64),
}

impl Record {
    fn offset(self) -> u64 {
        match self {
            Self::Tag(tag) => tag.offset,
            Self::UpTo(end) => end,
        }
    }

    fn encode(self) -> [u8; RECORD] {
        match self {
            Self::Tag(tag) => record(&tag.offset.to_le_bytes(), tag.value, tag.event),
            Self::UpTo(end) => record(&end.to_le_bytes(), UP_TO, 0),
        }
    }

    /// `None`: it is torn or damaged.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (offset, value, event) = fields(bytes)?;
        let offset = u64::from_le_bytes(offset);
        match value {
            UP_TO => Some(Self::UpTo(offset)),
            0.. => Some(Self::Tag(Tag { offset, value, event })),
            _ => None,
        }
    }
}

fn record(first: &[u8; 8], value: i64, event: u32) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    let (rest, sum) = bytes.split_at_mut(RECORD - 4);
    let fields = first.iter().copied().chain(value.to_le_bytes()).chain(event.to_le_bytes());
    rest.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    sum.copy_from_slice(&crc32fast::hash(rest).to_le_bytes());
    bytes
}

fn fields(bytes: &[u8]) -> Option<([u8; 8], i64, u32)> {
    let (rest, sum) = bytes.split_last_chunk::<4>()?;
    let (first, rest_of) = rest.split_first_chunk::<8>()?;
    let (value, event) = rest_of.split_first_chunk::<8>()?;
    let event: [u8; 4] = event.try_into().ok()?;
    let is_whole = crc32fast::hash(rest) == u32::from_le_bytes(*sum);
    is_whole.then(|| (*first, i64::from_le_bytes(*value), u32::from_le_bytes(event)))
}

/// What the log file is: `log` tells it from others of its name.
fn head(log: u32) -> [u8; RECORD] {
    record(MAGIC, 0, log)
}

/// Appends.
pub struct TagsWriter {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    log: u32,
    file: Box<dyn AppendFile>,
    waiting: Vec<u8>,
    end: u64,
}

impl TagsWriter {
    /// The file of a log file, made if there is none; and the tags that are in it. One of another log file of this name is made anew.
    ///
    /// # Errors
    /// The system's.
    pub fn open(fs: Arc<dyn Fs>, log_path: &Path, log: u32) -> io::Result<(Self, Vec<Tag>)> {
        let path = tags_path(log_path);
        let found = match fs.open_read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(read_all(&*opened?)?),
        };
        let Some(found) = found.filter(|found| found.starts_with(&head(log))) else {
            let file = create(&*fs, &path, log)?;
            return Ok((Self { fs, path, log, file, waiting: Vec::new(), end: 0 }, Vec::new()));
        };
        let (tags, end, length) = whole(&found);
        let mut file = fs.open_append(&path)?;
        if length < found.len() {
            file.set_len(length as u64)?;
            file.sync_data()?;
        }
        Ok((Self { fs, path, log, file, waiting: Vec::new(), end }, tags))
    }

    /// The offset up to which all is tagged.
    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn push(&mut self, tag: Tag) {
        self.waiting.extend_from_slice(&Record::Tag(tag).encode());
    }

    /// Records that all up to `end` is tagged. It is durable when this returns. After an error the file has to be opened again.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&mut self, end: u64) -> io::Result<()> {
        if end == self.end && self.waiting.is_empty() {
            return Ok(());
        }
        self.waiting.extend_from_slice(&Record::UpTo(end).encode());
        self.file.write_all(&self.waiting)?;
        self.file.sync_data()?;
        self.waiting.clear();
        self.end = end;
        Ok(())
    }

    /// What is in it is of another log: it begins anew.
    ///
    /// # Errors
    /// The system's.
    pub fn restart(&mut self) -> io::Result<()> {
        self.file = create(&*self.fs, &self.path, self.log)?;
        self.waiting.clear();
        self.end = 0;
        Ok(())
    }
}

fn create(fs: &dyn Fs, path: &Path, log: u32) -> io::Result<Box<dyn AppendFile>> {
    match fs.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs.create(path)?;
    file.write_all(&head(log))?;
    file.sync_data()?;
    if let Some(dir) = path.parent() {
        fs.sync_dir(dir)?;
    }
    Ok(file)
}

fn read_all(file: &dyn ReadFile) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
    let read = read_full(file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The tags up to the last "up to" that is whole, its offset, and the length of the file up to there.
fn whole(bytes: &[u8]) -> (Vec<Tag>, u64, usize) {
    let (mut tags, mut end, mut length) = (Vec::new(), 0, RECORD);
    let (mut last, mut kept) = (0, 0);
    for (index, record) in bytes.chunks_exact(RECORD).enumerate().skip(1) {
        let Some(record) = Record::decode(record).filter(|record| record.offset() >= last) else { break };
        last = record.offset();
        match record {
            Record::Tag(tag) => tags.push(tag),
            Record::UpTo(up_to) => (end, length, kept) = (up_to, (index + 1) * RECORD, tags.len()),
        }
    }
    tags.truncate(kept);
    (tags, end, length)
}

/// Whether all of a log file of this length is tagged.
pub fn is_complete(log_path: &Path, length: u64) -> bool {
    let last = || {
        let file = RealFs.open_read(&tags_path(log_path)).ok()?;
        let at = file.len().ok()?.checked_sub(RECORD as u64)?;
        let mut bytes = [0; RECORD];
        read_full(&*file, &mut bytes, at).ok()?;
        Record::decode(&bytes).filter(|_| at % RECORD as u64 == 0 && at > 0)
    };
    matches!(last(), Some(Record::UpTo(end)) if end >= length)
}

/// Reads the tags of a log file beside it, which may still grow.
pub struct TagsReader {
    file: Arc<dyn ReadFile>,
    /// Of the next record.
    at: u64,
    buffer: Vec<u8>,
    from: usize,
}

impl TagsReader {
    /// `path`: of the tags. What is asked for stands from `offset` of the log on.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let file = RealFs.open_read(path)?;
        let records = (file.len()? / RECORD as u64).saturating_sub(1);
        let (mut low, mut high) = (0, records);
        while low < high {
            let middle = low.midpoint(high);
            let mut bytes = [0; RECORD];
            read_full(&*file, &mut bytes, (middle + 1) * RECORD as u64)?;
            // What is torn is behind all that is asked for.
            if Record::decode(&bytes).is_some_and(|record| record.offset() < offset) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Self { file, at: (low + 1) * RECORD as u64, buffer: Vec::new(), from: 0 })
    }

    /// The new tag of the transaction whose GTID event stands there; `None`: it keeps its own. Each offset is higher than the one before, and has its tag.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::InvalidData`]: a record is damaged; [`io::ErrorKind::UnexpectedEof`]: the tags end before.
    pub fn tag_at(&mut self, offset: u64) -> io::Result<Option<Tag>> {
        loop {
            let record = self.peek()?;
            match record {
                Record::Tag(tag) if tag.offset == offset => {
                    self.advance();
                    return Ok(Some(tag));
                }
                record if record.offset() > offset => return Ok(None),
                Record::Tag(_) | Record::UpTo(_) => self.advance(),
            }
        }
    }

    fn advance(&mut self) {
        self.from += RECORD;
        self.at += RECORD as u64;
    }

    fn peek(&mut self) -> io::Result<Record> {
        if let Some(record) = self.buffered().and_then(Record::decode) {
            return Ok(record);
        }
        // Nothing is left, or it was read while it was written.
        self.buffer.resize(AT_ONCE * RECORD, 0);
        let read = read_full(&*self.file, &mut self.buffer, self.at)?;
        self.buffer.truncate(read);
        self.from = 0;
        let bytes = self.buffered().ok_or(io::ErrorKind::UnexpectedEof)?;
        Record::decode(bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a record is damaged"))
    }

    fn buffered(&self) -> Option<&[u8]> {
        self.buffer.get(self.from..self.from + RECORD)
    }
}

#[cfg(test)]
mod tests {
    use relay::fs::{Fault, FaultyFs};

    use super::*;

    fn tag(number: u64) -> Tag {
        Tag { offset: number * 100, value: number as i64 / 2, event: number as u32 }
    }

    #[test]
    fn what_was_tagged_is_read_from_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("b.000001");
        let (mut writer, tags) = TagsWriter::open(Arc::new(RealFs), &log, 7).unwrap();
        assert!(tags.is_empty() && writer.end() == 0 && !is_complete(&log, 1));
        let mut ends = Vec::new();
        for number in 2..2_000 {
            // Every third keeps its own.
            if number % 3 != 0 {
                writer.push(tag(number));
            }
            if number % 7 == 0 {
                writer.sync(number * 100 + 50).unwrap();
                ends.push(number);
            }
        }
        let last = *ends.last().unwrap();
        writer.push(tag(5_000));
        assert!(is_complete(&log, last * 100 + 50) && !is_complete(&log, last * 100 + 51));
        for first in [0, 2, 3, 7, 8, 1_000, last] {
            let mut reader = TagsReader::open(&tags_path(&log), first * 100).unwrap();
            for number in first.max(2)..=last {
                let want = (number % 3 != 0).then(|| tag(number));
                assert_eq!(reader.tag_at(number * 100).unwrap(), want, "{first} {number}");
            }
            assert_eq!(reader.tag_at(last * 100 + 60).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        // A reader goes on with what has come.
        let mut reader = TagsReader::open(&tags_path(&log), 0).unwrap();
        assert_eq!(reader.tag_at(last * 100).unwrap().is_some(), last % 3 != 0);
        writer.sync(600_000).unwrap();
        assert_eq!(reader.tag_at(500_000).unwrap(), Some(tag(5_000)));
        drop(writer);
        // Opened again, also where the end is torn; and for another log of this name.
        let bytes = std::fs::read(tags_path(&log)).unwrap();
        let all = TagsWriter::open(Arc::new(RealFs), &log, 7).unwrap();
        assert_eq!((all.0.end(), all.1.last()), (600_000, Some(&tag(5_000))));
        for cut in [1, 24, 30, 47] {
            std::fs::write(tags_path(&log), &bytes[..bytes.len() - cut]).unwrap();
            let (writer, tags) = TagsWriter::open(Arc::new(RealFs), &log, 7).unwrap();
            assert_eq!(writer.end(), last * 100 + 50, "{cut}");
            assert!(tags.iter().all(|tag| tag.offset < writer.end()));
        }
        let (mut writer, tags) = TagsWriter::open(Arc::new(RealFs), &log, 8).unwrap();
        assert!(tags.is_empty() && writer.end() == 0);
        writer.push(tag(2));
        writer.sync(300).unwrap();
        writer.restart().unwrap();
        assert!(TagsWriter::open(Arc::new(RealFs), &log, 8).unwrap().1.is_empty());
    }

    #[test]
    fn damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("b.000001");
        let (mut writer, _) = TagsWriter::open(Arc::new(RealFs), &log, 7).unwrap();
        for number in 2..6 {
            writer.push(tag(number));
        }
        writer.sync(1_000).unwrap();
        let bytes = std::fs::read(tags_path(&log)).unwrap();
        for at in 2 * RECORD..3 * RECORD {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            std::fs::write(tags_path(&log), damaged).unwrap();
            let mut reader = TagsReader::open(&tags_path(&log), 200).unwrap();
            assert_eq!(reader.tag_at(200).unwrap(), Some(tag(2)));
            assert_eq!(reader.tag_at(300).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    /// What is said to be tagged is so after a crash of the machine, whatever the disk does before it.
    #[test]
    fn what_is_synced_survives() {
        let faults = [Fault::ShortWrite, Fault::DiskFull, Fault::FailedSync, Fault::FailedWrite, Fault::Crash];
        let log = Path::new("/mirror/b.000001");
        for seed in 0..300 {
            let fs = FaultyFs::new(seed);
            fs.create_dir_all(Path::new("/mirror")).unwrap();
            fs.sync_dir(Path::new("/mirror")).unwrap();
            fs.inject(seed % 20, faults[seed as usize % faults.len()]);
            let mut synced = 0;
            let mut write = || -> io::Result<()> {
                let (mut writer, _) = TagsWriter::open(Arc::new(fs.clone()), log, 7)?;
                for number in 1..=20 {
                    writer.push(tag(number));
                    writer.sync(number * 100 + 50)?;
                    synced = number;
                }
                Ok(())
            };
            let _ = write();
            fs.crash();
            fs.restart();
            let (writer, tags) = TagsWriter::open(Arc::new(fs.clone()), log, 7).unwrap();
            let kept = tags.len() as u64;
            assert!(kept >= synced, "{seed}: {kept} of {synced}");
            assert_eq!(tags, (1..=kept).map(tag).collect::<Vec<_>>(), "{seed}");
            assert_eq!(writer.end(), if kept == 0 { 0 } else { kept * 100 + 50 }, "{seed}");
        }
    }
}
