//! The one interface under which events are read, from the relay log or from files.

use crate::error::Error;
use crate::place::{Place, RelayOffset};
use crate::segment::HEAD_LEN;
use binlog::LogPosition;
use binlog::{Event, FormatDescription};
use std::sync::Arc;

/// Where to start reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// With the oldest event there is.
    #[default]
    Beginning,
    /// With the first event at or after this position of the source, where an event must start.
    At(LogPosition),
}

/// An event and where it comes from.
#[derive(Debug, Clone)]
pub struct LocatedEvent {
    /// The event, byte for byte as the source wrote it.
    pub event: Event,
    /// The format description in force for it (for a format description: itself).
    pub format: Arc<FormatDescription>,
    /// Where it starts in the source's file.
    pub position: LogPosition,
    /// Where it ends in the source's file; equal to the start for events that the server made up when it sent them,
    /// and for the format description that precedes all events when reading starts in the middle of a file.
    pub end: u64,
    /// Where its bytes are on this machine.
    pub place: Place,
    /// The stream was interrupted before this event: a transaction that is open here does not go on. It comes again,
    /// whole, if the source has it.
    pub restarted: bool,
}

impl LocatedEvent {
    /// Where the event ends in the source.
    pub fn end_position(&self) -> LogPosition {
        LogPosition { file: self.position.file.clone(), offset: self.end }
    }

    /// Where its record ends in the relay log; none in a binary log file.
    pub fn relay_end(&self) -> Option<RelayOffset> {
        let (_, segment) = self.place.log.segment.as_ref()?;
        let len = (HEAD_LEN + self.event.bytes().len()) as u64;
        Some(RelayOffset { segment: *segment, offset: self.place.offset + len })
    }
}

/// What a reader has.
#[derive(Debug)]
pub enum Read<'a> {
    /// The next event has so many bytes and is not read yet: the next call reads it. Only where a limit for events was given.
    Large(u64),
    /// The next event. It stays in the reader, where all that it shares with the one before stays as it is.
    Event(&'a LocatedEvent),
    /// Nothing more is published yet: more may come.
    CaughtUp,
    /// All is read and no more will come.
    End,
}

/// A source of events in order. Before any other event comes the format description that is in force.
pub trait LogReader: Send {
    /// The next event.
    ///
    /// # Errors
    /// Damage, or a file that cannot be read. The reader stays where it is.
    fn next(&mut self) -> Result<Read<'_>, Error>;

    /// Lets go of the last event, which nobody looks at any more, where it is large.
    fn release(&mut self);
}

/// From this size on an event is announced, and let go of.
pub(crate) const LARGE_BYTES: u64 = 2 << 20;

/// What a step of a reader finds.
pub(crate) enum ReaderStep {
    /// An event, which the cursor has.
    Event,
    /// Nothing more, or not yet.
    Nothing,
    /// A large event comes.
    Large(u64),
}
