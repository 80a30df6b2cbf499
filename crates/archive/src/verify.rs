//! Whether everything that the manifest names is there and whole. It changes nothing.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::manifest::{Manifest, Result};
use crate::reader::{fetch, patient};
use crate::record::Segment;
use crate::store::{Object, StoreError};
use crate::writer::segments_of;
use crate::{ArchiveError, State};

/// How closely it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Every object is there, with its size.
    Sizes,
    /// Every segment is fetched and compared with its checksum.
    Contents,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyOutcome {
    pub files: usize,
    pub segments: usize,
    /// Of the log.
    pub bytes: u64,
    /// Of the objects.
    pub stored: u64,
    /// What is wrong, by object.
    pub problems: Vec<String>,
    /// Files that were never archived are missing before these.
    pub gaps: Vec<String>,
    /// Objects that the manifest does not name: what a crash leaves. `heddle archive prune` removes them.
    pub orphans: usize,
    pub orphan_bytes: u64,
}

/// The segments of all files; a list that can not be read is a problem.
pub(crate) fn all_segments(manifest: &Manifest) -> (Vec<Segment>, Vec<String>) {
    let (mut segments, mut problems) = (Vec::new(), Vec::new());
    for file in &manifest.state().files {
        match patient(|| segments_of(manifest.store(), file)) {
            Ok(found) => segments.extend(found),
            Err(error) => problems.push(error.to_string()),
        }
    }
    (segments, problems)
}

/// The objects that a state names beside segments.
pub(crate) fn named(state: &State) -> impl Iterator<Item = &str> {
    let lists = state.files.iter().filter_map(|file| file.list.as_ref());
    state.facts.iter().chain(lists).map(|named| named.object.as_str())
}

/// All objects that are not of the chain.
pub(crate) fn objects(manifest: &Manifest) -> Result<BTreeMap<String, Object>> {
    let mut found = BTreeMap::new();
    for folder in ["segments", "files", "facts"] {
        let listed = manifest.store().list(folder, None)?;
        found.extend(listed.into_iter().map(|object| (object.name.clone(), object)));
    }
    Ok(found)
}

/// Looks at all of it. `seen` is told of each segment, and may end it.
pub fn verify(manifest: &Manifest, depth: Depth, mut seen: impl FnMut(&Segment) -> bool) -> Result<VerifyOutcome> {
    let state = manifest.state();
    let mut objects = objects(manifest)?;
    let (segments, problems) = all_segments(manifest);
    let gaps = state.files.iter().skip(1).filter(|file| file.is_behind_gap).map(|file| file.name.clone()).collect();
    let mut verified = VerifyOutcome { files: state.files.len(), gaps, problems, ..VerifyOutcome::default() };
    for name in named(state) {
        if objects.remove(name).is_none() {
            verified.problems.push(format!("{name}: it is missing"));
        }
    }
    for segment in &segments {
        if !seen(segment) {
            return Err(StoreError::Stopped.into());
        }
        verified.segments += 1;
        verified.bytes += segment.to - segment.from;
        verified.stored += segment.bytes;
        match objects.remove(&segment.object) {
            None => verified.problems.push(format!("{}: it is missing", segment.object)),
            Some(object) if object.bytes != segment.bytes => verified
                .problems
                .push(format!("{}: it has {} bytes instead of {}", segment.object, object.bytes, segment.bytes)),
            Some(_) if depth == Depth::Contents => match patient(|| fetch(manifest.store(), segment)) {
                Ok(_) => {}
                Err(error @ ArchiveError::Damaged { .. }) => verified.problems.push(error.to_string()),
                Err(other) => return Err(other),
            },
            Some(_) => {}
        }
    }
    (verified.orphans, verified.orphan_bytes) = (objects.len(), objects.values().map(|object| object.bytes).sum());
    Ok(verified)
}
