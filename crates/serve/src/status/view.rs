//! Takes the snapshots of a running server. It measures next to nothing by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlog::LogPosition;

use super::snapshot::{
    Lag, LinkState, ListenerStatus, MirrorStatus, ReceivedStatus, ReplicaStatus, RetagStatus, Snapshot, SourceStatus,
    StandbyStatus, clock_us,
};
use super::source_end::SourceEnd;
use crate::inventory::{Inventory, LogFile};
use crate::mirror::{self, Link, Monitor};
use crate::retag::TagMeasures;
use crate::retag::stream::TagMonitor;
use crate::server::Clients;
use crate::standby::Gate;

/// How much a snapshot contains. GTIDs may require reading the last file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    All,
    /// What costs nothing.
    Cheap,
}

/// The parts of a running server that a snapshot is taken of.
#[derive(Debug)]
pub struct View {
    dir: PathBuf,
    started_us: u64,
    monitor: Arc<Monitor>,
    tags: Option<Arc<TagMonitor>>,
    inventory: Arc<Inventory>,
    clients: Option<Clients>,
    gate: Option<Arc<Gate>>,
    source_end: SourceEnd,
}

impl View {
    /// A view of the mirror that runs in this process. `tags`: with `--retag`; `clients`: of its server, where it has one; `gate`: with `--standby-of`.
    pub fn new(
        dir: &Path,
        monitor: Arc<Monitor>,
        tags: Option<Arc<TagMonitor>>,
        inventory: Arc<Inventory>,
        clients: Option<Clients>,
        gate: Option<Arc<Gate>>,
    ) -> Self {
        let source_end = SourceEnd::default();
        Self { dir: dir.to_owned(), started_us: clock_us(), monitor, tags, inventory, clients, gate, source_end }
    }

    /// Whether there is a log that replicas can be served.
    pub fn has_log(&self) -> bool {
        self.inventory.end().is_some()
    }

    /// Whether replicas are to attach to another mirror.
    pub fn waits(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| !gate.is_open())
    }

    /// The status now. The source is asked where its log ends, once a second at most.
    pub fn snapshot(&self, detail: Detail) -> Snapshot {
        let mirror = self.monitor.state();
        let durable = self.inventory.end();
        let end = match (&mirror.link, &mirror.options) {
            (Link::Connected, Some(options)) => self.source_end.ask(options, durable.as_ref()),
            _ => None,
        };
        let now_us = clock_us();
        let source_now = now_us as f64 / 1e6 + end.as_ref().map_or(0.0, |end| end.clock_ahead);
        let seconds_since = |timestamp: u32| (timestamp > 0).then(|| (source_now - f64::from(timestamp)).max(0.0));
        let lag = end.as_ref().map(|end| Lag {
            bytes: end.beyond_bytes,
            seconds: if end.beyond_bytes == Some(0) { Some(0.0) } else { seconds_since(mirror.timestamp) },
        });
        let (link, since) = (LinkState::from(&mirror.link), mirror.since.map(|since| since.elapsed().as_secs_f64()));
        let files = self.inventory.files();
        let replicas = self.clients.as_ref().map(Clients::attached).unwrap_or_default().into_iter().map(|one| {
            let behind = one.sent.as_ref().and_then(|sent| behind(&self.inventory, sent));
            let seconds = if behind == Some(0) { Some(0.0) } else { seconds_since(one.timestamp) };
            ReplicaStatus {
                connection: one.number,
                account: one.user,
                address: one.from,
                server_id: one.server_id,
                uuid: one.uuid,
                host: one.host,
                seconds: one.seconds,
                sent: one.sent.map(|sent| sent.to_string()),
                behind: Lag { bytes: behind, seconds },
                groups: one.groups,
            }
        });
        let name = |file: &Arc<LogFile>| file.name.to_string();
        Snapshot {
            dir: self.dir.clone(),
            process: Some(std::process::id()),
            clock_us: now_us,
            started_us: Some(self.started_us),
            source: SourceStatus {
                state: link,
                address: mirror.address,
                identity: mirror.identity,
                seconds: since,
                why: mirror.link.why(),
                end: end.map(|end| end.position.to_string()),
            },
            mirror: MirrorStatus {
                folder: self.inventory.dir(),
                files: files.len(),
                first_file: files.first().map(|(file, _)| name(file)),
                last_file: files.last().map(|(file, _)| name(file)),
                received: ReceivedStatus {
                    position: mirror.received.map(|at| at.to_string()),
                    bytes: mirror.bytes,
                    last_event_timestamp: (mirror.timestamp > 0).then_some(mirror.timestamp),
                },
                durable: durable.map(|at| at.to_string()),
                gtids: (detail == Detail::All)
                    .then(|| self.inventory.gtids_at_end().ok())
                    .flatten()
                    .map(|(_, gtids)| gtids.text()),
                disk: mirror::disk_use(&self.dir),
                retag: self
                    .tags
                    .as_ref()
                    .and_then(|tags| tags.tagged())
                    .map(|(to, measured)| self.retagged(&to, &measured)),
                syncs: mirror.syncs,
            },
            lag,
            listener: self.listener(),
            replicas: replicas.collect(),
        }
    }

    fn listener(&self) -> ListenerStatus {
        ListenerStatus {
            standby: self.gate.as_ref().map(|gate| StandbyStatus {
                of: gate.of().to_owned(),
                waits: !gate.is_open(),
                obstacle: Some(gate.obstacle()).filter(|obstacle| !obstacle.is_empty()),
            }),
            listen: self.clients.as_ref().map(|clients| clients.address().to_string()),
            connections: self.clients.as_ref().map(Clients::count),
        }
    }

    fn retagged(&self, to: &LogPosition, measured: &TagMeasures) -> RetagStatus {
        RetagStatus {
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
