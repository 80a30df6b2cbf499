//! Sessions that place rows: nothing but the row decides what is stored.

use apply::mysql::server::errors::failed;
use apply::mysql::{AccountStatements, BinlogChoice};
use engine::failure::Failure;
use wire::{ConnectOptions, Connection};

/// Where rows are placed.
#[derive(Clone, Copy, Debug)]
pub struct CopyTarget<'a> {
    pub options: &'a ConnectOptions,
    /// Whether the rows go into its binary log, under GTIDs of its own. If they do not, it has the source's GTIDs at the end.
    pub logged: BinlogChoice,
    /// Whether it gets the source's accounts, as it gets the statements about them later.
    pub accounts: AccountStatements,
}

/// A session on the target, with utf8mb4, UTC, and a mode that takes each value that a source may have.
pub fn connect(target: CopyTarget<'_>) -> Result<Connection, Failure> {
    let mut connection = Connection::connect(target.options).map_err(failed)?;
    if target.logged == BinlogChoice::No {
        connection.execute_repeatable("SET SESSION sql_log_bin=0").map_err(failed)?;
    }
    let server = connection.server().clone();
    let mysql_from = |major, minor, patch| !server.is_mariadb() && server.at_least(major, minor, patch);
    let mariadb_from = |major, minor, patch| server.is_mariadb() && server.at_least(major, minor, patch);
    connection
        .execute_repeatable(
            "SET NAMES utf8mb4, SESSION time_zone='+00:00', sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', foreign_key_checks=0, wait_timeout=86400, \
             sql_safe_updates=0",
        )
        .map_err(failed)?;
    // A source that has such rows was allowed to. Not every account may set each.
    for (setting, is_there) in [
        ("max_execution_time=0", mysql_from(5, 7, 8)),
        ("max_statement_time=0", server.is_mariadb()),
        ("check_constraint_checks=0", mariadb_from(10, 2, 1)),
        ("sql_generate_invisible_primary_key=OFF", mysql_from(8, 0, 30)),
        ("sql_require_primary_key=OFF", mysql_from(8, 0, 13)),
        ("idle_transaction_timeout=0", mariadb_from(10, 3, 0)),
        ("idle_write_transaction_timeout=0", mariadb_from(10, 3, 0)),
    ] {
        if is_there && let Err(error) = connection.execute_repeatable(format!("SET SESSION {setting}")) {
            tracing::debug!("target: {setting}: {error}");
        }
    }
    Ok(connection)
}

/// One after the other.
pub fn execute_all<S: AsRef<[u8]>>(connection: &mut Connection, statements: &[S]) -> Result<(), Failure> {
    statements.iter().try_for_each(|statement| connection.execute(statement).map(|_| ())).map_err(failed)
}
