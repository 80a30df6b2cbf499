//! What the account on the replica may do, before it is needed.

use binlog::Flavour;

use super::findings::Findings;
use crate::rescue::look::Server;

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
    let has = |privilege: &str| {
        let everywhere = grants.iter().filter_map(|grant| grant.split_once(" ON *.*").map(|(what, _)| what));
        everywhere
            .flat_map(|what| what.trim_start_matches("GRANT ").split(','))
            .any(|one| one.trim() == privilege || one.trim() == "ALL PRIVILEGES")
    };
    for privileges in privileges_needed(server) {
        if !privileges.iter().any(|privilege| has(privilege)) {
            findings.refused.push(format!(
                "the account on the replica needs {}: GRANT {} ON *.* (docs/privileges.md)",
                privileges.join(" or "),
                privileges.first().copied().unwrap_or_default()
            ));
        }
    }
}
