//! The replica as it says it is: its settings, its channel, the place of its applier. Read before anything is done, and again after each step. Changes nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use binlog::Flavour;
use binlog::gtids::GtidState;
use wire::Connection;

use super::state::Place;
use apply::mysql::server::sql::quote;
use apply::mysql::server::unsafe_settings;
use replica::questions::{DENIED, channels, variables_like};
use replica::settings::PARALLEL;
use replica::statements::NativeChannel;
use replica::status::ReplicaStatus;

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
    /// Its binary log has what it replicates: another server may replicate from it, now or later.
    pub fn logs_updates(&self) -> bool {
        self.log_bin && self.log_replica_updates
    }

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
        let native = NativeChannel { flavour: server.flavour(), version: server.version, channel: String::new() };
        let registered = match connection.rows(native.replicas()) {
            // A service need not grant it; those that read its binary log are seen among the processes.
            Err(error) if server.flavour_is_mariadb && error.code() == Some(DENIED) => 0,
            rows => rows.with_context(|| native.replicas().to_owned())?.len(),
        };
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
pub fn channel(connection: &mut Connection, native: &NativeChannel) -> Result<ReplicaStatus> {
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
pub fn connection_settings(connection: &mut Connection, native: &NativeChannel) -> Result<BTreeMap<String, String>> {
    settings(connection, native, "replication_connection_configuration")
}

/// Settings of a MySQL channel's applier that its status does not show.
pub fn applier_settings(connection: &mut Connection, native: &NativeChannel) -> Result<BTreeMap<String, String>> {
    settings(connection, native, "replication_applier_configuration")
}

fn settings(connection: &mut Connection, native: &NativeChannel, table: &str) -> Result<BTreeMap<String, String>> {
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
pub fn place(connection: &mut Connection, native: &NativeChannel, gtid_mode: &str) -> Result<(Place, ReplicaStatus)> {
    let status = channel(connection, native)?;
    let gtids = executed(connection, native.flavour, gtid_mode)?;
    Ok((Place { positioning: status.positioning, gtids, position: status.applied.clone() }, status))
}
