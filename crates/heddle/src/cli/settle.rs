//! `heddle settle`: completes the target's GTIDs and XA branches where a heddle ended before it could.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use apply::mysql::operator::status;
use apply::mysql::operator::stopped_channel::{Settlement, StoppedChannel};
use clap::Args;
use serde::Serialize;
use wire::ConnectOptions;

use super::connect::{self, End};
use super::exit::{EXIT_FAILED, EXIT_OK, Usage};
use output::say;

/// Complete the target's gtid_executed (--gtids preserve) and XA branches after a heddle was killed and does not come back
///
/// Where a run starts again it does the same by itself. Exit code 0: they are complete; 1: a channel runs, or could not be looked at.
#[derive(Debug, Args)]
pub struct SettleArgs {
    /// mysql://user@host:port[?…]
    #[arg(value_name = "TARGET")]
    target: String,
    /// Only this channel [default: all of the target]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Option file for the target, groups [client] and [heddle]
    #[arg(long, value_name = "FILE")]
    target_defaults_file: Option<PathBuf>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// What became of one channel.
#[derive(Debug, Serialize)]
struct Settled {
    channel: String,
    /// Which GTIDs were added to the target's gtid_purged. Empty: none was missing. Missing: nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<String>,
    /// XA branches that were prepared, as XA RECOVER names them in SQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    prepared: Option<Vec<String>>,
    /// MariaDB: the `gtid_slave_pos` with which the server's own replication goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    /// Why it could not be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub fn run(args: &SettleArgs) -> Result<ExitCode> {
    if args.target.starts_with("store:") {
        return Err(Usage("a store keeps the source's GTIDs with its rows: nothing is to be settled".to_owned()).into());
    }
    let options = connect::options(End::Target, &args.target, args.target_defaults_file.as_deref())?;
    let channels = status::read(&options).map_err(anyhow::Error::new)?;
    let wanted = |name: &str| args.channel.as_ref().is_none_or(|only| only == name);
    let names: Vec<String> = channels.into_iter().map(|channel| channel.channel).filter(|name| wanted(name)).collect();
    if let Some(missing) = args.channel.as_ref().filter(|_| names.is_empty()) {
        anyhow::bail!("there is no channel {missing} on this target; heddle channel list shows all");
    }
    let settled: Vec<Settled> = names.into_iter().map(|name| settle(&options, name)).collect();
    if args.json {
        output::streams::json(&serde_json::to_string_pretty(&settled)?);
    } else {
        tell(&settled);
    }
    let failed = settled.iter().any(|one| one.error.is_some());
    Ok(ExitCode::from(if failed { EXIT_FAILED } else { EXIT_OK }))
}

fn settle(options: &ConnectOptions, channel: String) -> Settled {
    match StoppedChannel::take(options, &channel).and_then(|mut held| held.settle()) {
        Ok(Settlement { added, prepared, position }) => {
            Settled { channel, added: Some(added), prepared: Some(prepared), position, error: None }
        }
        Err(failure) => {
            Settled { channel, added: None, prepared: None, position: None, error: Some(failure.to_string()) }
        }
    }
}

fn tell(settled: &[Settled]) {
    if settled.is_empty() {
        say!("no channel has ever run into this target");
    }
    for Settled { channel, added, prepared, position, error } in settled {
        match (added.as_deref(), error) {
            (_, Some(error)) => say!("channel {channel}: not settled: {error}"),
            (Some("") | None, None) => say!("channel {channel}: no GTID is missing"),
            (Some(added), None) => say!("channel {channel}: added to gtid_purged: {added}"),
        }
        if let Some(prepared) = prepared.as_deref().filter(|prepared| !prepared.is_empty()) {
            say!("channel {channel}: prepared XA branches, which somebody has to end: {}", prepared.join(", "));
        }
        if let Some(position) = position {
            say!("channel {channel}: the server's own replication goes on with gtid_slave_pos='{position}'");
        }
    }
}
