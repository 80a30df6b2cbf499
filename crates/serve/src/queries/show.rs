//! Answers SHOW. It changes nothing.

use engine::wildcard;
use wire::server::{ColumnKind, Rows, ServerError};

use super::errors::not_supported;
use super::evaluate::now;
use super::parse::{RowFilter, Scope, ShowStatement};
use super::replica_status::{self, Form};
use super::world::{Variables, World};
use super::{processes, variables};
use crate::inventory::SourceFacts;

const TEXT: ColumnKind = ColumnKind::Text;
const NUMBER: ColumnKind = ColumnKind::Number;

pub(super) fn show(shown: &ShowStatement, set: &Variables, world: World<'_>) -> Result<Rows, ServerError> {
    // A channel that has no name is the only one.
    let what = shown.what.strip_suffix(" for channel ''").unwrap_or(&shown.what);
    if !is_of_version(what, world.source) {
        return Err(ServerError::new(
            1064,
            "42000",
            format!("You have an error in your SQL syntax; the source's version has no '{}'", shown.sql),
        ));
    }
    match what {
        "variables" => Ok(named("Variable_name", variables::all(shown.scope, set, world)?, &shown.lines)),
        "status" => Ok(named("Variable_name", status(world), &shown.lines)),
        "master status" | "binary log status" | "binlog status" => master_status(world),
        "binary logs" | "master logs" => Ok(binary_logs(world)),
        "slave hosts" => Ok(replicas(&["Server_id", "Host", "Port", "Master_id", "Slave_UUID"], world)),
        "replicas" => Ok(replicas(&["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"], world)),
        // MariaDB: other words for the same.
        "replica hosts" => Ok(replicas(&["Server_id", "Host", "Port", "Master_id", "Slave_UUID"], world)),
        "slave status" => replica_status::rows(Form::Old, world),
        "replica status" => replica_status::rows(Form::New, world),
        "all slaves status" | "all replicas status" => replica_status::rows(Form::All, world),
        "warnings" | "errors" => Ok(Rows::new(&[("Level", TEXT), ("Code", NUMBER), ("Message", TEXT)])),
        "processlist" | "full processlist" => Ok(processes(world)),
        _ => Err(not_supported(&shown.sql)),
    }
}

/// What every account may do here.
pub(super) fn grants(world: World<'_>) -> Rows {
    let user = world.who.user;
    let title = format!("Grants for {user}@%");
    let mut rows = Rows::new(&[(title.as_str(), TEXT)]);
    rows.rows.push(vec![Some(format!("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `{user}`@`%`"))]);
    rows
}

/// Whether the source's version has the statement. Tools try one form after the other until there is no error.
fn is_of_version(what: &str, source: &SourceFacts) -> bool {
    let since = |major, minor, patch| source.at_least(major, minor, patch);
    if source.is_mariadb() {
        return match what {
            "binlog status" => since(10, 5, 2),
            "replica status" | "all replicas status" | "replica hosts" => since(10, 5, 1),
            "binary log status" => since(11, 8, 0),
            "replicas" => false,
            _ => true,
        };
    }
    match what {
        "master status" | "master logs" | "slave status" | "slave hosts" => !since(8, 4, 0),
        "binary log status" => since(8, 2, 0),
        "replica status" | "replicas" => since(8, 0, 22),
        "binlog status" | "replica hosts" | "all slaves status" | "all replicas status" => false,
        _ => true,
    }
}

fn named(column: &str, values: impl IntoIterator<Item = (String, String)>, lines: &RowFilter) -> Rows {
    let mut rows = Rows::new(&[(column, TEXT), ("Value", TEXT)]);
    rows.rows = values
        .into_iter()
        .filter(|(name, _)| match lines {
            RowFilter::All => true,
            RowFilter::Like(patterns) => patterns.iter().any(|pattern| is_like(name, pattern)),
        })
        .map(|(name, value)| vec![Some(name), Some(value)])
        .collect();
    rows
}

/// LIKE, whatever the case.
pub(super) fn is_like(name: &str, pattern: &str) -> bool {
    wildcard::is_like(&name.to_lowercase(), &pattern.to_lowercase())
}

fn status(world: World<'_>) -> Vec<(String, String)> {
    let sessions = world.sessions.list();
    let dumping = sessions.iter().filter(|line| line.replica.is_some()).count();
    let semi_sync = variables::semi_sync_enabled(world).replacen("rpl", "Rpl", 1);
    let clients = sessions.iter().filter(|line| line.is_semi_sync).count();
    [
        (semi_sync.replace("_enabled", "_clients"), clients.to_string()),
        (semi_sync.replace("_enabled", "_status"), "ON".to_owned()),
        ("Slaves_connected".to_owned(), dumping.to_string()),
        ("Threads_connected".to_owned(), sessions.len().to_string()),
        ("Uptime".to_owned(), now().saturating_sub(world.own.started).to_string()),
    ]
    .into()
}

fn master_status(world: World<'_>) -> Result<Rows, ServerError> {
    let mut rows =
        Rows::new(&[("File", TEXT), ("Position", NUMBER), ("Binlog_Do_DB", TEXT), ("Binlog_Ignore_DB", TEXT)]);
    let Some(end) = world.inventory.end() else { return Ok(rows) };
    let mut row =
        vec![Some(end.file.to_string()), Some(end.offset.to_string()), Some(String::new()), Some(String::new())];
    if !world.source.is_mariadb() {
        rows.columns.push(("Executed_Gtid_Set".to_owned(), TEXT));
        row.push(variables::shown("gtid_executed", Scope::Global, &Variables::default(), world)?);
    }
    rows.rows.push(row);
    Ok(rows)
}

fn binary_logs(world: World<'_>) -> Rows {
    let says_encrypted = !world.source.is_mariadb() && world.source.at_least(8, 0, 14);
    let mut rows = Rows::new(&[("Log_name", TEXT), ("File_size", NUMBER)]);
    if says_encrypted {
        rows.columns.push(("Encrypted".to_owned(), TEXT));
    }
    for (file, length) in world.inventory.files() {
        let mut row = vec![Some(file.name.to_string()), Some(length.to_string())];
        if says_encrypted {
            row.push(Some("No".to_owned()));
        }
        rows.rows.push(row);
    }
    rows
}

fn replicas(names: &[&str; 5], world: World<'_>) -> Rows {
    let kinds = [NUMBER, TEXT, NUMBER, NUMBER, TEXT];
    let has_uuid = !world.source.is_mariadb();
    let columns: Vec<_> = names.iter().copied().zip(kinds).take(if has_uuid { 5 } else { 4 }).collect();
    let mut rows = Rows::new(&columns);
    for replica in world.sessions.list().into_iter().filter_map(|line| line.replica) {
        let mut row = vec![
            Some(replica.server_id.to_string()),
            Some(replica.host),
            Some(replica.port.to_string()),
            Some(world.source.server_id().to_string()),
        ];
        if has_uuid {
            row.push(Some(replica.uuid));
        }
        rows.rows.push(row);
    }
    rows
}

fn processes(world: World<'_>) -> Rows {
    let mut rows = Rows::new(&[
        ("Id", NUMBER),
        ("User", TEXT),
        ("Host", TEXT),
        ("db", TEXT),
        ("Command", TEXT),
        ("Time", NUMBER),
        ("State", TEXT),
        ("Info", TEXT),
    ]);
    rows.rows =
        processes::lines(world).into_iter().map(|line| line.into_iter().map(|(_, cell)| cell).collect()).collect();
    rows
}
