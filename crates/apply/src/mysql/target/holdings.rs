//! What the target holds before a channel begins: tables with rows, and other channels. Only reads.

use engine::failure::Failure;
use wire::{Connection, Row};

use crate::checks::{Holdings, OtherChannel};
use crate::mysql::progress::statements::{MARK_COLUMNS, read_mark};
use crate::mysql::progress::tables::{SCHEMA, SELECTIONS};
use crate::mysql::server::errors::{code, failed, if_there};
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::lease::lease_holder;

/// More tables with rows than these say nothing new.
const FILLED_MAX: usize = 20;
/// So many tables are asked whether they have rows, the first ones by name, before the server is asked how many it thinks that each has: for that it opens all of
/// them, which took 5 s for 10,000 tables of a MySQL 9.7.
const ASKED_FIRST: usize = 200;
/// More tables are not asked whether they have rows.
const ASKED_MAX: usize = 2000;

/// `channel`: the one that is to begin.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Holdings, Failure> {
    let mut holdings = Holdings::default();
    let first = tables(connection, "TABLE_SCHEMA, TABLE_NAME", ASKED_FIRST)?;
    holdings.has_tables = !first.is_empty();
    let may_be_more = first.len() == ASKED_FIRST;
    ask(connection, first, &mut holdings)?;
    if may_be_more && holdings.filled.len() < FILLED_MAX {
        holdings.filled.clear();
        // The server's own numbers are old for a while: a table of which it knows no rows is asked, too, later.
        let fullest_first = tables(connection, "COALESCE(TABLE_ROWS,0)=0, TABLE_SCHEMA, TABLE_NAME", ASKED_MAX)?;
        ask(connection, fullest_first, &mut holdings)?;
    }
    holdings.channels = channels(connection, channel)?;
    Ok(holdings)
}

/// The first tables in this order.
fn tables(connection: &mut Connection, order: &str, limit: usize) -> Result<Vec<(String, String)>, Failure> {
    let rows = connection
        .rows(format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') AND TABLE_SCHEMA NOT IN \
             ('mysql','sys','information_schema','performance_schema','{SCHEMA}') ORDER BY {order} LIMIT {limit}"
        ))
        .map_err(failed)?;
    let text = |row: &Row, at: usize| row.required_text(at).map(str::to_owned).map_err(failed);
    rows.iter().map(|row| Ok((text(row, 0)?, text(row, 1)?))).collect()
}

/// Which of them have rows, until enough are found.
fn ask(connection: &mut Connection, tables: Vec<(String, String)>, holdings: &mut Holdings) -> Result<(), Failure> {
    for (schema, name) in tables {
        match connection.row(format!("SELECT 1 FROM {}.{} LIMIT 1", identifier(&schema), identifier(&name))) {
            Ok(Some(_)) => holdings.filled.push((schema, name)),
            Ok(None) => {}
            Err(error) if error.is_connection_lost() => return Err(failed(error)),
            // One that can not be read says nothing.
            Err(_) => {}
        }
        if holdings.filled.len() == FILLED_MAX {
            break;
        }
    }
    Ok(())
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
        let holder = lease_holder(connection, &name)?;
        let part =
            connection.scalar(format!("SELECT selection FROM {SCHEMA}.{SELECTIONS} WHERE channel={}", quote(&name)));
        let part = if_there(part)?.flatten();
        channels.push(OtherChannel { name, mark, source, is_running: holder.is_some(), part });
    }
    Ok(channels)
}
