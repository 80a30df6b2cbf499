//! A mirror that no process has, as its folder shows it. It takes nothing and mends nothing.

use std::path::Path;

use engine::failure::{Failure, FailureKind};
use relay::RealFs;
use relay::fs::Fs;

use super::epochs::folder_of;
use super::files::{self, of_folder};
use super::owner::{self, Owner};
use super::purge::{Now, disk};
use crate::seen::{LinkState, MirrorSeen, ReceivedSeen, Snapshot, SourceSeen};

/// A mirror that no process has, as it is in its folder.
///
/// # Errors
/// A folder that is no mirror, or can not be read.
pub fn look(dir: &Path) -> Result<Snapshot, Failure> {
    let fs = RealFs;
    let active = folder_of(dir);
    let none = || {
        let message = format!("{} is no mirror: it has no {}", dir.display(), owner::FILE);
        Failure::new(FailureKind::Refused, message).remedy("give the --dir of a heddle serve")
    };
    let owner = owner_in(&fs, &active)?.ok_or_else(none)?;
    let names = files::logs(&fs, &active).map_err(|error| of_folder(&error))?;
    Ok(Snapshot {
        dir: dir.to_owned(),
        process: None,
        clock_us: Now::of(dir).seconds.saturating_mul(1_000_000),
        started_us: None,
        source: SourceSeen {
            state: LinkState::NotRunning,
            address: None,
            identity: Some(owner.source),
            seconds: None,
            why: None,
            end: None,
        },
        mirror: MirrorSeen {
            files: names.len(),
            first_file: names.first().cloned(),
            last_file: names.last().cloned(),
            received: ReceivedSeen::default(),
            durable: None,
            gtids: None,
            disk: disk(dir),
            retag: None,
            syncs: engine::quality::Histogram::default(),
            folder: active,
        },
        lag: None,
        listen: None,
        connections: None,
        replicas: Vec::new(),
    })
}

/// Whose a folder is; `None`: nobody's yet.
pub fn owner_in(fs: &dyn Fs, dir: &Path) -> Result<Option<Owner>, Failure> {
    owner::parse(files::read(fs, dir, owner::FILE).map_err(|error| of_folder(&error))?.as_deref(), dir)
}
