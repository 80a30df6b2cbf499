//! What is on disk when a relay log is opened: which segments there are, whether they are whole, and what of the last
//! one a crash has torn.
//!
//! Only the end of the last segment may be torn. It is cut there, unless a later record of the segment proves that the
//! damaged place had been durable: then it is damage, as it is anywhere else, and nothing is changed.

use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, ReadFile, read_full};
use crate::log_state::SegmentInfo;
use crate::place::open_read;
use crate::relay_cursor::{parse, read_header};
use crate::segment::{self, Cursor, HEAD_LEN, Head, Kind, Name, Step};
use crate::stream::Stream;
use binlog::LogPosition;
use binlog::{Event, FormatDescription};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What opening a relay log has found and repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments on disk.
    pub segments: usize,
    /// The torn end of the last segment that was cut off: the segment, the offset, how many bytes.
    pub cut: Option<(PathBuf, u64, u64)>,
    /// Segments whose creation a crash had interrupted; they held nothing and were removed.
    pub removed: Vec<PathBuf>,
}

/// The last segment as it goes on.
pub(crate) struct LastSegment {
    pub number: u64,
    /// Length of its intact part.
    pub len: u64,
    /// Length on disk.
    pub file_len: u64,
    pub sealed: bool,
    pub records: u64,
    pub source_file: Arc<str>,
    pub format: Arc<FormatDescription>,
    pub format_event: Event,
    pub stream: Stream,
}

/// All that is on disk.
pub(crate) struct LogOnDisk {
    pub segments: Vec<SegmentInfo>,
    pub last: Option<LastSegment>,
    pub partial: Vec<PathBuf>,
}

/// Looks at all segments without changing anything.
pub(crate) fn scan(fs: &dyn Fs, dir: &Path, source: &str) -> Result<LogOnDisk> {
    let mut numbers = Vec::new();
    let mut partial = Vec::new();
    for name in fs.list(dir).during("list", dir)? {
        match segment::classify(&name) {
            Name::Segment(number) => numbers.push(number),
            Name::Partial => partial.push(dir.join(name)),
            Name::Other => {}
        }
    }
    numbers.sort_unstable();
    for pair in numbers.windows(2) {
        if let [before, after] = pair
            && before + 1 != *after
        {
            return Err(Error::MissingSegment { path: segment::path(dir, before + 1) });
        }
    }
    let mut found = LogOnDisk { segments: Vec::new(), last: None, partial };
    for number in &numbers {
        let path = segment::path(dir, *number);
        let file = open_read(fs, &path)?;
        let (header, header_len) = read_header(&*file, &path, *number)?;
        if header.source != source {
            let (found, wanted) = (header.source, source.to_owned());
            return Err(Error::OtherSource { dir: dir.to_path_buf(), found, wanted });
        }
        let len = file.len().during("read", &path)?;
        let start = LogPosition::new(header.start_file.as_str(), header.start_offset);
        found.segments.push(SegmentInfo { number: *number, start: start.clone(), bytes: len });
        if Some(number) != numbers.last() {
            check_seal(&*file, &path, *number, len)?;
            continue;
        }
        let damaged = |reason: &str| Error::Damaged { path: path.clone(), offset: 0, reason: reason.to_owned() };
        let stream = Stream::from_text(&header.state).ok_or_else(|| damaged("the header's state is unreadable"))?;
        found.last = Some(scan_last(file, &path, *number, (header_len, len), start.file, stream)?);
    }
    Ok(found)
}

/// A segment before the last must end in its seal.
fn check_seal(file: &dyn ReadFile, path: &Path, number: u64, len: u64) -> Result<()> {
    let seal_len = (HEAD_LEN + 8) as u64;
    let at = len.saturating_sub(seal_len);
    let mut bytes = vec![0; HEAD_LEN];
    let filled = read_full(file, &mut bytes, at).during("read", path)?;
    bytes.truncate(filled);
    let reason = match Head::decode(&bytes, number, at) {
        Ok(Head { kind: Kind::Seal, .. }) => return Ok(()),
        Ok(_) => "the segment does not end in a seal",
        Err(reason) => reason,
    };
    Err(Error::Damaged { path: path.to_path_buf(), offset: at, reason: format!("{reason} (it should be sealed here)") })
}

fn scan_last(
    file: Arc<dyn ReadFile>,
    path: &Path,
    number: u64,
    (header_len, file_len): (u64, u64),
    start_file: Arc<str>,
    mut stream: Stream,
) -> Result<LastSegment> {
    let mut cursor = Cursor::new(file.clone(), number, header_len);
    let mut source_file = start_file;
    let mut format: Option<(Arc<FormatDescription>, Event)> = None;
    let mut records = 0;
    let mut sealed = false;
    let torn = loop {
        let at = cursor.at();
        let (head, body) = match cursor.next(file_len).during("read", path)? {
            Step::Record { head, body, .. } => (head, body),
            Step::End => break None,
            Step::Bad(reason) => break Some((at, reason.to_owned())),
            Step::Large(_) => continue,
            Step::TooLarge { .. } => break Some((at, "a record is larger than a record can be".to_owned())),
        };
        if sealed {
            let reason = "a record follows the seal".to_owned();
            return Err(Error::Damaged { path: path.to_path_buf(), offset: at, reason });
        }
        match head.kind {
            Kind::Event | Kind::Format => {
                let event = match parse(&head, body) {
                    Ok(event) => event,
                    Err(corrupt) => break Some((at, corrupt.to_string())),
                };
                let damaged = |reason: String| Error::Damaged { path: path.to_path_buf(), offset: at, reason };
                if event.kind() == binlog::Kind::FORMAT_DESCRIPTION {
                    let decoded = FormatDescription::decode(event.bytes());
                    let (_, description) = decoded.map_err(|corrupt| damaged(corrupt.to_string()))?;
                    format = Some((Arc::new(description), event.clone()));
                }
                if head.kind == Kind::Event {
                    let description = format.as_ref().map(|(description, _)| description);
                    let description = description.ok_or_else(|| damaged("an event without a format".to_owned()))?;
                    let observed = stream.observe(&event, description, &source_file, head.end);
                    observed.map_err(|corrupt| damaged(corrupt.to_string()))?;
                }
            }
            Kind::File => source_file = String::from_utf8_lossy(&body).into(),
            Kind::Restart => stream.restart(&LogPosition { file: source_file.clone(), offset: head.start }),
            Kind::Seal => sealed = true,
        }
        records += 1;
    };
    let len = torn.as_ref().map_or(file_len, |(at, _)| *at);
    let damaged = |reason: String| Error::Damaged { path: path.to_path_buf(), offset: len, reason };
    if let Some((at, reason)) = torn {
        // A segment gets its name only once its header and format are durable.
        if format.is_none() {
            return Err(damaged(reason));
        }
        if sealed || was_durable(&*file, path, number, at, file_len)? {
            return Err(damaged(format!("{reason}, although this place was durable before")));
        }
    }
    let Some((format, format_event)) = format else {
        return Err(damaged("the format description is missing".to_owned()));
    };
    Ok(LastSegment { number, len, file_len, sealed, records, source_file, format, format_event, stream })
}

/// Whether an intact record after the damaged place at `at` says that the place was durable when it was written.
fn was_durable(file: &dyn ReadFile, path: &Path, number: u64, at: u64, file_len: u64) -> Result<bool> {
    const CHUNK: usize = 1 << 20;
    let mut from = at + 1;
    let mut buf = vec![0; CHUNK];
    while from < file_len {
        let filled = read_full(file, &mut buf, from).during("read", path)?;
        let bytes = buf.get(..filled).unwrap_or_default();
        let mut seen = 0;
        while let Some(found) = bytes.get(seen..).and_then(segment::find) {
            seen += found;
            let rest = bytes.get(seen..).unwrap_or_default();
            if let Ok(head) = Head::decode(rest, number, from + seen as u64)
                && head.durable > at
            {
                return Ok(true);
            }
            seen += 1;
        }
        if filled < CHUNK {
            break;
        }
        // A head may lie across the chunks' border.
        from += (CHUNK - HEAD_LEN) as u64;
    }
    Ok(false)
}
