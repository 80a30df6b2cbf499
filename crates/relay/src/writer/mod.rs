//! Writes the relay log: appends events to a buffer, makes batches of them durable with one fsync, then publishes; or
//! publishes what is in the file, and another thread makes it durable beside that.
//!
//! Nothing unwritten is published, and nothing is called durable that was not synced. After a failed write or fsync nothing
//! that follows can be trusted, so the writer refuses everything from then on. A full disk is not such a failure:
//! what could not be written waits in the buffer and the same call can be made again.

mod locate;
mod open;

pub use open::RelayLog;

use crate::active::ActiveSegment;
use crate::background_sync::{RunningSync, SegmentSync};
use crate::error::{Error, Result};
use crate::fs::{DirLock, Fs};
use crate::log_state::{LogState, PublishedEnd, SegmentInfo};
use crate::options::Options;
use crate::recover::Recovery;
use crate::segment::Header;
use crate::stream::Stream;
use binlog::LogPosition;
use binlog::{Event, FormatDescription, Kind};
use std::path::PathBuf;
use std::sync::Arc;

/// Buffered bytes that are handed to the system before the next sync asks for it.
const WRITE_BYTES: usize = 1 << 20;

/// What a sync has made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableEnd {
    /// The end of the last durable event in the source; none when there is no event yet.
    pub position: Option<LogPosition>,
}

/// Where receiving goes on after a restart or a lost connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    /// After the last whole transaction: ask the source for this position, and call [`RelayWriter::restart`].
    pub position: LogPosition,
    /// After the last event: a stream by file and position may also go on here, without `restart`.
    pub event_end: LogPosition,
    /// Whether a transaction is incomplete, which is when the two differ in more than room between transactions.
    pub in_transaction: bool,
    /// All GTIDs of whole transactions received, with those of [`Options::gtids`], in the server's text form: for a
    /// stream by GTID.
    pub gtids: String,
}

/// The receiver's side of a relay log.
pub struct RelayWriter {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    options: Options,
    shared: Arc<LogState>,
    recovery: Recovery,
    /// The segment being written; none before the first event, and while the next one could not be created.
    active: Option<ActiveSegment>,
    /// The number of the last segment that was begun.
    number: u64,
    format: Option<(Arc<FormatDescription>, Event)>,
    stream: Stream,
    /// The stream was told to restart, and the record that says so is not yet written.
    restarting: bool,
    file: Arc<str>,
    /// A sync that another thread does.
    begun: Option<RunningSync>,
    /// The first failure, and whether it may pass.
    failed: Option<(String, bool)>,
    _lock: DirLock,
}

impl RelayWriter {
    /// What opening found and repaired.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Appends an event of the source's file `source_file`, in the order received. It is only buffered: not durable,
    /// not visible to readers.
    ///
    /// Its place in the source follows from its header, or, where that does not say (MariaDB 11.4+ inside a
    /// transaction), from the end of the event before. Events that the server makes up when it sends
    /// (heartbeats, ROTATE and format description events without position) take no room in the source; whether they
    /// are worth appending is the caller's choice.
    ///
    /// # Errors
    /// The event was not appended. [`Error::DiskFull`]: call again once there is space. [`Error::NoFormat`],
    /// [`Error::WentBack`], [`Error::BadEvent`]: the stream is not what it should be. Else the log is unusable.
    pub fn append(&mut self, source_file: &str, event: &Event) -> Result<()> {
        let (start, end) = self.locate(source_file, event)?;
        self.append_at(source_file, event, start, end)
    }

    /// Like [`RelayWriter::append`], when the caller knows where in the source the event starts and ends.
    ///
    /// # Errors
    /// As there.
    pub fn append_at(&mut self, source_file: &str, event: &Event, start: u64, end: u64) -> Result<()> {
        self.usable()?;
        let position = |offset| LogPosition::new(source_file, offset);
        let bad = |reason: String| Error::BadEvent { position: position(start), reason };
        let begins = match event.kind() {
            Kind::FORMAT_DESCRIPTION => {
                let (_, description) = FormatDescription::decode(event.bytes()).map_err(|c| bad(c.to_string()))?;
                Some((Arc::new(description), event.clone()))
            }
            _ => None,
        };
        // One that begins with this event holds only if it is appended.
        let held = self.format.take();
        let done = match begins.as_ref().or(held.as_ref()) {
            Some(format) => self.put(source_file, event, start, end, format),
            None => Err(Error::NoFormat { file: source_file.to_owned() }),
        };
        self.format = match done {
            Ok(()) => begins.or(held),
            Err(_) => held,
        };
        done
    }

    fn put(
        &mut self,
        source_file: &str,
        event: &Event,
        start: u64,
        end: u64,
        format: &(Arc<FormatDescription>, Event),
    ) -> Result<()> {
        if *self.file != *source_file {
            self.file = Arc::from(source_file);
        }
        self.make_active(Some(format), start)?;
        if self.active.as_ref().is_some_and(|active| active.buffered() >= WRITE_BYTES) {
            self.write()?;
        }
        // From here on nothing can fail but the event itself.
        let before = if self.restarting { self.stream.end().cloned() } else { None };
        self.stream.observe(event, &format.0, &self.file, end).map_err(|corrupt| Error::BadEvent {
            position: LogPosition::new(source_file, start),
            reason: corrupt.to_string(),
        })?;
        let Some(active) = &mut self.active else {
            return Err(Error::Unusable { cause: "no segment is open".to_owned(), passes: false });
        };
        let len = active.len();
        if std::mem::take(&mut self.restarting)
            && let Some(at) = before
        {
            active.put_file(&at.file);
            active.put_restart(at.offset);
        }
        active.put_file(&self.file);
        active.put_event(event, start, end);
        self.shared.grow(active.len() - len);
        Ok(())
    }

    /// Writes what was appended, makes it durable with one fsync, then publishes it to the readers.
    ///
    /// # Errors
    /// [`Error::DiskFull`]: nothing is lost, call again. Any other: [`Error::Unusable`] from now on.
    pub fn sync(&mut self) -> Result<DurableEnd> {
        self.usable()?;
        if self.active.as_ref().is_some_and(ActiveSegment::is_sealing) {
            self.seal()?;
        } else {
            self.flush()?;
        }
        Ok(DurableEnd { position: self.stream.end().cloned() })
    }

    /// Writes what was appended and publishes it. It survives this process; a crash of the machine only once it is durable: see
    /// [`RelayWriter::begin_sync`].
    ///
    /// # Errors
    /// As [`RelayWriter::sync`].
    pub fn publish(&mut self) -> Result<()> {
        self.usable()?;
        self.settle(false)?;
        if self.active.as_ref().is_some_and(ActiveSegment::is_sealing) {
            return self.seal();
        }
        self.write()?;
        self.publish_written();
        Ok(())
    }

    /// Begins to make durable what is published; none when it is, or when an earlier one is under way. How it went shows in later calls.
    ///
    /// # Errors
    /// As [`RelayWriter::sync`].
    pub fn begin_sync(&mut self) -> Result<Option<SegmentSync>> {
        self.usable()?;
        self.settle(false)?;
        let Some(active) = self.active.as_ref().filter(|active| active.durable() < active.written()) else {
            return Ok(None);
        };
        // Where the stream ends is in the file only if nothing is buffered.
        if self.begun.is_some() || active.buffered() > 0 {
            return Ok(None);
        }
        let file = active.another()?;
        let (begun, syncing) = RunningSync::new(file, active.number(), active.written(), self.stream.end().cloned());
        self.begun = Some(begun);
        Ok(Some(syncing))
    }

    /// Takes note of a sync that was begun, if it has ended; or when it has.
    fn settle(&mut self, wait: bool) -> Result<()> {
        let Some(outcome) = self.begun.as_ref().and_then(|begun| begun.outcome(wait)) else {
            return Ok(());
        };
        let Some(RunningSync { number, len, position, .. }) = self.begun.take() else {
            return Ok(());
        };
        let done = match outcome {
            Ok(false) => return Ok(()),
            Ok(true) => Ok(()),
            Err(e) => Err(e),
        };
        // Segments are sealed only when this has ended.
        let Some(active) = self.active.as_mut().filter(|active| active.number() == number) else {
            return Ok(());
        };
        let synced = active.synced(done, len);
        let durable = PublishedEnd { number, offset: active.durable() };
        if synced.is_err() {
            self.shared.retract(durable);
        }
        self.check(synced)?;
        self.shared.record_durable(position.as_ref());
        Ok(())
    }

    /// Seals the segment and begins the next one, so that the sealed one can be purged.
    ///
    /// # Errors
    /// As [`RelayWriter::sync`].
    pub fn rotate(&mut self) -> Result<()> {
        self.usable()?;
        let Some(end) = self.stream.end().cloned() else {
            return Ok(());
        };
        if self.active.as_ref().is_none_or(|active| active.records() > 0) {
            self.seal()?;
        }
        self.file = end.file.clone();
        let format = self.format.clone();
        self.make_active(format.as_ref(), end.offset)
    }

    /// Tells that the stream will come again from `at` on (usually [`ResumePoint::position`]) after a lost connection:
    /// what was received of an open transaction is void, and readers are told so.
    pub fn restart(&mut self, at: &LogPosition) {
        // Only a log that has events has anything to be told about.
        self.restarting = self.number > 0;
        self.stream.restart(at);
        self.file = at.file.clone();
    }

    /// Where to resume; none when nothing was received yet.
    pub fn resume_position(&self) -> Option<ResumePoint> {
        let event_end = self.stream.end()?.clone();
        Some(ResumePoint {
            position: self.stream.boundary().unwrap_or(&event_end).clone(),
            event_end,
            in_transaction: self.stream.in_transaction(),
            gtids: self.stream.gtids().to_string(),
        })
    }

    /// The GTIDs of whole transactions received so far, in the server's text form.
    pub fn gtids(&self) -> String {
        self.stream.gtids().to_string()
    }

    /// The size of the log in bytes, with what is not yet written.
    pub fn bytes_used(&self) -> u64 {
        self.shared.bytes()
    }

    /// Back-pressure: whether the log is smaller than its limit. If it is not, publish what is buffered, so that readers get to its end and the purger
    /// can free it, and ask again later.
    ///
    /// While a transaction is incomplete there always is room: the purger can only free what lies before it, so the
    /// log may exceed its limit by the size of a transaction.
    ///
    /// # Errors
    /// As [`RelayWriter::rotate`], which it may have to do to let the last segment be purged.
    pub fn has_room(&mut self) -> Result<bool> {
        self.usable()?;
        let bytes_max = self.options.relay_bytes_max;
        // Without its format, which comes first, no segment can be begun so that the last one may go.
        let begins = self.active.is_none() || self.format.is_none();
        if self.shared.bytes() < bytes_max || self.stream.in_transaction() || begins {
            return Ok(true);
        }
        // One that was begun when the log might be larger, too.
        let last_bytes_max = self.options.segment_bytes_max.min(bytes_max);
        if self.active.as_ref().is_some_and(|active| active.len() >= last_bytes_max) {
            match self.rotate() {
                Ok(()) => {}
                Err(e) if e.is_retryable() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(self.shared.bytes() < bytes_max)
    }

    /// Makes everything durable and seals the last segment, so that the next opening finds any damage in it.
    ///
    /// # Errors
    /// As [`RelayWriter::sync`].
    pub fn close(mut self) -> Result<()> {
        self.usable()?;
        self.seal()
    }

    fn usable(&self) -> Result<()> {
        match &self.failed {
            Some((cause, passes)) => Err(Error::Unusable { cause: cause.clone(), passes: *passes }),
            None => Ok(()),
        }
    }

    /// Sees to it that a segment with room is open.
    fn make_active(&mut self, format: Option<&(Arc<FormatDescription>, Event)>, start: u64) -> Result<()> {
        if let Some(active) = &self.active {
            if !active.is_sealing() && active.len() < self.options.segment_bytes_max {
                return Ok(());
            }
            self.seal()?;
        }
        let Some((_, format_event)) = format else {
            return Err(Error::NoFormat { file: self.file.to_string() });
        };
        // Where the stream stands, if it says so: a position between there and the event must be found here.
        let start = self.stream.end().cloned().unwrap_or(LogPosition { file: self.file.clone(), offset: start });
        let number = self.number + 1;
        let header = Header {
            number,
            source: self.options.source.clone(),
            start_file: start.file.to_string(),
            start_offset: start.offset,
            state: self.stream.to_text(),
        };
        let created = ActiveSegment::create(&*self.fs, &self.dir, &header, format_event);
        let active = self.check(created)?;
        self.shared.grow(active.len());
        self.shared.add_segment(SegmentInfo { number, start, bytes: active.len() });
        self.shared.publish(PublishedEnd { number, offset: active.len() });
        self.number = number;
        self.active = Some(active);
        Ok(())
    }

    /// Writes, syncs and publishes the seal of the active segment.
    fn seal(&mut self) -> Result<()> {
        let Some(active) = &mut self.active else {
            return Ok(());
        };
        let len = active.len();
        active.put_seal();
        self.shared.grow(active.len() - len);
        self.flush()?;
        if let Some(active) = self.active.take() {
            self.shared.set_segment_bytes(active.number(), active.len());
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let Some(active) = &mut self.active else {
            return Ok(());
        };
        let written = active.write();
        self.check(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.settle(true)?;
        self.write()?;
        let Some(active) = &mut self.active else {
            return Ok(());
        };
        if active.durable() < active.len() {
            let synced = active.sync();
            let durable = PublishedEnd { number: active.number(), offset: active.durable() };
            if synced.is_err() {
                self.shared.retract(durable);
            }
            self.check(synced)?;
        }
        self.shared.record_durable(self.stream.end());
        self.publish_written();
        Ok(())
    }

    fn publish_written(&self) {
        if let Some(active) = &self.active {
            let written = PublishedEnd { number: active.number(), offset: active.written() };
            if written > self.shared.published() {
                self.shared.publish(written);
            }
        }
    }

    /// Remembers a failure after which nothing can be trusted, and passes the result on.
    fn check<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(e) = &result
            && !e.is_retryable()
        {
            tracing::error!(error = %e, "the relay log cannot be written any more");
            self.failed = Some((e.to_string(), e.may_pass()));
            self.shared.end();
        }
        result
    }
}

impl Drop for RelayWriter {
    fn drop(&mut self) {
        self.shared.end();
    }
}
