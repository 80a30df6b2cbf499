//! The status of a server at one moment, as plain data: what `heddle status --json` prints.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::quality::Histogram;
use serde::{Deserialize, Serialize};

use crate::dump::GroupCounts;
use crate::mirror::{DiskUse, Link};
use crate::retag::Parallelism;

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub dir: PathBuf,
    /// The process. `None`: none runs the mirror.
    pub process: Option<u32>,
    /// The time of the snapshot, in microseconds since 1970.
    pub clock_us: u64,
    pub started_us: Option<u64>,
    pub source: SourceStatus,
    pub mirror: MirrorStatus,
    /// The lag behind the end of the source's log. `None`: unknown.
    pub lag: Option<Lag>,
    #[serde(flatten)]
    pub listener: ListenerStatus,
    pub replicas: Vec<ReplicaStatus>,
}

/// The state of the connection to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// No process has the mirror.
    NotRunning,
    Connecting,
    Connected,
    /// It was lost.
    Reconnecting,
}

impl From<&Link> for LinkState {
    fn from(link: &Link) -> Self {
        match link {
            Link::Connecting => Self::Connecting,
            Link::Connected => Self::Connected,
            Link::Lost(_) => Self::Reconnecting,
        }
    }
}

/// Where replicas attach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerStatus {
    /// With `--standby-of`.
    #[serde(default)]
    pub standby: Option<StandbyStatus>,
    /// The address that replicas attach to.
    pub listen: Option<String>,
    /// The number of connections of replicas and tools.
    pub connections: Option<usize>,
}

/// Of two mirrors one lets replicas attach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandbyStatus {
    /// The other one, `HOST:PORT`.
    pub of: String,
    /// Replicas attach to the other one; false: they can attach here.
    pub waits: bool,
    /// What would keep this one from taking over.
    pub obstacle: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    pub state: LinkState,
    /// `user@host:port`.
    pub address: Option<String>,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB).
    pub identity: Option<String>,
    /// How long it has been in this state.
    pub seconds: Option<f64>,
    /// The reason why it cannot be reached.
    pub why: Option<String>,
    /// The end of its log.
    pub end: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MirrorStatus {
    /// The folder of the present source.
    pub folder: PathBuf,
    pub files: usize,
    pub first_file: Option<String>,
    pub last_file: Option<String>,
    pub received: ReceivedStatus,
    /// The durable end: replicas are sent nothing beyond it.
    pub durable: Option<String>,
    /// The GTIDs up to the durable end.
    pub gtids: Option<String>,
    pub disk: DiskUse,
    /// With `--retag`. `None` before the first tags.
    #[serde(default)]
    pub retag: Option<RetagStatus>,
    /// Time of each sync, in microseconds.
    #[serde(skip)]
    pub syncs: Histogram,
}

/// What this process has received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedStatus {
    /// The position behind it.
    pub position: Option<String>,
    pub bytes: u64,
    /// When the source wrote the last event of it, in seconds since 1970.
    pub last_event_timestamp: Option<u32>,
}

/// New tags, since this process began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetagStatus {
    /// Replicas can be sent everything before this position.
    pub tagged: String,
    /// Bytes from there to the mirror's durable end.
    pub behind_bytes: Option<u64>,
    /// Transactions with a tag.
    pub transactions: u64,
    /// Transactions whose tag differs from the source's.
    pub changed: u64,
    /// The parallelism of the source's tags.
    pub source: Option<Parallelism>,
    /// The parallelism of the new tags.
    pub retagged: Option<Parallelism>,
    /// What the transactions wait for, by how many.
    pub waits_for: BTreeMap<String, u64>,
}

/// The lag behind an end of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Lag {
    pub bytes: Option<u64>,
    pub seconds: Option<f64>,
}

/// A replica that is being sent the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// The connection's number, for `KILL`.
    pub connection: u32,
    pub account: String,
    pub address: String,
    pub server_id: u32,
    pub uuid: Option<String>,
    /// The replica's own name (`report_host`).
    pub host: Option<String>,
    /// How long it has been attached.
    pub seconds: f64,
    /// Everything before this was sent.
    pub sent: Option<String>,
    /// The mirror's durable end.
    pub behind: Lag,
    /// The groups that it was sent, with `--group`.
    #[serde(default)]
    pub groups: Option<GroupCounts>,
}

/// The time now, in microseconds since 1970.
pub(super) fn clock_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
