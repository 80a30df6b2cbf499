//! Stores which files replicas need, in a file of the mirror. So a restart removes no file that an absent replica needs. It is written when a new replica attaches, and before files are
//! removed. A replica only moves forward, so an older version of the file never keeps too few files.

use std::collections::BTreeMap;

use engine::failure::Failure;
use serde::{Deserialize, Serialize};

use super::{Mirror, refused};
use crate::inventory::NeededFile;
use crate::mirror::disk::files::{self, of_folder};

const FILE: &str = "heddle-replicas.json";

#[derive(Debug, Default, Serialize, Deserialize)]
struct NeedsFile {
    /// Of this file's layout.
    version: u32,
    replicas: BTreeMap<String, NeededFile>,
}

impl Mirror<'_> {
    /// Reads the needs at the start. If the file is damaged, no files are kept for absent replicas.
    pub(super) fn read_needs(&mut self) -> Result<(), Failure> {
        let found = files::read(&*self.fs, self.epochs.dir(), FILE).map_err(|error| of_folder(&error))?;
        let written = found.map(|text| serde_json::from_slice::<NeedsFile>(&text)).transpose();
        let replicas = match written {
            Ok(written) => written.unwrap_or_default().replicas,
            Err(error) => {
                tracing::warn!(
                    "{FILE} in {}: {error}: which files replicas need is not known",
                    self.epochs.dir().display()
                );
                BTreeMap::new()
            }
        };
        self.written_needs.clone_from(&replicas);
        self.inventory.remember_needs(replicas, self.plan.replica_patience);
        Ok(())
    }

    /// Stores the needs if a new replica has attached.
    pub(super) fn write_urgent_needs(&mut self) -> Result<(), Failure> {
        if self.inventory.has_urgent_needs() { self.write_needs() } else { Ok(()) }
    }

    /// Stores the needs, before files are removed.
    pub(super) fn write_needs(&mut self) -> Result<(), Failure> {
        for (replica, away) in self.inventory.forget_needs() {
            tracing::info!(
                "the replica {replica} has been away for {} s: the files that it needs may go (--keep-for-replicas-seconds)",
                away.as_secs()
            );
        }
        let replicas = self.inventory.needs();
        if replicas == self.written_needs {
            return Ok(());
        }
        let written = NeedsFile { version: 1, replicas };
        let text = serde_json::to_vec_pretty(&written).map_err(|error| refused(error.to_string()))?;
        files::replace(&*self.fs, self.epochs.dir(), FILE, &text).map_err(|error| of_folder(&error))?;
        self.written_needs = written.replicas;
        Ok(())
    }
}
