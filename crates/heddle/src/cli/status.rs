//! `heddle status`: where the channels of a target are, or a mirror and its replicas.

use output::say;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use super::connect::{self, End};
use apply::status::{ChannelStatus, PendingWork};
use channel::source::backlog::Backlog;
use channel::source::{Source, is_url, open};
use channel::start::source_state::SourceState;
use channel::start::split_source;
use serve::status::{Snapshot, control, status_of_folder};

use observe::http_get;
use observe::status::SourceQuery;

/// Show the progress and the lag of the channels of a target, or of a `heddle serve`
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// mysql://user@host:port[,host:port…][?…], or store:PATH
    #[arg(long, value_name = "TARGET", required_unless_present_any = ["dir", "http"])]
    to: Option<String>,
    /// A mirror: the --dir of a heddle serve on this machine. Exit code 1 if it is none
    #[arg(long, value_name = "DIR", conflicts_with_all = ["to", "http", "from", "channel"])]
    dir: Option<PathBuf>,
    /// A running heddle serve with --http, such as http://127.0.0.1:9190 or unix:PATH
    #[arg(long, value_name = "URL", conflicts_with_all = ["to", "dir", "from", "channel"])]
    http: Option<String>,
    /// The source, mysql://user@host:port[?…]: it is asked how far its channels are behind. Not for files
    #[arg(long, num_args = 1.., value_name = "SOURCE")]
    from: Vec<String>,
    /// Only this channel. Exit code 1 if it is not there
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    /// Option file for the target, groups [client] and [heddle]
    #[arg(long, value_name = "FILE")]
    target_defaults_file: Option<PathBuf>,
    /// Option file for the source
    #[arg(long, value_name = "FILE")]
    source_defaults_file: Option<PathBuf>,
}

pub fn run(args: &StatusArgs) -> Result<ExitCode> {
    if let Some(snapshot) = mirror(args)? {
        if args.json {
            output::streams::json(&serde_json::to_string_pretty(&snapshot)?);
        } else {
            say!("{}", observe::mirror::text::text(&snapshot));
        }
        return Ok(ExitCode::from(super::exit::EXIT_OK));
    }
    let to = args.to.as_deref().unwrap_or_default();
    let mut channels = match to.strip_prefix("store:") {
        Some(path) => apply::store::status(std::path::Path::new(path)).map_err(anyhow::Error::new)?,
        None => {
            let nodes = connect::nodes(End::Target, to, args.target_defaults_file.as_deref())?;
            apply::mysql::operator::nodes::read(&nodes).map_err(anyhow::Error::new)?
        }
    };
    if let Some(name) = &args.channel {
        channels.retain(|channel| channel.channel == *name);
        if channels.is_empty() {
            anyhow::bail!("there is no channel {name} on this target");
        }
    }
    let asked = match source(&args.from)? {
        Some(url) => {
            let nodes = connect::nodes(End::Source, url, args.source_defaults_file.as_deref())?;
            let options = channel::source::node::choose(&nodes, Duration::ZERO, &AtomicBool::default())?;
            SourceQuery::Other(ask_source(&options, &mut channels)?)
        }
        None if args.from.is_empty() => SourceQuery::No,
        None => SourceQuery::Files,
    };
    if args.json {
        output::streams::json(&serde_json::to_string_pretty(&channels)?);
    } else if channels.is_empty() {
        say!("no channel has ever run into this target");
    } else {
        for channel in &channels {
            say!("{}", observe::status::text(channel, &asked));
        }
    }
    Ok(ExitCode::from(super::exit::EXIT_OK))
}

/// A mirror, if one is asked for: as its process says it, or as its folder is while there is none.
fn mirror(args: &StatusArgs) -> Result<Option<Snapshot>> {
    if let Some(url) = &args.http {
        return http_get::status(url).map(Some).map_err(anyhow::Error::new);
    }
    let Some(dir) = &args.dir else { return Ok(None) };
    let running = if dir.is_dir() { control::status(dir).map_err(anyhow::Error::new)? } else { None };
    match running {
        Some(snapshot) => Ok(Some(snapshot)),
        None => status_of_folder(dir).map(Some).map_err(anyhow::Error::new),
    }
}

/// The server to ask. Files, as a channel's configuration file may name them, have no end that moves.
fn source(from: &[String]) -> Result<Option<&String>> {
    match from {
        [] => return Ok(None),
        [url] if is_url(url) => return Ok(Some(url)),
        _ => {}
    }
    let (source, _) = Source::parse(from)?;
    Ok(from.first().filter(|_| matches!(source, Source::Live(_))))
}

/// How far the channels that this source feeds are behind it. Of others nothing is said. Returns who the source is.
fn ask_source(options: &wire::ConnectOptions, channels: &mut [ChannelStatus]) -> Result<String> {
    let state = open::read_state(options)?;
    let mut connection = wire::Connection::connect(options).context("source")?;
    for channel in channels {
        if split_source(&channel.source).0 == state.identity {
            channel.lag = Some(behind(&mut connection, &state, channel)?);
        }
    }
    Ok(state.identity)
}

fn behind(connection: &mut wire::Connection, state: &SourceState, channel: &ChannelStatus) -> Result<PendingWork> {
    let applied = channel.source_position.as_deref().map(str::parse).transpose().context("the channel's position")?;
    let gtids = channel.gtid_set.parse().context("the channel's GTIDs")?;
    let left = Backlog::read(connection, state, applied.as_ref(), &gtids)?;
    let seconds = if left.is_empty() {
        Some(0.0)
    } else {
        channel.last.commit_time_us.map(|time| state.now_us.saturating_sub(time) as f64 / 1e6)
    };
    Ok(PendingWork { seconds, transactions: left.transactions, bytes: left.bytes })
}
