//! Where a server is at one moment, in plain data: what `heddle status --json` prints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::quality::Histogram;
use serde::{Deserialize, Serialize};

use crate::retag::Parallelism;

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub dir: PathBuf,
    /// None: nothing runs there.
    pub process: Option<u32>,
    /// When this was so, microseconds since 1970.
    pub clock_us: u64,
    pub started_us: Option<u64>,
    pub source: SourceSeen,
    pub mirror: MirrorSeen,
    /// To the end of the source's log; none while it is not known.
    pub lag: Option<Behind>,
    /// Where replicas attach.
    pub listen: Option<String>,
    /// Of replicas and tools.
    pub connections: Option<usize>,
    pub replicas: Vec<ReplicaSeen>,
}

/// How the source is reached.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceSeen {
    pub state: LinkState,
    /// `user@host:port`.
    pub address: Option<String>,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB).
    pub identity: Option<String>,
    /// For how long it is in this state.
    pub seconds: Option<f64>,
    /// It can not be reached: the reason.
    pub why: Option<String>,
    /// Where its log ends.
    pub end: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MirrorSeen {
    /// Of the present source.
    pub folder: PathBuf,
    pub files: usize,
    pub first_file: Option<String>,
    pub last_file: Option<String>,
    pub received: ReceivedSeen,
    /// Behind what would survive a crash: replicas get no more.
    pub durable: Option<String>,
    /// Up to the durable end.
    pub gtids: Option<String>,
    pub disk: Disk,
    /// With `--retag`; none before the first tags are made.
    #[serde(default)]
    pub retag: Option<RetagSeen>,
    /// Time of each sync, in microseconds.
    #[serde(skip)]
    pub syncs: Histogram,
}

/// What has come, to this process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedSeen {
    /// Behind it.
    pub position: Option<String>,
    pub bytes: u64,
    /// When the source wrote the last event of it, in seconds since 1970.
    pub last_event_timestamp: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// What the files of the mirror take, those of former sources included.
    pub used_bytes: u64,
    /// None: the system does not say.
    pub free_bytes: Option<u64>,
}

/// New tags, since this process began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetagSeen {
    /// Replicas can have everything before this.
    pub tagged: String,
    /// To the mirror's durable end.
    pub behind_bytes: Option<u64>,
    /// With a tag.
    pub transactions: u64,
    /// With another tag than the source's.
    pub changed: u64,
    /// By the source's tags.
    pub source: Option<Parallelism>,
    /// By the new ones.
    pub retagged: Option<Parallelism>,
    /// What the transactions wait for, by how many.
    pub waits_for: BTreeMap<String, u64>,
}

/// Groups that a replica is sent, since it attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupsSeen {
    pub groups: u64,
    /// That are in them.
    pub transactions: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Behind {
    pub bytes: Option<u64>,
    pub seconds: Option<f64>,
}

/// One that is being sent the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSeen {
    /// Its number, for `KILL`.
    pub connection: u32,
    pub account: String,
    pub address: String,
    pub server_id: u32,
    pub uuid: Option<String>,
    /// As it names itself (`report_host`).
    pub host: Option<String>,
    /// For how long it is attached.
    pub seconds: f64,
    /// Everything before this was sent.
    pub sent: Option<String>,
    /// The mirror's durable end.
    pub behind: Behind,
    /// With `--group`.
    #[serde(default)]
    pub groups: Option<GroupsSeen>,
}
