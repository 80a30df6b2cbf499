//! Where an event of the stream stands in the source's file.

use super::RelayWriter;
use crate::error::{Error, Result};
use binlog::boundary::{is_artificial, is_of_file};
use binlog::{Event, LogPosition};

impl RelayWriter {
    /// Where an event starts and ends in the source's file.
    pub(super) fn locate(&self, source_file: &str, event: &Event) -> Result<(u64, u64)> {
        const START: u64 = binlog::MAGIC.len() as u64;
        let last = self.stream.end().filter(|last| *last.file == *source_file);
        let cursor = last.map_or(START, |last| last.offset);
        if is_artificial(event.header()) {
            return Ok((cursor, cursor));
        }
        let (len, low) = (u64::from(event.header().event_len), u64::from(event.header().log_pos));
        if low == 0 {
            return Ok((cursor, cursor + len));
        }
        // The header has the low 32 bits of the end only: the right end is the first that leaves room for the event.
        let least = cursor + len;
        let mut end = (least & !0xFFFF_FFFF) | low;
        if end < least && least - end > 1 << 31 {
            end += 1 << 32;
        }
        let went_back = |found| {
            let found = LogPosition::new(source_file, found);
            Error::WentBack { last: LogPosition::new(source_file, cursor), found }
        };
        match end.checked_sub(len) {
            Some(start) if start >= cursor => Ok((start, end)),
            // A stream by GTID begins with the head of the file again, then leaves out what was received before.
            _ if is_of_file(event.kind()) => Ok((cursor, cursor)),
            start => Err(went_back(start.unwrap_or(0))),
        }
    }
}
