//! MySQL's GTID sets: for each source and tag the numbers of its transactions.
//!
//! Text as the server writes `@@gtid_executed`; binary as COM_BINLOG_DUMP_GTID and Previous_gtids events hold it
//! (`Gtid_set::encode`). Both forms were compared with a MySQL 9.7 server's.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::gtid::{Gtid, GtidError, Uuid, write_uuid};
use super::interval::Intervals;

/// The largest transaction number that the server gives out.
pub const GNO_MAX: u64 = i64::MAX as u64 - 1;
/// The longest tag in bytes.
pub const TAG_BYTES_MAX: usize = 32;

/// A tag in lower case; empty: untagged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(Arc<str>);

type Tags = BTreeMap<Tag, Intervals>;

/// As `tags.get(tag)`. The empty tag, which nearly all have, is the first: found without comparing texts (`memcmp` of nothing, at the address that Rust
/// gives to nothing, costs 0.1 µs on processors with AVX-512).
fn of_tag<'a>(tags: &'a Tags, tag: &str) -> Option<&'a Intervals> {
    if tag.is_empty() {
        return tags.iter().next().filter(|(first, _)| first.0.is_empty()).map(|(_, intervals)| intervals);
    }
    tags.get(tag)
}

/// As `tags.get_mut(tag)`.
fn of_tag_mut<'a>(tags: &'a mut Tags, tag: &str) -> Option<&'a mut Intervals> {
    if tag.is_empty() {
        return tags.iter_mut().next().filter(|(first, _)| first.0.is_empty()).map(|(_, intervals)| intervals);
    }
    tags.get_mut(tag)
}

impl Tag {
    /// Checks and lowers a tag: a letter or underscore, then letters, digits and underscores, 32 at the most.
    pub fn new(text: &str) -> Option<Self> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let first = text.bytes().next().is_none_or(|byte| !byte.is_ascii_digit());
        let valid = first && text.len() <= TAG_BYTES_MAX && text.bytes().all(word);
        valid.then(|| Self(text.to_ascii_lowercase().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Tag {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A set of MySQL GTIDs. Appending the next number of a known source takes constant time but for the look-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    // Untagged first, as the empty tag sorts first: the canonical order.
    sources: BTreeMap<Uuid, Tags>,
}

impl GtidSet {
    /// Adds one transaction; `tag` is empty for none and in lower case, as events hold it.
    pub fn add(&mut self, uuid: &Uuid, tag: &str, gno: u64) {
        self.add_range(uuid, tag, gno, gno);
    }

    /// Adds `first..=last`; nothing happens when that is empty.
    pub fn add_range(&mut self, uuid: &Uuid, tag: &str, first: u64, last: u64) {
        if first > last {
            return;
        }
        let tags = self.sources.entry(*uuid).or_default();
        match of_tag_mut(tags, tag) {
            Some(intervals) => intervals.add(first, last),
            None => tags.entry(Tag(tag.into())).or_default().add(first, last),
        }
    }

    pub fn add_set(&mut self, other: &Self) {
        for (uuid, tag, intervals) in other.iter() {
            self.sources.entry(*uuid).or_default().entry(tag.clone()).or_default().add_all(intervals);
        }
    }

    /// Takes out everything that is in `other`.
    pub fn subtract(&mut self, other: &Self) {
        self.sources.retain(|uuid, tags| {
            tags.retain(|tag, intervals| {
                if let Some(hole) = other.intervals(uuid, tag.as_str()) {
                    intervals.subtract(hole);
                }
                !intervals.is_empty()
            });
            !tags.is_empty()
        });
    }

    /// Takes out everything that this server has made.
    pub fn forget(&mut self, uuid: &Uuid) {
        self.sources.remove(uuid);
    }

    pub fn contains(&self, uuid: &Uuid, tag: &str, gno: u64) -> bool {
        self.intervals(uuid, tag).is_some_and(|intervals| intervals.contains(gno))
    }

    pub fn contains_set(&self, other: &Self) -> bool {
        other
            .iter()
            .all(|(uuid, tag, theirs)| self.intervals(uuid, tag.as_str()).is_some_and(|ours| ours.contains_all(theirs)))
    }

    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// How many transactions are in here.
    pub fn count(&self) -> u64 {
        self.iter().fold(0, |sum, (_, _, intervals)| sum.saturating_add(intervals.count()))
    }

    pub fn intervals(&self, uuid: &Uuid, tag: &str) -> Option<&Intervals> {
        of_tag(self.sources.get(uuid)?, tag)
    }

    /// In canonical order: by source, then the untagged ones, then by tag.
    pub fn iter(&self) -> impl Iterator<Item = (&Uuid, &Tag, &Intervals)> {
        self.sources.iter().flat_map(|(uuid, tags)| tags.iter().map(move |(tag, intervals)| (uuid, tag, intervals)))
    }

    pub fn has_tags(&self) -> bool {
        self.iter().any(|(_, tag, _)| !tag.as_str().is_empty())
    }

    /// The only transaction of the set, if it holds just one.
    pub fn only(&self) -> Option<Gtid> {
        let mut all = self.iter();
        let (uuid, tag, intervals) = all.next()?;
        match (intervals.ranges(), all.next()) {
            (&[(first, last)], None) if first == last => {
                Some(Gtid::MySql { uuid: *uuid, tag: (!tag.as_str().is_empty()).then(|| tag.0.clone()), gno: first })
            }
            _ => None,
        }
    }

    /// The binary form. Without tags that of every server since 5.6, else that of 8.3 and later.
    pub fn to_binary(&self) -> Vec<u8> {
        let tagged = self.has_tags();
        let entries = self.iter().count() as u64;
        let mut out = Vec::new();
        // The top byte is the format; the tagged form repeats it in the lowest byte.
        let head = if tagged { FORMAT_TAGGED << 56 | entries << 8 | FORMAT_TAGGED } else { entries };
        out.extend(head.to_le_bytes());
        for (uuid, tag, intervals) in self.iter() {
            out.extend(uuid);
            if tagged {
                // A variable-length integer: below 128 it is one byte, shifted by one.
                out.push((tag.as_str().len() as u8) << 1);
                out.extend(tag.as_str().as_bytes());
            }
            out.extend((intervals.ranges().len() as u64).to_le_bytes());
            for &(first, last) in intervals.ranges() {
                out.extend(first.to_le_bytes());
                out.extend(last.saturating_add(1).to_le_bytes());
            }
        }
        out
    }

    /// Reads either binary form; the whole input must be used up.
    pub fn from_binary(bytes: &[u8]) -> Result<Self, GtidError> {
        let mut input = Input { bytes, rest: bytes };
        let head = input.integer()?;
        let (tagged, entries) = match head >> 56 {
            0 => (false, head),
            FORMAT_TAGGED if head & 0xff == FORMAT_TAGGED => (true, (head >> 8) & 0xffff_ffff_ffff),
            _ => return Err(GtidError::new(0, "an encoding of a GTID set that is not known")),
        };
        let mut set = Self::default();
        for _ in 0..entries {
            let uuid: Uuid = input.array()?;
            let mut tag = "";
            if tagged {
                let at = input.offset();
                let [length] = input.array()?;
                if length & 1 != 0 || usize::from(length >> 1) > TAG_BYTES_MAX {
                    return Err(GtidError::new(at, "the length of a tag is out of range"));
                }
                let text = input.take(usize::from(length >> 1))?;
                tag = std::str::from_utf8(text)
                    .ok()
                    .filter(|text| Tag::new(text).is_some_and(|tag| tag.as_str() == *text))
                    .ok_or(GtidError::new(at, "a tag with characters that are not allowed"))?;
            }
            let mut last_end = 0;
            for _ in 0..input.integer()? {
                let at = input.offset();
                let (first, end) = (input.integer()?, input.integer()?);
                if first == 0 || first <= last_end && last_end != 0 || end <= first || end > GNO_MAX + 1 {
                    return Err(GtidError::new(at, "an interval that is empty, out of range or out of order"));
                }
                last_end = end;
                set.add_range(&uuid, tag, first, end - 1);
            }
        }
        match input.rest {
            [] => Ok(set),
            _ => Err(GtidError::new(input.offset(), "bytes after the end of the set")),
        }
    }
}

const FORMAT_TAGGED: u64 = 1;

struct Input<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn offset(&self) -> usize {
        self.bytes.len() - self.rest.len()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], GtidError> {
        let (head, rest) =
            self.rest.split_at_checked(length).ok_or(GtidError::new(self.offset(), "the set ends too early"))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GtidError> {
        let (head, rest) =
            self.rest.split_first_chunk().ok_or(GtidError::new(self.offset(), "the set ends too early"))?;
        self.rest = rest;
        Ok(*head)
    }

    fn integer(&mut self) -> Result<u64, GtidError> {
        self.array().map(u64::from_le_bytes)
    }
}

/// The canonical text without line breaks; `{:#}` breaks the line after each source, as the server does.
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (uuid, tags)) in self.sources.iter().enumerate() {
            if n > 0 {
                f.write_str(if f.alternate() { ",\n" } else { "," })?;
            }
            write_uuid(f, uuid)?;
            for (tag, intervals) in tags {
                if !tag.as_str().is_empty() {
                    write!(f, ":{}", tag.as_str())?;
                }
                for &(first, last) in intervals.ranges() {
                    write!(f, ":{first}")?;
                    if first != last {
                        write!(f, "-{last}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Accepts what the server accepts: white space between parts, empty parts between commas, several tags behind one
/// source, intervals in any order. Unlike the server it refuses intervals that end before they start.
impl FromStr for GtidSet {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut set = Self::default();
        let mut offset = 0;
        for part in text.split(',') {
            parse_source(&mut set, part, offset)?;
            offset += part.len() + 1;
        }
        Ok(set)
    }
}

fn parse_source(set: &mut GtidSet, part: &str, mut offset: usize) -> Result<(), GtidError> {
    if part.trim().is_empty() {
        return Ok(());
    }
    let mut items = part.split(':');
    let head = items.next().unwrap_or_default();
    let uuid = parse_uuid(head.trim())
        .ok_or(GtidError::new(offset, "expected the UUID of a source (8-4-4-4-12 hex digits)"))?;
    offset += head.len() + 1;
    let mut tag = Tag(Arc::from(""));
    // A source or a tag with nothing behind it is a mistake, not an empty set.
    let mut open = true;
    for item in items {
        let text = item.trim();
        if text.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) {
            let (first, last) = parse_interval(text).ok_or(GtidError::new(offset, "expected N or N-M, 1 or more"))?;
            set.add_range(&uuid, tag.as_str(), first, last);
            open = false;
        } else {
            tag = Tag::new(text)
                .filter(|tag| !tag.as_str().is_empty())
                .ok_or(GtidError::new(offset, "expected an interval or a tag"))?;
            open = true;
        }
        offset += item.len() + 1;
    }
    if open { Err(GtidError::new(offset - 1, "expected an interval")) } else { Ok(()) }
}

fn parse_interval(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        let text = text.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().filter(|number| (1..=GNO_MAX).contains(number))
    };
    match text.split_once('-') {
        None => number(text).map(|one| (one, one)),
        Some((first, last)) => Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last),
    }
}

/// Reads a UUID, with or without its dashes.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    let dashes = match bytes.len() {
        36 => true,
        32 => false,
        _ => return None,
    };
    let mut uuid = [0; 16];
    let mut digits = bytes.iter();
    for (n, byte) in uuid.iter_mut().enumerate() {
        if dashes && matches!(n, 4 | 6 | 8 | 10) && digits.next() != Some(&b'-') {
            return None;
        }
        let mut digit = || (*digits.next()? as char).to_digit(16);
        *byte = (digit()? << 4 | digit()?) as u8;
    }
    Some(uuid)
}
