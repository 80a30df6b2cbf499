//! What may go: the oldest files, by age and by size, and objects that nobody names. Never a file between two others, never the last one.
//!
//! First the manifest says that files are gone, then their objects go: a crash in between leaves objects that nobody names. Such an object may also be one that
//! a writer has just put: only old ones go, by the store's own clock.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::manifest::{ArchiveError, Manifest, Result};
use crate::record::Record;
use crate::state::File;
use crate::verify::{all_segments, named, objects};

/// An object that nobody names goes when it is so much older than the newest one, in seconds. A writer records what it has put within half of that.
const ORPHAN_SECONDS: i64 = 3600;
const TRIES: usize = 5;

/// What is kept; with several limits a file goes when one of them says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// A file goes when everything in it is older, in seconds, by the source's clock.
    pub seconds: Option<u64>,
    /// All objects together have not more.
    pub bytes: Option<u64>,
}

/// What would go, or has gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PruneOutcome {
    /// Oldest first.
    pub files: Vec<String>,
    /// Of their objects.
    pub bytes: u64,
    pub orphans: usize,
    pub orphan_bytes: u64,
    /// The oldest file that stays.
    pub first: Option<String>,
    #[serde(skip)]
    objects: Vec<String>,
}

impl Retention {
    /// How many of the oldest files may go.
    fn surplus(&self, files: &[File], now: u64) -> usize {
        let mut left: u64 = files.iter().map(|file| file.stored).sum();
        let mut count = 0;
        for pair in files.windows(2) {
            let [file, next] = pair else { break };
            let is_old = self.seconds.is_some_and(|kept| u64::from(file.times.last).saturating_add(kept) < now);
            if !((file.is_complete || next.is_behind_gap) && (is_old || self.bytes.is_some_and(|max| left > max))) {
                break;
            }
            left -= file.stored;
            count += 1;
        }
        count
    }
}

/// What would go now (`now`: seconds since 1970).
pub fn plan(manifest: &Manifest, keep: Retention, now: u64) -> Result<PruneOutcome> {
    let files = &manifest.state().files;
    let gone = files.get(..keep.surplus(files, now)).unwrap_or_default();
    let first = files.get(gone.len()).map(|file| file.name.clone());
    let names: BTreeSet<&str> = gone.iter().map(|file| file.name.as_str()).collect();
    let (segments, problems) = all_segments(manifest);
    if let Some(problem) = problems.into_iter().next() {
        // What it names is not known: nothing is nobody's.
        return Err(ArchiveError::Refused(problem));
    }
    let mut all = objects(manifest)?;
    let newest = all.values().map(|object| object.modified).max().unwrap_or_default();
    let mut pruned =
        PruneOutcome { files: gone.iter().map(|file| file.name.clone()).collect(), first, ..PruneOutcome::default() };
    for segment in &segments {
        let object = all.remove(&segment.object);
        if names.contains(segment.file.as_str()) {
            pruned.bytes += object.map_or(0, |object| object.bytes);
            pruned.objects.push(segment.object.clone());
        }
    }
    for name in named(manifest.state()) {
        all.remove(name);
    }
    pruned.objects.extend(gone.iter().filter_map(|file| file.list.as_ref()).map(|list| list.object.clone()));
    for object in all.into_values().filter(|object| newest - object.modified > ORPHAN_SECONDS) {
        pruned.orphans += 1;
        pruned.orphan_bytes += object.bytes;
        pruned.objects.push(object.name);
    }
    Ok(pruned)
}

/// Removes it.
pub fn prune(manifest: &mut Manifest, keep: Retention, now: u64) -> Result<PruneOutcome> {
    for _ in 0..TRIES {
        let planned = plan(manifest, keep, now)?;
        if let Some(first) = planned.first.as_ref().filter(|_| !planned.files.is_empty()) {
            match manifest.commit(vec![Record::Removed { before: first.clone() }]) {
                // Who writes the archive has just written.
                Err(ArchiveError::Overtaken) => continue,
                committed => committed?,
            }
        }
        manifest.store().delete(&planned.objects)?;
        return Ok(planned);
    }
    Err(ArchiveError::Overtaken)
}
