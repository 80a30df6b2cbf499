//! The replica and its applier: what can be said before the source is asked.

use std::collections::BTreeMap;

use binlog::Flavour;

use super::applier_state::{Applier, applier_state};
use super::findings::Findings;
use crate::filters;
use crate::request::LogBin;
use crate::server::Server;
use ::replica::status::ReplicaStatus;

/// Whether what is applied goes into the replica's own binary log.
///
/// A replica of this one may be away now, and nothing here says that there is one. So `auto` leaves the log out only where a server that
/// lacks something finds out by its GTIDs. There, transactions of this server's own would stand in the way of a later fail-over.
pub fn logged(server: &Server, asked: LogBin) -> bool {
    let finds_out = server.flavour() == Flavour::MySql && server.gtid_mode == "ON";
    match asked {
        LogBin::Auto => server.logs_updates() && (server.replicas > 0 || !finds_out),
        LogBin::On => true,
        LogBin::Off => false,
    }
}

/// The replica alone: what can be said before the source is asked.
pub fn replica(
    server: &Server,
    channels: &[ReplicaStatus],
    status: &ReplicaStatus,
    logged: bool,
    findings: &mut Findings,
) {
    kind(server, channels, status, findings);
    applier_as_it_is(server, status, findings);
    beside(server, status, findings);
    binary_log(server, logged, findings);
    meanwhile(server, &mut findings.notes);
}

/// Its version, and what its channel is.
fn kind(server: &Server, channels: &[ReplicaStatus], status: &ReplicaStatus, findings: &mut Findings) {
    let Findings { refused, warnings, .. } = findings;
    let flavour = server.flavour();
    let too_old = match flavour {
        Flavour::MariaDb => server.version < (10, 2, 3),
        Flavour::MySql => server.version < (5, 7, 0),
    };
    if too_old {
        refused.push(format!(
            "{} can not hold its applier safely while heddle applies (MariaDB 10.2.3 or MySQL 5.7 at least): let it go on by itself",
            server.describe()
        ));
    }
    if channels.len() > 1 && flavour == Flavour::MariaDb {
        refused.push(format!(
            "the replica has {} connections, and gtid_slave_pos is one for all of them: can not be rescued yet",
            channels.len()
        ));
    } else if channels.len() > 1 {
        warnings.push(format!(
            "the replica has {} channels; the others go on meanwhile, and must not write the tables of this one",
            channels.len()
        ));
    }
    if status.channel.starts_with("group_replication_") {
        refused.push("the channel is Group Replication's own: let the group recover its member".to_owned());
    }
}

/// What the native applier leaves out, waits for or stands at: Heddle would do otherwise.
fn applier_as_it_is(server: &Server, status: &ReplicaStatus, findings: &mut Findings) {
    let Findings { refused, notes, .. } = findings;
    match filters::of_replica(&status.filters) {
        Ok(None) => {}
        Ok(Some(filter)) => notes.push(format!(
            "the replica's filters are kept: {filter}. A statement on which the server would decide by its session's schema stops the rescue"
        )),
        Err(reasons) => refused.extend(reasons),
    }
    if let Some(value) = &server.skips_marked {
        refused.push(format!(
            "the filter replicate_events_marked_for_skip = {value} is set, and heddle does not have this one: every change would be applied. Remove it if it is not needed"
        ));
    }
    if server.flavour() == Flavour::MariaDb && server.version < (10, 11, 0) {
        notes.push(
            "MariaDB before 10.11 does not show replicate-rewrite-db: a replica that has it must not be rescued"
                .to_owned(),
        );
    }
    applier_state(server, status, Applier::Heddle, findings);
    findings.refused.extend(server.unsafe_settings.iter().map(|(what, remedy)| format!("{what}: {remedy}")));
}

/// What goes on as it is, and is known better before.
fn beside(server: &Server, status: &ReplicaStatus, findings: &mut Findings) {
    let Findings { warnings, .. } = findings;
    if server.not_transactional > 0 {
        warnings.push(format!(
            "{} tables have an engine without transactions: if something is killed while they are written, changes of theirs may be applied \
             twice, as with native replication",
            server.not_transactional
        ));
    }
    if server.semi_sync {
        warnings.push(
            "semi-synchronous replication is on: the source does not get this replica's acknowledgements meanwhile, and may wait for \
             them until its time-out"
                .to_owned(),
        );
    }
    if let Some(error) = &status.receiver_error {
        warnings.push(format!("the receiver's last error: {error}"));
    }
}

/// What becomes of the replica's own binary log.
fn binary_log(server: &Server, logged: bool, findings: &mut Findings) {
    let Findings { refused, notes, .. } = findings;
    if logged {
        own_log(server, findings);
    } else if server.logs_updates() {
        if server.replicas > 0 {
            refused.push(format!(
                "this replica has {} replicas of its own, which would never see what heddle applies with --log-bin off: point them at the \
                 source first, or leave --log-bin out",
                server.replicas
            ));
        } else {
            notes.push(
                "what heddle applies does not go into the replica's binary log (--log-bin off). A server that replicates from this one and is \
                 away now stops when it comes back (error 1236 or 1146): if there is one, use --log-bin on. Point-in-time recovery from that \
                 log cannot cross this time"
                    .to_owned(),
            );
        }
    }
}

/// What is other than usual until the hand-back, and at it.
fn meanwhile(server: &Server, notes: &mut Vec<String>) {
    if server.super_read_only {
        notes.push("super_read_only is switched off meanwhile; read_only stays as it is".to_owned());
    }
    if server.flavour() == Flavour::MySql && server.version < (8, 0, 0) && server.gtid_mode.starts_with("ON") {
        notes.push(
            "before MySQL 8.0 GTIDs can be noted only one empty transaction each: the hand-back takes long after many transactions"
                .to_owned(),
        );
    }
}

/// What it means that Heddle's transactions, which are others than the source's, are in the replica's own log.
fn own_log(server: &Server, findings: &mut Findings) {
    let Findings { refused, notes, .. } = findings;
    if !server.log_bin {
        refused.push("--log-bin on: the replica has no binary log".to_owned());
    } else if server.flavour_is_mariadb && server.gtid_strict_mode {
        refused.push(format!(
            "this replica logs what it replicates, for replicas of its own that may be away now. What heddle applies would be logged under GTIDs of \
             server {}, and gtid_strict_mode does not let the source's follow them. If no server replicates from this one, use --log-bin off; else \
             point those at the source first, or switch gtid_strict_mode off",
            server.server_id
        ));
    } else {
        notes.push(
            "what heddle applies goes into the replica's binary log (--log-bin), in larger transactions with GTIDs of the replica's own; the schema \
             heddle appears on its replicas meanwhile"
                .to_owned(),
        );
        if server.gtid_mode.starts_with("ON") {
            notes.push(
                "at the hand-back the source's GTIDs are noted by an empty transaction each, so that they reach the replica's replicas: that takes a \
                 while after many transactions"
                    .to_owned(),
            );
        }
    }
}

/// Settings of a MySQL applier that change what is applied, or as whom.
pub fn applier(settings: &BTreeMap<String, String>, findings: &mut Findings) {
    let usual = [
        ("privilege_checks_user", "", "PRIVILEGE_CHECKS_USER"),
        ("require_row_format", "NO", "REQUIRE_ROW_FORMAT"),
        ("assign_gtids_to_anonymous_transactions_type", "OFF", "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS"),
    ];
    let mut refuse = |name: &str, value: &str| {
        findings
            .refused
            .push(format!("the channel has {name} = {value}, which heddle does not do: let the native applier go on"));
    };
    for (column, usual, name) in usual {
        if let Some(value) = settings.get(column).filter(|value| value.as_str() != usual) {
            refuse(name, value);
        }
    }
    if let Some(value) = settings.get("require_table_primary_key_check").filter(|value| value.as_str() == "GENERATE") {
        refuse("REQUIRE_TABLE_PRIMARY_KEY_CHECK", value);
    }
}
