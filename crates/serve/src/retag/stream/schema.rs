//! Reads the table definitions of a server by `SHOW CREATE TABLE`. That statement waits for a definition that is being changed, so its answer is not older than the log.

use engine::retag::ReadDefinitions;
use engine::sql::SqlMode;
use engine::survey::Definitions;
use wire::{ConnectOptions, Connection, Error};

/// The table was dropped meanwhile.
const NO_SUCH_TABLE: u16 = 1146;
const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') \
                      AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1, 2";

/// The definitions that a server has now. `missing`: what to do about a table that does not show itself.
///
/// # Errors
/// The server's.
pub fn tables(connection: &mut Connection, missing: &dyn Fn(Error) -> Result<(), Error>) -> Result<Definitions, Error> {
    let mut definitions = Definitions::default();
    for row in &connection.rows(TABLES)? {
        let (Some(schema), Some(table)) = (row.text(0)?, row.text(1)?) else { continue };
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        match connection.rows(format!("SHOW CREATE TABLE {}.{}", quoted(schema), quoted(table))) {
            Ok(created) => {
                if let Some(sql) = created.first().and_then(|row| row.text(1).ok().flatten()) {
                    definitions.execute(sql.as_bytes(), schema, SqlMode::default());
                }
            }
            Err(error) => missing(error)?,
        }
    }
    Ok(definitions)
}

/// Reads the source's definitions, and the two positions of its log between which they were read.
///
/// # Errors
/// In words: why they are not known.
pub(super) fn read(options: &ConnectOptions, identity: &str) -> Result<ReadDefinitions, String> {
    let mut connection = Connection::connect(options).map_err(|error| error.to_string())?;
    let found = wire::source::identity(&mut connection).map_err(|error| error.to_string())?;
    if found != identity {
        return Err(format!("it is {found}, and not {identity}"));
    }
    // A table that the account does not see may refer to one that it sees.
    if !wire::source::sees_every_table(&mut connection).map_err(|error| format!("SHOW GRANTS: {error}"))? {
        return Err("heddle's account does not see all tables: GRANT SELECT ON *.* to it on the source".to_owned());
    }
    let asked = ask(&mut connection);
    asked.map_err(|error| error.to_string())
}

fn ask(connection: &mut Connection) -> Result<ReadDefinitions, Error> {
    connection.query("SET SESSION lock_wait_timeout = 20, sql_mode = '', sql_quote_show_create = 1")?;
    let from = wire::source::log_end(connection)?;
    // With a table left out, a cascade into it would not be seen.
    let definitions = tables(connection, &|error| match error.code() {
        Some(NO_SUCH_TABLE) => Ok(()),
        _ => Err(error),
    })?;
    let to = wire::source::log_end(connection)?;
    Ok(ReadDefinitions { definitions, from, to })
}
