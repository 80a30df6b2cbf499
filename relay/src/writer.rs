//! Writes the relay log: appends events to a buffer, makes batches of them durable with one fsync, then publishes; or
//! publishes what is in the file, and another thread makes it durable beside that.
//!
//! Nothing unwritten is published, and nothing is called durable that was not synced. After a failed write or fsync nothing
//! that follows can be trusted, so the writer refuses everything from then on. A full disk is not such a failure:
//! what could not be written waits in the buffer and the same call can be made again.

use crate::active::Active;
use crate::beside::{Begun, Syncing};
use crate::error::{Error, IoContext, Result};
use crate::fs::{DirLock, Fs};
use crate::gtids::Gtids;
use crate::recover::{self, Found, Recovery};
use crate::segment::{self, Header, Name};
use crate::shared::{Inner, Published, RelayShared, SEGMENT_BYTES_LIMIT, SegmentInfo};
use crate::stream::Stream;
use binlog::LogPosition;
use binlog::boundary::{is_artificial, is_of_file};
use binlog::{Event, FormatDescription, Kind};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Buffered bytes that are handed to the system before the next sync asks for it.
const WRITE_BYTES: usize = 1 << 20;

/// How a relay log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Who the events come from (flavour, server uuid or address…). A directory that holds the events of another
    /// source is refused.
    pub source: String,
    /// A segment is sealed and the next one begun once it has so many bytes; at most a quarter of `relay_bytes_max`.
    pub segment_bytes_max: u64,
    /// Above so many bytes there is no room: see [`RelayWriter::has_room`].
    pub relay_bytes_max: u64,
    /// For a new log: the GTIDs (in the server's text form) that were applied before the stream starts.
    pub gtids: String,
}

impl Default for Options {
    fn default() -> Self {
        Options { source: String::new(), segment_bytes_max: 256 << 20, relay_bytes_max: 10 << 30, gtids: String::new() }
    }
}

/// What a sync has made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable {
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

/// The log on disk of what was received from one source.
pub struct RelayLog;

impl RelayLog {
    /// Opens the relay log in `dir`, or begins one, and repairs what a crash has torn (see [`RelayWriter::recovery`]).
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has it, [`Error::OtherSource`], [`Error::Damaged`] or
    /// [`Error::MissingSegment`] when it cannot be trusted.
    pub fn open(fs: Arc<dyn Fs>, dir: &Path, options: Options) -> Result<(RelayWriter, RelayShared)> {
        fs.create_dir_all(dir).during("create", dir)?;
        let lock = lock(&*fs, dir)?;
        let found = recover::scan(&*fs, dir, &options.source)?;
        RelayWriter::start(fs, dir, options, lock, found)
    }

    /// Removes all events from the relay log in `dir`, whatever state it is in, and nothing else: for a log whose
    /// contents are of no use any more. The next opening begins anew.
    ///
    /// # Errors
    /// [`Error::Locked`] when a process has it open (a [`RelayWriter`] of this process, too), or what the system says.
    pub fn clear(fs: &dyn Fs, dir: &Path) -> Result<()> {
        fs.create_dir_all(dir).during("create", dir)?;
        let _lock = lock(fs, dir)?;
        let mut segments = Vec::new();
        for name in fs.list(dir).during("list", dir)? {
            match segment::classify(&name) {
                Name::Segment(number) => segments.push((number, dir.join(name))),
                Name::Partial => segments.push((0, dir.join(name))),
                Name::Other => {}
            }
        }
        // Oldest first, each durable before the next: what a crash leaves is still a log without a gap.
        segments.sort();
        for (_, path) in segments {
            fs.remove(&path).during("remove", &path)?;
            fs.sync_dir(dir).during("sync", dir)?;
        }
        Ok(())
    }
}

/// Takes the relay directory for this process.
fn lock(fs: &dyn Fs, dir: &Path) -> Result<DirLock> {
    let path = dir.join("lock");
    fs.lock(&path).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => Error::Locked { dir: dir.to_path_buf() },
        _ => Error::Io { action: "lock", path, source },
    })
}

/// The receiver's side of a relay log.
pub struct RelayWriter {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    options: Options,
    shared: Arc<Inner>,
    recovery: Recovery,
    /// The segment being written; none before the first event, and while the next one could not be created.
    active: Option<Active>,
    /// The number of the last segment that was begun.
    number: u64,
    format: Option<(Arc<FormatDescription>, Event)>,
    stream: Stream,
    /// The stream was told to restart, and the record that says so is not yet written.
    restarting: bool,
    file: Arc<str>,
    /// A sync that another thread does.
    begun: Option<Begun>,
    failed: Option<String>,
    _lock: DirLock,
}

impl RelayWriter {
    fn start(
        fs: Arc<dyn Fs>,
        dir: &Path,
        mut options: Options,
        lock: DirLock,
        found: Found,
    ) -> Result<(Self, RelayShared)> {
        // A full log must have segments that can be purged, and a segment's offsets must fit the published word.
        let segment_bytes_max = options.segment_bytes_max.min(options.relay_bytes_max / 4);
        options.segment_bytes_max = segment_bytes_max.clamp(4096, SEGMENT_BYTES_LIMIT);
        let bad_gtids = |reason: &str| Error::NoSuchPosition {
            wanted: LogPosition::new("", 0),
            reason: format!("`{}` {reason}", options.gtids),
        };
        let gtids = Gtids::parse(&options.gtids).ok_or_else(|| bad_gtids("is not a set of GTIDs"))?;
        let mut recovery = Recovery { segments: found.segments.len(), ..Recovery::default() };
        for path in found.partial {
            fs.remove(&path).during("remove", &path)?;
            recovery.removed.push(path);
        }
        if !recovery.removed.is_empty() {
            fs.sync_dir(dir).during("sync", dir)?;
        }
        // The directory's own name; where its parent cannot be opened there is nothing to be done about that.
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let _ = fs.sync_dir(parent.unwrap_or(Path::new(".")));
        let shared = Arc::new(Inner::new(fs.clone(), dir));
        for info in found.segments {
            shared.grow(info.bytes);
            shared.add_segment(info);
        }
        let mut writer = RelayWriter {
            fs,
            dir: dir.to_path_buf(),
            options,
            shared: shared.clone(),
            recovery,
            active: None,
            number: 0,
            format: None,
            stream: Stream::starting_with(gtids),
            restarting: false,
            file: Arc::from(""),
            begun: None,
            failed: None,
            _lock: lock,
        };
        if let Some(last) = found.last {
            let path = segment::path(dir, last.number);
            let mut file = writer.fs.open_append(&path).during("open", &path)?;
            if last.len < last.file_len {
                file.set_len(last.len).during("truncate", &path)?;
                shared.shrink(last.file_len - last.len);
                writer.recovery.cut = Some((path.clone(), last.len, last.file_len - last.len));
                tracing::warn!(segment = %path.display(), offset = last.len, bytes = last.file_len - last.len,
                    "cut the torn end of the relay log");
            }
            // What a process that died had written may not be on disk yet. Nor may its names.
            file.sync_data().during("sync", &path)?;
            writer.fs.sync_dir(dir).during("sync", dir)?;
            writer.number = last.number;
            writer.format = Some((last.format, last.format_event));
            writer.stream = last.stream;
            writer.file = last.source_file.clone();
            let published = Published { number: last.number, offset: last.len };
            shared.note_durable(writer.stream.end());
            shared.publish(published);
            if !last.sealed {
                let active = Active::resume(last.number, path, file, last.len, last.records, last.source_file);
                writer.active = Some(active);
            }
        }
        Ok((writer, RelayShared { inner: shared }))
    }

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
            return Err(Error::Unusable { cause: "no segment is open".to_owned() });
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

    /// Where an event starts and ends in the source's file.
    fn locate(&self, source_file: &str, event: &Event) -> Result<(u64, u64)> {
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

    /// Writes what was appended, makes it durable with one fsync, then publishes it to the readers.
    ///
    /// # Errors
    /// [`Error::DiskFull`]: nothing is lost, call again. Any other: [`Error::Unusable`] from now on.
    pub fn sync(&mut self) -> Result<Durable> {
        self.usable()?;
        if self.active.as_ref().is_some_and(Active::is_sealing) {
            self.seal()?;
        } else {
            self.flush()?;
        }
        Ok(Durable { position: self.stream.end().cloned() })
    }

    /// Writes what was appended and publishes it. It survives this process; a crash of the machine only once it is durable: see
    /// [`RelayWriter::begin_sync`].
    ///
    /// # Errors
    /// As [`RelayWriter::sync`].
    pub fn publish(&mut self) -> Result<()> {
        self.usable()?;
        self.settle(false)?;
        if self.active.as_ref().is_some_and(Active::is_sealing) {
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
    pub fn begin_sync(&mut self) -> Result<Option<Syncing>> {
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
        let (begun, syncing) = Begun::new(file, active.number(), active.written(), self.stream.end().cloned());
        self.begun = Some(begun);
        Ok(Some(syncing))
    }

    /// Takes note of a sync that was begun, if it has ended; or when it has.
    fn settle(&mut self, wait: bool) -> Result<()> {
        let Some(outcome) = self.begun.as_ref().and_then(|begun| begun.outcome(wait)) else {
            return Ok(());
        };
        let Some(Begun { number, len, position, .. }) = self.begun.take() else {
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
        let durable = Published { number, offset: active.durable() };
        if synced.is_err() {
            self.shared.retract(durable);
        }
        self.note(synced)?;
        self.shared.note_durable(position.as_ref());
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
            Some(cause) => Err(Error::Unusable { cause: cause.clone() }),
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
        let created = Active::create(&*self.fs, &self.dir, &header, format_event);
        let active = self.note(created)?;
        self.shared.grow(active.len());
        self.shared.add_segment(SegmentInfo { number, start, bytes: active.len() });
        self.shared.publish(Published { number, offset: active.len() });
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
        self.note(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.settle(true)?;
        self.write()?;
        let Some(active) = &mut self.active else {
            return Ok(());
        };
        if active.durable() < active.len() {
            let synced = active.sync();
            let durable = Published { number: active.number(), offset: active.durable() };
            if synced.is_err() {
                self.shared.retract(durable);
            }
            self.note(synced)?;
        }
        self.shared.note_durable(self.stream.end());
        self.publish_written();
        Ok(())
    }

    fn publish_written(&self) {
        if let Some(active) = &self.active {
            let written = Published { number: active.number(), offset: active.written() };
            if written > self.shared.published() {
                self.shared.publish(written);
            }
        }
    }

    /// Remembers a failure after which nothing can be trusted.
    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(e) = &result
            && !e.is_retryable()
        {
            tracing::error!(error = %e, "the relay log cannot be written any more");
            self.failed = Some(e.to_string());
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
