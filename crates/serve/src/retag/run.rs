//! Copies files with new tags, one transaction at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use binlog::patch::{Patch, PatchError};
use binlog::{Event, LogPosition};
use engine::retag::{NewTag, Options, Tagger};
use engine::survey::Definitions;
use relay::{FilesReader, LocatedEvent, LogReader, Read, Start};

use super::defined_tables::read_definitions;
use super::error::RetagError;
use super::output::Output;
use super::tag_measures::TagMeasures;
use super::value::{self, EventGrowth};

/// The files to copy, and how.
pub struct Job {
    /// The files, in their order.
    pub files: Vec<PathBuf>,
    pub out: PathBuf,
    pub definitions: Definitions,
    pub options: Options,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Summary {
    pub files: u64,
    pub tags: TagMeasures,
    /// How often keys were forgotten because memory was full.
    pub forgotten: u64,
}

/// Writes the copies; when it fails, none stays. `on_tag` sees each new tag and its file, in order; `read` counts bytes, those of the look at definitions
/// before included; `stop` ends it.
///
/// # Errors
/// [`RetagError`]: nothing stays in the folder.
pub fn retag(
    job: Job,
    on_tag: &mut dyn FnMut(&str, &NewTag),
    read: &AtomicU64,
    stop: &AtomicBool,
) -> Result<Summary, RetagError> {
    let mut go_on = |bytes: u64| {
        read.fetch_add(bytes, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) { Err(RetagError::Stopped) } else { Ok(()) }
    };
    let output = Output::new(&job.out)?;
    // What the log itself says needs no look ahead.
    let later = if job.definitions.is_empty() {
        Vec::new()
    } else {
        read_definitions(&job.files, job.options.transaction_bytes_max, &mut go_on)?
    };
    let mut reader = FilesReader::open(job.files, Start::Beginning)?;
    let mut copy = FileCopy {
        tagger: Tagger::new(job.options, job.definitions, &later),
        bytes_max: job.options.transaction_bytes_max,
        output,
        file: Arc::from(""),
        held: Vec::new(),
        held_bytes: 0,
        longer_by: 0,
        summary: Summary::default(),
    };
    while let Read::Event(located) = reader.next()? {
        go_on(located.event.bytes().len() as u64)?;
        copy.event(located, on_tag)?;
        reader.release();
    }
    copy.finish()
}

struct FileCopy {
    tagger: Tagger,
    bytes_max: u64,
    output: Output,
    file: Arc<str>,
    /// Events of the transaction under way, and where each stands in its file.
    held: Vec<(u64, Event)>,
    held_bytes: u64,
    /// By how much what was written of the file is longer than what stands in the original.
    longer_by: u64,
    summary: Summary,
}

impl FileCopy {
    fn event(&mut self, located: &LocatedEvent, on_tag: &mut dyn FnMut(&str, &NewTag)) -> Result<(), RetagError> {
        if self.file != located.position.file {
            self.write_held(None)?;
            self.file = Arc::clone(&located.position.file);
            self.output.begin(&self.file)?;
            self.longer_by = 0;
            self.summary.files += 1;
            self.summary.tags.begin_file();
        }
        self.held_bytes += located.event.bytes().len() as u64;
        self.held.push((located.position.offset, located.event.clone()));
        let end = located.end_position();
        let tag = self.tagger.event(&located.event, &located.format, &located.position, &end)?;
        if let Some(tag) = &tag {
            self.summary.tags.add(tag);
            on_tag(&self.file, tag);
        }
        // What is larger than this keeps its tag: nothing has to wait for its end.
        if tag.is_some() || self.held_bytes > self.bytes_max || self.tagger.is_between_transactions() {
            self.write_held(tag.as_ref())?;
        }
        Ok(())
    }

    fn write_held(&mut self, tag: Option<&NewTag>) -> Result<(), RetagError> {
        let tag = tag.filter(|tag| tag.is_changed());
        for (offset, event) in self.held.drain(..) {
            let tag = tag.filter(|tag| tag.gtid_at == offset);
            if tag.is_none() && self.longer_by == 0 {
                self.output.write(event.bytes())?;
                continue;
            }
            let (bytes, longer_by) = changed(&event, tag, self.longer_by)
                .map_err(|why| RetagError::Patch { at: LogPosition { file: Arc::clone(&self.file), offset }, why })?;
            self.longer_by = longer_by;
            self.output.write(&bytes)?;
        }
        self.held_bytes = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<Summary, RetagError> {
        self.write_held(None)?;
        if self.summary.tags.transactions == 0 {
            return Err(RetagError::NoTags);
        }
        self.summary.forgotten = self.tagger.forgotten();
        self.output.finish()?;
        Ok(self.summary)
    }
}

/// The event with its new tag, if it gets one, and behind others that are longer by so much than they were; and by how much it and those are.
fn changed(event: &Event, tag: Option<&NewTag>, longer_by: u64) -> Result<(Vec<u8>, u64), PatchError> {
    let mut bytes = event.bytes().to_vec();
    if let Some(tag) = tag {
        value::give(&mut bytes, value::of(tag.tag), event.checksum(), EventGrowth::MayGrow)?;
    }
    let longer_by = longer_by + (bytes.len() - event.bytes().len()) as u64;
    // 0 says that it has none.
    let behind = event.header().log_pos;
    if longer_by > 0 && behind > 0 {
        let behind = u64::from(behind) + longer_by;
        Patch::new(&mut bytes, event.checksum())?.log_pos(behind as u32).finish();
    }
    Ok((bytes, longer_by))
}
