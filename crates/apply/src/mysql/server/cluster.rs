//! What one server of several is good for now: a node of a Galera cluster, a member of a group, or one that another server's promotion has left read-only. Only asks.

use std::collections::HashMap;

use engine::failure::{Failure, FailureKind};
use wire::Connection;

use super::errors::failed;

/// What can be done at a node.
#[derive(Debug)]
pub enum NodeState {
    /// It takes changes.
    Writable,
    /// It takes those of some accounts only (`read_only`).
    ReadOnly,
    /// It takes none, or is in no step with the others.
    Closed(Failure),
}

/// Answered by a node without a quorum, too.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on','read_only','super_read_only','offline_mode','innodb_read_only')";
const GALERA: &str =
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready','wsrep_cluster_status','wsrep_local_state_comment')";
/// No row: it knows no group. One that has lost the majority still answers, and its commits wait for ever.
const MEMBER: &str = "SELECT IF((SELECT SUM(MEMBER_STATE<>'UNREACHABLE')*2<=COUNT(*) FROM performance_schema.replication_group_members),\
                      'without quorum',MEMBER_STATE) FROM performance_schema.replication_group_members WHERE MEMBER_ID=@@global.server_uuid";

/// Asks the node.
///
/// # Errors
/// It does not answer.
pub fn state(connection: &mut Connection) -> Result<NodeState, Failure> {
    let settings = pairs(connection, SETTINGS)?;
    let galera = if is_on(&settings, "wsrep_on") { pairs(connection, GALERA)? } else { HashMap::new() };
    let member = if connection.server().is_mariadb() || !galera.is_empty() { None } else { member(connection)? };
    Ok(judge(&settings, &galera, member.as_deref()))
}

/// Whether it is a node of a cluster: what it logs is on the others, too.
///
/// # Errors
/// It does not answer.
pub fn is_node(connection: &mut Connection) -> Result<bool, Failure> {
    Ok(is_on(&pairs(connection, SETTINGS)?, "wsrep_on") || member(connection)?.is_some())
}

/// Whether it is a node of a Galera cluster.
///
/// # Errors
/// It does not answer.
pub fn is_galera(connection: &mut Connection) -> Result<bool, Failure> {
    Ok(is_on(&pairs(connection, SETTINGS)?, "wsrep_on"))
}

/// The state of the server in its group; `None`: it is of no group.
///
/// # Errors
/// It does not answer.
pub fn member(connection: &mut Connection) -> Result<Option<String>, Failure> {
    match connection.scalar(MEMBER) {
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        // Older than the table, or it is not shown to this account.
        Err(error) => {
            tracing::debug!("whether the server is a member of a group: {error}");
            Ok(None)
        }
        Ok(state) => Ok(state.filter(|state| !state.is_empty())),
    }
}

/// What a session is set to for reading what all others had committed before, and what takes that back. A server that is in no cluster takes nothing.
#[derive(Debug, Default)]
pub struct CausalReads {
    reset: Option<&'static str>,
}

impl CausalReads {
    /// From here on each statement waits until the node has applied what the cluster had committed before it.
    ///
    /// # Errors
    /// It does not answer. One that may not be set so is read as it is.
    pub fn begin(connection: &mut Connection) -> Result<Self, Failure> {
        let settings = pairs(
            connection,
            "SHOW SESSION VARIABLES WHERE Variable_name IN ('wsrep_on','wsrep_sync_wait','group_replication_consistency')",
        )?;
        let (set, reset) = if is_on(&settings, "wsrep_on") {
            ("SET SESSION wsrep_sync_wait=7", "SET SESSION wsrep_sync_wait=DEFAULT")
        } else if settings.contains_key("group_replication_consistency") {
            ("SET SESSION group_replication_consistency='BEFORE'", "SET SESSION group_replication_consistency=DEFAULT")
        } else {
            return Ok(Self::default());
        };
        match connection.execute(set) {
            Ok(_) => Ok(Self { reset: Some(reset) }),
            Err(error) if error.is_connection_lost() => Err(failed(error)),
            Err(error) => {
                tracing::warn!(
                    "{set}: {error}. The progress is read as the node has it, and is sure only once the lease is taken"
                );
                Ok(Self::default())
            }
        }
    }

    /// Statements wait no more.
    ///
    /// # Errors
    /// It does not answer.
    pub fn end(self, connection: &mut Connection) -> Result<(), Failure> {
        self.reset.map_or(Ok(()), |reset| connection.execute(reset).map(|_| ()).map_err(failed))
    }
}

fn pairs(connection: &mut Connection, sql: &str) -> Result<HashMap<String, String>, Failure> {
    let mut pairs = HashMap::new();
    for row in connection.rows(sql).map_err(failed)? {
        let (name, value) = (row.required_text(0).map_err(failed)?, row.text(1).map_err(failed)?.unwrap_or_default());
        pairs.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Ok(pairs)
}

fn is_on(settings: &HashMap<String, String>, name: &str) -> bool {
    settings.get(name).is_some_and(|value| !matches!(value.to_ascii_uppercase().as_str(), "OFF" | "0" | "FALSE" | ""))
}

fn judge(settings: &HashMap<String, String>, galera: &HashMap<String, String>, member: Option<&str>) -> NodeState {
    let closed = |why: String| NodeState::Closed(Failure::new(FailureKind::Maintenance, why));
    let of_galera = |name: &str| galera.get(name).map_or("", String::as_str);
    if !galera.is_empty() && (of_galera("wsrep_ready") != "ON" || of_galera("wsrep_cluster_status") != "Primary") {
        return closed(format!(
            "the node is not ready: wsrep_cluster_status {}, {}",
            of_galera("wsrep_cluster_status"),
            of_galera("wsrep_local_state_comment")
        ));
    }
    // One that was started again, and has not joined its group, would take what the group never gets.
    if let Some(state) = member.filter(|state| *state != "ONLINE") {
        return closed(format!("the member of the group is {state}"));
    }
    for name in ["offline_mode", "super_read_only", "innodb_read_only"] {
        if is_on(settings, name) {
            let secondary = if member.is_some() { " (a secondary of the group)" } else { "" };
            return closed(format!("{name} is on{secondary}"));
        }
    }
    if is_on(settings, "read_only") { NodeState::ReadOnly } else { NodeState::Writable }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn which_node_takes_changes() {
        let check = |settings: &[(&str, &str)], galera: &[(&str, &str)], member: Option<&str>, want: &str| {
            let said = match judge(&map(settings), &map(galera), member) {
                NodeState::Writable => "writable".to_owned(),
                NodeState::ReadOnly => "read-only".to_owned(),
                NodeState::Closed(why) => why.message,
            };
            assert_eq!(said, want);
        };
        let synced =
            [("wsrep_ready", "ON"), ("wsrep_cluster_status", "Primary"), ("wsrep_local_state_comment", "Synced")];
        let lost = [
            ("wsrep_ready", "OFF"),
            ("wsrep_cluster_status", "non-Primary"),
            ("wsrep_local_state_comment", "Initialized"),
        ];
        let off = [("read_only", "OFF"), ("super_read_only", "OFF"), ("offline_mode", "OFF")];
        check(&off, &[], None, "writable");
        check(&[("read_only", "ON"), ("super_read_only", "OFF")], &[], None, "read-only");
        check(&[("read_only", "ON"), ("super_read_only", "ON")], &[], None, "super_read_only is on");
        check(&[("wsrep_on", "ON"), ("read_only", "OFF")], &synced, None, "writable");
        check(&[], &lost, None, "the node is not ready: wsrep_cluster_status non-Primary, Initialized");
        check(&off, &[], Some("ONLINE"), "writable");
        check(&off, &[], Some("OFFLINE"), "the member of the group is OFFLINE");
        check(&off, &[], Some("RECOVERING"), "the member of the group is RECOVERING");
        let secondary = [("read_only", "ON"), ("super_read_only", "ON")];
        check(&secondary, &[], Some("ONLINE"), "super_read_only is on (a secondary of the group)");
        check(&[("offline_mode", "ON")], &[], None, "offline_mode is on");
        check(&[("read_only", "NO_LOCK_NO_ADMIN")], &[], None, "read-only");
    }
}
