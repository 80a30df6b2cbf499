//! Questions to a live source: who it is, where its binary log ends, what it has executed.

use anyhow::{Context, Result, bail};
use apply::mysql::server::info::machine;
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::{GtidPos, GtidSet, GtidState};
use wire::Connection;

pub use crate::flow::source_log::SourceLog;

#[derive(Clone, Debug)]
pub struct SourceState {
    pub flavour: Flavour,
    pub version_text: String,
    pub version: (u16, u16, u16),
    /// `server_uuid` (MySQL) or `server_id` (MariaDB): tells servers apart across addresses.
    pub identity: String,
    /// As [`machine`] says it.
    pub machine: String,
    pub binlog_format: String,
    pub row_image: String,
    /// MySQL: gtid_mode is ON. MariaDB: always.
    pub gtids: bool,
    /// Its clock, read before the end of its log, microseconds since the epoch.
    pub now_us: u64,
    /// The end of the binary log now.
    pub end: LogPosition,
    /// What it has executed (MySQL), or logged last in each domain (MariaDB).
    pub executed: GtidState,
    /// What it has from servers that it was a replica of (MariaDB's `gtid_slave_pos`), in its own log or not.
    pub replicated: GtidPos,
    /// Names of the logs that are still there, oldest first.
    pub logs: Vec<String>,
    /// The same with their lengths.
    pub log: SourceLog,
    /// There were logs before the oldest one, and they were purged.
    pub purged: bool,
    /// GTIDs that only purged logs have (MySQL), or the last one of each domain before the oldest log (MariaDB), as far as the source says it.
    pub purged_gtids: GtidState,
    /// As [`Connection::needs_password_cache`].
    pub needs_password_cache: bool,
    /// Whether the account may read the log, as far as its grants say it: a role may have more.
    pub may_read_log: bool,
}

impl SourceState {
    pub fn read(connection: &mut Connection) -> Result<Self> {
        let server = connection.server().clone();
        let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
        let log_bin = variable(connection, "log_bin")? == "1";
        if !log_bin {
            bail!(
                "the source {} has no binary log: start it with --log-bin, then take the initial copy",
                server.version_text
            );
        }
        let identity = wire::source::identity(connection).context("who the source is")?;
        let gtids = match flavour {
            Flavour::MariaDb => true,
            Flavour::MySql => variable(connection, "gtid_mode").is_ok_and(|mode| mode == "ON"),
        };
        let now_us = clock_us(connection).context("the source's clock")?;
        let (end, executed) = end(connection, flavour, gtids)?;
        let logs = wire::source::binary_logs(connection)
            .context("SHOW BINARY LOGS (needs the privilege REPLICATION CLIENT, on MariaDB BINLOG MONITOR)")?;
        let log = SourceLog::new(logs.clone());
        let logs: Vec<String> = logs.iter().map(|log| log.file.to_string()).collect();
        let replicated = match flavour {
            Flavour::MySql => GtidPos::default(),
            Flavour::MariaDb => variable(connection, "gtid_slave_pos")?.parse().context("gtid_slave_pos")?,
        };
        let (purged, before_oldest) = match logs.first() {
            None => (false, GtidState::None),
            Some(first) => before(connection, flavour, first)?,
        };
        let purged_gtids = match flavour {
            Flavour::MySql if gtids => {
                GtidState::MySql(variable(connection, "gtid_purged")?.parse().context("gtid_purged")?)
            }
            Flavour::MySql => GtidState::None,
            Flavour::MariaDb => before_oldest,
        };
        Ok(Self {
            flavour,
            version_text: server.version_text.clone(),
            version: server.version,
            identity,
            machine: machine(connection)?,
            binlog_format: variable(connection, "binlog_format").unwrap_or_else(|_| "ROW".to_owned()),
            row_image: variable(connection, "binlog_row_image").unwrap_or_else(|_| "FULL".to_owned()),
            gtids,
            now_us,
            end,
            executed,
            replicated,
            logs,
            log,
            purged,
            purged_gtids,
            needs_password_cache: connection.needs_password_cache(),
            may_read_log: may_read_log(connection)?,
        })
    }

    /// Refuses to begin with the oldest log when there were older ones.
    pub fn nothing_purged(&self) -> Result<()> {
        if self.lacks_begin() {
            bail!(
                "the source has purged the beginning of its binary log (the oldest is {}): load a copy of the source into the \
                 target and start where it was taken, with --start FILE:POS, --start-gtid or --start-from",
                self.logs.first().map_or("none", String::as_str)
            );
        }
        Ok(())
    }

    /// Transactions of before the oldest log were purged.
    pub fn lacks_begin(&self) -> bool {
        // It sends what is beyond a set of GTIDs, whatever the logs are called.
        let by_gtid = self.flavour == Flavour::MySql && self.gtids;
        if by_gtid { !self.purged_gtids.is_empty() } else { self.purged }
    }

    pub fn describe(&self) -> String {
        format!("{} {}", self.flavour, self.version_text)
    }
}

/// In microseconds. A binlog server evaluates few expressions, and says whole seconds.
fn clock_us(connection: &mut Connection) -> Result<u64> {
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok()).context("it is no number");
    match connection.scalar("SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6))*1000000 AS UNSIGNED)") {
        Err(error) if error.code().is_some() => {
            Ok(number(connection.scalar("SELECT UNIX_TIMESTAMP()")?)?.saturating_mul(1_000_000))
        }
        exact => number(exact?),
    }
}

fn may_read_log(connection: &mut Connection) -> Result<bool> {
    let rows = match connection.rows("SHOW GRANTS") {
        Err(error) if error.is_connection_lost() => return Err(error).context("SHOW GRANTS"),
        // Not every source is a server that has accounts.
        Err(_) => return Ok(true),
        Ok(rows) => rows,
    };
    let grants: Vec<&str> = rows.iter().filter_map(|row| row.text(0).ok().flatten()).collect();
    let lets = |grant: &&str| match grant.strip_prefix("GRANT ").and_then(|grant| grant.split_once(" ON *.*")) {
        Some((privileges, _)) => privileges
            .split(", ")
            .any(|privilege| matches!(privilege, "REPLICATION SLAVE" | "REPLICATION REPLICA" | "ALL PRIVILEGES")),
        // A role, and not a privilege.
        None => !grant.contains(" ON "),
    };
    Ok(grants.is_empty() || grants.iter().any(lets))
}

fn variable(connection: &mut Connection, name: &str) -> Result<String> {
    let value = connection.scalar(format!("SELECT @@global.{name}")).with_context(|| format!("reading {name}"))?;
    Ok(value.unwrap_or_default())
}

/// The end of the binary log now, and the GTIDs that were executed at least up to there.
pub fn end(connection: &mut Connection, flavour: Flavour, gtids: bool) -> Result<(LogPosition, GtidState)> {
    let status = wire::source::end_statement(connection);
    let end = wire::source::log_end(connection)
        .with_context(|| format!("{status} (needs the privilege REPLICATION CLIENT, on MariaDB BINLOG MONITOR)"))?;
    let executed = match flavour {
        Flavour::MySql if gtids => {
            let text = variable(connection, "gtid_executed")?;
            GtidState::MySql(text.parse::<GtidSet>().context("gtid_executed")?)
        }
        Flavour::MySql => GtidState::None,
        Flavour::MariaDb => {
            let text = variable(connection, "gtid_binlog_pos")?;
            GtidState::MariaDb(text.parse::<GtidPos>().context("gtid_binlog_pos")?)
        }
    };
    Ok((end, executed))
}

/// MariaDB: the last GTID of each domain before a log, as far as the source says it without its events.
fn gtids_before(connection: &mut Connection, quoted_name: &str) -> GtidState {
    const FIRST_EVENT: u64 = 4;
    let found = connection.scalar(format!("SELECT BINLOG_GTID_POS('{quoted_name}', {FIRST_EVENT})"));
    let position = found.ok().flatten().and_then(|text| text.parse::<GtidPos>().ok());
    position.filter(|position| !position.is_empty()).map_or(GtidState::None, GtidState::MariaDb)
}

/// Whether the oldest log is not the first, and which GTIDs come before it: as its header lists them (MariaDB), else by its number.
fn before(connection: &mut Connection, flavour: Flavour, first: &str) -> Result<(bool, GtidState)> {
    let numbered_later = LogPosition::new(first, 4).file_number().is_some_and(|number| number > 1);
    if flavour != Flavour::MariaDb {
        return Ok((numbered_later, GtidState::None));
    }
    let name = first.replace('\\', "\\\\").replace('\'', "''");
    let events = connection.rows(format!("SHOW BINLOG EVENTS IN '{name}' LIMIT 5"));
    // Since 10.5 this needs a privilege of its own, and a binlog server does not answer it. Without it the number decides.
    let Ok(events) = events else { return Ok((numbered_later, gtids_before(connection, &name))) };
    for event in &events {
        if event.text("Event_type")? == Some("Gtid_list") {
            let list = event.text("Info")?.unwrap_or_default().trim().trim_matches(['[', ']']).replace(' ', "");
            // Long lists may be cut: then nothing is known.
            let gtids = list.parse::<GtidPos>().map_or(GtidState::None, GtidState::MariaDb);
            return Ok((!list.is_empty(), gtids));
        }
    }
    Ok((numbered_later, GtidState::None))
}
