//! Options of every command that applies a source's log to a server: `replicate` and `rescue`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::byte_size::parse_bytes;
use super::exit::Usage;
use super::headings::EXPERT;
use super::http::HttpArgs;
use super::state_dir::state_dir;
use apply::WORKERS_MAX;
use channel::source::relay_sync::RelaySync;
use observe::http::endpoint::Endpoint;

#[derive(Clone, Debug, Args)]
pub struct FeedArgs {
    /// Connections to the target that apply in parallel: 1 to 512, or auto
    ///
    /// auto: one more than this machine's processors, from 2 to 4; up to 32 while the target reads rows from its disk and more are faster; 16
    /// with grouping off; 32 with grouping off and relaxed order.
    #[arg(long, value_name = "N", default_value = "auto", value_parser = parse_workers)]
    pub workers: Workers,
    /// Option file for the source, groups [client] and [heddle]
    #[arg(long, value_name = "FILE")]
    pub source_defaults_file: Option<PathBuf>,
    /// Option file for the target, groups [client] and [heddle]
    #[arg(long, value_name = "FILE")]
    pub target_defaults_file: Option<PathBuf>,
    #[command(flatten)]
    http: HttpArgs,
    /// Folder of the relay log; default: below $XDG_STATE_HOME/heddle or ~/.local/state/heddle
    #[arg(long, value_name = "DIR")]
    pub relay_dir: Option<PathBuf>,
    /// Maximum size of the relay log; above it heddle stops receiving (K, M, G suffixes)
    #[arg(long, value_name = "BYTES", help_heading = EXPERT, default_value = "10G", value_parser = parse_bytes)]
    pub relay_max_bytes: u64,
    /// When received events are made durable. Nothing is lost or applied twice in any case
    #[arg(long, value_name = "WHEN", help_heading = EXPERT, default_value = "async", value_parser = relay_sync())]
    pub relay_sync: RelaySync,
    /// Memory for transactions, all copies included; the process takes up to 64M more. An event may take a third (embedded store: an eighth); a
    /// larger one is refused with the value that is enough (K, M, G suffixes)
    #[arg(long, value_name = "BYTES", help_heading = EXPERT, default_value = "192M", value_parser = parse_bytes)]
    pub memory: u64,
    /// Server id of this replica: must differ from every other replica's; default: made from channel and target
    #[arg(long, value_name = "N", help_heading = EXPERT)]
    server_id: Option<u32>,
    /// How often a group is retried before the channel stops
    #[arg(long, value_name = "N", help_heading = EXPERT, default_value_t = 100)]
    pub retries: u32,
    /// Seconds to try to reach a source or target that is away; 0: once
    // `source-retry-seconds`: what it was called when it was about the source only.
    #[arg(long, value_name = "S", help_heading = EXPERT, default_value_t = 3600, alias = "source-retry-seconds")]
    connect_retry_seconds: u64,
}

impl FeedArgs {
    /// Where the relay log of a channel into `target` is kept.
    pub fn relay_dir(&self, channel: &str, target: &str) -> Result<PathBuf> {
        if let Some(dir) = &self.relay_dir {
            return Ok(dir.clone());
        }
        let state = state_dir().context("name a --relay-dir")?;
        Ok(state.join(format!("{channel}-{:08x}", hash(channel, target) as u32)).join("relay"))
    }

    /// Where the channel is shown, if it is to be.
    pub fn http(&self) -> Result<Option<Endpoint>, Usage> {
        self.http.listen().map_err(Usage)
    }

    /// How long to try to reach an end that is away.
    pub fn connect_retry(&self) -> Duration {
        Duration::from_secs(self.connect_retry_seconds)
    }

    /// High numbers are rarely taken by servers; the same channel always gets the same.
    pub fn server_id(&self, channel: &str, target: &str) -> u32 {
        self.server_id.unwrap_or_else(|| server_id(channel, target))
    }
}

/// A replica's number towards a source, where none was given.
pub fn server_id(name: &str, where_to: &str) -> u32 {
    0x8000_0000 | (hash(name, where_to) >> 33) as u32
}

/// This machine's name: of two with one command line each has its own server id.
pub fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn hash(channel: &str, target: &str) -> u64 {
    twox_hash::XxHash64::oneshot(0, format!("{channel}\0{target}").as_bytes())
}

fn relay_sync() -> impl TypedValueParser<Value = RelaySync> {
    let values = RelaySync::ALL.map(|how| {
        let value = PossibleValue::new(how.as_str()).help(how.about());
        // What it was called before 0.2.
        if how == RelaySync::Async { value.alias("beside") } else { value }
    });
    PossibleValuesParser::new(values).try_map(|name| name.parse::<RelaySync>())
}

#[derive(Clone, Copy, Debug)]
pub enum Workers {
    Auto,
    Number(usize),
}

/// What [`Workers::Auto`] is where transactions are grouped: one for each processor, and one whose commit waits for the disk meanwhile. More of them wait for
/// each other's locks and turns (bench/results/benchmarks.md).
pub fn workers_that_group() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_add(1).clamp(2, 4)
}

fn parse_workers(text: &str) -> Result<Workers, String> {
    match text {
        "auto" => Ok(Workers::Auto),
        text => match text.parse() {
            Ok(number @ 1..=WORKERS_MAX) => Ok(Workers::Number(number)),
            _ => Err(format!("auto, or a number from 1 to {WORKERS_MAX}")),
        },
    }
}
