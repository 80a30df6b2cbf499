//! What a server holds, in a form that two servers can be compared by: per table the number of rows and a hash of all
//! their columns' values, and the definitions of tables, views, triggers and routines.
//!
//! CHECKSUM TABLE depends on row format and version; these hashes are made from the values and do not.

use crate::server::Server;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Object name (`schema.table`, `trigger schema.name`, …) → what it holds.
pub type Checksums = BTreeMap<String, String>;

const SYSTEM_SCHEMAS: &str = "'mysql','sys','information_schema','performance_schema','heddle'";

/// Every user table's content and every object's definition.
pub fn checksums(server: &Server) -> Result<Checksums> {
    let mut result = contents(server)?;
    result.extend(definitions(server)?);
    Ok(result)
}

/// Row counts and hashes only: for ends of different versions, whose definitions print differently.
pub fn contents(server: &Server) -> Result<Checksums> {
    let mut tables = columns(server)?;
    let versioned = versioned(server)?;
    for (_, columns) in tables.iter_mut().filter(|(table, _)| versioned.contains_key(*table)) {
        columns.retain(|(name, data_type)| data_type != "bigint" || !TRANSACTION_NUMBERS.contains(&name.as_str()));
    }
    let mut sql = String::from(SESSION);
    let mut names = Vec::new();
    for (table, columns) in &tables {
        let row = row_expression(columns);
        let (row, from) = match versioned.get(table) {
            // Their times are hidden columns, unless they were named.
            Some(hidden) if *hidden => {
                (format!("CONCAT_WS('|', {row}, row_start, row_end)"), format!("{table}{HISTORY}"))
            }
            Some(_) => (row, format!("{table}{HISTORY}")),
            None => (row, table.clone()),
        };
        writeln!(
            sql,
            "SELECT CONCAT(COUNT(*), ' rows, ', COALESCE(HEX(BIT_XOR(CAST(CONV(LEFT(h, 16), 16, 10) AS UNSIGNED))), ''), \
             ' ', COALESCE(SUM(CAST(CONV(RIGHT(h, 8), 16, 10) AS UNSIGNED)), '')) FROM (SELECT SHA2({row}, 224) AS h FROM {from}) AS hashes;"
        )?;
        names.push(table.clone());
    }
    let rows = server.rows(&sql)?;
    if rows.len() != names.len() {
        bail!("{} hashes for {} tables", rows.len(), names.len());
    }
    Ok(names.into_iter().zip(rows.into_iter().map(|row| row.join(" "))).collect())
}

/// Ends of a row's time in the tests' tables, where these are numbers of the server's own transactions.
const TRANSACTION_NUMBERS: [&str; 2] = ["`rs`", "`re`"];

/// Rows that were changed or deleted, too.
const HISTORY: &str = " FOR SYSTEM_TIME ALL";

/// MariaDB's tables that keep their history, and whether the columns for it are hidden.
fn versioned(server: &Server) -> Result<BTreeMap<String, bool>> {
    if !server.kind.has_history() {
        return Ok(BTreeMap::new());
    }
    let rows = server.rows(&format!(
        "SELECT HEX(t.table_schema), HEX(t.table_name), (SELECT COUNT(*) FROM information_schema.columns c WHERE c.table_schema = t.table_schema \
         AND c.table_name = t.table_name AND c.generation_expression LIKE 'ROW START') FROM information_schema.tables t \
         WHERE t.table_type = 'SYSTEM VERSIONED' AND t.table_schema NOT IN ({SYSTEM_SCHEMAS})"
    ))?;
    let mut tables = BTreeMap::new();
    for row in rows {
        let [schema, table, named] = row.as_slice() else { bail!("unexpected row for a table with history") };
        tables.insert(format!("{}.{}", quoted(&unhex(schema)?), quoted(&unhex(table)?)), named == "0");
    }
    Ok(tables)
}

const SESSION: &str = "SET SESSION time_zone = '+00:00', sql_mode = '', group_concat_max_len = 10000000;\n";

/// Tables (quoted, with schema) and their columns (quoted name, data type).
fn columns(server: &Server) -> Result<BTreeMap<String, Vec<(String, String)>>> {
    // Hexadecimal, as names may hold tabs and line ends. Two questions: MariaDB reads all definitions for each row of a join of the two.
    let rows = server.rows(&format!(
        "SELECT HEX(table_schema), HEX(table_name) FROM information_schema.tables \
         WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema NOT IN ({SYSTEM_SCHEMAS})"
    ))?;
    let mut tables: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for row in rows {
        let [schema, table] = row.as_slice() else { bail!("unexpected tables row {row:?}") };
        tables.insert(format!("{}.{}", quoted(&unhex(schema)?), quoted(&unhex(table)?)), Vec::new());
    }
    let rows = server.rows(&format!(
        "SELECT HEX(table_schema), HEX(table_name), HEX(column_name), data_type FROM information_schema.columns \
         WHERE table_schema NOT IN ({SYSTEM_SCHEMAS}) ORDER BY 1, 2, ordinal_position"
    ))?;
    for row in rows {
        let [schema, table, column, data_type] = row.as_slice() else { bail!("unexpected columns row {row:?}") };
        let name = format!("{}.{}", quoted(&unhex(schema)?), quoted(&unhex(table)?));
        if let Some(columns) = tables.get_mut(&name) {
            columns.push((quoted(&unhex(column)?), data_type.to_lowercase()));
        }
    }
    Ok(tables)
}

/// One string of all columns of a row, NULL and lengths kept apart.
fn row_expression(columns: &[(String, String)]) -> String {
    let mut parts = Vec::new();
    for (column, data_type) in columns {
        let value = match data_type.as_str() {
            "float" => format!("({column} + 0e0)"),
            "bit" => format!("{column} + 0"),
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
            | "geometrycollection" | "geomcollection" => format!("HEX(ST_AsBinary({column}))"),
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "char" | "varchar"
            | "tinytext" | "text" | "mediumtext" | "longtext" | "vector" => format!("HEX({column})"),
            // Of the table's character set: two of those do not go into one string.
            "enum" | "set" => format!("HEX(CONCAT({column}))"),
            "json" => format!("HEX(CAST({column} AS CHAR))"),
            _ => column.clone(),
        };
        parts.push(format!("COALESCE({value}, 'NULL')"));
    }
    format!("CONCAT_WS('|', {})", parts.join(", "))
}

fn definitions(server: &Server) -> Result<Checksums> {
    let mut result = Checksums::new();
    let not_system = |column: &str| format!("{column} NOT IN ({SYSTEM_SCHEMAS})");
    let queries = [
        (
            "view",
            format!(
                "SELECT table_schema, table_name, view_definition FROM information_schema.views WHERE {}",
                not_system("table_schema")
            ),
        ),
        (
            "trigger",
            format!(
                "SELECT trigger_schema, trigger_name, CONCAT_WS(' ', action_timing, event_manipulation, event_object_table, action_order, sql_mode, definer, \
                 action_statement) FROM information_schema.triggers WHERE {}",
                not_system("trigger_schema")
            ),
        ),
        (
            "routine",
            format!(
                "SELECT routine_schema, routine_name, CONCAT_WS(' ', routine_type, dtd_identifier, sql_mode, definer, routine_definition) \
                 FROM information_schema.routines WHERE {}",
                not_system("routine_schema")
            ),
        ),
        (
            "event",
            format!(
                "SELECT event_schema, event_name, CONCAT_WS(' ', event_type, interval_value, interval_field, event_definition) FROM information_schema.events WHERE {}",
                not_system("event_schema")
            ),
        ),
        (
            "schema",
            format!(
                "SELECT schema_name, '', CONCAT_WS(' ', default_character_set_name, default_collation_name) FROM information_schema.schemata WHERE {}",
                not_system("schema_name")
            ),
        ),
    ];
    for (what, query) in queries {
        // Old servers have no other way to name the columns.
        let named = format!("SELECT NULL AS a, NULL AS b, NULL AS c FROM DUAL WHERE FALSE UNION ALL {query}");
        let wrapped = format!("{SESSION}SELECT HEX(CONCAT_WS('.', a, b)), HEX(c) FROM ({named}) AS d");
        for row in server.rows(&wrapped).with_context(|| format!("definitions of {what}s"))? {
            let [name, text] = row.as_slice() else { bail!("unexpected row for a {what}") };
            result.insert(format!("{what} {}", unhex(name)?), unhex(text)?);
        }
    }
    result.extend(grants(server)?);
    let tables = columns(server)?;
    // One client for all of them: starting it takes longer than what it does.
    let script: String =
        tables.keys().map(|table| format!("SELECT '{NEXT_DEFINITION}';\nSHOW CREATE TABLE {table};\n")).collect();
    let output = server.run_script(script.as_bytes())?;
    let texts: Vec<&str> = output.split(NEXT_DEFINITION).skip(1).collect();
    ensure!(texts.len() == tables.len(), "{} definitions for {} tables", texts.len(), tables.len());
    for (table, row) in tables.keys().zip(texts) {
        let text = row.split_once('\t').map(|(_, text)| text).unwrap_or_default();
        result.insert(format!("definition {table}"), without_counter(text));
    }
    Ok(result)
}

/// Every account and role, and what it may do.
fn grants(server: &Server) -> Result<Checksums> {
    let accounts = "SELECT CONCAT(QUOTE(user), IF(host = '', '', CONCAT('@', QUOTE(host)))) FROM mysql.user \
        WHERE user NOT LIKE 'mysql.%' AND user NOT LIKE 'mariadb.%' AND user NOT IN ('', 'PUBLIC') ORDER BY 1";
    let accounts: Vec<String> = server.rows(accounts)?.into_iter().flatten().collect();
    let script: String =
        accounts.iter().map(|account| format!("SELECT '{NEXT_DEFINITION}';\nSHOW GRANTS FOR {account};\n")).collect();
    let output = server.run_script(script.as_bytes()).context("grants")?;
    let texts: Vec<&str> = output.split(NEXT_DEFINITION).skip(1).collect();
    ensure!(texts.len() == accounts.len(), "{} grants for {} accounts", texts.len(), accounts.len());
    // MariaDB shows the hash of a password, which has its salt in MySQL only.
    Ok(accounts
        .iter()
        .zip(texts)
        .map(|(account, text)| {
            // MariaDB shows them in the order in which it has read or made them.
            let mut lines: Vec<&str> = text.trim().lines().collect();
            lines.sort_unstable();
            (format!("account {account}"), lines.join("\n"))
        })
        .collect())
}

/// Stands between two definitions in the client's output.
const NEXT_DEFINITION: &str = "------- the next definition -------";

/// A table's next AUTO_INCREMENT value also counts rows that were rolled back: not part of the comparison.
fn without_counter(create_table: &str) -> String {
    match create_table.split_once(" AUTO_INCREMENT=") {
        Some((before, after)) => format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => create_table.to_owned(),
    }
}

/// What differs between two servers, one line each; empty when they are equal.
pub fn differences(source: &Checksums, target: &Checksums) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, held) in source {
        match target.get(name) {
            None => lines.push(format!("{name}: missing on the target (source: {held})")),
            Some(other) if other != held => lines.push(format!("{name}:\n    source: {held}\n    target: {other}")),
            Some(_) => {}
        }
    }
    for (name, held) in target {
        if !source.contains_key(name) {
            lines.push(format!("{name}: only on the target ({held})"));
        }
    }
    lines
}

/// Rows of a table that only one of two servers has, at most `limit` of each.
pub fn differing_rows(source: &Server, target: &Server, table: &str, limit: usize) -> Result<String> {
    let rows = |server: &Server| -> Result<Vec<String>> {
        let tables = columns(server)?;
        let Some(columns) = tables.get(table) else { return Ok(Vec::new()) };
        let text = server
            .run_script(format!("{SESSION}SELECT LEFT({}, 400) FROM {table}", row_expression(columns)).as_bytes())?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        Ok(lines)
    };
    let (left, right) = (rows(source)?, rows(target)?);
    let only = |a: &[String], b: &[String], mark: char| -> String {
        a.iter()
            .filter(|line| b.binary_search(line).is_err())
            .take(limit)
            .map(|line| format!("      {mark} {line}\n"))
            .collect()
    };
    Ok(only(&left, &right, '-') + &only(&right, &left, '+'))
}

/// Fails with what differs, if anything does.
pub fn assert_equal(source: &Server, target: &Server) -> Result<()> {
    let lines = differences(&checksums(source)?, &checksums(target)?);
    if lines.is_empty() {
        return Ok(());
    }
    let mut message = String::from("source and target differ:\n");
    for line in lines.iter().take(20) {
        writeln!(message, "  {line}")?;
        if line.starts_with('`') {
            let table = line
                .split(": ")
                .next()
                .unwrap_or_default()
                .trim_end_matches(':')
                .lines()
                .next()
                .unwrap_or_default()
                .trim_end_matches(':');
            message += &differing_rows(source, target, table, 5).unwrap_or_default();
        }
    }
    bail!(message)
}

pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn unhex(text: &str) -> Result<String> {
    let bytes = hex::decode(text).with_context(|| format!("not hexadecimal: {text}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
