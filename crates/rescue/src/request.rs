//! What somebody asks of a rescue.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use wire::server::TlsFiles;
use wire::{ConnectOptions, Connection, Secret};

use channel::source::relay_sync::RelaySync;
use observe::http::endpoint::Endpoint;
use output::say;
use replica::status::ReplicaStatus;

/// How to reach the source that a replica names.
pub type SourceOptions = Box<dyn Fn(&ReplicaStatus, &mut Connection) -> Result<ConnectOptions>>;

/// What belongs to a channel of ours, by its name.
pub type OfChannel<T> = Box<dyn Fn(&str) -> T>;

pub struct Request {
    pub replica: ConnectOptions,
    pub source: SourceOptions,
    /// Native replication's; `None`: the only one.
    pub channel: Option<String>,
    pub dry_run: bool,
    pub abort: bool,
    /// Takes over a replica that is not behind, too.
    pub anyway: bool,
    pub lag: Duration,
    pub log_bin: LogBin,
    pub workers: usize,
    pub relay_dir: OfChannel<Result<PathBuf>>,
    /// Where the replica's own relay logs are, as seen from here; `None`: where it says.
    pub replica_relay_logs: Option<PathBuf>,
    pub server_id: OfChannel<u32>,
    pub relay_bytes_max: u64,
    pub relay_sync: RelaySync,
    /// There may be more of them while the replica reads rows from its disk.
    pub more_workers: bool,
    pub memory_bytes: u64,
    pub retries_max: u32,
    pub connect_retry: Duration,
    /// Where metrics are served while the channel runs.
    pub http: Option<Endpoint>,
    /// People read what happens.
    pub talk: bool,
    /// The replica's own applier catches up, from a stream of groups.
    pub via: Option<ViaServe>,
}

/// How a replica reaches that stream.
pub struct ViaServe {
    /// Where Heddle listens: HOST:PORT.
    pub listen: String,
    /// Its name as the replica has it.
    pub host: String,
    pub port: u16,
    pub tls: Option<TlsFiles>,
    /// Of the replica's own account; `None`: as the source has it.
    pub password: Option<Secret>,
    /// Where the mirror and the replica are shown.
    pub http: Option<Endpoint>,
}

impl Request {
    /// What happens, for people or for the log.
    pub fn say(&self, text: &str) {
        if self.talk {
            say!("{text}");
        } else {
            tracing::info!("{text}");
        }
    }
}

/// Whether what is applied goes into the replica's own binary log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogBin {
    /// If it logs what it replicates and has replicas of its own.
    Auto,
    On,
    Off,
}

impl LogBin {
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];

    /// As `--log-bin` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}
