//! What is seen of a running server: one snapshot, for `heddle status`, metrics and log lines; and the socket in the mirror's folder over which a command of the same machine asks.
//!
//! It measures next to nothing itself: mirror, inventory and sessions say where they are. It never waits for a replica.

pub mod control;
mod monitor;
mod receiving;
mod snapshot;
mod source_end;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use binlog::LogPosition;

pub use self::monitor::{Link, Monitor};
pub use self::receiving::Receiving;
pub use self::snapshot::{
    Behind, Disk, GroupsSeen, LinkState, MirrorSeen, ReceivedSeen, ReplicaSeen, RetagSeen, Snapshot, SourceSeen,
};
use self::source_end::SourceEnd;
use crate::inventory::Inventory;
use crate::mirror;
use crate::retag::Measured;
use crate::sessions::Clients;

/// Whether GTIDs are wanted, which may mean that the last file has to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    All,
    /// What costs nothing.
    Cheap,
}

/// Where a snapshot comes from.
#[derive(Debug)]
pub struct View {
    dir: PathBuf,
    started_us: u64,
    monitor: Arc<Monitor>,
    inventory: Arc<Inventory>,
    clients: Option<Clients>,
    source_end: SourceEnd,
}

impl View {
    /// Of a mirror that runs in this process; `clients`: who is attached to it, where it listens.
    pub fn new(dir: &Path, monitor: Arc<Monitor>, inventory: Arc<Inventory>, clients: Option<Clients>) -> Self {
        let source_end = SourceEnd::default();
        Self { dir: dir.to_owned(), started_us: clock_us(), monitor, inventory, clients, source_end }
    }

    /// As it is now. The source is asked where its log ends, once a second at most.
    pub fn snapshot(&self, detail: Detail) -> Snapshot {
        let watched = self.monitor.watched();
        let durable = self.inventory.end();
        let end = match (&watched.link, &watched.options) {
            (Link::Connected, Some(options)) => self.source_end.ask(options, durable.as_ref()),
            _ => None,
        };
        let now_us = clock_us();
        let source_now = now_us as f64 / 1e6 + end.as_ref().map_or(0.0, |end| end.clock_ahead);
        let seconds_since = |timestamp: u32| (timestamp > 0).then(|| (source_now - f64::from(timestamp)).max(0.0));
        let lag = end.as_ref().map(|end| Behind {
            bytes: end.beyond_bytes,
            seconds: if end.beyond_bytes == Some(0) { Some(0.0) } else { seconds_since(watched.timestamp) },
        });
        let (link, since) = (watched.link.state(), watched.since.map(|since| since.elapsed().as_secs_f64()));
        let files = self.inventory.files();
        let replicas = self.clients.as_ref().map(Clients::attached).unwrap_or_default().into_iter().map(|one| {
            let behind = one.sent.as_ref().and_then(|sent| behind(&self.inventory, sent));
            let seconds = if behind == Some(0) { Some(0.0) } else { seconds_since(one.timestamp) };
            ReplicaSeen {
                connection: one.number,
                account: one.user,
                address: one.from,
                server_id: one.server_id,
                uuid: one.uuid,
                host: one.host,
                seconds: one.seconds,
                sent: one.sent.map(|sent| sent.to_string()),
                behind: Behind { bytes: behind, seconds },
                groups: one.groups,
            }
        });
        let name = |file: &Arc<crate::inventory::LogFile>| file.name.to_string();
        Snapshot {
            dir: self.dir.clone(),
            process: Some(std::process::id()),
            clock_us: now_us,
            started_us: Some(self.started_us),
            source: SourceSeen {
                state: link,
                address: watched.address,
                identity: watched.identity,
                seconds: since,
                why: watched.link.why(),
                end: end.map(|end| end.position.to_string()),
            },
            mirror: MirrorSeen {
                folder: self.inventory.dir(),
                files: files.len(),
                first_file: files.first().map(|(file, _)| name(file)),
                last_file: files.last().map(|(file, _)| name(file)),
                received: ReceivedSeen {
                    position: watched.received.map(|at| at.to_string()),
                    bytes: watched.bytes,
                    last_event_timestamp: (watched.timestamp > 0).then_some(watched.timestamp),
                },
                durable: durable.map(|at| at.to_string()),
                gtids: (detail == Detail::All)
                    .then(|| self.inventory.gtids_at_end().ok())
                    .flatten()
                    .map(|(_, gtids)| gtids.text()),
                disk: mirror::disk(&self.dir),
                retag: watched.tagged.map(|(to, measured)| self.retagged(&to, &measured)),
                syncs: watched.syncs,
            },
            lag,
            listen: self.clients.as_ref().map(|clients| clients.address().to_string()),
            connections: self.clients.as_ref().map(Clients::count),
            replicas: replicas.collect(),
        }
    }

    fn retagged(&self, to: &LogPosition, measured: &Measured) -> RetagSeen {
        RetagSeen {
            tagged: to.to_string(),
            behind_bytes: behind(&self.inventory, to),
            transactions: measured.transactions,
            changed: measured.changed,
            source: measured.source(),
            retagged: measured.retagged(),
            waits_for: measured.causes.iter().map(|(cause, count)| (cause.to_owned(), count)).collect(),
        }
    }
}

/// How far a place is behind the mirror's durable end. None: it is in files of a former source, or in one that was purged.
fn behind(inventory: &Inventory, sent: &LogPosition) -> Option<u64> {
    let files = inventory.files();
    let at = files.iter().position(|(file, _)| *file.name == *sent.file)?;
    let bytes: u64 = files.iter().skip(at).map(|(_, length)| length).sum();
    Some(bytes.saturating_sub(sent.offset))
}

/// Of a mirror that no process has.
///
/// # Errors
/// A folder that is no mirror, or cannot be read.
pub fn of_folder(dir: &Path) -> Result<Snapshot, engine::failure::Failure> {
    mirror::look(dir)
}

fn clock_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
