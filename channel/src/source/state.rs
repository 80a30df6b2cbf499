//! Questions to a live source: who it is, where its binary log ends, what it has executed.

use anyhow::{Context, Result, bail};
use apply::mysql::server::info::machine;
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::{GtidPos, GtidSet, GtidState};
use wire::Connection;

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
    /// There were logs before the oldest one, and they were purged.
    pub purged: bool,
    /// GTIDs that only purged logs have (MySQL), or the last one of each domain before the oldest log (MariaDB), as far as the source says it.
    pub purged_gtids: GtidState,
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
        let now_us = connection
            .scalar("SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6))*1000000 AS UNSIGNED)")?
            .and_then(|now| now.parse().ok())
            .context("the source's clock")?;
        let (end, executed) = end(connection, flavour, gtids)?;
        let logs = wire::source::binary_logs(connection)
            .context("SHOW BINARY LOGS (needs the privilege REPLICATION CLIENT, on MariaDB BINLOG MONITOR)")?;
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
            purged,
            purged_gtids,
        })
    }

    /// Refuses to begin with the oldest log when there were older ones.
    pub fn nothing_purged(&self) -> Result<()> {
        // It sends what is beyond a set of GTIDs, whatever the logs are called.
        let by_gtid = self.flavour == Flavour::MySql && self.gtids;
        if if by_gtid { !self.purged_gtids.is_empty() } else { self.purged } {
            bail!(
                "the source has purged the beginning of its binary log (the oldest is {}): load a copy of the source into the \
                 target and start where it was taken, with --start FILE:POS, --start-gtid or --start-from",
                self.logs.first().map_or("none", String::as_str)
            );
        }
        Ok(())
    }

    pub fn describe(&self) -> String {
        format!("{} {}", self.flavour, self.version_text)
    }
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

/// Whether the oldest log is not the first, and which GTIDs come before it: as its header lists them (MariaDB), else by its number.
fn before(connection: &mut Connection, flavour: Flavour, first: &str) -> Result<(bool, GtidState)> {
    let numbered_later = LogPosition::new(first, 4).file_number().is_some_and(|number| number > 1);
    if flavour != Flavour::MariaDb {
        return Ok((numbered_later, GtidState::None));
    }
    let name = first.replace('\\', "\\\\").replace('\'', "''");
    let events = connection.rows(format!("SHOW BINLOG EVENTS IN '{name}' LIMIT 5"));
    // Since 10.5 this needs a privilege of its own. Without it the number decides.
    let Ok(events) = events else { return Ok((numbered_later, GtidState::None)) };
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
