//! What kind of server the target is, as far as applying depends on it.

use std::time::Duration;

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::mysql::server::errors::failed;
use crate::mysql::server::fixed_settings::FixedSettings;
use crate::mysql::server::row_check::{self, RowChecks};
use crate::mysql::server::sql::quote;

/// `binlog_format`, for sessions that do not set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinlogFormat {
    Row,
    Mixed,
    Statement,
}

impl BinlogFormat {
    fn of(text: &str) -> Self {
        match text {
            "MIXED" => Self::Mixed,
            "STATEMENT" => Self::Statement,
            _ => Self::Row,
        }
    }
}

/// What answers: the servers do as their manuals say, other engines that speak their protocol are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Server,
    Other,
}

#[derive(Clone, Debug)]
pub struct TargetInfo {
    pub flavour: Flavour,
    pub engine: Engine,
    /// Of another engine the version that it is taken for.
    pub version: (u16, u16, u16),
    pub version_text: String,
    /// `max_allowed_packet`, in bytes.
    pub packet_bytes_max: usize,
    pub log_bin: bool,
    pub binlog_format: BinlogFormat,
    /// MySQL's gtid_mode is ON or ON_PERMISSIVE.
    pub gtid_mode: bool,
    /// Its set of executed GTIDs survives a crash with the rows that it is about.
    pub durable_gtids: bool,
    pub read_only: bool,
    pub max_connections: u64,
    pub server_id: u64,
    /// `default_table_encryption` of MySQL 8.0.16 and later.
    pub encrypts_tables: bool,
    /// `sql_generate_invisible_primary_key` of MySQL 8.0.30 and later: tables without a primary key get a further column.
    pub adds_primary_keys: bool,
    /// MySQL's `restrict_fk_on_non_standard_key`, for its clients.
    pub restricts_foreign_keys: bool,
    /// MySQL 8 and later: its performance schema is on, and shows who holds the lock that somebody waits for.
    pub shows_lock_holders: bool,
    /// The account may set variables of its session that not every account may: what is logged, and how.
    pub sets_restricted: bool,
    /// What it may not set.
    pub fixed: FixedSettings,
    /// It may set `pseudo_thread_id`: which of the source's sessions a statement is of.
    pub sets_thread_id: bool,
    pub account: OwnAccount,
}

/// The account that heddle's sessions have on the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAccount {
    pub user: String,
    pub host: String,
}

impl OwnAccount {
    /// `text`: as `CURRENT_USER()` gives it.
    fn parse(text: &str) -> Self {
        let (user, host) = text.rsplit_once('@').unwrap_or((text, ""));
        Self { user: user.to_owned(), host: host.to_owned() }
    }

    /// As statements name it.
    pub fn name(&self) -> String {
        format!("{}@{}", quote(&self.user), quote(&self.host))
    }
}

/// A session has `explicit_defaults_for_timestamp` of its own. Before, MariaDB had it for the whole server.
pub fn has_explicit_defaults(flavour: Flavour, version: (u16, u16, u16)) -> bool {
    match flavour {
        Flavour::MySql => version >= (5, 6, 6),
        Flavour::MariaDb => version >= (10, 10, 0),
    }
}

impl TargetInfo {
    /// For tests: one of which nothing else matters.
    #[cfg(test)]
    pub fn of(flavour: Flavour, version: (u16, u16, u16)) -> Self {
        Self {
            flavour,
            engine: Engine::Server,
            version,
            version_text: String::new(),
            packet_bytes_max: 0,
            log_bin: true,
            binlog_format: BinlogFormat::Row,
            gtid_mode: false,
            durable_gtids: false,
            read_only: false,
            max_connections: 0,
            server_id: 0,
            encrypts_tables: false,
            adds_primary_keys: false,
            restricts_foreign_keys: false,
            shows_lock_holders: true,
            sets_restricted: true,
            sets_thread_id: true,
            fixed: FixedSettings::default(),
            account: OwnAccount::default(),
        }
    }

    pub fn read(connection: &mut Connection) -> Result<Self, Failure> {
        let server = connection.server().clone();
        refuse_vitess(&server.version_text)?;
        let engine = engine_of(connection)?;
        let version = if engine == Engine::Server { server.version } else { OTHER_ENGINES };
        let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
        let row = connection
            .row("SELECT @@global.max_allowed_packet, @@global.log_bin, @@global.read_only, @@global.max_connections, @@global.server_id")
            .map_err(failed)?
            .ok_or_else(|| Failure::new(FailureKind::Refused, "the target answers no questions about itself"))?;
        let number = |index: usize| row.required::<u64>(index).map_err(failed);
        let gtid_mode = match flavour {
            Flavour::MariaDb => false,
            // Servers before 5.6 have no such variable.
            Flavour::MySql if version < (5, 6, 5) => false,
            Flavour::MySql => connection
                .scalar("SELECT @@global.gtid_mode")
                .map_err(failed)?
                .is_some_and(|mode| mode.starts_with("ON")),
        };
        let log_bin = number(1)? != 0;
        // With a binary log that is where the set is read from after a crash, and the rows from InnoDB's; without, both are there.
        let both_synced = "SELECT @@global.sync_binlog = 1 AND @@global.innodb_flush_log_at_trx_commit = 1";
        let durable_gtids =
            gtid_mode && (!log_bin || connection.scalar(both_synced).map_err(failed)?.as_deref() == Some("1"));
        // A later MySQL may have no other format and no such variable.
        let format = connection.scalar("SELECT @@global.binlog_format");
        let binlog_format = match format {
            Err(error) if error.is_connection_lost() => return Err(failed(error)),
            format => format.ok().flatten().map_or(BinlogFormat::Row, |format| BinlogFormat::of(&format)),
        };
        let mut may_set =
            |variable: &str| match connection.execute(format!("SET SESSION {variable}=@@session.{variable}")) {
                Err(error) if error.is_connection_lost() => Err(failed(error)),
                done => Ok(done.is_ok()),
            };
        let (sets_restricted, sets_thread_id) = (may_set("sql_log_bin")?, may_set("pseudo_thread_id")?);
        let mut is_on = |since: (u16, u16, u16), variable: &str| {
            let is_there = flavour == Flavour::MySql && version >= since;
            let value = is_there.then(|| connection.scalar(format!("SELECT @@{variable}")).map_err(failed));
            Ok::<_, Failure>(value.transpose()?.flatten().as_deref() == Some("1"))
        };
        let encrypts_tables = is_on((8, 0, 16), "default_table_encryption")?;
        let adds_primary_keys = is_on((8, 0, 30), "sql_generate_invisible_primary_key")?;
        let restricts_foreign_keys = is_on((8, 4, 0), "restrict_fk_on_non_standard_key")?;
        let shows_lock_holders = is_on((8, 0, 0), "performance_schema")?;
        // An account that may set what is logged may set these, too.
        let fixed = if flavour == Flavour::MySql && !sets_restricted {
            FixedSettings::read(connection)?
        } else {
            FixedSettings::default()
        };
        Ok(Self {
            flavour,
            engine,
            version,
            version_text: server.version_text.clone(),
            packet_bytes_max: number(0)? as usize,
            log_bin,
            binlog_format,
            gtid_mode,
            durable_gtids,
            read_only: number(2)? != 0,
            max_connections: number(3)?,
            server_id: number(4)?,
            encrypts_tables,
            adds_primary_keys,
            restricts_foreign_keys,
            shows_lock_holders,
            sets_restricted,
            sets_thread_id,
            fixed,
            account: OwnAccount::parse(
                &connection.scalar("SELECT CURRENT_USER()").map_err(failed)?.unwrap_or_default(),
            ),
        })
    }

    /// `SUPER` is split into privileges for each purpose.
    pub fn has_dynamic_privileges(&self) -> bool {
        self.version >= if self.flavour == Flavour::MySql { (8, 0, 0) } else { (10, 5, 2) }
    }

    /// Lets an account set what is logged of its session: `sql_log_bin`, `binlog_format`; MySQL: `gtid_next`.
    pub fn session_privilege(&self) -> &'static str {
        match self.flavour {
            Flavour::MySql if self.has_dynamic_privileges() => "SESSION_VARIABLES_ADMIN",
            Flavour::MariaDb if self.has_dynamic_privileges() => "BINLOG ADMIN",
            Flavour::MySql | Flavour::MariaDb => "SUPER",
        }
    }

    /// MySQL's `sql_generate_invisible_primary_key`, and the flag of a table map that says so of the source's.
    pub fn knows_generated_keys(&self) -> bool {
        self.flavour == Flavour::MySql && self.version >= (8, 0, 30)
    }

    /// MariaDB's `character_set_collations`, and the numbers of all collations in `information_schema`.
    pub fn has_collations_of_character_sets(&self) -> bool {
        self.flavour == Flavour::MariaDb && self.version >= (11, 3, 0)
    }

    /// How long not to read the lock information between two readings. The `information_schema` tables of InnoDB are a cache that is filled anew
    /// only when nobody has read it for 100 ms (`CACHE_MIN_IDLE_TIME` in `trx0i_s.cc` of both servers). Who asks more often gets the same answer
    /// for ever.
    pub fn lock_waits_pause(&self) -> Duration {
        if self.shows_lock_holders { Duration::ZERO } else { Duration::from_millis(110) }
    }

    /// Whether `KILL QUERY` can end the server: where it meets a `BINLOG` statement that opens its tables. Seen: MySQL 5.7.22 and 8.0.15 (a segmentation
    /// fault in `table_def::compatible_with`), not 9.7; since when is not known. One that waits for a row lock has opened them.
    pub fn dies_of_interruptions(&self) -> bool {
        self.flavour == Flavour::MySql && self.version < (9, 0, 0)
    }

    /// Who waits for whose metadata lock, in the same form; `None`: the server does not say. MySQL from 8.0 on has the instrument switched on.
    pub fn metadata_locks_sql(&self) -> Option<&'static str> {
        self.shows_lock_holders.then_some(
            "SELECT DISTINCT w.PROCESSLIST_ID, b.PROCESSLIST_ID, 1 FROM performance_schema.metadata_locks p \
             JOIN performance_schema.metadata_locks g ON g.OBJECT_TYPE=p.OBJECT_TYPE AND g.OBJECT_SCHEMA=p.OBJECT_SCHEMA \
             AND g.OBJECT_NAME=p.OBJECT_NAME AND g.LOCK_STATUS='GRANTED' AND g.OWNER_THREAD_ID<>p.OWNER_THREAD_ID \
             JOIN performance_schema.threads w ON w.THREAD_ID=p.OWNER_THREAD_ID \
             JOIN performance_schema.threads b ON b.THREAD_ID=g.OWNER_THREAD_ID WHERE p.LOCK_STATUS='PENDING'",
        )
    }

    /// Rows of two connection ids and a kind:
    ///
    /// | Kind | Says |
    /// |---|---|
    /// | 1 | the first waits for a row that the second holds (InnoDB) |
    /// | 0 | the first waits for a lock of a table, a schema or the server, of which not every server says who holds it |
    /// | 2 | the first is in a statement; only where InnoDB's tables are a cache |
    /// | 3 | this session has a transaction, as InnoDB's tables say; only there |
    ///
    /// In MySQL 8 and 9 the thread of a row lock is the one that made it, not the one that holds it or waits for it (`RecLock::lock_add` in
    /// `lock0lock.cc`). The lock of an inserted row is made by the first who waits for it, locks on a page that was reorganised by who did
    /// that. Each transaction makes the lock on the table for itself, so that lock tells which thread a transaction belongs to.
    ///
    /// Without the performance schema nothing says who holds a lock: then everybody who has one counts as blocking who waits.
    pub fn lock_waits_sql(&self) -> &'static str {
        if self.shows_lock_holders {
            "SELECT STRAIGHT_JOIN DISTINCT w.PROCESSLIST_ID, b.PROCESSLIST_ID, 1 FROM performance_schema.data_lock_waits l \
             JOIN performance_schema.data_locks r \
             ON r.ENGINE_TRANSACTION_ID=l.REQUESTING_ENGINE_TRANSACTION_ID AND r.LOCK_TYPE='TABLE' \
             JOIN performance_schema.data_locks o \
             ON o.ENGINE_TRANSACTION_ID=l.BLOCKING_ENGINE_TRANSACTION_ID AND o.LOCK_TYPE='TABLE' \
             JOIN performance_schema.threads w ON w.THREAD_ID=r.THREAD_ID \
             JOIN performance_schema.threads b ON b.THREAD_ID=o.THREAD_ID \
             UNION ALL SELECT PROCESSLIST_ID, 0, 0 FROM performance_schema.threads \
             WHERE PROCESSLIST_STATE LIKE 'Waiting for %lock' OR PROCESSLIST_STATE='Waiting for table flush'"
        } else if self.flavour == Flavour::MySql && self.version >= (8, 0, 0) {
            "SELECT w.trx_mysql_thread_id, b.trx_mysql_thread_id, 1 FROM information_schema.innodb_trx w \
             JOIN information_schema.innodb_trx b ON b.trx_id<>w.trx_id AND b.trx_lock_structs>0 WHERE w.trx_state='LOCK WAIT' \
             UNION ALL SELECT ID, 0, IF(STATE LIKE 'Waiting for %lock' OR STATE='Waiting for table flush', 0, 2) \
             FROM information_schema.PROCESSLIST WHERE COMMAND='Query' \
             UNION ALL SELECT trx_mysql_thread_id, 0, 3 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id=CONNECTION_ID()"
        } else {
            "SELECT w.trx_mysql_thread_id, b.trx_mysql_thread_id, 1 FROM information_schema.innodb_lock_waits l \
             JOIN information_schema.innodb_trx w ON w.trx_id=l.requesting_trx_id \
             JOIN information_schema.innodb_trx b ON b.trx_id=l.blocking_trx_id \
             UNION ALL SELECT ID, 0, IF(STATE LIKE 'Waiting for %lock' OR STATE='Waiting for table flush', 0, 2) \
             FROM information_schema.PROCESSLIST WHERE COMMAND='Query' \
             UNION ALL SELECT trx_mysql_thread_id, 0, 3 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id=CONNECTION_ID()"
        }
    }
}

/// Other engines are taken for this version, whatever they call themselves: what came later is not assumed of them.
const OTHER_ENGINES: (u16, u16, u16) = (5, 7, 0);

/// The servers do not add up what no number can hold.
fn engine_of(connection: &mut Connection) -> Result<Engine, Failure> {
    let failure = |error: &wire::Error| row_check::failure(error.code()?, &error.to_string());
    match connection.execute_repeatable(RowChecks::OutOfRange.must_fail()) {
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        Err(error) if failure(&error).is_some() => Ok(Engine::Server),
        _ => Ok(Engine::Other),
    }
}

/// A VTGate says so in its version. It commits what is in several shards one shard after the other, so rows and progress could come apart.
fn refuse_vitess(version_text: &str) -> Result<(), Failure> {
    if !version_text.contains("Vitess") {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Refused, format!("the target is Vitess ({version_text}), which heddle does not write into: it commits a transaction of several shards one \
         shard after the other, and the progress could be lost beside rows that are there"))
        .remedy("bring the rows in by Vitess's own MoveTables; or replicate into a MySQL server that is not behind a VTGate"))
}

/// What a session does, as in `SHOW PROCESSLIST`: `Query`, `Sleep` and the like. `None`: it is gone, or this account can not see it.
pub fn command_of(connection: &mut Connection, id: &str) -> Result<Option<String>, wire::Error> {
    connection.scalar(format!("SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID={id}"))
}

/// Tells running servers apart: two addresses with the same answer are one server.
pub fn machine(connection: &mut Connection) -> Result<String, wire::Error> {
    let sql = if connection.server().is_mariadb() {
        "SELECT CONCAT_WS(' ', @@global.server_id, @@global.hostname, @@global.port, @@global.datadir)"
    } else {
        "SELECT @@global.server_uuid"
    };
    Ok(connection.scalar(sql)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vitess_is_refused_by_name() {
        let check = |version: &str, refused| assert_eq!(refuse_vitess(version).is_err(), refused, "{version}");
        check("8.0.40-Vitess", true);
        check("9.7.0", false);
        check("10.11.6-MariaDB", false);
    }
}
