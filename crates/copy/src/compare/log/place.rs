//! Places in the source's log: what a read has surely seen (low), what it can have seen at most (high), and how far the target has applied.
//!
//! A transaction of MySQL is written to the log, then visible, then in `gtid_executed`. So the end of the log, asked after a read, is behind everything that the read
//! has seen; asked before it, it is not before everything that the read has not seen: a transaction waits for a semi-synchronous replica between the two.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use apply::mysql::progress::SCHEMA;
use apply::mysql::server::errors::{is_not_there, is_privilege};
use apply::mysql::server::sql::quote;
use binlog::gtids::GtidState;
use binlog::{Flavour, LogPosition};
use channel::start::split_source;
use replica::questions;
use replica::statements::NativeChannel;
use wire::{Connection, source};

/// Everything that a read has seen is before it.
#[derive(Clone, Debug)]
pub struct High {
    pub position: LogPosition,
    /// Empty without GTIDs.
    pub gtids: GtidState,
}

/// Everything before it is applied.
#[derive(Clone, Debug, Default)]
pub struct AppliedPlace {
    /// `None`: not in the words of this source's log.
    pub position: Option<LogPosition>,
    pub gtids: GtidState,
}

impl AppliedPlace {
    pub fn has_reached(&self, high: &High) -> bool {
        let by_position = self.position.as_ref().is_some_and(|position| *position >= high.position);
        by_position || (!high.gtids.is_empty() && self.gtids.contains_state(&high.gtids))
    }
}

/// What is asked of the source's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLog {
    MySqlGtids,
    /// MySQL without GTIDs: see [`low`].
    MySqlPositions,
    MariaDb,
    /// The source has none.
    Absent,
}

impl SourceLog {
    pub fn of(connection: &mut Connection) -> Result<Self> {
        if connection.scalar("SELECT @@global.log_bin")?.as_deref() != Some("1") {
            return Ok(Self::Absent);
        }
        if connection.server().is_mariadb() {
            return Ok(Self::MariaDb);
        }
        let mode = connection.scalar("SELECT @@global.gtid_mode")?.unwrap_or_default();
        Ok(if mode == "ON" { Self::MySqlGtids } else { Self::MySqlPositions })
    }
}

fn gtids(text: &str) -> Result<GtidState> {
    text.replace(['\n', ' '], "").parse::<GtidState>().map_err(|error| anyhow!("GTIDs {text:?}: {error}"))
}

/// GTIDs of transactions that are under way: `uuid:5#12:7#13,uuid:tag:5#14`. The number of the session is behind each.
fn owned(text: &str) -> Result<GtidState> {
    let mut plain = String::with_capacity(text.len());
    let mut in_session = false;
    for c in text.chars() {
        match c {
            '#' => in_session = true,
            '0'..='9' if in_session => {}
            _ => {
                in_session = false;
                plain.push(c);
            }
        }
    }
    gtids(&plain)
}

/// Behind everything that any read so far has seen. Without a log it is the beginning.
pub fn high(connection: &mut Connection, log: SourceLog) -> Result<High> {
    if log == SourceLog::Absent {
        return Ok(High { position: LogPosition::new("", 0), gtids: GtidState::default() });
    }
    let position = source::log_end(connection).context("asking where the source's log ends")?;
    let gtids = match log {
        SourceLog::MySqlGtids => started_gtids(connection)?,
        SourceLog::MariaDb => gtids(&connection.scalar("SELECT @@global.gtid_binlog_pos")?.unwrap_or_default())?,
        SourceLog::MySqlPositions | SourceLog::Absent => GtidState::default(),
    };
    Ok(High { position, gtids })
}

/// MySQL: all that is in the log. A transaction owns its GTID until it is in `gtid_executed`, so who asks in this order misses none.
fn started_gtids(connection: &mut Connection) -> Result<GtidState> {
    let under_way = connection.scalar("SELECT @@global.gtid_owned")?.unwrap_or_default();
    let executed = executed_gtids(connection)?;
    let under_way = owned(&under_way)?;
    Ok(if under_way.is_empty() { executed } else { executed.then(&under_way) })
}

fn executed_gtids(connection: &mut Connection) -> Result<GtidState> {
    gtids(&connection.scalar("SELECT @@global.gtid_executed")?.unwrap_or_default())
}

const VISIBLE_EVERY: Duration = Duration::from_millis(2);
const VISIBLE_MAX: Duration = Duration::from_secs(300);
/// Without GTIDs nothing says what is visible: what is so old is. `rpl_semi_sync_source_timeout` is 10 seconds unless somebody changed it.
pub const VISIBLE_AFTER: Duration = Duration::from_secs(11);

/// A place: what the log has before it, every read from now on sees. MySQL alone; MariaDB says it of a snapshot ([`crate::source::begin_snapshot`]).
pub fn low(connection: &mut Connection, log: SourceLog) -> Result<LogPosition> {
    let position = source::log_end(connection).context("asking where the source's log ends")?;
    if log != SourceLog::MySqlGtids {
        std::thread::sleep(VISIBLE_AFTER);
        return Ok(position);
    }
    let (started, since) = (started_gtids(connection)?, Instant::now());
    while !executed_gtids(connection)?.contains_state(&started) {
        ensure!(
            since.elapsed() < VISIBLE_MAX,
            "a transaction of the source is in its log and does not become visible (gtid_owned)"
        );
        std::thread::sleep(VISIBLE_EVERY);
    }
    Ok(position)
}

/// Who brings the source's changes to the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follower {
    /// A channel of Heddle.
    Channel(String),
    /// The server's own replication, by the name of its channel.
    Native(String),
    /// Nobody: both ends are as they are.
    Nobody,
}

/// The progress of a follower, asked on a connection to the target.
pub struct Progress {
    pub follower: Follower,
    /// The source's name for itself ([`source::identity`]): positions of another server's log mean something else.
    source: String,
    native: NativeChannel,
}

impl Progress {
    /// `channel`: the one that was asked for. `None`: the only one of Heddle's, else the only native one, else nobody.
    pub fn find(target: &mut Connection, source: String, channel: Option<&str>) -> Result<Self> {
        let server = target.server();
        let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
        let native = NativeChannel { flavour, version: server.version, channel: String::new() };
        let named = channels(target)?;
        let follower = match (channel, named.as_slice()) {
            (Some(channel), all) if all.iter().any(|(name, _)| name == channel) => {
                Follower::Channel(channel.to_owned())
            }
            (None, [(name, _)]) => Follower::Channel(name.clone()),
            (None, all) if !all.is_empty() => {
                let mut of_source = all.iter().filter(|(_, of)| is_of(of, &source));
                match (of_source.next(), of_source.next()) {
                    (Some((name, _)), None) => Follower::Channel(name.clone()),
                    _ => {
                        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                        anyhow::bail!(
                            "the target has several channels ({}): name the one of this source with --channel",
                            names.join(", ")
                        );
                    }
                }
            }
            (channel, _) => match questions::channels(target, &native) {
                Ok(all) => {
                    let mut found = all.iter().filter(|status| channel.is_none_or(|name| name == status.channel));
                    match (found.next(), channel) {
                        (Some(status), _) => Follower::Native(status.channel.clone()),
                        (None, Some(channel)) => anyhow::bail!("--channel {channel}: the target has no such channel"),
                        (None, None) => Follower::Nobody,
                    }
                }
                Err(error) if channel.is_some() => return Err(error),
                Err(error) => {
                    tracing::debug!("{error:#}");
                    Follower::Nobody
                }
            },
        };
        Ok(Self { follower, source, native })
    }

    pub fn native(&self) -> &NativeChannel {
        &self.native
    }

    /// How far the target is. What a read sees that begins now has at least that.
    pub fn applied(&self, target: &mut Connection) -> Result<AppliedPlace> {
        match &self.follower {
            Follower::Channel(name) => self.of_channel(target, name),
            Follower::Native(name) => self.of_replica(target, name),
            Follower::Nobody => Ok(AppliedPlace::default()),
        }
    }

    fn of_channel(&self, target: &mut Connection, name: &str) -> Result<AppliedPlace> {
        let sql = format!(
            "SELECT source_file, source_position, gtids, source FROM {SCHEMA}.progress WHERE channel={}",
            quote(name)
        );
        let row = target.row(sql)?.with_context(|| format!("channel {name} is gone from {SCHEMA}.progress"))?;
        let (file, offset) = (row.required_text(0)?, row.required(1)?);
        let is_this_log = !file.is_empty() && is_of(row.text(3)?.unwrap_or_default(), &self.source);
        let position = is_this_log.then(|| LogPosition::new(file, offset));
        Ok(AppliedPlace { position, gtids: gtids(row.text(2)?.unwrap_or_default())? })
    }

    fn of_replica(&self, target: &mut Connection, name: &str) -> Result<AppliedPlace> {
        let variable = if target.server().is_mariadb() { "gtid_slave_pos" } else { "gtid_executed" };
        let applied = gtids(&target.scalar(format!("SELECT @@global.{variable}"))?.unwrap_or_default())?;
        let all = questions::channels(target, &self.native)?;
        let status = all.iter().find(|status| status.channel == name);
        let status = status.with_context(|| format!("replication channel {name:?} is gone from the target"))?;
        let is_this_log = status.source_identity.as_deref() == Some(self.source.as_str());
        Ok(AppliedPlace { position: status.applied.clone().filter(|_| is_this_log), gtids: applied })
    }
}

/// Names of Heddle's channels, and their sources as they are recorded.
fn channels(target: &mut Connection) -> Result<Vec<(String, String)>> {
    let sql = format!("SELECT channel, source FROM {SCHEMA}.progress WHERE started = 1 ORDER BY channel");
    let rows = match target.rows(sql) {
        // The account may not read it, or may not know that it is not there.
        Err(error) if is_not_there(&error) || error.code().is_some_and(is_privilege) => Vec::new(),
        rows => rows.context("reading the target's channels")?,
    };
    rows.iter().map(|row| Ok((row.required_text(0)?.to_owned(), row.text(1)?.unwrap_or_default().to_owned()))).collect()
}

/// Whether a channel's source, as it is recorded, is the one of this name.
fn is_of(recorded: &str, source: &str) -> bool {
    split_source(recorded).0 == source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gtids_under_way() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let check = |text: String, expected: String| assert_eq!(owned(&text).unwrap().to_string(), expected);
        check(format!("{uuid}:23#12:25#7"), format!("{uuid}:23:25"));
        check(
            format!("{uuid}:23#12,\n4{}:1#3", uuid.get(1..).unwrap()),
            format!("{uuid}:23,4{}:1", uuid.get(1..).unwrap()),
        );
        check(String::new(), String::new());
    }

    #[test]
    fn a_place_is_reached_by_position_or_by_gtids() {
        let high = |gtids: &str| High { position: LogPosition::new("b.000002", 100), gtids: gtids.parse().unwrap() };
        let applied = |position: Option<(&str, u64)>, gtids: &str| AppliedPlace {
            position: position.map(|(file, offset)| LogPosition::new(file, offset)),
            gtids: gtids.parse().unwrap(),
        };
        let check = |applied: AppliedPlace, high: High, expected: bool| {
            assert_eq!(applied.has_reached(&high), expected, "{applied:?} {high:?}");
        };
        check(applied(Some(("b.000002", 100)), ""), high("0-1-9"), true);
        check(applied(Some(("b.000001", 900)), "0-1-8"), high("0-1-9"), false);
        check(applied(Some(("b.000001", 900)), "0-1-9"), high("0-1-9"), true);
        check(applied(None, "0-1-10,1-1-1"), high("0-1-9"), true);
        check(applied(None, ""), high(""), false);
    }
}
