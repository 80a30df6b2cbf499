//! The target of a switch: what is asked of it, and the end of its channel. Applies nothing.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use apply::mysql::operator::status;
use apply::mysql::progress::{COPY_TABLES, SCHEMA};
use apply::mysql::server::errors::is_not_there;
use apply::mysql::server::sql::quote;
use apply::status::ChannelStatus;
use rustix::process::{Pid, Signal, kill_process};
use wire::{ConnectOptions, Connection};

use super::events::Event;
use super::read_only_state::ReadOnlyState;

/// What is found before anything is changed.
#[derive(Clone, Debug)]
pub struct TargetFacts {
    pub describe: String,
    pub machine: String,
    pub read_only: ReadOnlyState,
    pub has_log: bool,
    pub scheduler_runs: bool,
    pub events: Vec<Event>,
    pub channel: ChannelStatus,
    /// Its rows are not all there yet.
    pub is_copying: bool,
}

const ANSWER_MAX: Duration = Duration::from_secs(30);

/// What Heddle writes there about itself is not logged where the account may say so.
pub fn connect(options: &ConnectOptions) -> Result<Connection> {
    let mut options = options.clone();
    options.limits.read_timeout = Some(options.limits.read_timeout.unwrap_or(ANSWER_MAX));
    let mut connection = Connection::connect(&options).with_context(|| format!("target {}", options.address()))?;
    let settings = "SET NAMES utf8mb4, SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit=1, SESSION wait_timeout=604800";
    connection.execute_repeatable(settings).context(settings)?;
    if let Err(error) = connection.execute_repeatable("SET SESSION sql_log_bin=0") {
        tracing::debug!("sql_log_bin: {error}");
    }
    Ok(connection)
}

impl TargetFacts {
    pub fn read(connection: &mut Connection, options: &ConnectOptions, channel: &str) -> Result<Self> {
        let server = connection.server();
        let describe = format!("{} {}", server.flavour, server.version_text);
        let mut is_on = |name: &str| {
            let value = connection.scalar(format!("SELECT @@global.{name}")).with_context(|| name.to_owned())?;
            Ok::<_, anyhow::Error>(matches!(value.as_deref(), Some("1" | "ON")))
        };
        let (has_log, scheduler_runs) = (is_on("log_bin")?, is_on("event_scheduler")?);
        Ok(Self {
            describe,
            machine: apply::mysql::server::info::machine(connection).context("who the target is")?,
            read_only: ReadOnlyState::read(connection)?,
            has_log,
            scheduler_runs,
            events: Event::read(connection)?,
            channel: channel_status(options, channel)?,
            is_copying: is_copying(connection, channel)?,
        })
    }
}

fn is_copying(connection: &mut Connection, channel: &str) -> Result<bool> {
    let [copies, ..] = COPY_TABLES;
    match connection.scalar(format!("SELECT COUNT(*) FROM {SCHEMA}.{copies} WHERE channel={}", quote(channel))) {
        Err(error) if is_not_there(&error) => Ok(false),
        count => Ok(count?.is_some_and(|count| count != "0")),
    }
}

pub fn channel_status(options: &ConnectOptions, channel: &str) -> Result<ChannelStatus> {
    let all = status::read(options).map_err(anyhow::Error::new)?;
    let found = all.into_iter().find(|status| status.channel == channel);
    found.with_context(|| format!("channel {channel} is gone from {SCHEMA}.progress on the target"))
}

/// What became of the channel's process.
#[derive(Debug, PartialEq, Eq)]
pub enum ChannelEnd {
    /// It had ended before, or was asked to and has.
    Ended,
    /// It has to be ended by hand: this one, for this reason.
    Runs { owner: String, why: String },
}

/// Transactions under way have 3.5 s when a channel is asked to end.
const END_WITHIN: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(100);

/// Asks the channel's process to end, where it is on this machine.
pub fn end_channel(options: &ConnectOptions, channel: &str) -> Result<ChannelEnd> {
    let status = channel_status(options, channel)?;
    if !status.running {
        return Ok(ChannelEnd::Ended);
    }
    let runs = |why: &str| Ok(ChannelEnd::Runs { owner: status.owner.clone(), why: why.to_owned() });
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let Some(pid) = local_process(&status.owner, host.trim()) else { return runs("it is not on this machine") };
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if name.trim() != "heddle" {
        return runs("no heddle has that number here: it may be in another container");
    }
    let init = std::fs::read_to_string("/proc/1/comm").unwrap_or_default();
    if pid == 1 || ["heddle", "tini", "docker-init", "dumb-init", "catatonit"].contains(&init.trim()) {
        return runs(
            "its end would end this container, and this command with it: stop the container once this has come to its end",
        );
    }
    let Some(process) = Pid::from_raw(pid) else { return runs("it is not on this machine") };
    if let Err(error) = kill_process(process, Signal::TERM) {
        return runs(&format!("it cannot be signalled ({error})"));
    }
    let began = Instant::now();
    while channel_status(options, channel)?.running {
        if began.elapsed() > END_WITHIN {
            return runs("it was asked to end, and has not");
        }
        sleep(POLL);
    }
    Ok(ChannelEnd::Ended)
}

/// The number of a process on this host: `PROCESS@HOST`.
fn local_process(owner: &str, host: &str) -> Option<i32> {
    let (pid, on) = owner.split_once('@')?;
    (on == host).then(|| pid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_this_host_is_signalled() {
        let check = |owner: &str, expected| assert_eq!(local_process(owner, "db1"), expected, "{owner}");
        check("4711@db1", Some(4711));
        check("4711@db10", None);
        check("4711", None);
        check("x@db1", None);
        check("", None);
    }
}
