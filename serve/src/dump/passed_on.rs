//! The seam between reading and sending: an event as it stands in the file becomes the event that replicas get. They are the same, but for the tag of a
//! transaction that was made anew: `last_committed` (MySQL), commit id and `FL_WAITED` (MariaDB).
//!
//! A MariaDB event without a commit id has no room for one, nor has one of MySQL 5.6 for `last_committed`. It becomes longer where the replica counts its place by GTID; its position of the next event stays the source's. Such a
//! replica adds up the lengths of what it receives, and takes heartbeats of before that sum for damage: so it is known by how much they are longer.

use std::path::PathBuf;

use binlog::{Checksum, Header, Kind};

use super::context::{DumpError, fatal};
use crate::inventory::{Inventory, LogFile};
use crate::retag::stream::{TagsReader, tags_of};
use crate::retag::value::{self, Room};

/// Of one file.
#[derive(Default)]
pub(super) struct PassedOn(Option<Retagged>);

struct Retagged {
    path: PathBuf,
    /// From the first transaction on.
    tags: Option<TagsReader>,
    checksum: Checksum,
    room: Room,
    /// Of this file.
    longer_by: u64,
    /// The event that was changed last.
    changed: Vec<u8>,
}

impl PassedOn {
    pub fn of(inventory: &Inventory, file: &LogFile, checksum: Checksum, room: Room) -> Self {
        let retagged =
            || Retagged { path: tags_of(file.path()), tags: None, checksum, room, longer_by: 0, changed: Vec::new() };
        Self(inventory.is_tagged().then(retagged))
    }

    /// By how many bytes what was sent of the file is longer than what stands there.
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

impl Retagged {
    fn gtid<'a>(&'a mut self, event: &'a [u8], at: u64) -> Result<&'a [u8], DumpError> {
        let path = self.path.display();
        let wrong = |why: &dyn std::fmt::Display| {
            fatal(format!(
                "tags made anew, {path}: {why}, at {at} of the log. Remove this file and start heddle serve again"
            ))
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
        value::give(&mut self.changed, tag.value, self.checksum, self.room).map_err(|error| wrong(&error))?;
        self.longer_by += self.changed.len().saturating_sub(event.len()) as u64;
        Ok(&self.changed)
    }
}
