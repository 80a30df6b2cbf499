//! Reads the events of a stream from its socket. It looks into no event but those that say how the others are framed.

use std::sync::atomic::{AtomicBool, Ordering};

use binlog::{Checksum, Event, FormatDescription, Kind};
use crossbeam_channel::Sender;
use wire::BinlogStream;

use super::append::ReceivedEvents;
use super::stream_end::{StreamEnd, of_error};
use crate::flow::handoff::Wake;
use crate::flow::memory::budget::Budget;
use crate::flow::memory::event_memory::EventMemory;
use crate::flow::source_silence::SourceSilence;

/// Up to so many bytes are appended in this thread when nothing more has come.
const LITTLE_BYTES: usize = 4 << 10;
/// From so many bytes on nothing more is read until it is appended.
const MUCH_BYTES: usize = 1 << 20;

/// Who sees to what has come.
#[derive(Clone, Copy)]
pub struct Stages<'a> {
    /// Appends it to the relay log.
    pub appending: &'a dyn Wake,
    /// Reads it from there.
    pub reading: &'a dyn Wake,
    /// For one event.
    pub memory: EventMemory,
    pub heard: &'a SourceSilence,
}

/// Socket → queue, until either end is gone. Packets that have come already are handed on together, without waiting for more.
pub fn read(
    mut stream: BinlogStream,
    mut checksum: Checksum,
    queue: &Sender<ReceivedEvents>,
    room: &Budget,
    stages: Stages<'_>,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        let mut received = ReceivedEvents::default();
        loop {
            stages.heard.waits();
            let next = stream.next();
            stages.heard.came();
            let parsed = match next {
                Ok(packet) => parse(packet.bytes, &mut checksum),
                Err(error) => Err(of_error(&error, stages.memory)),
            };
            match parsed {
                Ok(event) => received.push(event),
                Err(ended) => received.ended = Some(ended),
            }
            if received.is_full() || !stream.next_is_buffered() {
                break;
            }
        }
        let (is_last, is_little) = (received.ended.is_some(), received.bytes <= LITTLE_BYTES);
        let is_much = received.bytes >= MUCH_BYTES;
        if !room.acquire(received.memory()) || queue.send(received).is_err() {
            return;
        }
        if is_little {
            stages.appending.run_inline();
            stages.reading.run_inline();
        } else {
            stages.appending.wake();
        }
        // Only one large event is held here at a time.
        if is_last || is_much && !room.drain() {
            return;
        }
    }
}

/// Each format description in the stream says which checksums the events after it have.
pub(super) fn parse(bytes: bytes::Bytes, checksum: &mut Checksum) -> Result<Event, StreamEnd> {
    let corrupt = |error: binlog::Corruption| StreamEnd::Damaged(format!("a broken event from the source: {error}"));
    match bytes.get(4).copied().map(Kind) {
        Some(Kind::FORMAT_DESCRIPTION) => {
            let (event, format) = FormatDescription::decode(&bytes).map_err(corrupt)?;
            *checksum = format.checksum;
            Ok(event)
        }
        // An artificial one before the first format description may come without a checksum.
        Some(Kind::ROTATE) => match Event::parse(bytes.clone(), *checksum) {
            Ok(event) => Ok(event),
            Err(error) => Event::parse(bytes, Checksum::Off).map_err(|_| corrupt(error)),
        },
        _ => Event::parse(bytes, *checksum).map_err(corrupt),
    }
}
