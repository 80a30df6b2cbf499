//! What of the source's definitions the target's server does not know: collations, types. Asked before anything is made there.

use apply::mysql::server::errors::failed;
use apply::mysql::server::sql::quote;
use engine::failure::Failure;
use wire::{Connection, Error};

use super::part::CopyPart;
use super::tables::is_servers_own;
use crate::chunk::TableName;

/// Types that not every version of every server has, with what their names are in `information_schema`.
fn is_known(data_type: &str, target: &Connection) -> bool {
    let server = target.server();
    let mariadb_from = |major, minor, patch| server.is_mariadb() && server.at_least(major, minor, patch);
    let mysql_from = |major, minor, patch| !server.is_mariadb() && server.at_least(major, minor, patch);
    match data_type {
        "json" => mysql_from(5, 7, 8) || mariadb_from(10, 2, 7),
        "vector" => mysql_from(9, 0, 0) || mariadb_from(11, 7, 1),
        "inet6" => mariadb_from(10, 5, 0),
        "uuid" => mariadb_from(10, 7, 0),
        "inet4" => mariadb_from(10, 10, 0),
        "xmltype" => mariadb_from(12, 3, 0),
        _ => true,
    }
}

/// Each by a table that has it.
pub fn not_known(source: &mut Connection, target: &mut Connection, part: CopyPart<'_>) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for (word, of_source) in
        [("collation", distinct(source, part, "COLLATION_NAME")), ("type", distinct(source, part, "DATA_TYPE"))]
    {
        for (value, table) in of_source.map_err(crate::source::source_failure)? {
            let knows = if word == "type" { is_known(&value, target) } else { knows_collation(target, &value)? };
            if !knows {
                problems.push(format!("target: it does not know the {word} {value}, which {table} of the source has"));
            }
        }
    }
    Ok(problems)
}

/// What the columns of the tables that are taken have, once each.
fn distinct(source: &mut Connection, part: CopyPart<'_>, column: &str) -> Result<Vec<(String, TableName)>, Error> {
    let rows = source.rows(format!(
        "SELECT DISTINCT c.{column}, c.TABLE_SCHEMA, c.TABLE_NAME FROM information_schema.COLUMNS c \
         JOIN information_schema.TABLES t ON t.TABLE_SCHEMA=c.TABLE_SCHEMA AND t.TABLE_NAME=c.TABLE_NAME \
         WHERE t.TABLE_TYPE='BASE TABLE' AND c.{column} IS NOT NULL AND c.TABLE_SCHEMA NOT IN {} ORDER BY 1, 2, 3",
        is_servers_own()
    ))?;
    let mut found: Vec<(String, TableName)> = Vec::new();
    for row in &rows {
        let text = |at: usize| Ok::<_, Error>(row.required_text(at)?.to_owned());
        let (value, table) = (text(0)?.to_lowercase(), TableName::new(text(1)?, text(2)?));
        let is_new = found.last().is_none_or(|(last, _)| *last != value);
        if is_new && part.takes(&table.schema, &table.table) {
            found.push((value, table));
        }
    }
    Ok(found)
}

/// Some servers take names of collations that they do not list.
fn knows_collation(target: &mut Connection, name: &str) -> Result<bool, Failure> {
    const UNKNOWN: [u16; 2] = [1273, 1115];
    let charset = name.split('_').next().unwrap_or(name);
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name(name) {
        return Ok(false);
    }
    match target.scalar(format!("SELECT CONVERT({} USING {charset}) COLLATE {name}", quote(""))) {
        Ok(_) => Ok(true),
        Err(error) if error.code().is_some_and(|code| UNKNOWN.contains(&code)) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}
