//! Takes the log from where the archive ends, and puts what comes next. One call of [`Writer::step`] does one thing; it keeps no more than one segment in memory.
//!
//! A segment ends between two transactions where there is such a place in it. What was put and not yet recorded is recorded by the next try, not put again: all
//! uploads together are hardly more than the log.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;

use crate::manifest::{ArchiveError, Manifest, Result, text_of};
use crate::record::{Record, Segment};
use crate::scan::Scan;
use crate::segment::{self, SEGMENT_BYTES_MAX};
use crate::state::{File, follows};
use crate::store::Store;

/// What is put without being recorded for so long might be removed as nobody's: it is put again.
const RECORDED_AFTER_MAX: Duration = Duration::from_secs(1800);
/// Less than this waits up to [`PATIENT`] times as long: a record has about 400 bytes of its own.
const SMALL_BYTES: u64 = 16 << 10;
const PATIENT: u32 = 10;
/// Another writer is expected for so long.
const RIVAL_FOR: Duration = Duration::from_secs(600);

/// A file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    pub name: String,
    /// Up to where it is durable.
    pub end: u64,
    /// Nothing more of it comes.
    pub is_complete: bool,
}

/// A log that grows.
pub trait Log {
    /// Oldest first.
    fn files(&self) -> io::Result<Vec<LogFile>>;
    /// Reads up to `into.len()` durable bytes at a place.
    fn read_at(&self, file: &str, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Whose log it is; `None`: that is not known yet.
    fn owner(&self) -> io::Result<Option<String>>;
    /// What is known of the source.
    fn facts(&self) -> io::Result<Option<Vec<u8>>>;
}

/// How an archive is written.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// What is so old is put although it is no whole segment.
    pub every: Duration,
    /// Where a file is gone that the archive lacks, it goes on behind it.
    pub may_leave_gap: bool,
}

/// When a part of the log is put that is no whole segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialPut {
    /// When it is as old as [`Pace::every`].
    WhenOld,
    /// Although it is young.
    Now,
}

/// What a step has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There may be more to do.
    Put,
    /// Everything is in the archive.
    AtEnd,
    /// What is left is young, or a transaction that has not ended.
    Waits,
    /// The archive has more than the log: another process writes it too.
    Behind,
}

/// A segment that was cut; the next try is with the same one.
struct PreparedSegment {
    segment: Segment,
    object: Bytes,
    /// When it was put.
    put: Option<Instant>,
}

struct FileScan {
    file: String,
    /// What is before it was taken out of the scan.
    from: u64,
    scan: Scan,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Owner {
    vendor: String,
    source: String,
}

/// Where the next segment comes from.
struct NextSegment<'a> {
    file: &'a LogFile,
    from: u64,
    is_behind_gap: bool,
    /// What came before the file is said nowhere else.
    says_before: bool,
}

/// See the module.
pub struct Writer {
    store: Store,
    id: String,
    pace: Pace,
    manifest: Option<Manifest>,
    /// The archive's end was compared with the log.
    is_compared: bool,
    /// The facts of this run are in the archive.
    are_facts_known: bool,
    scanned: Option<FileScan>,
    prepared: Option<PreparedSegment>,
    /// Where the archive ended when something came behind it, and when.
    waits: Option<(String, u64, Instant)>,
    /// The archive had more than the log.
    was_behind: bool,
    /// When another writer was faster.
    rival: Option<Instant>,
    archived: u64,
}

impl Writer {
    /// `id`: different for each process.
    pub fn new(store: Store, id: String, pace: Pace) -> Self {
        Self {
            store,
            id,
            pace,
            manifest: None,
            is_compared: false,
            are_facts_known: false,
            scanned: None,
            prepared: None,
            waits: None,
            was_behind: false,
            rival: None,
            archived: 0,
        }
    }

    /// Bytes of the log that this writer has put into the archive.
    pub fn archived(&self) -> u64 {
        self.archived
    }

    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Puts the next segment, if it is time.
    pub fn step(&mut self, log: &dyn Log, due: PartialPut) -> Result<Step> {
        let Some(owner) = log.owner().map_err(of_log)? else { return Ok(Step::AtEnd) };
        let mut manifest = match self.manifest.take() {
            Some(manifest) => manifest,
            None => self.begin()?,
        };
        let done = self.go_on(&mut manifest, log, &owner, due);
        if matches!(done, Err(ArchiveError::Overtaken)) {
            (self.is_compared, self.prepared, self.scanned) = (false, None, None);
            self.rival = Some(Instant::now());
        }
        self.manifest = Some(manifest);
        done
    }

    fn begin(&mut self) -> Result<Manifest> {
        let manifest = Manifest::load(&self.store, &self.id)?;
        manifest.check_store()?;
        self.is_compared = false;
        Ok(manifest)
    }

    fn go_on(&mut self, manifest: &mut Manifest, log: &dyn Log, owner: &str, due: PartialPut) -> Result<Step> {
        match &manifest.state().owner {
            None => manifest.commit(vec![Record::Owner { owner: owner.to_owned() }])?,
            Some(known) if parse(known)? == parse(owner)? => {}
            Some(known) => {
                return Err(ArchiveError::Refused(format!(
                    "{} has the log of another source ({}): give each source its own place",
                    self.store.url(),
                    parse(known)?.source
                )));
            }
        }
        let files = log.files().map_err(of_log)?;
        if !self.is_compared {
            self.compare(manifest, log, &files)?;
            self.is_compared = true;
        }
        let next = match self.next(manifest, &files)? {
            Ok(next) => next,
            Err(step) => {
                self.was_behind |= step == Step::Behind;
                return Ok(step);
            }
        };
        if std::mem::take(&mut self.was_behind) {
            // What the other one has put in front of it.
            self.compare(manifest, log, &files)?;
        }
        let Some((segment, is_last)) = self.segment(manifest, log, &next, due)? else { return Ok(Step::Waits) };
        let mut records = Vec::new();
        if !self.are_facts_known
            && let Some(facts) = log.facts().map_err(of_log)?
        {
            if manifest.state().facts.as_ref().is_none_or(|known| known.sum != segment::checksum(&facts)) {
                records.push(Record::Facts(manifest.store_text("facts", &facts)?));
            }
            self.are_facts_known = true;
        }
        if next.is_behind_gap {
            records.push(Record::Gap { file: segment.file.clone() });
        }
        records.push(Record::Segment(segment.clone()));
        if is_last {
            records.push(complete(manifest, &segment)?);
        }
        manifest.commit(records)?;
        (self.prepared, self.waits) = (None, None);
        self.archived += segment.to - segment.from;
        // Readers do without it.
        if let Err(error) = manifest.tidy() {
            tracing::debug!("the archive's snapshot is left out: {error}");
        }
        Ok(Step::Put)
    }

    /// Where the archive goes on; `Err`: nothing is to be done.
    fn next<'a>(
        &self,
        manifest: &mut Manifest,
        files: &'a [LogFile],
    ) -> Result<std::result::Result<NextSegment<'a>, Step>> {
        let Some(oldest) = files.first() else { return Ok(Err(Step::AtEnd)) };
        let Some(last) = manifest.state().files.last().cloned() else {
            return Ok(Ok(NextSegment { file: oldest, from: 0, is_behind_gap: false, says_before: true }));
        };
        let following = |file, from| NextSegment { file, from, is_behind_gap: false, says_before: false };
        let at = files.iter().position(|file| file.name == last.name);
        if let Some(file) = at.and_then(|at| files.get(at)).filter(|_| !last.is_complete) {
            if file.end > last.size {
                return Ok(Ok(following(file, last.size)));
            }
            if !file.is_complete {
                return Ok(Err(if file.end < last.size { Step::Behind } else { Step::AtEnd }));
            }
            if file.end < last.size {
                return Err(another_history(&last));
            }
            // All of it came before it was known to be all.
            let record = list_of(manifest, &last)?;
            manifest.commit(vec![record])?;
            return Ok(Err(Step::Put));
        }
        if last.is_complete {
            if let Some(file) = files.iter().find(|file| follows(&last.name, &file.name)) {
                return Ok(Ok(following(file, 0)));
            }
            if at.is_some() {
                return Ok(Err(Step::AtEnd));
            }
        }
        let number = |name: &str| binlog::position::file_number(name);
        if number(&oldest.name) < number(&last.name) {
            return Ok(Err(Step::Behind));
        }
        if self.pace.may_leave_gap {
            return Ok(Ok(NextSegment { file: oldest, from: 0, is_behind_gap: true, says_before: true }));
        }
        Err(ArchiveError::Refused(format!(
            "the archive ends at {}:{}, and the log begins with {}: what is between is gone. Archive it at another place, or put the files back",
            last.name, last.size, oldest.name
        )))
    }

    /// The last segment's bytes must be the log's own.
    fn compare(&self, manifest: &Manifest, log: &dyn Log, files: &[LogFile]) -> Result<()> {
        let Some(last) = manifest.state().files.last() else { return Ok(()) };
        let Some(file) = files.iter().find(|file| file.name == last.name) else { return Ok(()) };
        let segments = segments_of(&self.store, last)?;
        // What the log does not have yet is compared when it goes on: by the one that put it.
        for segment in segments.iter().rev().filter(|segment| segment.to <= file.end).take(1) {
            let bytes = read(log, &segment.file, segment.from, (segment.to - segment.from) as usize)?;
            if segment::checksum(&bytes) != segment.sum {
                return Err(another_history(last));
            }
        }
        Ok(())
    }

    /// The next segment, put; and whether it is the last one of its file.
    fn segment(
        &mut self,
        manifest: &mut Manifest,
        log: &dyn Log,
        next: &NextSegment<'_>,
        due: PartialPut,
    ) -> Result<Option<(Segment, bool)>> {
        let file = next.file;
        let is_it =
            |prepared: &PreparedSegment| prepared.segment.file == file.name && prepared.segment.from == next.from;
        if !self.prepared.as_ref().is_some_and(is_it) {
            self.prepared = None;
            if !(due == PartialPut::Now || file.is_complete || self.is_time(file, next.from)) {
                return Ok(None);
            }
            self.prepared = self.cut(log, next)?;
            // Where there is another writer it is not put in vain.
            let has_rival = self.rival.is_some_and(|seen| seen.elapsed() < RIVAL_FOR);
            if has_rival && self.prepared.is_some() && manifest.refresh()? {
                return Err(ArchiveError::Overtaken);
            }
        }
        let Some(prepared) = &mut self.prepared else { return Ok(None) };
        if prepared.put.is_none_or(|put| put.elapsed() > RECORDED_AFTER_MAX) {
            self.store.put(&prepared.segment.object, prepared.object.clone())?;
            prepared.put = Some(Instant::now());
        }
        let is_last = file.is_complete && prepared.segment.to == file.end;
        Ok(Some((prepared.segment.clone(), is_last)))
    }

    /// The next segment; `None`: a transaction has to end first.
    fn cut(&mut self, log: &dyn Log, next: &NextSegment<'_>) -> Result<Option<PreparedSegment>> {
        let (file, from) = (next.file, next.from);
        let length = (file.end - from).min(SEGMENT_BYTES_MAX as u64) as usize;
        let mut bytes = read(log, &file.name, from, length)?;
        let scanned = scan_up_to(&mut self.scanned, log, &file.name, from)?;
        let scan = &mut scanned.scan;
        let known = scan.offset().saturating_sub(from) as usize;
        scan.push(bytes.get(known..).unwrap_or_default())
            .map_err(|error| ArchiveError::Log(format!("{} {error}", file.name)))?;
        let window = from + bytes.len() as u64;
        let to = if file.is_complete && window == file.end {
            window
        } else if scan.whole() > from {
            scan.whole()
        } else if length == SEGMENT_BYTES_MAX {
            window
        } else {
            return Ok(None);
        };
        let found = scan.take(to);
        scanned.from = to;
        bytes.truncate((to - from) as usize);
        let object = Bytes::from(segment::pack(&bytes).map_err(of_log)?);
        let segment = Segment {
            file: file.name.clone(),
            from,
            to,
            object: format!("segments/{}/{from:012}-{to:012}-{}", file.name, self.id),
            bytes: object.len() as u64,
            sum: segment::checksum(&bytes),
            first: found.first,
            last: found.last,
            gtids: found.gtids.to_string(),
            before: if next.says_before { found.before.to_string() } else { String::new() },
        };
        Ok(Some(PreparedSegment { segment, object, put: None }))
    }

    /// Whether so much has come, or so long ago.
    fn is_time(&mut self, file: &LogFile, from: u64) -> bool {
        let waiting = file.end - from;
        if waiting >= SEGMENT_BYTES_MAX as u64 {
            return true;
        }
        let since = match &self.waits {
            Some((name, at, since)) if *name == file.name && *at == from => *since,
            _ => {
                let since = Instant::now();
                self.waits = Some((file.name.clone(), from, since));
                since
            }
        };
        let patience = if waiting < SMALL_BYTES { self.pace.every * PATIENT } else { self.pace.every };
        since.elapsed() >= patience
    }
}

/// The scan of a file, of which everything before `from` was taken.
fn scan_up_to<'a>(scanned: &'a mut Option<FileScan>, log: &dyn Log, file: &str, from: u64) -> Result<&'a mut FileScan> {
    const READ_BYTES: u64 = 1 << 20;
    let fits = |scanned: &FileScan| scanned.file == file && scanned.from == from;
    let begin = || FileScan { file: file.to_owned(), from: 0, scan: Scan::default() };
    let mut kept = scanned.take().filter(fits).unwrap_or_else(begin);
    while kept.scan.offset() < from {
        let length = (from - kept.scan.offset()).min(READ_BYTES) as usize;
        let bytes = read(log, file, kept.scan.offset(), length)?;
        kept.scan.push(&bytes).map_err(|error| ArchiveError::Log(format!("{file} {error}")))?;
    }
    if kept.from < from {
        kept.scan.take(from);
        kept.from = from;
    }
    Ok(scanned.insert(kept))
}

/// Says that a file is complete with this segment, which is not recorded yet.
fn complete(manifest: &Manifest, last: &Segment) -> Result<Record> {
    let mut segments = manifest.state().file(&last.file).map(|file| file.segments.clone()).unwrap_or_default();
    segments.push(last.clone());
    list(manifest, &last.file, last.to, &segments)
}

fn list_of(manifest: &Manifest, file: &File) -> Result<Record> {
    list(manifest, &file.name, file.size, &file.segments)
}

fn list(manifest: &Manifest, file: &str, size: u64, segments: &[Segment]) -> Result<Record> {
    let text = serde_json::to_vec(segments).map_err(|error| ArchiveError::Log(error.to_string()))?;
    let list = manifest.store_text(&format!("files/{file}"), &text)?;
    Ok(Record::Complete { file: file.to_owned(), size, list })
}

/// The segments of a file of the archive, from its beginning.
pub fn segments_of(store: &Store, file: &File) -> Result<Vec<Segment>> {
    let Some(list) = &file.list else { return Ok(file.segments.clone()) };
    let text = text_of(store, list)?;
    let segments: Vec<Segment> =
        serde_json::from_slice(&text).map_err(|error| ArchiveError::damaged(&list.object, error))?;
    let mut end = 0;
    for segment in &segments {
        if segment.from != end || segment.to <= end {
            return Err(ArchiveError::damaged(&list.object, "its segments do not follow each other"));
        }
        end = segment.to;
    }
    if end != file.size {
        return Err(ArchiveError::damaged(&list.object, "its segments are not the whole file"));
    }
    Ok(segments)
}

fn read(log: &dyn Log, file: &str, from: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match log.read_at(file, rest, from + done as u64) {
            Ok(0) => return Err(ArchiveError::Log(format!("{file} is shorter than it was"))),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(of_log(error)),
        }
    }
    Ok(bytes)
}

fn parse(owner: &str) -> Result<Owner> {
    serde_json::from_str(owner).map_err(|error| ArchiveError::damaged("the owner's record", error))
}

fn of_log(error: io::Error) -> ArchiveError {
    ArchiveError::LogIo(error)
}

fn another_history(last: &File) -> ArchiveError {
    ArchiveError::Refused(format!(
        "the archive's {} is not the log's: the source was reset or restored, or the archive is another's. Nothing was written into it",
        last.name
    ))
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
