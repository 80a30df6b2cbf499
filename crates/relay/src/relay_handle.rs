//! A handle on a relay log for everybody but its writer: makes readers, purges, says how large the log is.

use crate::error::Result;
use crate::log_state::LogState;
use crate::place::RelayOffset;
use crate::reader::Start;
use crate::relay_reader::RelayReader;
use binlog::LogPosition;
use std::sync::Arc;

/// Clones are the same log.
#[derive(Debug, Clone)]
pub struct RelayHandle {
    pub(crate) inner: Arc<LogState>,
}

impl RelayHandle {
    /// A reader of the log, while its writer appends.
    ///
    /// # Errors
    /// [`Error::Purged`] when the log starts after the wanted position.
    pub fn reader(&self, start: Start) -> Result<RelayReader> {
        RelayReader::new(self.inner.clone(), start)
    }

    /// Removes the segments that lie wholly before `up_to` (the low water: everything before it is committed on the
    /// target) and that no reader still reads; says how many bytes that freed.
    ///
    /// # Errors
    /// What the system says when a file cannot be removed.
    pub fn purge(&self, up_to: &LogPosition) -> Result<u64> {
        self.inner.purge(up_to)
    }

    /// The end of the last durable event.
    pub fn durable(&self) -> Option<LogPosition> {
        self.inner.durable()
    }

    /// Where the oldest segment starts.
    pub fn first(&self) -> Option<LogPosition> {
        self.inner.first()
    }

    /// The size of all segments in bytes, with what is not yet written.
    pub fn bytes_used(&self) -> u64 {
        self.inner.bytes()
    }

    /// Bytes that the log has behind a position, about. `None`: the log begins after it.
    pub fn bytes_behind(&self, position: &LogPosition) -> Option<u64> {
        self.inner.bytes_behind(position)
    }

    /// How far the log may be read now.
    pub fn end(&self) -> RelayOffset {
        let end = self.inner.published();
        RelayOffset { segment: end.number, offset: end.offset }
    }

    /// Bytes that the log has behind a place in it: exact, but for the beginnings of segments that come.
    pub fn bytes_after(&self, place: RelayOffset) -> u64 {
        self.inner.bytes_after(place.segment, place.offset)
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.inner.segments()
    }

    /// Whether the writer is gone: nothing more will come.
    pub fn has_ended(&self) -> bool {
        self.inner.has_ended()
    }
}
