//! Whether a replica can be rescued through a stream of groups: less is asked of it, as its own applier goes on.

use std::collections::BTreeMap;

use binlog::Flavour;

use super::applier_state::{Applier, applier_state};
use super::findings::Findings;
use crate::server::Server;
use channel::start::source_state::SourceState;
use replica::status::{Positioning, ReplicaStatus};
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
    applier_state(server, status, Applier::Native, findings);
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
    if server.logs_updates() {
        let below = match server.flavour() {
            Flavour::MySql => {
                "its own replicas get each group as one transaction; the other GTIDs of a group are in gtid_purged above them, so an empty replica can not attach later \
                 (docs/binlog-server.md)"
            }
            Flavour::MariaDb => "its own replicas get the last GTID of each group only",
        };
        if server.replicas > 0 {
            warnings.push(below.to_owned());
        } else {
            notes.push(format!("servers that replicate from this one, if there are any: {below}"));
        }
    }
    notes.push("its own applier goes on, with its filters and settings: heddle only changes where the channel points, and back".to_owned());
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
