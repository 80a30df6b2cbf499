//! Reads the source's stream: compares what the mirror has, and adds what it does not have.

use std::sync::atomic::Ordering;

use binlog::LogPosition;
use bytes::Bytes;
use engine::failure::{Failure, FailureKind};
use wire::{BinlogStream, Error};

use super::{Beginning, ConnectionEnd, Mirror};
use crate::mirror::disk::files::of_folder;
use crate::mirror::source::{self, history};
use crate::mirror::stream::{Arrival, EventReceiver, FileEnding};

impl Mirror<'_> {
    pub(super) fn read(
        &mut self,
        mut stream: BinlogStream,
        mut arriving: EventReceiver,
    ) -> Result<ConnectionEnd, Failure> {
        self.purge()?;
        loop {
            if self.is_at_end() {
                return Ok(ConnectionEnd::AtEnd);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(ConnectionEnd::Stopped);
            }
            if !self.acknowledge(&mut stream)? {
                return Ok(ConnectionEnd::CanAcknowledge);
            }
            if self.acks.as_ref().is_some_and(|acks| !acks.event_comes_first(&mut stream)) {
                continue;
            }
            let packet = match stream.next() {
                Ok(packet) => packet,
                Err(_) if self.stop.load(Ordering::Relaxed) => return Ok(ConnectionEnd::Stopped),
                Err(_) if self.orders.is_pending() => {
                    return Err(Failure::new(FailureKind::ConnectionLost, "another source is to be followed"));
                }
                Err(Error::DumpEnded) => {
                    return Err(Failure::new(
                        FailureKind::ConnectionLost,
                        "the source has ended the stream: it shuts down",
                    ));
                }
                Err(error) => return Err(source::failed("reading its log", &error)),
            };
            self.timestamp = packet_timestamp(&packet.bytes).unwrap_or(self.timestamp);
            let before = arriving.position().cloned();
            let is_waited_for = packet.semisync_ack;
            match arriving.take(packet.bytes).map_err(|refusal| history::refused_event(&refusal))? {
                Arrival::LeaveOut => self.monitor.heartbeat(),
                Arrival::Begin { left: FileEnding::Open, .. } if before != self.compared => {
                    return Ok(ConnectionEnd::AtSeam);
                }
                Arrival::Begin { file, .. } => self.beginning = Some(Beginning { file, events: Vec::new() }),
                Arrival::Store(bytes) => self.store(before, bytes)?,
            }
            if let Some(acks) = self.acks.as_mut().filter(|_| is_waited_for) {
                acks.asked(arriving.position());
            }
            if arriving.has_begun() {
                self.begin()?;
            }
            self.before_next(&mut stream)?;
        }
    }

    /// The file whose beginning has come is made.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let Some(Beginning { file, events }) = self.beginning.take() else { return Ok(()) };
        self.sync()?;
        self.folder.begin(&file).map_err(|error| of_folder(&error))?;
        for bytes in events {
            self.folder.append(&bytes).map_err(|error| of_folder(&error))?;
            self.newest.push(bytes);
        }
        self.purged = None;
        self.pack();
        Ok(())
    }

    /// What is in the mirror already is compared, the rest is added.
    pub(super) fn store(&mut self, at: Option<LogPosition>, bytes: Bytes) -> Result<(), Failure> {
        if let Some(beginning) = &mut self.beginning {
            self.bytes += bytes.len() as u64;
            beginning.events.push(bytes);
            return Ok(());
        }
        let known = match (&self.last, &at) {
            (Some(last), Some(at)) => at.file == last.end.file && at.offset < last.end.offset,
            _ => false,
        };
        let Some(at) = at.filter(|_| known) else {
            self.bytes += bytes.len() as u64;
            self.folder.append(&bytes).map_err(|error| of_folder(&error))?;
            self.newest.push(bytes);
            return Ok(());
        };
        if self.folder.holds(at.offset, &bytes).map_err(|error| of_folder(&error))? {
            return Ok(());
        }
        Err(history::another_history(&format!("the source has another event at {at} than the mirror")))
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.end.as_ref().is_some_and(|end| self.folder.durable().is_some_and(|durable| durable >= *end))
    }
}

/// When the source wrote an event; none of what it made up for the stream.
fn packet_timestamp(event: &[u8]) -> Option<u32> {
    let timestamp = event.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))?;
    (timestamp > 0).then_some(timestamp)
}
