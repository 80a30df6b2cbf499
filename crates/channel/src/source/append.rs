//! Appends what has come from the source to the relay log: in a thread of its own or, while little comes, in the one that reads the socket.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use binlog::{Event, Kind};
use crossbeam_channel::{Receiver, TryRecvError};
use relay::RelayWriter;

use super::relay_sync::Publisher;
use super::stream_end::StreamEnd;
use super::stream_writer::{StreamWriter, relay_failure};
use crate::flow::handoff::{Stage, StageState, Thread, Wake};
use crate::flow::measures::{Amount, Measures};
use crate::flow::memory::budget::Budget;
use crate::flow::read_counts::begins_transaction;
use crate::flow::signals::Signals;

/// Events from the socket are handed on together, up to so many.
const HAND_ON_EVENTS: usize = 512;
const HAND_ON_BYTES: usize = 256 << 10;
/// At most so much is appended before it is published.
const BATCH_BYTES: usize = 4 << 20;
/// Between two looks at whether it is time to stop, or to make durable what was received.
const TICK: Duration = Duration::from_millis(100);
/// Between two looks at whether the relay log has room again.
const TICK_FULL: Duration = Duration::from_millis(5);

/// Events that came together, between the two threads.
#[derive(Default)]
pub struct ReceivedEvents {
    pub events: Vec<Event>,
    /// Of the events.
    pub bytes: usize,
    /// After them nothing more comes.
    pub ended: Option<StreamEnd>,
}

impl ReceivedEvents {
    pub fn push(&mut self, event: Event) {
        self.bytes += event.bytes().len();
        self.events.push(event);
    }

    pub fn is_full(&self) -> bool {
        self.ended.is_some() || self.bytes >= HAND_ON_BYTES || self.events.len() >= HAND_ON_EVENTS
    }

    /// Memory that it holds, in bytes.
    pub fn memory(&self) -> u64 {
        (self.bytes + self.events.len() * size_of::<Event>()) as u64
    }
}

/// One connection's stream on its way into the relay log.
pub struct StreamAppender<'a> {
    received: Receiver<ReceivedEvents>,
    /// Of what is in the queue.
    room: &'a Budget,
    relay: RelayEnd<'a>,
    stream: StreamWriter,
    signals: &'a Signals,
    measures: &'a Measures,
    stop: &'a AtomicBool,
    /// The relay log, as seen last.
    is_full: bool,
    /// Events of the source's log that are appended and published.
    events: u64,
    ended: Option<StreamEnd>,
}

/// The relay log, and who reads it.
pub struct RelayEnd<'a> {
    pub writer: &'a mut RelayWriter,
    pub publisher: &'a mut Publisher,
    pub reading: &'a dyn Wake,
}

impl Stage for StreamAppender<'_> {
    fn run_once(&mut self, thread: Thread) -> StageState {
        if self.ended.is_none() {
            self.ended =
                if self.stop.load(Ordering::Relaxed) { Some(StreamEnd::Stopped) } else { self.take_in().err() };
            if thread == Thread::Own {
                self.relay.reading.wake();
            }
        }
        match &self.ended {
            Some(_) => StageState::End,
            None if self.is_full || self.received.is_empty() => StageState::Sleep,
            None => StageState::Again,
        }
    }

    fn tick(&self) -> Duration {
        if self.is_full { TICK_FULL } else { TICK }
    }
}

impl<'a> StreamAppender<'a> {
    pub fn new(
        received: Receiver<ReceivedEvents>,
        room: &'a Budget,
        relay: RelayEnd<'a>,
        signals: &'a Signals,
        measures: &'a Measures,
        stop: &'a AtomicBool,
    ) -> Self {
        let stream = StreamWriter::default();
        Self { received, room, relay, stream, signals, measures, stop, is_full: false, events: 0, ended: None }
    }

    /// Why the stream ended, if it has, and how many events of the source's log have come through it.
    pub fn end(self) -> Option<(StreamEnd, u64)> {
        self.ended.map(|ended| (ended, self.events))
    }

    /// A failure without a place is one of the event that comes next.
    fn placed(&self, ended: StreamEnd) -> StreamEnd {
        match ended {
            StreamEnd::Failed(failure) if failure.place.is_empty() => {
                StreamEnd::Failed(failure.at(self.stream.place()))
            }
            other => other,
        }
    }

    /// Appends what has come, and publishes it when nothing more is there or enough has gathered.
    fn take_in(&mut self) -> Result<(), StreamEnd> {
        let relay = |error: relay::Error| StreamEnd::Failed(relay_failure(&error));
        self.is_full = !self.relay.writer.has_room().map_err(relay)?;
        if self.is_full {
            self.signals.relay_has_filled_up();
        } else {
            self.signals.relay_has_room();
        }
        let (mut bytes, mut memory, mut count, mut events) = (0, 0, 0, 0);
        let mut amount = Amount::default();
        let mut appended = Ok(());
        while !self.is_full && bytes < BATCH_BYTES && appended.is_ok() {
            let received = match self.received.try_recv() {
                Ok(received) => received,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    // Asked to stop, it may end before this thread looks.
                    appended = Err(if self.stop.load(Ordering::Acquire) {
                        StreamEnd::Stopped
                    } else {
                        StreamEnd::Lost("the thread that reads the socket ended".to_owned())
                    });
                    break;
                }
            };
            bytes += received.bytes;
            memory += received.memory();
            count += 1;
            for event in received.events.iter().filter(|event| is_of_the_log(event)) {
                events += 1;
                amount.transactions += u64::from(begins_transaction(event));
                amount.time_s = timestamp(event).unwrap_or(amount.time_s);
            }
            let all = received.events.iter().try_for_each(|event| self.stream.append(self.relay.writer, event));
            let ended = received.ended.map_or(Ok(()), |ended| Err(self.placed(ended)));
            appended = all.map_err(StreamEnd::Failed).and(ended);
        }
        if count == 0 {
            self.relay.publisher.sync_when_due(self.relay.writer).map_err(relay)?;
            return appended;
        }
        self.relay.publisher.publish(self.relay.writer, bytes).map_err(relay)?;
        self.room.release(memory, count);
        self.events += events;
        self.measures.received(Amount { bytes: bytes as u64, age_ms: age_ms(amount.time_s), ..amount });
        appended
    }
}

/// Of what was written at that time, seconds since 1970: a header says no more.
fn age_ms(time_s: u32) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = now.saturating_sub(Duration::from_secs(u64::from(time_s) + 1));
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

/// Of the event's header: seconds since 1970. `None`: the event has none.
fn timestamp(event: &Event) -> Option<u32> {
    let bytes = event.bytes().first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes)).filter(|&time| time > 0)
}

/// Not what each connection begins with: a rotation and a description of the format that the source makes up. Nor a heartbeat.
fn is_of_the_log(event: &Event) -> bool {
    const ARTIFICIAL: u8 = 0x20;
    const FLAGS: usize = 17;
    let is_artificial = event.bytes().get(FLAGS).is_some_and(|flags| flags & ARTIFICIAL != 0);
    !is_artificial && !matches!(event.kind(), Kind::FORMAT_DESCRIPTION | Kind::HEARTBEAT)
}
