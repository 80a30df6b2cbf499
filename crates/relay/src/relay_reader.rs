//! Reads the relay log while its writer appends, never past what it has published.

use crate::error::{Error, Result};
use crate::log_state::{LogState, PublishedEnd};
use crate::reader::{LocatedEvent, LogReader, Read, ReaderStep, Start};
use crate::relay_cursor::{RelayCursor, RelayStep};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A reader of a relay log; see [`RelayShared::reader`](crate::RelayShared::reader).
///
/// It keeps the segment that it reads, and all after it, from being purged: drop it when it is no longer needed.
pub struct RelayReader {
    inner: Arc<LogState>,
    number: u64,
    cursor: Option<RelayCursor>,
    /// The published position as it was last looked at: looked at again only when all before it is read.
    known: PublishedEnd,
    sealed: bool,
    /// The length of the segment that is read, once the writer has gone on to the next one and it grows no more.
    whole_len: Option<u64>,
    /// Where to start; taken once the start is found.
    start: Option<Start>,
    /// The format description that precedes the first event, while it is delivered.
    preamble: Option<LocatedEvent>,
    /// The first event waits in the cursor meanwhile.
    held: bool,
    event_bytes_max: Option<u64>,
    pin: Arc<AtomicU64>,
}

impl RelayReader {
    pub(crate) fn new(inner: Arc<LogState>, start: Start) -> Result<Self> {
        // Pinned at 0 first: nothing may be purged between choosing the segment and saying so.
        let pin = inner.register(0);
        let number = inner.segment_for(&start)?;
        pin.store(number, Ordering::SeqCst);
        let known = PublishedEnd { number: 0, offset: 0 };
        let (cursor, start) = (None, Some(start));
        Ok(RelayReader {
            inner,
            number,
            cursor,
            known,
            sealed: false,
            whole_len: None,
            start,
            preamble: None,
            held: false,
            event_bytes_max: None,
            pin,
        })
    }

    /// Larger events are refused with [`Error::EventTooLarge`], and large ones announced.
    #[must_use]
    pub fn at_most(mut self, event_bytes_max: u64) -> Self {
        self.event_bytes_max = Some(event_bytes_max);
        self
    }

    /// Looks how far the log may be read now; false when that is no further than before.
    fn look(&mut self) -> bool {
        let now = self.inner.published();
        let more = now > self.known;
        self.known = now;
        more
    }

    /// The next event from the start of the log or of this segment on, for [`RelayReader::located`].
    fn step(&mut self) -> Result<ReaderStep> {
        loop {
            if self.known.number < self.number && !self.look() {
                return Ok(ReaderStep::Nothing);
            }
            if self.known.number < self.number {
                return Ok(ReaderStep::Nothing);
            }
            let cursor = match &mut self.cursor {
                Some(cursor) => cursor,
                none => {
                    let opened = RelayCursor::open(self.inner.fs.clone(), &self.inner.dir, self.number)?;
                    none.insert(opened.at_most(self.event_bytes_max))
                }
            };
            if self.sealed {
                if self.known.number == self.number {
                    if !self.look() {
                        return Ok(ReaderStep::Nothing);
                    }
                    continue;
                }
                cursor.open_next()?;
                self.number += 1;
                self.sealed = false;
                self.whole_len = None;
                self.pin.store(self.number, Ordering::SeqCst);
            }
            let hot = self.known.number == self.number;
            let limit = match self.whole_len {
                _ if hot => self.known.offset,
                Some(len) => len,
                None => *self.whole_len.insert(cursor.file_len()?),
            };
            let step = match cursor.next(limit) {
                // A sync failed, and what it should have made durable was cut off.
                Err(_) if hot && self.inner.published() < self.known => {
                    self.look();
                    return Ok(ReaderStep::Nothing);
                }
                step => step?,
            };
            match step {
                RelayStep::Event => return Ok(ReaderStep::Event),
                RelayStep::Large(bytes) => return Ok(ReaderStep::Large(bytes)),
                RelayStep::Sealed => self.sealed = true,
                RelayStep::End if hot => {
                    if !self.look() {
                        return Ok(ReaderStep::Nothing);
                    }
                }
                RelayStep::End => return Err(cursor.damaged("the segment has no seal at its end")),
            }
        }
    }
    /// The event of the last step.
    fn located(&self) -> Option<&LocatedEvent> {
        self.cursor.as_ref().and_then(RelayCursor::located)
    }

    fn read(&self) -> Read<'_> {
        self.located().map_or(Read::CaughtUp, Read::Event)
    }
}

/// Whether the first event to deliver is found; checks that an event starts at the wanted position.
fn is_start(start: &Start, located: &LocatedEvent) -> Result<bool> {
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
    fn next(&mut self) -> Result<Read<'_>> {
        if std::mem::take(&mut self.held) {
            self.preamble = None;
            return Ok(self.read());
        }
        let Some(start) = self.start.take() else {
            return Ok(match self.step()? {
                ReaderStep::Event => self.read(),
                ReaderStep::Nothing => Read::CaughtUp,
                ReaderStep::Large(bytes) => Read::Large(bytes),
            });
        };
        loop {
            let found = match self.step() {
                Ok(ReaderStep::Event) => self.located().map_or(Ok(true), |located| is_start(&start, located)),
                Ok(ReaderStep::Large(bytes)) => {
                    self.start = Some(start);
                    return Ok(Read::Large(bytes));
                }
                stopped => {
                    self.start = Some(start);
                    return stopped.map(|_| Read::CaughtUp);
                }
            };
            match found {
                Ok(true) => break,
                Ok(false) => {}
                Err(e) => {
                    self.start = Some(start);
                    return Err(e);
                }
            }
        }
        let format = self.cursor.as_ref().and_then(RelayCursor::format_event);
        if let (Some(first), Some((event, place))) = (self.located(), format)
            && first.event.kind() != binlog::Kind::FORMAT_DESCRIPTION
        {
            let (event, place) = (event.clone(), place.clone());
            let end = first.position.offset;
            self.preamble = Some(LocatedEvent { event, place, end, restarted: false, ..first.clone() });
            self.held = true;
        }
        Ok(self.preamble.as_ref().map_or_else(|| self.read(), Read::Event))
    }

    fn release(&mut self) {
        if let Some(cursor) = self.cursor.as_mut().filter(|_| !self.held) {
            cursor.release();
        }
    }
}
