//! `heddle channel`: what an operator does to one channel of a target. Each command shows what it is about to change; what loses something wants `--yes`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use apply::mysql::operator::nodes;
use apply::mysql::operator::stopped_channel::StoppedChannel;
use apply::mysql::takeover::request::{self, Takeover};
use apply::status::{ChannelStatus, LastError};
use clap::{Args, Subcommand};
use engine::failure::Culprit;
use rustix::process::{Pid, Signal, kill_process};
use wire::{ConnectOptions, Nodes};

use super::connect::{self, End};
use super::exit::{EXIT_FAILED, EXIT_OK, Usage};
use super::feed;
use observe::status as status_text;
use output::say;

/// List the channels of a target, forget one, pause and resume one, have one skip a transaction, or have a standby take one over
#[derive(Debug, Args)]
pub struct ChannelArgs {
    #[command(subcommand)]
    command: ChannelCommand,
}

#[derive(Debug, Subcommand)]
enum ChannelCommand {
    /// One line a channel: what it does, up to where it has applied
    List {
        #[command(flatten)]
        target: TargetArgs,
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
    /// Remove what the target remembers of a channel that does not run; a new run under its name begins anew
    Forget {
        /// The channel
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        target: TargetArgs,
        /// Do it; without this the channel is only shown
        #[arg(long)]
        yes: bool,
    },
    /// Have the channel leave out the one transaction at which it has stopped with an error
    Skip {
        /// The channel
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        target: TargetArgs,
        /// The GTID of the transaction
        #[arg(long, value_name = "GTID", required_unless_present = "position", conflicts_with = "position")]
        gtid: Option<String>,
        /// FILE:POS where the transaction begins in the source's log
        #[arg(long, value_name = "FILE:POS")]
        position: Option<String>,
        /// Do it; without this the transaction is only shown
        #[arg(long)]
        yes: bool,
    },
    /// Have a process that waits for the channel (heddle replicate --standby) take it over now; the one that has it ends without gaps
    Takeover {
        #[command(flatten)]
        target: TargetArgs,
        /// The channel
        #[arg(long, value_name = "NAME", default_value = "default")]
        channel: String,
        /// How long to wait for it. Exit code 75 if no process has taken it in that time
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        wait: u64,
    },
    /// Have a running channel apply nothing more until it is resumed; the source's log is received all the same (SIGUSR1 does the same)
    Pause {
        /// The channel
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Have a paused channel go on (SIGUSR2 does the same)
    Resume {
        /// The channel
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        target: TargetArgs,
    },
}

#[derive(Debug, Args)]
struct TargetArgs {
    /// mysql://user@host:port[,host:port…][?…]
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Option file for the target, groups [client] and [heddle]
    #[arg(long, value_name = "FILE")]
    target_defaults_file: Option<PathBuf>,
}

impl TargetArgs {
    fn nodes(&self) -> Result<Nodes> {
        if self.to.starts_with("store:") {
            bail!(Usage("a store has no channels to be changed by hand: delete its folder to forget it".to_owned()));
        }
        connect::nodes(End::Target, &self.to, self.target_defaults_file.as_deref())
    }

    /// The server, or the node at which the channel runs.
    fn options_of(&self, channel: &str) -> Result<ConnectOptions> {
        nodes::of_channel(&self.nodes()?, channel).map_err(anyhow::Error::new)
    }
}

pub fn run(args: &ChannelArgs) -> Result<ExitCode> {
    let code = match &args.command {
        ChannelCommand::List { target, json } => list(target, *json)?,
        ChannelCommand::Forget { name, target, yes } => forget(name, target, *yes)?,
        ChannelCommand::Skip { name, target, gtid, position, yes } => {
            skip(name, target, gtid.as_deref().or(position.as_deref()).unwrap_or_default(), *yes)?
        }
        ChannelCommand::Takeover { target, channel, wait } => takeover(target, channel, Duration::from_secs(*wait))?,
        ChannelCommand::Pause { name, target } => signal(name, target, Signal::USR1, "paused")?,
        ChannelCommand::Resume { name, target } => signal(name, target, Signal::USR2, "resumed")?,
    };
    Ok(ExitCode::from(code))
}

fn channels(nodes: &Nodes) -> Result<Vec<ChannelStatus>> {
    nodes::read(nodes).map_err(anyhow::Error::new)
}

fn one(nodes: &Nodes, name: &str) -> Result<ChannelStatus> {
    let found = channels(nodes)?.into_iter().find(|channel| channel.channel == name);
    found.with_context(|| format!("there is no channel {name} on this target; heddle channel list shows all"))
}

fn list(target: &TargetArgs, json: bool) -> Result<u8> {
    let channels = channels(&target.nodes()?)?;
    if json {
        output::streams::json(&serde_json::to_string_pretty(&channels)?);
    } else if channels.is_empty() {
        say!("no channel has ever run into this target");
    } else {
        for channel in &channels {
            say!("{}", status_text::line(channel));
        }
    }
    Ok(EXIT_OK)
}

fn forget(name: &str, target: &TargetArgs, yes: bool) -> Result<u8> {
    let channel = one(&target.nodes()?, name)?;
    say!("{}", status_text::text(&channel, &status_text::SourceQuery::No));
    if !yes {
        say!(
            "nothing was changed; with --yes the target forgets the channel: a new run under its name begins anew, with --start or --start-gtid"
        );
        return Ok(EXIT_FAILED);
    }
    StoppedChannel::take(&target.options_of(name)?, name)
        .and_then(|mut held| held.forget())
        .map_err(anyhow::Error::new)?;
    say!("channel {name} is forgotten; its rows stay on the target as they are");
    Ok(EXIT_OK)
}

fn skip(name: &str, target: &TargetArgs, named: &str, yes: bool) -> Result<u8> {
    let channel = one(&target.nodes()?, name)?;
    let mut held = StoppedChannel::take(&target.options_of(name)?, name).map_err(anyhow::Error::new)?;
    let error = held.last_error().map_err(anyhow::Error::new)?;
    let (error, culprit) = stopped_at(&channel, error.as_ref(), named)?;
    say!("{}", status_text::error(error, status_text::now_us(), channel.state));
    if !yes {
        say!(
            "nothing was changed. With --yes the next run leaves out this one transaction, all of it: source and target then differ in the rows that it changes, and \
             later transactions may fail for it. To look at it first: mysqlbinlog -vv --start-position=POS FILE on the source, or heddle inspect"
        );
        return Ok(EXIT_FAILED);
    }
    held.skip(culprit, error).map_err(anyhow::Error::new)?;
    say!(
        "transaction {} of channel {name} will be skipped by its next run; it stays recorded in heddle.skips on the target",
        culprit.seq
    );
    Ok(EXIT_OK)
}

/// The transaction that was named, if the channel has stopped at it and not gone on.
fn stopped_at<'a>(
    channel: &ChannelStatus,
    error: Option<&'a LastError>,
    named: &str,
) -> Result<(&'a LastError, &'a Culprit)> {
    let Some((error, culprit)) = error.and_then(|error| error.transaction.as_ref().map(|culprit| (error, culprit)))
    else {
        bail!(
            "channel {} has not stopped at a transaction: only one that a run has stopped at can be skipped",
            channel.channel
        );
    };
    let is_done = culprit.seq <= channel.low_water
        || channel.islands.iter().any(|&(first, last)| (first..=last).contains(&culprit.seq));
    if is_done {
        bail!(
            "channel {} has gone past the transaction at which it stopped last (GTID {:?}, {}): nothing is to be skipped",
            channel.channel,
            culprit.gtid,
            culprit.position
        );
    }
    if !named.eq_ignore_ascii_case(&culprit.gtid) && named != culprit.position {
        bail!(
            "channel {} has stopped at another transaction than {named}: GTID {:?}, {}. Only that one can be skipped",
            channel.channel,
            culprit.gtid,
            culprit.position
        );
    }
    Ok((error, culprit))
}

fn takeover(target: &TargetArgs, name: &str, limit: Duration) -> Result<u8> {
    let Takeover { from, to } =
        request::take_over(&target.options_of(name)?, name, limit).map_err(anyhow::Error::new)?;
    let before = from.map_or_else(|| "no process had it".to_owned(), |from| format!("{from} had it"));
    say!("channel {name} is run by {to} now; {before}");
    Ok(EXIT_OK)
}

fn signal(name: &str, target: &TargetArgs, signal: Signal, done: &str) -> Result<u8> {
    let channel = one(&target.nodes()?, name)?;
    if !channel.running {
        bail!("channel {name} is not running");
    }
    let here = feed::host();
    let owner = channel.owner.split_once('@').filter(|(_, host)| *host == here);
    let pid = owner.and_then(|(pid, _)| pid.parse().ok()).and_then(Pid::from_raw);
    let Some(pid) = pid else {
        bail!(
            "channel {name} is run by {} (process@host), which is not on this machine: send that process {signal:?} there",
            channel.owner
        );
    };
    kill_process(pid, signal).with_context(|| format!("signalling process {}", channel.owner))?;
    say!("channel {name} (process {}) is {done}", channel.owner);
    Ok(EXIT_OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_transaction_at_which_it_stopped_can_be_skipped() {
        let culprit = Culprit { seq: 7, gtid: "0-1-9".to_owned(), position: "b.000001:400".to_owned() };
        let error = LastError {
            time_us: 1,
            kind: "Divergence".to_owned(),
            code: Some(1062),
            message: "Duplicate entry".to_owned(),
            place: String::new(),
            remedy: String::new(),
            passed: false,
            transaction: Some(culprit),
        };
        let at = |low_water, islands| ChannelStatus::new("c".to_owned(), low_water, islands);
        for named in ["0-1-9", "b.000001:400"] {
            assert!(stopped_at(&at(6, Vec::new()), Some(&error), named).is_ok());
        }
        let said = |channel: ChannelStatus, error, named| stopped_at(&channel, error, named).unwrap_err().to_string();
        assert!(said(at(6, Vec::new()), Some(&error), "0-1-8").contains("another transaction"));
        assert!(said(at(7, Vec::new()), Some(&error), "0-1-9").contains("gone past"));
        assert!(said(at(5, vec![(7, 8)]), Some(&error), "0-1-9").contains("gone past"));
        let elsewhere = LastError { transaction: None, ..error.clone() };
        assert!(said(at(6, Vec::new()), Some(&elsewhere), "0-1-9").contains("has not stopped at"));
        assert!(said(at(6, Vec::new()), None, "0-1-9").contains("has not stopped at"));
    }
}
