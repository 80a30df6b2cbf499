//! The seam between reading and sending: an event as it stands in the file becomes the event that replicas get. They are the same, but for the `last_committed` of a
//! transaction whose tag was made anew.

use std::path::PathBuf;

use binlog::patch::{Patch, PatchError};
use binlog::{Checksum, Header, Kind};

use super::context::{DumpError, fatal};
use crate::inventory::{Inventory, LogFile};
use crate::retag::stream::{TagsReader, tags_of};

/// Of one file.
#[derive(Default)]
pub(super) struct PassedOn(Option<Retagged>);

struct Retagged {
    path: PathBuf,
    /// From the first transaction on.
    tags: Option<TagsReader>,
    checksum: Checksum,
    /// The event that was changed last.
    changed: Vec<u8>,
}

impl PassedOn {
    pub fn of(inventory: &Inventory, file: &LogFile, checksum: Checksum) -> Self {
        let retagged = || Retagged { path: tags_of(file.path()), tags: None, checksum, changed: Vec::new() };
        Self(inventory.is_tagged().then(retagged))
    }

    /// What stands at `at`.
    pub fn event<'a>(&'a mut self, event: &'a [u8], at: u64) -> Result<&'a [u8], DumpError> {
        let is_tagged = |header: Header| matches!(header.kind, Kind::GTID | Kind::ANONYMOUS_GTID);
        match &mut self.0 {
            Some(retagged) if Header::parse(event).is_some_and(is_tagged) => retagged.gtid(event, at),
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
        let patch = |bytes: &mut [u8]| -> Result<(), PatchError> {
            Patch::new(bytes, self.checksum)?.last_committed(tag.last_committed)?.finish();
            Ok(())
        };
        patch(&mut self.changed).map_err(|error| wrong(&error))?;
        Ok(&self.changed)
    }
}
