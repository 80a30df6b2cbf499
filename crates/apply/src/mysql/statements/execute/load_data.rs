//! `LOAD DATA` of the source, its file from the log, as the source's session would have loaded it.
//!
//! The file goes to the target as `LOCAL`, which implies `IGNORE`: rows that are there already are left out, values that do not fit are cut. On the source
//! that were errors, so here they are found among the warnings. Never leaves out a row of a statement that says neither IGNORE nor REPLACE.

use std::fmt::Write as _;

use engine::failure::{Failure, FailureKind};
use engine::transaction::{LoadFile, StatementItem};

use super::nontransactional;
use super::outcome::Ending;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;
use crate::mysql::session::connection::ChannelConnection;

/// What happens to rows that are there already: bits of the event's flag.
const IGNORE: u8 = 1;
const REPLACE: u8 = 2;

/// Bits of `sql_mode`.
const STRICT_TRANS_TABLES: u64 = 1 << 21;
const STRICT_ALL_TABLES: u64 = 1 << 22;

/// A row that is left out: there already, a foreign key, no partition, a check, a NULL, a view's condition.
const LEFT_OUT: [u16; 12] = [1022, 1048, 1062, 1169, 1369, 1451, 1452, 1526, 1586, 1748, 3819, 4025];

/// A value that is cut, or made up; an error in strict mode. What else is a warning there stays one.
const CUT: [u16; 14] = [1261, 1262, 1263, 1264, 1265, 1292, 1364, 1365, 1366, 1406, 1411, 1441, 3156, 3140];

/// In a session with the statement's state.
pub fn run(connection: &mut ChannelConnection, statement: &StatementItem, file: &LoadFile) -> Result<(), Failure> {
    let has_errors = !matches!(file.duplicates, IGNORE | REPLACE);
    let ending = Ending::of(statement);
    if has_errors && ending != Ending::Done {
        let message = "a LOAD DATA has loaded a part of its file on the source, where it ended with an error: it can not be repeated as far as that";
        return Err(Failure::new(FailureKind::Refused, message).remedy(
            "make its table equal to the source's by hand, and go on behind the statement with a new --channel and --start; on the source, set \
             binlog_format to ROW or MIXED",
        ));
    }
    connection.execute("SET @@session.max_error_count=65535")?;
    let outcome = connection.wire.query_with_local_infile(text(statement, file), &mut file.data.as_slice());
    let (warnings, outcome) = match outcome {
        Ok(results) => (results.last().map_or(0, |result| result.ok.warnings), Ok(())),
        Err(error) => (0, Err(error)),
    };
    nontransactional::notice(connection, &outcome)?;
    ending.judge(statement, outcome)?;
    let wrong = if has_errors && warnings > 0 { first_error(connection, statement)? } else { None };
    connection.execute("SET @@session.max_error_count=DEFAULT")?;
    wrong.map_or(Ok(()), Err)
}

/// Of the warnings, the first that would have been an error.
fn first_error(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<Option<Failure>, Failure> {
    let rows = connection.wire.rows("SHOW WARNINGS").map_err(failed)?;
    let mut is_strict = None;
    for row in &rows {
        let number: u16 = row.required(1).map_err(failed)?;
        if row.text(0).map_err(failed)? == Some("Note") {
            continue;
        }
        let is_error = LEFT_OUT.contains(&number)
            || CUT.contains(&number)
                && match is_strict {
                    Some(known) => known,
                    None => *is_strict.insert(is_strict_for_table(connection, statement)?),
                };
        if is_error {
            let text = row.text(2).map_err(failed)?.unwrap_or_default();
            let mut message = format!("LOAD DATA: error {number}: {text}");
            if rows.len() > 1 {
                // Writing to a String can not fail.
                let _ = write!(message, " (the first of {} such rows or values)", rows.len());
            }
            return Ok(Some(Failure::new(FailureKind::Divergence, message).code(number).remedy(
                "the statement loaded this file without an error on the source: find out who changed the target's table, make it equal to what the \
                 source's was, and run the same command again",
            )));
        }
    }
    Ok(None)
}

/// `STRICT_TRANS_TABLES` is about tables that can be rolled back.
fn is_strict_for_table(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<bool, Failure> {
    let mode = statement.query.vars.sql_mode.unwrap_or(0);
    if mode & STRICT_ALL_TABLES != 0 || mode & STRICT_TRANS_TABLES == 0 {
        return Ok(mode & STRICT_ALL_TABLES != 0);
    }
    let Some(table) = statement.class.tables.first() else { return Ok(true) };
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.TABLES JOIN information_schema.ENGINES USING (ENGINE) WHERE TABLE_SCHEMA={} AND TABLE_NAME={} \
         AND TRANSACTIONS<>'YES'",
        quote(&table.schema),
        quote(&table.name)
    );
    Ok(connection.scalar(sql)?.as_deref() == Some("0"))
}

/// LOAD DATA INFILE 'its temporary name' … → LOAD DATA LOCAL INFILE 'heddle' [IGNORE|REPLACE] INTO …
fn text(statement: &StatementItem, file: &LoadFile) -> Vec<u8> {
    let sql = &statement.query.sql;
    let mut text = Vec::with_capacity(sql.len() + 32);
    let (before, after) = (sql.get(..file.name_range.start), sql.get(file.name_range.end..));
    text.extend_from_slice(before.unwrap_or_default());
    text.extend_from_slice(b" LOCAL INFILE 'heddle'");
    text.extend_from_slice(match file.duplicates {
        IGNORE => b" IGNORE".as_slice(),
        REPLACE => b" REPLACE".as_slice(),
        _ => b"".as_slice(),
    });
    text.extend_from_slice(b" INTO");
    text.extend_from_slice(after.unwrap_or_default());
    text
}
