//! What the mirror publishes: its files, their durable end, and whether it has caught up with its source. Nothing here reads a log.

use std::io;
use std::path::Path;
use std::sync::Arc;

use binlog::LogPosition;
use bytes::Bytes;
use relay::fs::RealFs;
use relay::packed;

use super::Inventory;
use super::extent::TagExtent;
use super::file::LogFile;
use super::source::SourceFacts;

/// Whether the mirror has caught up with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MirrorPhase {
    /// The mirror is receiving what the source had when it connected.
    Settling,
    /// The mirror has all of that, or there is no source at the moment.
    Settled,
}

impl Inventory {
    /// Sets all files of the folder, oldest first, and the durable end of the last one.
    pub fn hold(&self, dir: &Path, names: &[String], durable: Option<&LogPosition>) -> io::Result<()> {
        let mut state = self.state();
        dir.clone_into(&mut state.dir);
        let files = self.open(&state.files, state.series, dir, names)?;
        state.files = files;
        state.end = durable.map_or(0, |durable| durable.offset);
        drop(state);
        self.tail.forget();
        *self.tip() = None;
        self.announce();
        Ok(())
    }

    /// Another server has taken the place of the source: from now on its files are held. Those of the source before it are complete up to `end`, behind which nothing is sent any more.
    pub fn succeed(&self, end: u64) {
        let mut state = self.state();
        if let Some(last) = state.files.last() {
            last.seal(end.min(state.end));
        }
        let files = std::mem::take(&mut state.files);
        state.former.push(files);
        state.series += 1;
        state.end = 0;
        drop(state);
        *self.tip() = None;
        self.announce();
    }

    /// The files of a former source as they are found, up to where the next one has taken its place; the oldest source first, before the present one's are held.
    pub fn hold_former(&self, dir: &Path, names: &[String], end: u64) -> io::Result<()> {
        let mut state = self.state();
        let files = self.open(&[], state.series, dir, names)?;
        if let Some(last) = files.last() {
            last.seal(end.min(packed::open(&RealFs, last.path())?.len()?));
        }
        state.former.push(files);
        state.series += 1;
        Ok(())
    }

    /// Moves the durable end. The name of a new file seals the one before.
    pub fn durable(&self, end: &LogPosition) {
        self.durable_with(end, &[]);
    }

    /// Moves the durable end. `newest`: the last events before it that are still in memory.
    pub fn durable_with(&self, end: &LogPosition, newest: &[Bytes]) {
        let mut state = self.state();
        // A file counts from its first event on: without one a crash takes it away again.
        if end.offset <= binlog::FIRST_OFFSET {
            return;
        }
        if state.files.last().is_none_or(|last| *last.name != *end.file) {
            let sealed = state.end;
            if let Some(last) = state.files.last() {
                last.seal(sealed);
            }
            let file = LogFile::new(&end.file, state.dir.join(&*end.file), state.series, &self.tail);
            state.files.push(Arc::new(file));
        }
        state.end = end.offset;
        let length: u64 = newest.iter().map(|event| event.len() as u64).sum();
        if let Some(offset) = end.offset.checked_sub(length).filter(|_| length > 0) {
            self.tail.push((state.series, Arc::clone(&end.file)), offset, newest);
        }
        drop(state);
        self.announce();
    }

    /// Sets the server whose positions replicas have that attach by file and position.
    pub fn take_positions_of(&self, identity: &str) {
        self.state().positions_of = Some(identity.to_owned());
    }

    /// Sets the identity of the present source.
    pub fn is_of(&self, identity: &str) {
        self.state().identity = Some(identity.to_owned());
    }

    /// Sets the facts about the source.
    pub fn learn(&self, facts: SourceFacts) {
        self.state().source = Some(Arc::new(facts));
    }

    /// Sets whether the mirror has caught up.
    pub fn stand(&self, standing: MirrorPhase) {
        self.state().is_settling = standing == MirrorPhase::Settling;
    }

    /// The source's stream comes without a pause: it has more than what is here.
    pub fn begin_streaming(&self) {
        self.state().is_streaming = true;
    }

    pub fn end_streaming(&self) {
        self.state().is_streaming = false;
    }

    /// From now on replicas are sent only transactions with new tags: none so far.
    pub fn serve_tagged(&self) {
        self.state().tagged = Some(TagExtent::default());
    }

    /// All files before this one have new tags, and so has this one before `end`. The tagger has read up to `seen`.
    pub fn tagged_to(&self, file: &LogFile, end: u64, seen: u64) {
        self.state().tagged = Some(TagExtent { place: file.place(), end, seen });
        self.announce();
    }

    /// Ends all waiting.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.announce();
    }

    /// Files by their names. All but the last are complete.
    fn open(&self, known: &[Arc<LogFile>], series: u64, dir: &Path, names: &[String]) -> io::Result<Vec<Arc<LogFile>>> {
        let mut files = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            // Who reads a file goes on with it.
            let path = dir.join(name);
            let known = known.iter().find(|file| file.path() == path).cloned();
            let file = known.unwrap_or_else(|| Arc::new(LogFile::new(name, path, series, &self.tail)));
            if index + 1 < names.len() && file.sealed().is_none() {
                file.seal(packed::open(&RealFs, file.path())?.len()?);
            }
            files.push(file);
        }
        Ok(files)
    }
}
