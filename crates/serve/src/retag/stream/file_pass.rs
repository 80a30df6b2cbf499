//! One pass over a log file: each tag is written down when it is made. Tags of an earlier run stay as they are, and are only compared.

use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

use binlog::{Checksum, Event, FIRST_OFFSET, HEADER_LEN, Header, Kind, LogPosition};
use bytes::Bytes;
use engine::retag::{Cause, NewTag};

use super::follower::Follower;
use super::outcome::{FileOutcome, Trouble};
use super::settings::Schema;
use super::tags_file::{Tag, TagsWriter};
use crate::inventory::{FileStart, LogFile};
use crate::retag::{TagMeasures, value};

/// Of the log, between two syncs.
const BATCH_BYTES: u64 = 8 << 20;
const STEP: Duration = Duration::from_millis(500);
/// Of a header: what stands before the flags, which are cleared when a file is closed.
const BEFORE_POSITION: usize = 13;

/// On the way through a file.
struct Pass {
    file: Arc<LogFile>,
    start: Arc<FileStart>,
    writer: TagsWriter,
    /// What earlier runs have written.
    known: Peekable<IntoIter<Tag>>,
    /// Up to there they have.
    resumed: u64,
    /// Up to there all tags are known.
    released: u64,
    /// What replicas may have, and up to where the log was looked at, as it was said last.
    published: (u64, u64),
    /// The last GTID event: where it stands, and its checksum.
    gtid: (u64, u32),
    measured: TagMeasures,
}

impl Follower {
    pub(super) fn file(&mut self, file: &Arc<LogFile>) -> Result<FileOutcome, Trouble> {
        let inventory = Arc::clone(&self.inventory);
        let _stays = inventory.read_from(file);
        let Some(start) = self.start_of(file)? else {
            return Ok(if self.shared.is_stopped() { FileOutcome::Stopped } else { FileOutcome::Whole });
        };
        let (writer, known) = TagsWriter::open(Arc::clone(&self.fs), file.path(), identity(&start))
            .map_err(|error| disk(file, &error))?;
        // Replicas can have at once what earlier runs have tagged.
        inventory.tagged_to(file, writer.end(), 0);
        self.begin(file)?;
        self.measured.begin_file();
        let end = writer.end();
        let mut pass = Pass {
            file: Arc::clone(file),
            start,
            writer,
            known: known.into_iter().peekable(),
            resumed: end,
            released: end,
            published: (end, 0),
            gtid: (0, 0),
            measured: TagMeasures::default(),
        };
        let mut reader = file.reader(FIRST_OFFSET)?;
        loop {
            let extent = inventory.extent(file);
            let until = extent.end.min(reader.offset() + BATCH_BYTES);
            while reader.offset() < until {
                let at = reader.offset();
                let Some(bytes) = reader.next(extent.end)? else { break };
                if !self.event(&mut pass, at, bytes) {
                    let file = file.path().display();
                    tracing::warn!(
                        "retag: the stored tags of {file} belong to another log of this name, computing them again"
                    );
                    pass.writer.restart().map_err(|error| disk(&pass.file, &error))?;
                    return Ok(FileOutcome::Again);
                }
            }
            let is_over = reader.offset() >= extent.end && !extent.grows;
            if is_over {
                self.end_of_file(&mut pass, extent.end);
            }
            pass.writer.sync(pass.released).map_err(|error| disk(file, &error))?;
            let published = (pass.released, reader.offset());
            if pass.published != published {
                inventory.tagged_to(file, published.0, published.1);
                self.tags.set_tagged(LogPosition::new(Arc::clone(&file.name), published.0), &self.measured);
                pass.published = published;
            }
            if is_over {
                pass.say();
                return Ok(FileOutcome::Whole);
            }
            self.definitions(&LogPosition::new(Arc::clone(&file.name), reader.offset()));
            if reader.offset() >= extent.end {
                inventory.wait_beyond(file, reader.offset(), STEP);
            }
            if self.shared.is_stopped() {
                return Ok(FileOutcome::Stopped);
            }
        }
    }

    /// What it begins with, waited for. `None`: nothing comes of it.
    fn start_of(&self, file: &LogFile) -> Result<Option<Arc<FileStart>>, Trouble> {
        loop {
            let extent = self.inventory.extent(file);
            if let Some(start) = file.start(extent.end)? {
                return Ok(Some(start));
            }
            if !extent.grows || self.shared.is_stopped() {
                return Ok(None);
            }
            self.inventory.wait_beyond(file, extent.end, STEP);
        }
    }

    /// The event that stands at `at`. False: an earlier run has tagged another log.
    fn event(&mut self, pass: &mut Pass, at: u64, bytes: &[u8]) -> bool {
        let end = at + bytes.len() as u64;
        let kind = Header::parse(bytes).map(|header| header.kind);
        if matches!(kind, Some(Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID)) {
            pass.gtid = (at, crc32fast::hash(bytes));
            if !pass.is_as_known() {
                return false;
            }
        }
        let Some(tagger) = &mut self.tagger else {
            pass.release(end);
            return true;
        };
        let place = |offset: u64| LogPosition::new(Arc::clone(&pass.file.name), offset);
        let format = &pass.start.format;
        let tag = Event::parse(Bytes::copy_from_slice(bytes), format.checksum)
            .map_err(|error| error.to_string())
            .and_then(|event| tagger.event(&event, format, &place(at), &place(end)).map_err(|error| error.to_string()));
        match tag {
            Ok(tag) => {
                if let Some(tag) = tag {
                    self.has_unknown |= tag.cause == Cause::Unknown;
                    self.measured.add(&tag);
                    pass.tagged(&tag);
                }
                // What is larger keeps its tag: nobody has to wait for its end.
                let is_large = end - pass.gtid.0.min(end) > self.settings.options.transaction_bytes_max;
                if is_large || tagger.is_between_transactions() {
                    pass.release(end);
                }
            }
            Err(why) => {
                tracing::warn!("retag: {}: {why}. From there on this file keeps the source's tags", place(at));
                self.tagger = None;
                pass.release(end);
            }
        }
        true
    }

    /// Nothing more comes of this file.
    fn end_of_file(&mut self, pass: &mut Pass, end: u64) {
        // A transaction that was cut off by a crash of the source does not go on in the next file.
        if self.tagger.as_ref().is_some_and(|tagger| !tagger.is_between_transactions()) {
            self.tagger = None;
        }
        pass.release(end);
    }

    /// Takes in what the source has said of its tables; asks it anew where that may help.
    fn definitions(&mut self, at: &LogPosition) {
        let Some(tagger) = &mut self.tagger else { return };
        if let Some(read) = self.asking.answer() {
            tagger.take_definitions(read);
        }
        tagger.come_to(at);
        let (definitions, changed) = tagger.definitions();
        if self.shown != Some(changed) {
            self.tags.set_schema(definitions.clone());
            self.shown = Some(changed);
        }
        let changes = tagger.redefinitions();
        let may_ask = self.has_unknown && matches!(self.settings.schema, Some(Schema::OfSource));
        if may_ask && self.asking.is_due(changes) {
            tagger.expect_definitions();
            self.has_unknown = !self.asking.begin(changes);
        }
    }
}

impl Pass {
    fn release(&mut self, end: u64) {
        self.released = self.released.max(end);
    }

    /// Whether earlier runs have seen this GTID event, too, if they have been here.
    fn is_as_known(&mut self) -> bool {
        let (at, event) = self.gtid;
        match self.known.peek() {
            Some(known) if known.offset < at => false,
            Some(known) if known.offset == at => {
                let is_it = known.event == event;
                self.known.next();
                is_it
            }
            Some(_) | None => true,
        }
    }

    fn tagged(&mut self, tag: &NewTag) {
        self.measured.add(tag);
        if !tag.is_changed() {
            return;
        }
        let (at, event) = self.gtid;
        // What replicas may have already stays as it is.
        if at == tag.gtid_at && at >= self.resumed && at >= self.released {
            self.writer.push(Tag { offset: at, value: value::of(tag.tag), event });
        }
    }

    fn say(&self) {
        let causes: Vec<String> =
            self.measured.causes.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
        tracing::info!(
            "retag: {}: {} of {} tags changed; transactions wait for: {}",
            self.file.name,
            self.measured.changed,
            self.measured.transactions,
            causes.join(", ")
        );
    }
}

/// Tells a log file from another one of its name, by its format description.
fn identity(start: &FileStart) -> u32 {
    let event = &start.format_event;
    let sum = if start.format.checksum == Checksum::Off { 0 } else { 4 };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(event.get(..BEFORE_POSITION).unwrap_or_default());
    hasher.update(event.get(HEADER_LEN..event.len().saturating_sub(sum)).unwrap_or_default());
    hasher.finalize()
}

fn disk(file: &LogFile, error: &std::io::Error) -> Trouble {
    Trouble(format!("the tags of {}: {error}", file.path().display()))
}
