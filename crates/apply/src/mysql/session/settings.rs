//! What a session of Heddle is set to, whatever the target's own settings are.

use std::sync::atomic::{AtomicBool, Ordering};

use binlog::Flavour;
use engine::failure::Failure;
use wire::Connection;

use crate::mysql::server::errors::failed;
use crate::mysql::server::info::{BinlogFormat, Engine, TargetInfo};

/// The lock monitor ends waits that would not end by themselves; this bounds the rest.
const LOCK_WAIT_MAX_S: u32 = 300;
/// The last two are for rows as SQL: a 0 in an AUTO_INCREMENT column, and a date that is none, are values as any other.
pub const SQL_MODE: &str =
    "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES";

/// Whether changes go into the target's own binary log, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinlogChoice {
    Yes,
    No,
}

/// Makes a session independent of the target's settings.
pub fn set_up(connection: &mut Connection, info: &TargetInfo, logged: BinlogChoice) -> Result<(), Failure> {
    // These end an open transaction or are not allowed inside it, and nothing that is executed later changes them.
    let mut once = String::from(
        "SET SESSION autocommit=1, foreign_key_checks=1, unique_checks=1;SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    );
    // In MIXED, READ COMMITTED logs rows as well.
    let logs_rows = match info.binlog_format {
        BinlogFormat::Row => true,
        BinlogFormat::Mixed => !info.sets_restricted,
        BinlogFormat::Statement => false,
    };
    if info.log_bin && !logs_rows {
        // READ COMMITTED needs it, and so does a replica of this target.
        once.push_str(";SET SESSION binlog_format='ROW'");
    }
    if info.log_bin && logged == BinlogChoice::No {
        once.push_str(";SET SESSION sql_log_bin=0");
    }
    connection.execute_repeatable(format!("{};{once}", settings(info))).map(|_| ()).map_err(failed)
}

/// Takes back what the session state of rows changes ([`crate::mysql::rows::binlog_statement::session`]).
pub fn after_rows() -> String {
    format!(
        "SET SESSION sql_mode='{SQL_MODE}', time_zone=DEFAULT, lc_time_names=DEFAULT, timestamp=DEFAULT, foreign_key_checks=1"
    )
}

/// For SET. Statements are utf8mb4, and literals are so by `collation_connection`. With `character_set_client=binary` the server does not convert their text, and takes
/// each byte for a character while it looks for the end of a literal: a large `BINLOG` statement costs less so (measured: docs/design-notes.md, "Large values").
/// `binary` is a name here: a literal would be read in the `collation_connection` of before, which is UTF-16 behind a user variable in that.
pub const CHARACTER_SETS: &str = "NAMES utf8mb4, SESSION character_set_client=binary";
/// The same for another engine, which takes no name that is a keyword.
const CHARACTER_SETS_OF_OTHERS: &str = "NAMES utf8mb4, SESSION character_set_client='binary'";

/// The part of the settings that also holds inside a transaction, as one SET: for after a statement with a session state of its own.
pub fn settings(info: &TargetInfo) -> String {
    let character_sets = if info.engine == Engine::Server { CHARACTER_SETS } else { CHARACTER_SETS_OF_OTHERS };
    let mut settings = format!(
        "SET {character_sets}, sql_mode='{SQL_MODE}', wait_timeout=86400, completion_type='NO_CHAIN', sql_select_limit={all}, \
         sql_big_selects=1, max_join_size={all}, sql_safe_updates=0",
        // Another engine may take a greater number for a negative one.
        all = if info.engine == Engine::Server { u64::MAX } else { i64::MAX as u64 },
    );
    if info.engine == Engine::Server {
        settings.push_str(&format!(", innodb_lock_wait_timeout={LOCK_WAIT_MAX_S}"));
    }
    let (mysql, version) = (info.flavour == Flavour::MySql, info.version);
    for (setting, is_there) in [
        // What a server may be set to do to its clients, and never does to its own applier: end what takes long, add columns to tables.
        ("max_execution_time=0", mysql && version >= (5, 7, 8)),
        ("max_statement_time=0", !mysql && version >= (10, 1, 1)),
        ("idle_transaction_timeout=0", !mysql && version >= (10, 3, 0)),
        ("idle_write_transaction_timeout=0", !mysql && version >= (10, 3, 0)),
        ("alter_algorithm='DEFAULT'", !mysql && version >= (10, 3, 7)),
        // Not every account may set it.
        ("sql_generate_invisible_primary_key=OFF", info.adds_primary_keys && info.sets_restricted),
        ("show_gipk_in_create_table_and_information_schema=ON", mysql && version >= (8, 0, 30)),
        // The source was allowed to do what it did. The servers' own appliers do not ask either.
        ("system_versioning_alter_history=KEEP", !mysql && version >= (10, 3, 4)),
        ("restrict_fk_on_non_standard_key=OFF", info.restricts_foreign_keys),
    ] {
        if is_there {
            settings.push_str(", ");
            settings.push_str(setting);
        }
    }
    settings
}

/// What the session state of statements changes and [`settings`] does not: the server's own settings again.
fn defaults(info: &TargetInfo) -> String {
    let mut sets = String::from(
        "foreign_key_checks=1, unique_checks=1, sql_auto_is_null=0, timestamp=DEFAULT, \
         time_zone=DEFAULT, lc_time_names=DEFAULT, collation_server=DEFAULT",
    );
    let (mysql, version) = (info.flavour == Flavour::MySql, info.version);
    for (variable, is_there) in [
        ("auto_increment_increment", true),
        ("auto_increment_offset", true),
        ("default_collation_for_utf8mb4", mysql && version >= (8, 0, 11)),
        ("sql_require_primary_key", mysql && version >= (8, 0, 13) && info.sets_restricted),
        ("enable_cascade_triggers", mysql && version >= (9, 7, 0)),
        ("check_constraint_checks", !mysql && version >= (10, 2, 1)),
        ("sql_if_exists", !mysql && version >= (10, 5, 2)),
        ("system_versioning_insert_history", !mysql && version >= (10, 11, 0)),
        ("character_set_collations", info.has_collations_of_character_sets()),
    ] {
        if is_there && info.fixed.may_set(variable) {
            sets.push_str(&format!(", {variable}=DEFAULT"));
        }
    }
    sets
}

/// The session's own settings again. `table_encryption`: what the statement before had set `default_table_encryption` to, if it did.
pub fn reset(info: &TargetInfo, table_encryption: Option<u8>) -> String {
    let mut defaults = defaults(info);
    if table_encryption.is_some_and(|encrypted| encrypted != u8::from(info.encrypts_tables)) {
        defaults.push_str(", default_table_encryption=DEFAULT");
    }
    format!("{}, {defaults}", settings(info))
}

/// The texts of statements in the target's binary log.
#[derive(Default)]
pub struct Annotations {
    /// That they stay there was said.
    is_reported: AtomicBool,
}

impl Annotations {
    /// Keeps the text of long statements out of the target's binary log, where it would stand beside the rows that are in it: MariaDB writes it
    /// before each of the rows events, MySQL if it is told to.
    pub fn leave_out(&self, connection: &mut Connection, info: &TargetInfo) -> Result<(), Failure> {
        if !info.log_bin {
            return Ok(());
        }
        let variable = match info.flavour {
            Flavour::MariaDb => "binlog_annotate_row_events",
            Flavour::MySql => "binlog_rows_query_log_events",
        };
        let is_on = match connection.scalar(format!("SELECT @@session.{variable}")) {
            Err(error) if error.is_connection_lost() || error.is_interruption() => return Err(failed(error)),
            // The server is older than the variable.
            Err(_) => false,
            Ok(value) => value.as_deref() == Some("1"),
        };
        if !is_on {
            return Ok(());
        }
        match connection.execute_repeatable(format!("SET SESSION {variable}=OFF")) {
            Err(error) if error.is_connection_lost() => Err(failed(error)),
            Err(error) => {
                if !self.is_reported.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "the target's binary log will hold every statement's text, which makes it much larger: {error}. GRANT {} ON *.* TO {} ends that",
                        info.session_privilege(),
                        info.account.name()
                    );
                }
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }
}
