//! Removes the oldest files that need not be kept, and has complete files compressed.

use std::time::{Duration, Instant};

use engine::failure::Failure;

use super::Mirror;
use crate::mirror::disk::files::{self, FolderError, of_folder};
use crate::mirror::disk::purge::PurgeConditions;

/// Between two looks at age and disk, when no file begins.
const PURGE_EVERY: Duration = Duration::from_secs(60);

impl Mirror<'_> {
    /// Called when all received bytes are durable, so that a file that has just begun counts.
    pub(super) fn purge_when_due(&mut self) -> Result<(), Failure> {
        if self.purged.is_none_or(|purged| purged.elapsed() > PURGE_EVERY) { self.purge() } else { Ok(()) }
    }

    /// Removes the oldest files that need not be kept.
    pub(super) fn purge(&mut self) -> Result<(), Failure> {
        self.purged = Some(Instant::now());
        if self.plan.retention.is_all() {
            return Ok(());
        }
        let forms = self.forms.clone();
        let _held = forms.hold();
        self.write_needs()?;
        let removed = self.remove_surplus().map_err(|error| of_folder(&error))?;
        if let Some(last) = removed.last() {
            let first = removed.first().filter(|first| *first != last);
            let named = first.map_or_else(|| last.clone(), |first| format!("{first} to {last}"));
            tracing::info!("{} files removed, the oldest ones: {named}", removed.len());
        }
        Ok(())
    }

    /// Removes surplus files, those of former sources first. Returns the removed ones: fewer, if a replica still needs some.
    pub(super) fn remove_surplus(&mut self) -> Result<Vec<String>, FolderError> {
        let (mut sizes, mut all, mut old) = (Vec::new(), Vec::new(), Vec::new());
        for dir in self.epochs.old() {
            let names = files::logs(&*self.fs, &dir)?;
            let found = files::sizes(&*self.fs, &dir, &names)?;
            let folder = dir.strip_prefix(self.epochs.dir()).unwrap_or(&dir).to_owned();
            all.extend(names.iter().map(|name| folder.join(name).display().to_string()));
            old.push((dir, found.len()));
            sizes.extend(found);
        }
        sizes.extend(self.folder.sizes()?);
        all.extend(self.folder.names().iter().cloned());
        let surplus = self.plan.retention.surplus(&sizes, PurgeConditions::of(self.folder.dir()));
        // What a replica is being sent stays, unless told; what the archive lacks stays. Who looks for a file from now on finds none of these.
        let removed = self.inventory.let_go(surplus, self.plan.unread);
        if removed < surplus
            && let Some(replica) = self.inventory.waits_for_replica()
        {
            tracing::debug!("files stay for the replica {replica}, which is away");
        }
        let mut left = removed;
        for (dir, count) in &old {
            let gone = left.min(*count);
            if gone > 0 {
                files::purge_old(&*self.fs, dir, gone)?;
            }
            left -= gone;
        }
        self.folder.purge(left)?;
        all.truncate(removed);
        Ok(all)
    }

    /// Has the files compressed that are complete, if so wanted.
    pub(super) fn pack(&self) {
        if let Some(packer) = &self.packer {
            let dirs = self.epochs.old().into_iter().chain([self.epochs.active()]);
            packer.look(dirs.collect());
        }
    }
}
