//! What the account on the replica may do, before it is needed.

use binlog::Flavour;

use super::findings::Findings;
use crate::handover::steering::has_one_of;
use crate::server::Server;

/// Each with those that do as well, the first being the smallest; what a rescue needs from its beginning to its end.
fn privileges_needed(server: &Server) -> Vec<&'static [&'static str]> {
    let mut needed: Vec<&[&str]> = vec![&["PROCESS"], &["RELOAD"]];
    match (server.flavour(), server.version) {
        (Flavour::MySql, version) if version >= (8, 0, 0) => {
            needed.push(&["REPLICATION_SLAVE_ADMIN", "SUPER"]);
            needed.push(&["SYSTEM_VARIABLES_ADMIN", "SUPER"]);
            if server.read_only || server.super_read_only {
                needed.push(&["CONNECTION_ADMIN", "SUPER"]);
            }
        }
        (Flavour::MariaDb, version) if version >= (10, 5, 2) => {
            needed.push(&["REPLICATION SLAVE ADMIN", "REPLICATION REPLICA ADMIN"]);
            if server.log_bin {
                needed.push(&["BINLOG ADMIN"]);
            }
            if server.read_only {
                needed.push(&["READ_ONLY ADMIN", "READ ONLY ADMIN"]);
            }
        }
        _ => needed.push(&["SUPER"]),
    }
    needed
}

/// What the account on the replica lacks: better said now than in the middle.
pub fn account(server: &Server, grants: &[String], findings: &mut Findings) {
    for privileges in privileges_needed(server) {
        if !has_one_of(grants, privileges) {
            findings.refused.push(format!(
                "the account on the replica needs {}: GRANT {} ON *.* (docs/privileges.md)",
                privileges.join(" or "),
                privileges.first().copied().unwrap_or_default()
            ));
        }
    }
}
