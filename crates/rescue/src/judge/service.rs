//! What a service's procedures ask for, and what they cannot do. Pure.

use binlog::Flavour;

use super::findings::Findings;
use ::replica::procedures::OWN_ACCOUNT;
use ::replica::status::{Positioning, ReplicaStatus};

/// Without `--via serve`.
pub const CANNOT_HOLD: &str = "the account steers replication by the service's stored procedures (mysql.rds_…). They cannot hold the replica's applier while heddle applies, nor tell the \
     server what was applied: let the replica's own applier catch up from a stream of groups, with --via serve --listen HOST:PORT (docs/managed-servers.md)";

/// Whether the password of the replication account was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenPassword {
    Yes,
    No,
}

/// The channel of a replica that is steered by procedures.
pub fn procedures(status: &ReplicaStatus, flavour: Flavour, password: GivenPassword, findings: &mut Findings) {
    let refused = &mut findings.refused;
    if status.user == OWN_ACCOUNT {
        refused.push(format!(
            "the service made this read replica itself (account {OWN_ACCOUNT}), and its procedures point only replicas of external sources elsewhere: make a larger or a new read replica in \
             the service, or replicate into an ordinary instance with heddle replicate"
        ));
    }
    if !status.channel.is_empty() {
        refused.push(format!("the channel {:?}: the procedures for named channels were not tried", status.channel));
    }
    if status.positioning == Positioning::File && flavour == Flavour::MySql {
        refused.push(
            "to follow the source by GTID: CALL mysql.rds_stop_replication, then mysql.rds_set_source_auto_position(1) (before MySQL 8.4: mysql.rds_set_master_auto_position(1)), then \
             mysql.rds_start_replication"
                .to_owned(),
        );
    }
    if password == GivenPassword::No {
        refused.push(format!(
            "the service's procedures take the password of the replication account {} with each change of the source: give it in HEDDLE_REPLICA_PASSWORD",
            status.user
        ));
    }
}
