//! What the writer, the readers and the purger of one relay log share.
//!
//! The readers' way has no lock on it: one atomic word says how far the log may be read. The list of segments is behind
//! a lock that is taken when a segment begins, when a reader is made, and when segments are purged.

use crate::error::{Error, IoContext, Result};
use crate::fs::Fs;
use crate::reader::Start;
use crate::segment;
use binlog::LogPosition;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bits of the published word that are the offset in the segment.
const OFFSET_BITS: u32 = 36;
/// No segment may become longer than this, in bytes; an event is less than 4 GiB.
pub(crate) const SEGMENT_BYTES_LIMIT: u64 = 1 << 34;

/// How far the log may be read: a segment's number and the offset in it. Number 0 is before the first segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PublishedEnd {
    pub number: u64,
    pub offset: u64,
}

#[derive(Debug)]
pub(crate) struct LogState {
    pub fs: Arc<dyn Fs>,
    pub dir: PathBuf,
    published: AtomicU64,
    ended: AtomicBool,
    bytes: AtomicU64,
    segments: Mutex<VecDeque<SegmentInfo>>,
    durable: Mutex<Option<LogPosition>>,
    readers: Mutex<Vec<Weak<AtomicU64>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct SegmentInfo {
    pub number: u64,
    pub start: LogPosition,
    /// Length on disk; of the last segment, which grows, what it had when it was listed.
    pub bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogState {
    pub(crate) fn new(fs: Arc<dyn Fs>, dir: &Path) -> Self {
        LogState {
            fs,
            dir: dir.to_path_buf(),
            published: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            segments: Mutex::default(),
            durable: Mutex::default(),
            readers: Mutex::default(),
        }
    }

    pub(crate) fn published(&self) -> PublishedEnd {
        let word = self.published.load(Ordering::SeqCst);
        PublishedEnd { number: word >> OFFSET_BITS, offset: word & ((1 << OFFSET_BITS) - 1) }
    }

    /// Lets readers go as far as `to`, which must be in the file.
    pub(crate) fn publish(&self, to: PublishedEnd) {
        debug_assert!(to >= self.published(), "only what a failed sync has lost is taken back");
        self.store(to);
    }

    /// What was published behind `to` is no more in the file.
    pub(crate) fn retract(&self, to: PublishedEnd) {
        if to < self.published() {
            self.store(to);
        }
    }

    fn store(&self, to: PublishedEnd) {
        self.published.store((to.number << OFFSET_BITS) | to.offset, Ordering::SeqCst);
    }

    /// The log is durable up to `position`.
    pub(crate) fn record_durable(&self, position: Option<&LogPosition>) {
        if let Some(position) = position {
            *lock(&self.durable) = Some(position.clone());
        }
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    pub(crate) fn grow(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    pub(crate) fn shrink(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// A new segment.
    pub(crate) fn add_segment(&self, info: SegmentInfo) {
        lock(&self.segments).push_back(info);
    }

    /// The final length of segment `number`.
    pub(crate) fn set_segment_bytes(&self, number: u64, bytes: u64) {
        if let Some(segment) = lock(&self.segments).iter_mut().rev().find(|segment| segment.number == number) {
            segment.bytes = bytes;
        }
    }

    /// The number of the segment in which reading starts.
    pub(crate) fn segment_for(&self, start: &Start) -> Result<u64> {
        let segments = lock(&self.segments);
        let Some(first) = segments.front() else {
            // Nothing was received yet: whatever comes first.
            return Ok(1);
        };
        match start {
            Start::Beginning => Ok(first.number),
            Start::At(position) => {
                let from = segments.iter().rev().find(|segment| segment.start <= *position);
                from.map(|segment| segment.number)
                    .ok_or_else(|| Error::Purged { wanted: position.clone(), first: first.start.clone() })
            }
        }
    }

    pub(crate) fn register(&self, number: u64) -> Arc<AtomicU64> {
        let pin = Arc::new(AtomicU64::new(number));
        let mut readers = lock(&self.readers);
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(&pin));
        pin
    }

    pub(crate) fn purge(&self, up_to: &LogPosition) -> Result<u64> {
        let mut segments = lock(&self.segments);
        let in_use = {
            let readers = lock(&self.readers);
            readers.iter().filter_map(Weak::upgrade).map(|pin| pin.load(Ordering::SeqCst)).min()
        };
        let mut freed = 0;
        // The last segment always stays: it knows where to resume.
        while let (Some(first), Some(next)) = (segments.front(), segments.get(1)) {
            if next.start > *up_to || in_use.is_some_and(|number| number <= first.number) {
                break;
            }
            let path = segment::path(&self.dir, first.number);
            match self.fs.remove(&path) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                other => other.during("remove", &path)?,
            }
            // One at a time and in order: a crash must not leave a gap.
            self.fs.sync_dir(&self.dir).during("sync", &self.dir)?;
            let bytes = first.bytes;
            segments.pop_front();
            self.shrink(bytes);
            freed += bytes;
        }
        Ok(freed)
    }

    /// The end of the last durable event.
    pub(crate) fn durable(&self) -> Option<LogPosition> {
        lock(&self.durable).clone()
    }

    /// Where the oldest segment starts.
    pub(crate) fn first(&self) -> Option<LogPosition> {
        lock(&self.segments).front().map(|segment| segment.start.clone())
    }

    /// Bytes of the segments behind the position, about: the segments' own beginnings are counted. `None`: the log begins after it.
    pub(crate) fn bytes_behind(&self, position: &LogPosition) -> Option<u64> {
        let segments = lock(&self.segments);
        let at = segments.iter().rposition(|segment| segment.start <= *position)?;
        let before: u64 = segments.iter().take(at).map(|segment| segment.bytes).sum();
        let start = segments.get(at).map(|segment| &segment.start).filter(|start| start.file == position.file);
        let within = start.map_or(0, |start| position.offset.saturating_sub(start.offset));
        Some(self.bytes().saturating_sub(before).saturating_sub(within))
    }

    /// Bytes behind an offset in the segment of that number.
    pub(crate) fn bytes_after(&self, number: u64, offset: u64) -> u64 {
        let segments = lock(&self.segments);
        let before: u64 = segments.iter().filter(|segment| segment.number < number).map(|segment| segment.bytes).sum();
        self.bytes().saturating_sub(before).saturating_sub(offset)
    }

    /// How many segments there are.
    pub(crate) fn segments(&self) -> usize {
        lock(&self.segments).len()
    }

    /// Whether the writer is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}
