//! The status of a mirror that no process runs, read from its folder. It takes no lock and repairs nothing.

use std::path::Path;

use engine::failure::{Failure, FailureKind};
use relay::RealFs;

use super::snapshot::{LinkState, ListenerStatus, MirrorStatus, ReceivedStatus, Snapshot, SourceStatus, clock_us};
use crate::mirror::disk::files::{self, of_folder};
use crate::mirror::disk::{epochs, owner};
use crate::mirror::disk_use;

/// The status of a mirror that no process runs.
///
/// # Errors
/// The folder is no mirror, or cannot be read.
pub fn status_of_folder(dir: &Path) -> Result<Snapshot, Failure> {
    let fs = RealFs;
    let active = epochs::folder_of(dir);
    let none = || {
        let message = format!("{} is no mirror: it has no {}", dir.display(), owner::FILE);
        Failure::new(FailureKind::Refused, message).remedy("give the --dir of a heddle serve")
    };
    let owner = epochs::owner_of(&fs, &active)?.ok_or_else(none)?;
    let names = files::logs(&fs, &active).map_err(|error| of_folder(&error))?;
    Ok(Snapshot {
        dir: dir.to_owned(),
        process: None,
        clock_us: clock_us(),
        started_us: None,
        source: SourceStatus {
            state: LinkState::NotRunning,
            address: None,
            identity: Some(owner.source),
            seconds: None,
            why: None,
            end: None,
        },
        mirror: MirrorStatus {
            files: names.len(),
            first_file: names.first().cloned(),
            last_file: names.last().cloned(),
            received: ReceivedStatus::default(),
            durable: None,
            gtids: None,
            disk: disk_use(dir),
            retag: None,
            syncs: engine::quality::Histogram::default(),
            folder: active,
        },
        lag: None,
        listener: ListenerStatus::default(),
        replicas: Vec::new(),
    })
}
