//! The values of system variables: the source's, except for those that describe this server or the end of its log.

use std::collections::BTreeMap;

use wire::server::ServerError;

use super::parse::Scope;
use super::world::{Variables, World};
use crate::inventory::Gtids;

/// Of a session only, or not shown by SHOW GLOBAL VARIABLES.
const OF_SESSION: [(&str, &str); 12] = [
    ("error_count", "0"),
    ("identity", "0"),
    ("insert_id", "0"),
    ("last_insert_id", "0"),
    ("pseudo_thread_id", "0"),
    ("skip_replication", "OFF"),
    ("sql_log_bin", "ON"),
    ("timestamp", "0"),
    ("tx_isolation", "REPEATABLE-READ"),
    ("transaction_isolation", "REPEATABLE-READ"),
    ("warning_count", "0"),
    ("external_user", ""),
];

/// Their value is one of several words, two of which are ON and OFF: SELECT shows these as they are.
const WORDS: [&str; 11] = [
    "delay_key_write",
    "enforce_gtid_consistency",
    "event_scheduler",
    "gtid_mode",
    "innodb_doublewrite",
    "innodb_encrypt_tables",
    "query_cache_type",
    "session_track_gtids",
    "slave_run_triggers_for_rbr",
    "ssl_fips_mode",
    "use_secondary_engine",
];

pub(super) fn unknown(name: &str) -> ServerError {
    ServerError::new(1193, "HY000", format!("Unknown system variable '{name}'"))
}

pub(super) fn is_known(name: &str, world: World<'_>) -> bool {
    world.source.variable(name).is_some()
        || name == semi_sync_enabled(world)
        || OF_SESSION.iter().any(|(known, _)| *known == name)
        || of_log(name, world).is_some_and(|value| value.is_ok())
}

/// The value as SHOW VARIABLES prints it. `None`: there is no such variable.
pub(super) fn shown(
    name: &str,
    scope: Scope,
    variables: &Variables,
    world: World<'_>,
) -> Result<Option<String>, ServerError> {
    if let Some(value) = of_log(name, world) {
        return value.map(Some);
    }
    if name == semi_sync_enabled(world) {
        return Ok(Some("ON".to_owned()));
    }
    if scope == Scope::Session {
        if let Some(value) = variables.session(name) {
            return Ok(Some(value.clone().unwrap_or_default()));
        }
        if name == "pseudo_thread_id" {
            return Ok(Some(world.who.number.to_string()));
        }
        if let Some((_, value)) = OF_SESSION.iter().find(|(known, _)| *known == name) {
            return Ok(Some(world.source.variable(name).unwrap_or(value).to_owned()));
        }
    }
    Ok(world.source.variable(name).map(|value| of_this_server(name, world).unwrap_or_else(|| value.to_owned())))
}

/// The value as SELECT returns it: 1 or 0 for ON or OFF.
pub(super) fn selected(
    name: &str,
    scope: Scope,
    variables: &Variables,
    world: World<'_>,
) -> Result<String, ServerError> {
    let value = shown(name, scope, variables, world)?.ok_or_else(|| unknown(name))?;
    let is_word = WORDS.contains(&name);
    Ok(match value.as_str() {
        "ON" if !is_word => "1".to_owned(),
        "OFF" if !is_word => "0".to_owned(),
        _ => value,
    })
}

/// All, for SHOW VARIABLES.
pub(super) fn all(
    scope: Scope,
    variables: &Variables,
    world: World<'_>,
) -> Result<BTreeMap<String, String>, ServerError> {
    let mut names: Vec<&str> = world.source.variables.keys().map(String::as_str).collect();
    names.push(semi_sync_enabled(world));
    if scope == Scope::Session {
        names.extend(OF_SESSION.iter().map(|(name, _)| *name).filter(|name| !names_isolation_of_others(name, world)));
    }
    let mut out = BTreeMap::new();
    for name in names {
        if let Some(value) = shown(name, scope, variables, world)? {
            out.insert(name.to_owned(), value);
        }
    }
    Ok(out)
}

/// The name under which the source says that semi-synchronous replicas may attach, or would: here they may, whatever the source does.
pub(super) fn semi_sync_enabled(world: World<'_>) -> &'static str {
    const NAMES: [&str; 2] = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];
    let is_new = !world.source.is_mariadb() && world.source.at_least(8, 0, 26);
    let known = NAMES.into_iter().find(|name| world.source.variable(name).is_some());
    known.unwrap_or(if is_new { NAMES[0] } else { NAMES[1] })
}

/// Old and new servers have another name for it.
fn names_isolation_of_others(name: &str, world: World<'_>) -> bool {
    name.ends_with("_isolation") && world.source.variable(name).is_none()
}

/// Where the logs end, and what this server is.
fn of_log(name: &str, world: World<'_>) -> Option<Result<String, ServerError>> {
    let is_mariadb = world.source.is_mariadb();
    let here = || world.inventory.gtids_at_end().map_err(|error| ServerError::new(1105, "HY000", error.to_string()));
    match name {
        // What another heddle asks that stands by for this one.
        "heddle_source" => Some(Ok(world.inventory.identity().unwrap_or_default())),
        "heddle_source_reached" => Some(Ok(on_or_off(world.receiving.is_some_and(|receiving| receiving.is_heard)))),
        "heddle_groups" => Some(Ok(on_or_off(world.own.groups))),
        "gtid_executed" if !is_mariadb => Some(here().map(|(_, gtids)| set_text(gtids))),
        "gtid_purged" if !is_mariadb => Some(purged(world).map(set_text)),
        "gtid_binlog_pos" | "gtid_current_pos" if is_mariadb => {
            Some(here().map(|(_, gtids)| gtids.into_mariadb().position_text()))
        }
        "gtid_binlog_state" if is_mariadb => Some(here().map(|(_, gtids)| gtids.into_mariadb().state_text())),
        _ => None,
    }
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "ON" } else { "OFF" }.to_owned()
}

/// MySQL: what is in the files that are here.
pub(super) fn retrieved(world: World<'_>) -> Result<String, ServerError> {
    let (_, here) =
        world.inventory.gtids_at_end().map_err(|error| ServerError::new(1105, "HY000", error.to_string()))?;
    let mut here = here.into_mysql();
    here.subtract(&purged(world)?.into_mysql());
    Ok(format!("{here:#}"))
}

/// As the server shows it: a source a line.
fn set_text(gtids: Gtids) -> String {
    format!("{:#}", gtids.into_mysql())
}

/// What was in the logs before the oldest one here.
fn purged(world: World<'_>) -> Result<Gtids, ServerError> {
    let first = || match world.inventory.files().first() {
        Some((file, end)) => file.start(*end),
        None => Ok(None),
    };
    let start =
        world.inventory.read_again(first).map_err(|error| ServerError::new(1105, "HY000", error.to_string()))?;
    Ok(start.and_then(|start| start.gtids.clone()).unwrap_or_default())
}

fn of_this_server(name: &str, world: World<'_>) -> Option<String> {
    Some(match name {
        "hostname" | "report_host" => world.own.hostname.clone(),
        "port" | "report_port" => world.own.port.to_string(),
        "read_only" | "super_read_only" => "ON".to_owned(),
        "gtid_slave_pos" | "report_user" | "report_password" | "socket" => String::new(),
        _ => return None,
    })
}
