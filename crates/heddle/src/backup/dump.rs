//! SQL that names the place: `CHANGE MASTER TO`, `CHANGE REPLICATION SOURCE TO` (perhaps in a comment), `SET @@GLOBAL.GTID_PURGED`, `SET GLOBAL gtid_slave_pos`.
//!
//! A dump has them before its first table, or GTIDs behind its last one: what is between is not looked at, since a stored program could say the same.

use std::io::{BufRead, Read, Seek, SeekFrom};

use anyhow::{Result, bail};

use super::place::{Place, gtids, position};

/// Where the tables of a dump begin.
const TABLES_BEGIN: [&str; 5] =
    ["-- Current Database:", "-- Table structure for", "CREATE TABLE", "CREATE DATABASE", "DROP TABLE"];
/// What some versions write behind the tables: GTIDs only, at the begin of a line.
const TAIL_GTIDS: [&str; 4] = [
    "\nSET @@GLOBAL.GTID_PURGED",
    "\n/* SET @@GLOBAL.GTID_PURGED",
    "\nSET GLOBAL gtid_slave_pos",
    "\n-- SET GLOBAL gtid_slave_pos",
];
/// Of the end, for what comes behind the tables.
const TAIL_BYTES: u64 = 64 << 10;

pub fn read<R: BufRead + Seek>(mut dump: R) -> Result<Place> {
    let (mut found, mut lines, mut line) = (Place::default(), Vec::new(), Vec::new());
    let mut behind = 0;
    loop {
        line.clear();
        // A line of a table's rows may have gigabytes; none of those is read.
        let count = dump.by_ref().take(1 << 20).read_until(b'\n', &mut line)?;
        behind += count as u64;
        let text = String::from_utf8_lossy(&line).into_owned();
        if count == 0 || TABLES_BEGIN.iter().any(|begin| text.trim_start().starts_with(begin)) {
            break;
        }
        lines.push(text);
    }
    take(&lines, &mut found)?;
    let size = dump.seek(SeekFrom::End(0))?;
    dump.seek(SeekFrom::Start(behind.max(size.saturating_sub(TAIL_BYTES))))?;
    let mut tail = Vec::new();
    dump.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    let gtids = TAIL_GTIDS.iter().filter_map(|begin| tail.rfind(begin)).max();
    if let (Some(at), None) = (gtids, &found.gtids) {
        let lines: Vec<String> = tail.get(at + 1..).unwrap_or_default().lines().map(str::to_owned).collect();
        take(&lines, &mut found)?;
    }
    Ok(found)
}

fn take(lines: &[String], found: &mut Place) -> Result<()> {
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let text = line.trim_start_matches(['-', ' ', '/', '*', '!']);
        let is = |words: &str| text.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words));
        if is("CHANGE MASTER") || is("CHANGE REPLICATION SOURCE") {
            if let (Some(file), Some(offset)) = (value(text, "LOG_FILE"), value(text, "LOG_POS")) {
                if found.position.is_some() {
                    bail!("it has the places of several sources: name one with --start or --start-gtid");
                }
                found.position = Some(position(&file, &offset)?);
            }
        } else if is("SET @@GLOBAL.GTID_PURGED") || is("SET GLOBAL gtid_purged") || is("SET GLOBAL gtid_slave_pos") {
            // MySQL breaks a set over lines, up to the semicolon.
            let mut statement = text.to_owned();
            while !statement.contains(';') {
                at += 1;
                let Some(more) = lines.get(at) else { break };
                statement.push_str(more);
            }
            let set = quoted_last(&statement);
            found.gtids = gtids(set.trim_start_matches('+'))?.or(found.gtids.take());
        }
        at += 1;
    }
    Ok(())
}

/// The value behind a name that ends so: `MASTER_LOG_FILE='binlog.000002'`, `SOURCE_LOG_POS=157`.
fn value(statement: &str, name: &str) -> Option<String> {
    let upper = statement.to_ascii_uppercase();
    let at = upper.find(&format!("_{name}"))? + name.len() + 1;
    let rest = statement.get(at..)?.trim_start().strip_prefix('=')?.trim_start();
    match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next().map(str::to_owned),
        None => Some(rest.chars().take_while(char::is_ascii_digit).collect()),
    }
}

/// What is between the last two quotes: `SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'uuid:1-5';`.
fn quoted_last(statement: &str) -> &str {
    let statement = statement.split(';').next().unwrap_or_default();
    let end = statement.rfind('\'').unwrap_or(0);
    let before = statement.get(..end).unwrap_or_default();
    before.rfind('\'').and_then(|start| before.get(start + 1..)).unwrap_or_default()
}
