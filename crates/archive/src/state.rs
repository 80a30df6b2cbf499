//! What follows from all records of a manifest: the files of an archive with their segments, times and GTIDs. No input and output.

use binlog::LogPosition;
use binlog::gtids::GtidState;
use binlog::position::split_name;
use serde::{Deserialize, Serialize};

use crate::record::{FORMAT, Record, Segment, StoredObject};

/// Of the earliest and the latest event, by the source's clock, in seconds since 1970; 0: of none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    pub first: u32,
    pub last: u32,
}

/// A file of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub name: String,
    /// Up to where it is archived.
    pub size: u64,
    /// Nothing more of it comes.
    pub is_complete: bool,
    /// Of its objects.
    pub stored: u64,
    #[serde(flatten)]
    pub times: Times,
    /// Of its own transactions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gtids: String,
    /// GTIDs of all files before it; only of the first file, and behind a gap.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// Files before it were never archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_behind_gap: bool,
    /// Where its segments are listed, once it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<StoredObject>,
    /// Until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
}

/// The archive at one version of its manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub format: u32,
    /// The number of the last record.
    pub version: u64,
    pub owner: Option<String>,
    pub facts: Option<StoredObject>,
    /// Oldest first.
    pub files: Vec<File>,
    /// A file that may begin although it does not follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// A record that can not follow: the manifest was not written by Heddle, or is damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRecord(pub String);

/// Whether a file is the next one behind another.
pub fn follows(before: &str, behind: &str) -> bool {
    match (split_name(before), split_name(behind)) {
        (Some((base, number)), Some((other, next))) => base == other && number + 1 == next,
        _ => false,
    }
}

impl State {
    /// Up to where the log is archived.
    pub fn end(&self) -> Option<LogPosition> {
        self.files.last().map(|last| LogPosition::new(last.name.as_str(), last.size))
    }

    pub fn file(&self, name: &str) -> Option<&File> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Takes what a record says.
    pub fn apply(&mut self, record: Record) -> Result<(), BadRecord> {
        match record {
            Record::Owner { owner } => {
                if self.owner.is_some() {
                    return Err(BadRecord("the archive has an owner already".to_owned()));
                }
                (self.owner, self.format) = (Some(owner), FORMAT);
            }
            Record::Facts(named) => self.facts = Some(named),
            Record::Segment(segment) => self.segment(segment)?,
            Record::Complete { file, size, list } => {
                let last = self.files.last_mut().filter(|last| last.name == file && last.size == size);
                let Some(last) = last else {
                    return Err(BadRecord(format!("{file} is said to be complete at {size}, where it does not end")));
                };
                (last.is_complete, last.list, last.segments) = (true, Some(list), Vec::new());
            }
            Record::Gap { file } => self.gap = Some(file),
            Record::Removed { before } => {
                let Some(at) = self.files.iter().position(|file| file.name == before) else {
                    return Err(BadRecord(format!("the files before {before} are removed, which is not there")));
                };
                let gone: Vec<File> = self.files.drain(..at).collect();
                if let Some(first) = self.files.first_mut().filter(|first| !first.is_behind_gap) {
                    let mut before = GtidState::None;
                    for file in &gone {
                        if file.is_behind_gap || !file.before.is_empty() {
                            before = parsed(&file.before);
                        }
                        before = before.then(&parsed(&file.gtids));
                    }
                    first.before = before.to_string();
                }
            }
        }
        Ok(())
    }

    fn segment(&mut self, segment: Segment) -> Result<(), BadRecord> {
        let is_next = segment.to > segment.from;
        if let Some(last) = self.files.last_mut().filter(|last| last.name == segment.file) {
            if last.is_complete || last.size != segment.from || !is_next {
                return Err(BadRecord(format!(
                    "a segment of {} begins at {}, where it does not end",
                    segment.file, segment.from
                )));
            }
            last.add(segment);
            return Ok(());
        }
        let is_behind_gap = self.gap.as_ref() == Some(&segment.file);
        let is_behind = match self.files.last() {
            None => true,
            Some(last) => last.is_complete && follows(&last.name, &segment.file),
        };
        if segment.from != 0 || !is_next || !(is_behind || is_behind_gap) {
            return Err(BadRecord(format!("a segment of {} does not follow what is archived", segment.file)));
        }
        let says_before = self.files.is_empty() || is_behind_gap;
        let mut file = File {
            name: segment.file.clone(),
            size: 0,
            is_complete: false,
            stored: 0,
            times: Times::default(),
            gtids: String::new(),
            before: if says_before { segment.before.clone() } else { String::new() },
            is_behind_gap,
            list: None,
            segments: Vec::new(),
        };
        file.add(segment);
        self.files.push(file);
        self.gap = None;
        Ok(())
    }
}

impl File {
    fn add(&mut self, segment: Segment) {
        self.size = segment.to;
        self.stored += segment.bytes;
        let Times { first, last } = &mut self.times;
        if segment.first > 0 && (*first == 0 || segment.first < *first) {
            *first = segment.first;
        }
        *last = segment.last.max(*last);
        if !segment.gtids.is_empty() {
            self.gtids = parsed(&self.gtids).then(&parsed(&segment.gtids)).to_string();
        }
        self.segments.push(segment);
    }
}

/// What was written as text by [`GtidState`].
pub fn parsed(text: &str) -> GtidState {
    text.parse().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn segment(file: &str, from: u64, to: u64, gtids: &str) -> Segment {
        let object = format!("segments/{file}/{from}");
        let (first, last) = (100 + from as u32, 100 + to as u32);
        let (sum, before) = (String::new(), String::new());
        Segment {
            file: file.to_owned(),
            from,
            to,
            object,
            bytes: (to - from) / 2,
            sum,
            first,
            last,
            gtids: gtids.to_owned(),
            before,
        }
    }

    fn complete(file: &str, size: u64) -> Record {
        let list = StoredObject { object: format!("files/{file}"), sum: String::new(), length: 1 };
        Record::Complete { file: file.to_owned(), size, list }
    }

    #[test]
    fn files_grow_and_follow() {
        let mut state = State::default();
        state.apply(Record::Owner { owner: "{}".to_owned() }).unwrap();
        assert!(state.clone().apply(Record::Owner { owner: "{}".to_owned() }).is_err());
        let mut add = |record| state.apply(record);
        assert!(add(Record::Segment(segment("b.000001", 10, 20, ""))).is_err());
        add(Record::Segment(Segment { before: "0-1-4".to_owned(), ..segment("b.000001", 0, 20, "0-1-5") })).unwrap();
        assert!(add(Record::Segment(segment("b.000001", 0, 20, ""))).is_err());
        assert!(add(Record::Segment(segment("b.000001", 21, 30, ""))).is_err());
        add(Record::Segment(segment("b.000001", 20, 30, "0-1-7,1-1-1"))).unwrap();
        assert!(add(Record::Segment(segment("b.000002", 0, 20, ""))).is_err());
        assert!(add(complete("b.000001", 29)).is_err());
        add(complete("b.000001", 30)).unwrap();
        assert!(add(Record::Segment(segment("b.000001", 30, 40, ""))).is_err());
        assert!(add(Record::Segment(segment("b.000003", 0, 20, ""))).is_err());
        add(Record::Segment(segment("b.000002", 0, 20, "0-1-8"))).unwrap();
        add(complete("b.000002", 20)).unwrap();
        add(Record::Gap { file: "b.000007".to_owned() }).unwrap();
        add(Record::Segment(Segment { before: "0-1-90".to_owned(), ..segment("b.000007", 0, 20, "0-1-91") })).unwrap();
        let first = &state.files[0];
        assert_eq!((first.size, first.gtids.as_str(), first.before.as_str()), (30, "0-1-7,1-1-1", "0-1-4"));
        assert_eq!((first.times.first, first.times.last, first.stored, first.segments.len()), (100, 130, 15, 0));
        assert_eq!(state.end(), Some(LogPosition::new("b.000007", 20)));
        assert!(state.apply(Record::Removed { before: "b.000009".to_owned() }).is_err());
        let mut removed = state.clone();
        removed.apply(Record::Removed { before: "b.000002".to_owned() }).unwrap();
        assert_eq!((removed.files.len(), removed.files[0].before.as_str()), (2, "0-1-7,1-1-1"));
        removed.apply(Record::Removed { before: "b.000007".to_owned() }).unwrap();
        assert_eq!(removed.files[0].before, "0-1-90");
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }

    #[test]
    fn names_that_follow() {
        assert!(follows("b.000001", "b.000002") && follows("b.999999", "b.1000000"));
        assert!(!follows("b.000001", "b.000003") && !follows("a.000001", "b.000002") && !follows("a", "b"));
    }
}
