//! What the target holds before a channel begins: tables with rows, and other channels. Only reads.

use engine::failure::Failure;
use wire::Connection;

use crate::checks::{Holdings, OtherChannel};
use crate::mysql::progress::statements::{MARK_COLUMNS, read_mark};
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::server::errors::{code, failed, if_there};
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::lease::lease_lock_name;

/// More tables with rows than these say nothing new.
const FILLED_MAX: usize = 20;
/// More tables are not asked whether they have rows.
const ASKED_MAX: usize = 2000;

/// `channel`: the one that is to begin.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Holdings, Failure> {
    // The server's own numbers are old for a while: a table of which it knows no rows is asked, too, later.
    let tables = connection
        .rows(format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN \
             ('mysql','sys','information_schema','performance_schema','{SCHEMA}') ORDER BY COALESCE(TABLE_ROWS,0)=0, TABLE_SCHEMA, TABLE_NAME LIMIT {ASKED_MAX}"
        ))
        .map_err(failed)?;
    let mut holdings = Holdings { has_tables: !tables.is_empty(), ..Holdings::default() };
    for row in &tables {
        let (schema, name) = (row.required_text(0).map_err(failed)?, row.required_text(1).map_err(failed)?);
        let has_rows = connection.row(format!("SELECT 1 FROM {}.{} LIMIT 1", identifier(schema), identifier(name)));
        match has_rows {
            Ok(Some(_)) => holdings.filled.push((schema.to_owned(), name.to_owned())),
            Ok(None) => {}
            Err(error) if error.is_connection_lost() => return Err(failed(error)),
            // One that can not be read says nothing.
            Err(_) => {}
        }
        if holdings.filled.len() == FILLED_MAX {
            break;
        }
    }
    holdings.channels = channels(connection, channel)?;
    Ok(holdings)
}

/// As the server sees the name, whatever its `lower_case_table_names`. One that this account may not read is there.
pub fn has_table(connection: &mut Connection, schema: &str, table: &str) -> Result<bool, Failure> {
    let asked = connection.execute(format!("SELECT 1 FROM {}.{} LIMIT 0", identifier(schema), identifier(table)));
    match asked {
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        Err(error) => Ok(!matches!(error.code(), Some(code::NO_SUCH_TABLE | code::BAD_DB))),
        Ok(_) => Ok(true),
    }
}

fn channels(connection: &mut Connection, channel: &str) -> Result<Vec<OtherChannel>, Failure> {
    let rows = connection.rows(format!(
        "SELECT {MARK_COLUMNS},source,channel FROM {SCHEMA}.progress WHERE started=1 AND channel<>{} ORDER BY channel",
        quote(channel)
    ));
    let mut channels = Vec::new();
    for row in if_there(rows)?.unwrap_or_default() {
        // What another version has written, and this one does not understand, is of no use here.
        let Ok(mark) = read_mark(&row) else { continue };
        let source = row.text(5).map_err(failed)?.unwrap_or_default().to_owned();
        let name = row.required_text(6).map_err(failed)?.to_owned();
        let lock = quote(&lease_lock_name(&name));
        let holder = connection.scalar(format!("SELECT IS_USED_LOCK({lock})")).map_err(failed)?;
        channels.push(OtherChannel { name, mark, source, is_running: holder.is_some() });
    }
    Ok(channels)
}
