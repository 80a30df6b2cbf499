//! Looks at a replica and its source before anything is done, and again after each step. Changes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::GtidState;
use wire::{ConnectOptions, Connection};

use super::state::Place;
use crate::replica::ask::{binary_logs, bytes_after, channels, variables_like};
use crate::replica::settings::PARALLEL;
use crate::replica::statements::Native;
use crate::replica::status::{Positioning, ReplicaStatus};
use apply::mysql::server::sql::quote;
use apply::mysql::server::unsafe_settings;
use channel::source::state::SourceState;

/// The replica itself, without its channels.
#[derive(Clone, Debug, Default)]
pub struct Server {
    pub flavour_is_mariadb: bool,
    pub version: (u16, u16, u16),
    pub version_text: String,
    pub server_id: u32,
    pub log_bin: bool,
    pub log_replica_updates: bool,
    pub gtid_mode: String,
    /// MariaDB's.
    pub gtid_strict_mode: bool,
    pub read_only: bool,
    pub super_read_only: bool,
    pub workers: u64,
    pub open_temp_tables: u64,
    pub semi_sync: bool,
    /// Registered with it, or reading its binary log.
    pub replicas: usize,
    /// GTIDs that are applied: `gtid_executed`, `gtid_slave_pos`.
    pub gtids: GtidState,
    /// MariaDB's `gtid_current_pos`, when it is another.
    pub current_pos_differs: bool,
    /// Tables of users whose engine knows no transactions.
    pub not_transactional: u64,
    /// Settings that `BINLOG` statements obey, too, and that would hide a divergence; and how to end them.
    pub unsafe_settings: Vec<(String, String)>,
    /// MariaDB's `replicate_events_marked_for_skip`, where it leaves something out: a filter that `SHOW REPLICA STATUS` does not name.
    pub skips_marked: Option<String>,
    /// Those that decide how fast an applier is, as far as this server has them.
    pub speed: Vec<(String, String)>,
}

/// Beside those of parallel appliers.
const SPEED: [&str; 3] = ["sync_binlog", "innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size"];

impl Server {
    pub fn flavour(&self) -> Flavour {
        if self.flavour_is_mariadb { Flavour::MariaDb } else { Flavour::MySql }
    }

    /// The first of these that the server has among what decides its speed, with its value.
    pub fn speed_setting(&self, names: &[&str]) -> Option<(&str, &str)> {
        let find = |name: &&str| self.speed.iter().find(|(own, _)| own == *name);
        names.iter().find_map(find).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn describe(&self) -> String {
        format!("{} {}", if self.flavour_is_mariadb { "MariaDB" } else { "MySQL" }, self.version_text)
    }

    pub fn read(connection: &mut Connection) -> Result<Self> {
        let info = connection.server().clone();
        let mut server = Self {
            flavour_is_mariadb: info.is_mariadb(),
            version: info.version,
            version_text: info.version_text.clone(),
            ..Self::default()
        };
        let variables = variables(connection, "GLOBAL VARIABLES")?;
        let status = variables_like(connection, "GLOBAL STATUS", "%open_temp_tables")?;
        let text = |names: &[&str]| names.iter().find_map(|name| variables.get(*name)).cloned().unwrap_or_default();
        let on = |names: &[&str]| matches!(text(names).as_str(), "ON" | "1");
        server.server_id = text(&["server_id"]).parse().context("server_id")?;
        server.log_bin = on(&["log_bin"]);
        server.log_replica_updates = on(&["log_replica_updates", "log_slave_updates"]);
        server.gtid_mode = text(&["gtid_mode"]);
        server.gtid_strict_mode = on(&["gtid_strict_mode"]);
        server.read_only = on(&["read_only"]);
        server.super_read_only = on(&["super_read_only"]);
        server.semi_sync = on(&["rpl_semi_sync_replica_enabled", "rpl_semi_sync_slave_enabled"]);
        let speed =
            PARALLEL.iter().chain(&SPEED).filter_map(|name| Some(((*name).to_owned(), variables.get(*name)?.clone())));
        server.speed = speed.collect();
        // MySQL 8 has both words for the same.
        if variables.contains_key("replica_parallel_workers") {
            server.speed.retain(|(name, _)| !name.starts_with("slave_"));
        }
        let value = |name: &str| variables.get(name).cloned();
        server.unsafe_settings = unsafe_settings::settings(server.flavour(), server.version, &value);
        server.skips_marked = value("replicate_events_marked_for_skip").filter(|value| value != "REPLICATE");
        let workers = ["replica_parallel_workers", "slave_parallel_workers", "slave_parallel_threads"];
        server.workers = text(&workers).parse().unwrap_or(0);
        server.open_temp_tables = status.values().filter_map(|value| value.parse::<u64>().ok()).max().unwrap_or(0);
        server.gtids = executed(connection, server.flavour(), &server.gtid_mode)?;
        if server.flavour_is_mariadb {
            let current = connection.scalar("SELECT @@global.gtid_current_pos")?.unwrap_or_default();
            server.current_pos_differs = current.parse::<GtidState>().ok().as_ref() != Some(&server.gtids);
        }
        let native = Native { flavour: server.flavour(), version: server.version, channel: String::new() };
        let registered = connection.rows(native.replicas()).with_context(|| native.replicas().to_owned())?.len();
        let dumping = connection
            .scalar("SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
            .context("the list of processes")?;
        server.replicas = registered.max(dumping.and_then(|count| count.parse().ok()).unwrap_or(0));
        let engines = "SELECT COUNT(*) FROM information_schema.tables WHERE table_type='BASE TABLE' AND engine IN \
                       ('MyISAM','Aria','MRG_MyISAM','MEMORY','CSV','ARCHIVE') AND table_schema NOT IN \
                       ('mysql','sys','information_schema','performance_schema')";
        server.not_transactional = connection.scalar(engines)?.and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok(server)
    }
}

fn variables(connection: &mut Connection, kind: &str) -> Result<BTreeMap<String, String>> {
    variables_like(connection, kind, "%")
}

/// What is applied, by GTID, as the server says it now.
pub fn executed(connection: &mut Connection, flavour: Flavour, gtid_mode: &str) -> Result<GtidState> {
    let variable = match flavour {
        Flavour::MariaDb => "gtid_slave_pos",
        Flavour::MySql if gtid_mode.starts_with("ON") => "gtid_executed",
        Flavour::MySql => return Ok(GtidState::None),
    };
    let text = connection.scalar(format!("SELECT @@global.{variable}")).with_context(|| variable.to_owned())?;
    text.unwrap_or_default().parse().with_context(|| variable.to_owned())
}

/// The channel that is being rescued.
pub fn channel(connection: &mut Connection, native: &Native) -> Result<ReplicaStatus> {
    let mut all = channels(connection, native)?;
    let at = all.iter().position(|status| status.channel == native.channel);
    at.map(|at| all.swap_remove(at)).ok_or_else(|| {
        anyhow!(
            "the replica has no channel {:?} any more: was its replication reset (RESET REPLICA ALL)?",
            native.channel
        )
    })
}

/// Settings of a MySQL channel's receiver that its status does not show.
pub fn connection_settings(connection: &mut Connection, native: &Native) -> Result<BTreeMap<String, String>> {
    settings(connection, native, "replication_connection_configuration")
}

/// Settings of a MySQL channel's applier that its status does not show.
pub fn applier_settings(connection: &mut Connection, native: &Native) -> Result<BTreeMap<String, String>> {
    settings(connection, native, "replication_applier_configuration")
}

fn settings(connection: &mut Connection, native: &Native, table: &str) -> Result<BTreeMap<String, String>> {
    if native.flavour == Flavour::MariaDb {
        return Ok(BTreeMap::new());
    }
    let channel = quote(&native.channel);
    let row = connection
        .row(format!("SELECT * FROM performance_schema.{table} WHERE CHANNEL_NAME={channel}"))
        .with_context(|| format!("performance_schema.{table}"))?;
    let Some(row) = row else { return Ok(BTreeMap::new()) };
    let settings = row.columns().iter().enumerate().map(|(at, column)| {
        (column.name.to_ascii_lowercase(), String::from_utf8_lossy(row.get(at).unwrap_or_default()).into_owned())
    });
    Ok(settings.collect())
}

/// Where the native applier is. Exact only while it is stopped.
pub fn place(connection: &mut Connection, native: &Native, gtid_mode: &str) -> Result<(Place, ReplicaStatus)> {
    let status = channel(connection, native)?;
    let gtids = executed(connection, native.flavour, gtid_mode)?;
    Ok((Place { positioning: status.positioning, gtids, position: status.applied.clone() }, status))
}

/// How far the replica is behind, and how fast it moves.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Backlog {
    /// By the replica's own reckoning.
    pub behind_seconds: Option<u64>,
    /// By GTIDs: of those that the source has logged.
    pub behind_transactions: Option<u64>,
    /// Of the source's binary logs.
    pub behind_bytes: Option<u64>,
    /// Of the native applier, in the source's binary log, while this looked.
    pub native_bytes_per_second: Option<u64>,
    /// Of the source meanwhile.
    pub source_bytes_per_second: Option<u64>,
    /// What Heddle is expected to apply, of the source's binary log.
    pub heddle_bytes_per_second: Option<u64>,
    /// Why `heddle_bytes_per_second` is not there, if it is not.
    pub heddle_estimate_missing: Option<String>,
}

/// How long an applier needs until it has caught up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Seconds.
    In(u64),
    /// At this speed.
    Never,
    /// Why.
    Unknown(String),
}

impl Backlog {
    pub fn native_left(&self) -> Left {
        self.left(self.native_bytes_per_second, "the native applier was not seen to move")
    }

    pub fn heddle_left(&self) -> Left {
        self.left(
            self.heddle_bytes_per_second,
            self.heddle_estimate_missing.as_deref().unwrap_or("it was not measured"),
        )
    }

    /// `missing`: why the rate is not there, if it is not.
    fn left(&self, bytes_per_second: Option<u64>, missing: &str) -> Left {
        let unknown = |why: &str| Left::Unknown(why.to_owned());
        let Some(rate) = bytes_per_second else { return unknown(missing) };
        let Some(behind) = self.behind_bytes else {
            return unknown("the source has purged what comes next, so how much is left cannot be counted");
        };
        let Some(source) = self.source_bytes_per_second else { return unknown("the source's rate was not seen") };
        match (behind, rate.saturating_sub(source)) {
            (0, _) => Left::In(0),
            (_, 0) => Left::Never,
            (behind, gain) => Left::In(behind / gain),
        }
    }
}

/// Looks twice, `sample` apart.
pub fn backlog(
    replica: &mut Connection,
    source: &ConnectOptions,
    native: &Native,
    gtids: &GtidState,
    sample: Duration,
) -> Result<Backlog> {
    let mut source = Connection::connect(source).context("source")?;
    let state = SourceState::read(&mut source)?;
    let began = Instant::now();
    let (before, first) = (channel(replica, native)?, binary_logs(&mut source)?);
    std::thread::sleep(sample);
    let (after, second) = (channel(replica, native)?, binary_logs(&mut source)?);
    let seconds = began.elapsed().as_secs_f64();
    let per_second = |bytes: u64| (bytes as f64 / seconds) as u64;
    let behind = |status: &ReplicaStatus, logs: &[(String, u64)]| {
        status.applied.as_ref().and_then(|position| bytes_after(logs, position))
    };
    // In one list of logs, so that what the source has written meanwhile does not count.
    let moved = behind(&before, &second).zip(behind(&after, &second)).map(|(from, to)| from.saturating_sub(to));
    let written = first
        .first()
        .map(|(name, _)| LogPosition::new(name.as_str(), 0))
        .and_then(|oldest| Some(bytes_after(&second, &oldest)?.saturating_sub(bytes_after(&first, &oldest)?)));
    let behind_transactions = match (&state.executed, gtids) {
        (GtidState::MySql(theirs), GtidState::MySql(ours)) => {
            let mut missing = theirs.clone();
            missing.subtract(ours);
            Some(missing.count())
        }
        (GtidState::MariaDb(theirs), GtidState::MariaDb(ours)) => {
            let behind = |last: binlog::gtids::mariadb::Gtid| {
                last.seq.saturating_sub(ours.get(last.domain).map_or(0, |gtid| gtid.seq))
            };
            Some(theirs.iter().map(behind).sum())
        }
        _ => None,
    };
    Ok(Backlog {
        behind_seconds: after.behind_s,
        behind_transactions,
        behind_bytes: behind(&after, &second),
        native_bytes_per_second: moved.map(per_second),
        source_bytes_per_second: written.map(per_second),
        heddle_bytes_per_second: None,
        heddle_estimate_missing: None,
    })
}

/// Whether the source still has all that comes after the place. `Err(why)` in words.
pub fn source_has(source: &mut Connection, state: &SourceState, place: &Place) -> Result<Result<(), String>> {
    let at_position = || match &place.position {
        Some(position) if !state.logs.iter().any(|log| **log == *position.file) => Err(format!(
            "the source has purged {} (its oldest is {})",
            position.file,
            state.logs.first().map_or("none", String::as_str)
        )),
        _ => Ok(()),
    };
    if place.positioning == Positioning::File {
        return Ok(at_position());
    }
    match (&place.gtids, state.flavour) {
        (GtidState::MySql(have), Flavour::MySql) => {
            let purged = source.scalar("SELECT @@global.gtid_purged")?.unwrap_or_default();
            let GtidState::MySql(mut missing) = purged.parse().context("gtid_purged")? else { return Ok(Ok(())) };
            missing.subtract(have);
            Ok(if missing.is_empty() { Ok(()) } else { Err(format!("the source has purged {missing}")) })
        }
        (GtidState::MariaDb(have), Flavour::MariaDb) => {
            let Some(oldest) = state.logs.first() else { return Ok(Ok(())) };
            let begins = source.scalar(format!("SELECT BINLOG_GTID_POS({}, 4)", quote(oldest)))?;
            let GtidState::MariaDb(begins) = begins.unwrap_or_default().parse().context("BINLOG_GTID_POS")? else {
                return Ok(Ok(()));
            };
            Ok(if have.contains_pos(&begins) {
                Ok(())
            } else {
                Err(format!("the source's binary logs begin behind {begins} only"))
            })
        }
        _ => Ok(at_position()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_the_native_applier_needs() {
        let check = |native, source, expected| {
            let backlog = Backlog {
                behind_bytes: Some(1000),
                native_bytes_per_second: native,
                source_bytes_per_second: source,
                ..Backlog::default()
            };
            assert_eq!(backlog.native_left(), expected);
        };
        let unknown = |why: &str| Left::Unknown(why.to_owned());
        check(Some(20), Some(10), Left::In(100));
        check(Some(10), Some(10), Left::Never);
        check(Some(5), Some(10), Left::Never);
        check(None, Some(10), unknown("the native applier was not seen to move"));
        check(Some(5), None, unknown("the source's rate was not seen"));
        let purged =
            Backlog { heddle_bytes_per_second: Some(5), source_bytes_per_second: Some(1), ..Backlog::default() };
        assert!(matches!(purged.heddle_left(), Left::Unknown(why) if why.contains("purged")));
        let missing = Backlog { heddle_estimate_missing: Some("no privilege".to_owned()), ..Backlog::default() };
        assert_eq!(missing.heddle_left(), unknown("no privilege"));
    }
}
