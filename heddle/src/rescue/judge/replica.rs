//! The replica and its applier: what can be said before the source is asked.

use std::collections::BTreeMap;

use binlog::Flavour;

use super::findings::Findings;
use crate::replica::status::{Positioning, ReplicaStatus};
use crate::rescue::look::Server;
use crate::rescue::request::LogBin;

/// Whether what is applied goes into the replica's own binary log.
pub fn logged(server: &Server, asked: LogBin) -> bool {
    match asked {
        LogBin::Auto => server.log_bin && server.log_replica_updates && server.replicas > 0,
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
    let Findings { refused, .. } = findings;
    let skips_marked = server.skips_marked.as_ref().map(|value| ("replicate_events_marked_for_skip", value));
    for (name, value) in status.filters.iter().map(|(name, value)| (name.as_str(), value)).chain(skips_marked) {
        refused.push(format!(
            "the filter {name} = {value} is set, and heddle has no filters: every change would be applied. Remove it if it is not needed"
        ));
    }
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
        refused.push(format!(
            "{} events are to be skipped: heddle never skips. Set sql_replica_skip_counter (sql_slave_skip_counter) to 0",
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
        refused.push(format!(
            "the applier has stopped with error {error}: heddle would stop there too. Repair it, and see the applier run, first"
        ));
    }
    if status.positioning == Positioning::CurrentPos && server.current_pos_differs {
        refused.push(
            "the replica goes on at gtid_current_pos, which is not gtid_slave_pos: it has changes of its own. Use \
             MASTER_USE_GTID=slave_pos"
                .to_owned(),
        );
    }
    refused.extend(server.unsafe_settings.iter().map(|(what, remedy)| format!("{what}: {remedy}")));
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
    } else if server.log_bin && server.log_replica_updates {
        if server.replicas > 0 {
            refused.push(format!(
                "this replica has {} replicas of its own, which would never see what heddle applies with --log-bin off: point them at the \
                 source first, or leave --log-bin out",
                server.replicas
            ));
        } else {
            notes.push(
                "what heddle applies does not go into the replica's binary log (--log-bin off): no replica can be made from that log across \
                 this time, and no point-in-time recovery"
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
            "what heddle applies would go into the replica's binary log under GTIDs of its own (server {}), and gtid_strict_mode does not let the \
             source's follow them: point this replica's replicas at the source first and use --log-bin off, or switch gtid_strict_mode off",
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
