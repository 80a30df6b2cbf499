//! Whether a replica can be rescued through a stream of groups: less is asked of it, as its own applier goes on.

use std::collections::BTreeMap;

use binlog::Flavour;

use super::findings::Findings;
use crate::replica::status::{Positioning, ReplicaStatus};
use crate::rescue::look::Server;
use channel::source::state::SourceState;
use wire::server::TlsFiles;

/// `settings`: of a MySQL channel's receiver and applier, by their columns in `performance_schema`.
pub fn via_serve(
    server: &Server,
    channels: &[ReplicaStatus],
    status: &ReplicaStatus,
    settings: &BTreeMap<String, String>,
    tls: Option<&TlsFiles>,
    findings: &mut Findings,
) {
    applier_as_it_is(server, status, findings);
    settings_that_do_not_fit(settings, findings);
    let Findings { refused, warnings, notes } = findings;
    let uses_tls = status.config.get("source_ssl_allowed").is_some_and(|allowed| allowed == "Yes");
    if uses_tls && tls.is_none() {
        refused.push(
            "the replica connects to its source with TLS, and so it will to heddle: give a certificate with --tls-cert and --tls-key. If the replica does not verify it, any will do: \
             openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=heddle -keyout key.pem -out cert.pem"
                .to_owned(),
        );
    }
    if status.positioning == Positioning::File {
        refused.push(
            "the replica follows its source by file and position: groups need GTIDs (SOURCE_AUTO_POSITION=1, MariaDB: MASTER_USE_GTID=slave_pos)"
                .to_owned(),
        );
    }
    if server.flavour() == Flavour::MySql && server.version < (8, 0, 0) {
        refused.push(format!("{}: groups need MySQL 8.0 at least", server.describe()));
    }
    if channels.len() > 1 {
        refused.push(format!("the replica has {} channels: with groups this was not tried", channels.len()));
    }
    if status.channel.starts_with("group_replication_") {
        refused.push("the channel is Group Replication's own: let the group recover its member".to_owned());
    }
    if server.replicas > 0 && server.log_replica_updates {
        let below = match server.flavour() {
            Flavour::MySql => {
                "its own replicas get each group as one transaction; the other GTIDs of a group are in gtid_purged above them, so an empty replica can not attach later \
                 (docs/binlog-server.md)"
            }
            Flavour::MariaDb => "its own replicas get the last GTID of each group only",
        };
        warnings.push(below.to_owned());
    }
    notes.push("its own applier goes on, with its filters and settings: heddle only changes where the channel points, and back".to_owned());
}

/// What the applier leaves out, waits for or stands at.
fn applier_as_it_is(server: &Server, status: &ReplicaStatus, findings: &mut Findings) {
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
        refused.push(format!(
            "{} events are to be skipped, which would be groups then: set sql_replica_skip_counter (sql_slave_skip_counter) to 0",
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
            "the applier has stopped with error {error}: it would again. Repair it, and see it run, first"
        ));
    }
    if status.positioning == Positioning::CurrentPos && server.current_pos_differs {
        refused.push(
            "the replica goes on at gtid_current_pos, which is not gtid_slave_pos: it has changes of its own. Use MASTER_USE_GTID=slave_pos"
                .to_owned(),
        );
    }
}

fn settings_that_do_not_fit(settings: &BTreeMap<String, String>, findings: &mut Findings) {
    let refused = &mut findings.refused;
    for (name, why) in [
        ("require_row_format", "groups come with a statement for their GTIDs"),
        ("privilege_checks_user", "that account would need SYSTEM_VARIABLES_ADMIN, and this was not tried"),
        ("source_connection_auto_failover", "the server would point its channel elsewhere when heddle ends"),
    ] {
        let value = settings.get(name).map_or("", String::as_str);
        if !matches!(value, "" | "NO" | "0" | "NULL") {
            refused.push(format!("{} is {value}: {why}", name.to_ascii_uppercase()));
        }
    }
}

/// The source that answered.
pub fn source_of_stream(server: &Server, status: &ReplicaStatus, source: &SourceState, findings: &mut Findings) {
    let Findings { refused, notes, .. } = findings;
    if source.flavour != server.flavour() {
        refused.push(format!("the source is {}, the replica {}: not tried", source.describe(), server.describe()));
    }
    match &status.source_identity {
        Some(identity) if *identity != source.identity => refused.push(format!(
            "the replica's source is {identity}, and {} answered: name the right one with --source",
            source.identity
        )),
        None => refused.push("the replica has never been connected to its source: start replication once".to_owned()),
        Some(_) => {}
    }
    if source.flavour == Flavour::MySql && source.version < (8, 0, 0) {
        refused.push(format!("the source is {}: groups need MySQL 8.0 at least", source.describe()));
    }
    if source.flavour == Flavour::MySql && !source.gtids {
        refused.push("gtid_mode is not ON on the source".to_owned());
    }
    notes.push(format!("the source is {} and its binary log ends at {}", source.describe(), source.end));
}
