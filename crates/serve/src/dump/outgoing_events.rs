//! Turns an event of the file into the event that replicas get. The two differ only in a tag that was made anew: `last_committed` (MySQL), commit id and `FL_WAITED` (MariaDB).
//!
//! A MariaDB event without a commit id has no space for one, and an event of MySQL 5.6 has none for `last_committed`. Such an event becomes longer if the replica attached by GTID; its
//! next position stays the source's. Such a replica adds up the lengths of what it receives, and takes a heartbeat with a lower position for damage. So the added length is counted.

use std::path::PathBuf;

use binlog::{Checksum, Header, Kind};

use super::context::{DumpError, fatal};
use crate::inventory::{Inventory, LogFile, tags_path};
use crate::retag::stream::TagsReader;
use crate::retag::value::{self, EventGrowth};

/// The outgoing events of one file.
#[derive(Default)]
pub(super) struct OutgoingEvents(Option<FileTags>);

struct FileTags {
    path: PathBuf,
    /// From the first transaction on.
    tags: Option<TagsReader>,
    checksum: Checksum,
    growth: EventGrowth,
    /// Of this file.
    longer_by: u64,
    /// The event that was changed last.
    changed: Vec<u8>,
}

impl OutgoingEvents {
    pub fn of(inventory: &Inventory, file: &LogFile, checksum: Checksum, growth: EventGrowth) -> Self {
        let retagged = || FileTags {
            path: tags_path(file.path()),
            tags: None,
            checksum,
            growth,
            longer_by: 0,
            changed: Vec::new(),
        };
        Self(inventory.is_tagged().then(retagged))
    }

    /// The number of bytes that were added to the events of this file.
    pub fn longer_by(&self) -> u64 {
        self.0.as_ref().map_or(0, |retagged| retagged.longer_by)
    }

    /// Whether an event of this kind may be another one for replicas.
    pub fn changes(kind: Kind) -> bool {
        matches!(kind, Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID)
    }

    /// What stands at `at`.
    pub fn event<'a>(&'a mut self, event: &'a [u8], at: u64) -> Result<&'a [u8], DumpError> {
        match &mut self.0 {
            Some(retagged) if Header::parse(event).is_some_and(|header| Self::changes(header.kind)) => {
                retagged.gtid(event, at)
            }
            _ => Ok(event),
        }
    }
}

impl FileTags {
    fn gtid<'a>(&'a mut self, event: &'a [u8], at: u64) -> Result<&'a [u8], DumpError> {
        let path = self.path.display();
        let wrong = |why: &dyn std::fmt::Display| {
            fatal(format!("new tags, {path}: {why}, at {at} of the log. Remove this file and start heddle serve again"))
        };
        let opened = match self.tags.take() {
            Some(tags) => Ok(tags),
            None => TagsReader::open(&self.path, at),
        };
        let tags = self.tags.insert(opened.map_err(|error| wrong(&error))?);
        let Some(tag) = tags.tag_at(at).map_err(|error| wrong(&error))? else { return Ok(event) };
        if tag.event != crc32fast::hash(event) {
            return Err(wrong(&"they are of another event"));
        }
        self.changed.clear();
        self.changed.extend_from_slice(event);
        value::give(&mut self.changed, tag.value, self.checksum, self.growth).map_err(|error| wrong(&error))?;
        self.longer_by += self.changed.len().saturating_sub(event.len()) as u64;
        Ok(&self.changed)
    }
}
