//! SHOW REPLICA STATUS: this server is a replica of its source that receives and never applies.
//!
//! The receiver's columns describe the mirror's connection. "Applied" means durable in the mirror: replicas of this server can get it. There is no applier: its thread does not run, and
//! its lag is NULL.

use wire::server::{Cell, ColumnKind, Rows, ServerError};

use super::parse::Scope;
use super::variables;
use super::world::{Variables, World};
use crate::mirror::ReceiverStatus;

/// Servers that can not be reached have this number for their clients.
const CAN_NOT_CONNECT: &str = "2003";
const NO_APPLIER: &str = "A binlog server has no applier";

/// Which form of the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The words master and slave.
    Old,
    /// Source and replica: MySQL's columns have other names then, MariaDB's do not.
    New,
    /// MariaDB: ALL SLAVES has more columns.
    All,
}

pub(super) fn rows(form: Form, world: World<'_>) -> Result<Rows, ServerError> {
    let mut rows = Rows::default();
    let mut row: Vec<Cell> = Vec::new();
    for (name, value) in columns(form, world.receiving, world)? {
        let is_number =
            value.as_ref().is_some_and(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()));
        let kind = if is_number { ColumnKind::Number } else { ColumnKind::Text };
        rows.columns.push((name, kind));
        row.push(value);
    }
    if world.receiving.is_some() {
        rows.rows.push(row);
    }
    Ok(rows)
}

type Column = (&'static str, Cell);

fn columns(
    form: Form,
    receiving: Option<&ReceiverStatus>,
    world: World<'_>,
) -> Result<Vec<(String, Cell)>, ServerError> {
    let is_mariadb = world.source.is_mariadb();
    let renamed = form == Form::New && !is_mariadb;
    let mut columns = Vec::new();
    if form == Form::All {
        columns.extend([text("Connection_name", ""), text("Slave_SQL_State", NO_APPLIER)]);
    }
    common(&mut columns, receiving, renamed, world);
    if is_mariadb {
        of_mariadb(&mut columns, form, world)?;
    } else {
        of_mysql(&mut columns, world)?;
    }
    Ok(columns.into_iter().map(|(name, value)| (named(name, renamed), value)).collect())
}

fn named(name: &str, renamed: bool) -> String {
    if !renamed {
        return name.to_owned();
    }
    // 9.7 has a large letter in it.
    if name == "Get_master_public_key" {
        return "Get_Source_public_key".to_owned();
    }
    name.replace("Master", "Source").replace("Slave", "Replica")
}

fn text(name: &'static str, value: &str) -> Column {
    (name, Some(value.to_owned()))
}

fn empty(names: &[&'static str]) -> impl Iterator<Item = Column> {
    names.iter().map(|name| text(name, "")).collect::<Vec<_>>().into_iter()
}

/// What both vendors have, in their order.
fn common(columns: &mut Vec<Column>, receiving: Option<&ReceiverStatus>, renamed: bool, world: World<'_>) {
    let end = world.inventory.end();
    let (file, offset) = end.map_or_else(|| (String::new(), 4), |end| (end.file.to_string(), end.offset));
    let word = if renamed { "source" } else { "master" };
    let (host, user, port, uses_tls) = receiving.map_or(("", "", 0, false), |receiving| {
        (receiving.host.as_str(), receiving.user.as_str(), receiving.port, receiving.uses_tls)
    });
    let is_attached = receiving.is_some_and(|receiving| receiving.is_attached);
    let error = receiving.and_then(|receiving| receiving.error.clone()).unwrap_or_default();
    let state = match (is_attached, error.is_empty()) {
        (true, _) => format!("Waiting for {word} to send event"),
        (false, true) => format!("Connecting to {word}"),
        (false, false) => format!("Reconnecting after a failed {word} event read"),
    };
    let kept: u64 = world.inventory.files().iter().map(|(_, length)| length).sum();
    let offset = offset.to_string();
    columns.extend([
        text("Slave_IO_State", &state),
        text("Master_Host", host),
        text("Master_User", user),
        text("Master_Port", &port.to_string()),
        text("Connect_Retry", "10"),
        text("Master_Log_File", &file),
        text("Read_Master_Log_Pos", &offset),
        text("Relay_Log_File", &file),
        text("Relay_Log_Pos", &offset),
        text("Relay_Master_Log_File", &file),
        text("Slave_IO_Running", if is_attached { "Yes" } else { "Connecting" }),
        text("Slave_SQL_Running", "No"),
    ]);
    columns.extend(empty(&[
        "Replicate_Do_DB",
        "Replicate_Ignore_DB",
        "Replicate_Do_Table",
        "Replicate_Ignore_Table",
        "Replicate_Wild_Do_Table",
        "Replicate_Wild_Ignore_Table",
    ]));
    columns.extend([
        text("Last_Errno", "0"),
        text("Last_Error", ""),
        text("Skip_Counter", "0"),
        text("Exec_Master_Log_Pos", &offset),
        text("Relay_Log_Space", &kept.to_string()),
        text("Until_Condition", "None"),
        text("Until_Log_File", ""),
        text("Until_Log_Pos", "0"),
        text("Master_SSL_Allowed", if uses_tls { "Yes" } else { "No" }),
    ]);
    columns.extend(empty(&[
        "Master_SSL_CA_File",
        "Master_SSL_CA_Path",
        "Master_SSL_Cert",
        "Master_SSL_Cipher",
        "Master_SSL_Key",
    ]));
    columns.push(("Seconds_Behind_Master", None));
    columns.extend([
        text("Master_SSL_Verify_Server_Cert", "No"),
        text("Last_IO_Errno", if error.is_empty() { "0" } else { CAN_NOT_CONNECT }),
        text("Last_IO_Error", &error),
        text("Last_SQL_Errno", "0"),
        text("Last_SQL_Error", ""),
        text("Replicate_Ignore_Server_Ids", ""),
        text("Master_Server_Id", &world.source.server_id().to_string()),
    ]);
}

fn of_mysql(columns: &mut Vec<Column>, world: World<'_>) -> Result<(), ServerError> {
    let source = world.source;
    let of_log =
        |name: &str| variables::shown(name, Scope::Global, &Variables::default(), world).map(Option::unwrap_or_default);
    columns.extend([
        text("Master_UUID", source.variable("server_uuid").unwrap_or_default()),
        text("Master_Info_File", ""),
        text("SQL_Delay", "0"),
        ("SQL_Remaining_Delay", None),
        text("Slave_SQL_Running_State", NO_APPLIER),
        text("Master_Retry_Count", "0"),
    ]);
    columns.extend(empty(&[
        "Master_Bind",
        "Last_IO_Error_Timestamp",
        "Last_SQL_Error_Timestamp",
        "Master_SSL_Crl",
        "Master_SSL_Crlpath",
    ]));
    columns.extend([
        text("Retrieved_Gtid_Set", &variables::retrieved(world)?),
        text("Executed_Gtid_Set", &of_log("gtid_executed")?),
        text("Auto_Position", "0"),
    ]);
    if source.at_least(5, 7, 0) {
        columns.extend(empty(&["Replicate_Rewrite_DB", "Channel_Name", "Master_TLS_Version"]));
    }
    if source.at_least(8, 0, 0) {
        columns.extend([text("Master_public_key_path", ""), text("Get_master_public_key", "0")]);
    }
    if source.at_least(8, 0, 22) {
        columns.push(text("Network_Namespace", ""));
    }
    Ok(())
}

fn of_mariadb(columns: &mut Vec<Column>, form: Form, world: World<'_>) -> Result<(), ServerError> {
    let source = world.source;
    let position =
        variables::shown("gtid_binlog_pos", Scope::Global, &Variables::default(), world)?.unwrap_or_default();
    columns.extend(empty(&["Master_SSL_Crl", "Master_SSL_Crlpath"]));
    columns.extend([
        text("Using_Gtid", "No"),
        text("Gtid_IO_Pos", &position),
        text("Replicate_Do_Domain_Ids", ""),
        text("Replicate_Ignore_Domain_Ids", ""),
        text("Parallel_Mode", if source.at_least(10, 5, 1) { "optimistic" } else { "conservative" }),
    ]);
    if source.at_least(10, 2, 3) {
        columns.extend([
            text("SQL_Delay", "0"),
            ("SQL_Remaining_Delay", None),
            text("Slave_SQL_Running_State", NO_APPLIER),
        ]);
    }
    if source.at_least(10, 3, 0) {
        let groups = ["Slave_DDL_Groups", "Slave_Non_Transactional_Groups", "Slave_Transactional_Groups"];
        columns.extend(groups.map(|name| text(name, "0")));
    }
    if source.at_least(10, 11, 0) {
        columns.push(text("Replicate_Rewrite_DB", ""));
    }
    if form == Form::All {
        columns.extend([
            text("Retried_transactions", "0"),
            text("Max_relay_log_size", source.variable("max_relay_log_size").unwrap_or("0")),
            text("Executed_log_entries", "0"),
            text("Slave_received_heartbeats", "0"),
            text("Slave_heartbeat_period", "2.000"),
            text("Gtid_Slave_Pos", ""),
        ]);
        if source.at_least(11, 6, 0) {
            let times = ["Master_last_event_time", "Slave_last_event_time", "Master_Slave_time_diff"];
            columns.extend(times.map(|name| (name, None)));
        }
    }
    Ok(())
}
