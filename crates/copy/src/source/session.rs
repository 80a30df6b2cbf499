//! Sessions that read rows: what a session is set to so that each value comes as the server stores it.

use engine::failure::Failure;
use wire::{ConnectOptions, Connection, Error};

/// A session that reads. Statements that the server breaks off after a time of its own have no limit here.
pub fn connect(options: &ConnectOptions) -> Result<Connection, Error> {
    let mut connection = Connection::connect(options)?;
    for statement in settings(&connection) {
        connection.execute_repeatable(statement)?;
    }
    Ok(connection)
}

/// Statements that make such a session of any.
pub fn settings(connection: &Connection) -> Vec<String> {
    let server = connection.server();
    let no_limit = if server.is_mariadb() {
        Some("SET SESSION max_statement_time=0")
    } else {
        server.at_least(5, 7, 8).then_some("SET SESSION max_execution_time=0")
    };
    let mut statements = vec![
        "SET NAMES utf8mb4".to_owned(),
        // Strings come in the character set of their column, times in UTC, where no hour comes twice.
        "SET SESSION character_set_results=NULL, time_zone='+00:00', sql_mode='', sql_quote_show_create=1, net_write_timeout=3600, wait_timeout=28800"
            .to_owned(),
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
    ];
    if !server.is_mariadb() && server.at_least(8, 0, 3) {
        // Guesses of rows that are a day old say little.
        statements.push("SET SESSION information_schema_stats_expiry=0".to_owned());
    }
    statements.extend(no_limit.map(str::to_owned));
    statements
}

/// What a source said.
pub fn source_failure(error: Error) -> Failure {
    let failure = apply::mysql::server::errors::failed(error);
    Failure { message: format!("source: {}", failure.message), ..failure }
}

/// What a server has to do now, this session included.
pub fn threads_running(connection: &mut Connection) -> Result<u64, Error> {
    let row = connection.row("SHOW GLOBAL STATUS LIKE 'Threads_running'")?;
    row.map_or(Ok(0), |row| row.required(1))
}
