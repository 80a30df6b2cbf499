//! What the manifest says, one record after the other. It is JSON, so that it can be read without Heddle.

use serde::{Deserialize, Serialize};

/// Of the layout: a later one is refused.
pub const FORMAT: u32 = 1;

/// A part of a log file, in an object of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub file: String,
    /// Of its first byte in the file.
    pub from: u64,
    /// Behind its last byte.
    pub to: u64,
    pub object: String,
    /// Of the object.
    pub bytes: u64,
    /// XXH3 of the log's bytes.
    pub sum: String,
    /// By the source's clock, in seconds since 1970: of its earliest and latest event. 0: of none.
    pub first: u32,
    pub last: u32,
    /// Of the transactions that begin in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gtids: String,
    /// Of the first segment of an archive: the GTIDs of all files before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
}

/// An object whose content is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObject {
    pub object: String,
    /// XXH3 of what it holds.
    pub sum: String,
    /// Before it was compressed.
    pub length: u64,
}

/// One thing that happened to the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// Whose logs these are, for ever: the mirror's `heddle-mirror.json`. The first record.
    Owner { owner: String },
    /// What is known of the source: the mirror's `heddle-source.json`.
    Facts(StoredObject),
    /// The log goes on.
    Segment(Segment),
    /// The last file is complete; the object lists its segments.
    Complete { file: String, size: u64, list: StoredObject },
    /// The next segment begins a file that does not follow the last one. What is between was never archived.
    Gap { file: String },
    /// The files before this one were removed.
    Removed { before: String },
}

/// One object of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub format: u32,
    /// Which process wrote it.
    pub writer: String,
    pub records: Vec<Record>,
}
