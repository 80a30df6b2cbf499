//! Reads the relay log while its writer appends, never past what it has published.

use crate::error::{Error, Result};
use crate::reader::{Located, LogReader, Read, Start};
use crate::relay_cursor::{RelayCursor, RelayStep};
use crate::shared::{Inner, Published};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A reader of a relay log; see [`RelayShared::reader`](crate::RelayShared::reader).
///
/// It keeps the segment that it reads, and all after it, from being purged: drop it when it is no longer needed.
pub struct RelayReader {
    inner: Arc<Inner>,
    number: u64,
    cursor: Option<RelayCursor>,
    /// The published position as it was last looked at: looked at again only when all before it is read.
    known: Published,
    sealed: bool,
    /// Where to start; taken once the start is found.
    start: Option<Start>,
    /// The first event waits here while the format description that precedes it is delivered.
    held: Option<Located>,
    pin: Arc<AtomicU64>,
}

impl RelayReader {
    pub(crate) fn new(inner: Arc<Inner>, start: Start) -> Result<Self> {
        // Pinned at 0 first: nothing may be purged between choosing the segment and saying so.
        let pin = inner.register(0);
        let number = inner.segment_for(&start)?;
        pin.store(number, Ordering::SeqCst);
        let known = Published { number: 0, offset: 0 };
        let (cursor, start) = (None, Some(start));
        Ok(RelayReader { inner, number, cursor, known, sealed: false, start, held: None, pin })
    }

    /// Looks how far the log may be read now; false when that is no further than before.
    fn look(&mut self) -> bool {
        let now = self.inner.published();
        let more = now > self.known;
        self.known = now;
        more
    }

    /// The next event from the start of the log or of this segment on.
    fn step(&mut self) -> Result<Option<Located>> {
        loop {
            if self.known.number < self.number && !self.look() {
                return Ok(None);
            }
            if self.known.number < self.number {
                return Ok(None);
            }
            let cursor = match &mut self.cursor {
                Some(cursor) => cursor,
                none => none.insert(RelayCursor::open(self.inner.fs.clone(), &self.inner.dir, self.number)?),
            };
            if self.sealed {
                if self.known.number == self.number {
                    if !self.look() {
                        return Ok(None);
                    }
                    continue;
                }
                cursor.open_next()?;
                self.number += 1;
                self.sealed = false;
                self.pin.store(self.number, Ordering::SeqCst);
            }
            let hot = self.known.number == self.number;
            let limit = if hot { self.known.offset } else { cursor.file_len()? };
            let step = match cursor.next(limit) {
                // A sync failed, and what it should have made durable was cut off.
                Err(_) if hot && self.inner.published() < self.known => {
                    self.look();
                    return Ok(None);
                }
                step => step?,
            };
            match step {
                RelayStep::Event(located) => return Ok(Some(located)),
                RelayStep::Sealed => self.sealed = true,
                RelayStep::End if hot => {
                    if !self.look() {
                        return Ok(None);
                    }
                }
                RelayStep::End => return Err(cursor.damaged("the segment has no seal at its end")),
            }
        }
    }
}

/// Whether the first event to deliver is found; checks that an event starts at the wanted position.
fn is_start(start: &Start, located: &Located) -> Result<bool> {
    let Start::At(wanted) = start else {
        return Ok(true);
    };
    if located.position >= *wanted {
        return Ok(true);
    }
    if located.position.file == wanted.file && located.end > wanted.offset {
        return Err(Error::NoSuchPosition { wanted: wanted.clone(), reason: "it is inside an event".to_owned() });
    }
    Ok(false)
}

impl LogReader for RelayReader {
    fn next(&mut self) -> Result<Read> {
        if let Some(held) = self.held.take() {
            return Ok(Read::Event(held));
        }
        let Some(start) = self.start.take() else {
            return Ok(self.step()?.map_or(Read::CaughtUp, Read::Event));
        };
        loop {
            let step = self.step();
            let Ok(Some(located)) = step else {
                self.start = Some(start);
                return step.map(|_| Read::CaughtUp);
            };
            match is_start(&start, &located) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(e) => {
                    self.start = Some(start);
                    return Err(e);
                }
            }
            if located.event.kind() == binlog::Kind::FORMAT_DESCRIPTION {
                return Ok(Read::Event(located));
            }
            let format = self.cursor.as_ref().and_then(RelayCursor::format_event).cloned();
            let Some((event, place)) = format else {
                return Ok(Read::Event(located));
            };
            let (format, position, end) = (located.format.clone(), located.position.clone(), located.position.offset);
            self.held = Some(located);
            return Ok(Read::Event(Located { event, format, position, end, place, restarted: false }));
        }
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        self.inner.wait_beyond(self.known, timeout)
    }
}
