//! Refusals that both ways of a rescue share: what the native applier waits for, stands at, or is set to.

use super::findings::Findings;
use crate::server::Server;
use replica::status::{Positioning, ReplicaStatus};

/// Who applies during the rescue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applier {
    Heddle,
    /// The replica's own, from a stream of groups.
    Native,
}

pub fn applier_state(server: &Server, status: &ReplicaStatus, applier: Applier, findings: &mut Findings) {
    let refused = &mut findings.refused;
    if status.delay_s > 0 {
        refused.push(format!(
            "the replica is to stay {} s behind: remove the delay if it is to catch up (CHANGE … DELAY=0)",
            status.delay_s
        ));
    }
    if server.gtid_mode.ends_with("PERMISSIVE") {
        refused.push(format!("gtid_mode is {}: finish switching it first", server.gtid_mode));
    }
    if status.skip_counter > 0 {
        let why = match applier {
            Applier::Heddle => ": heddle never skips. Set",
            Applier::Native => ", which would be groups then: set",
        };
        refused.push(format!(
            "{} events are to be skipped{why} sql_replica_skip_counter (sql_slave_skip_counter) to 0",
            status.skip_counter
        ));
    }
    if !matches!(status.until.as_str(), "None" | "" | "DONE") {
        refused.push(format!(
            "the applier is to stop by itself (Until_Condition: {}): start it without UNTIL",
            status.until
        ));
    }
    if let Some(error) = &status.applier_error {
        let remedy = match applier {
            Applier::Heddle => "heddle would stop there too. Repair it, and see the applier run, first",
            Applier::Native => "it would again. Repair it, and see it run, first",
        };
        refused.push(format!("the applier has stopped with error {error}: {remedy}"));
    }
    if status.positioning == Positioning::CurrentPos && server.current_pos_differs {
        refused.push(
            "the replica goes on at gtid_current_pos, which is not gtid_slave_pos: it has changes of its own. Use MASTER_USE_GTID=slave_pos"
                .to_owned(),
        );
    }
}
