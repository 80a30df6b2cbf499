//! What the mirror publishes in the inventory at its start and after each connection: the files that are there.

use binlog::LogPosition;
use engine::failure::Failure;

use super::Mirror;
use crate::inventory::{SOURCE_FACTS, SourceFacts};
use crate::mirror::disk::epochs;
use crate::mirror::disk::files::{self, of_folder, of_machine};

impl Mirror<'_> {
    /// The files of the sources that this one has taken the place of: each up to where the next one begins.
    pub(super) fn publish_former(&self) -> Result<(), Failure> {
        let dirs = self.epochs.old();
        let behind = dirs.iter().skip(1).cloned().chain([self.epochs.active()]);
        for (dir, next) in dirs.iter().zip(behind) {
            let names = files::logs(&*self.fs, dir).map_err(|error| of_folder(&error))?;
            let seam = epochs::owner_of(&*self.fs, &next)?.and_then(|owner| owner.after);
            let end = seam.and_then(|seam| seam.position.parse::<LogPosition>().ok()).map_or(0, |end| end.offset);
            self.inventory.hold_former(dir, &names, end).map_err(|error| unreadable(&error))?;
        }
        Ok(())
    }

    /// What the folder holds, and what it says of the source.
    pub(super) fn publish_all(&self) -> Result<(), Failure> {
        self.inventory
            .hold(self.folder.dir(), self.folder.names(), self.folder.durable().as_ref())
            .map_err(|error| unreadable(&error))?;
        if let Some(owner) = &self.owner {
            self.inventory.is_of(&owner.source);
        }
        if self.inventory.source().is_none()
            && let Some(text) = self.folder.read(SOURCE_FACTS).map_err(|error| of_folder(&error))?
            && let Ok(facts) = SourceFacts::from_json(&text)
        {
            self.inventory.learn(facts);
        }
        Ok(())
    }

    pub(super) fn say_received(&self) {
        self.monitor.received(self.folder.end(), self.bytes, self.timestamp);
    }
}

fn unreadable(error: &std::io::Error) -> Failure {
    of_machine(error, format!("the mirror's files cannot be read: {error}"))
}
