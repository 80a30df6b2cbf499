//! The source: whether it is the one that the replica names, and whether its log can be followed.

use binlog::Flavour;
use binlog::gtids::GtidState;

use super::findings::Findings;
use crate::server::Server;
use channel::start::source_state::SourceState;
use replica::status::{Positioning, ReplicaStatus};

/// The source that the replica names, and the one that answered.
pub fn source(server: &Server, status: &ReplicaStatus, source: &SourceState, findings: &mut Findings) {
    let Findings { refused, warnings, notes } = findings;
    if source.flavour != server.flavour() {
        refused.push(format!("the source is {}, the replica {}: not tried yet", source.describe(), server.describe()));
    }
    match &status.source_identity {
        Some(identity) if *identity != source.identity => refused.push(format!(
            "the replica's source is {identity}, and {} answered: name the right one with --source",
            source.identity
        )),
        None => refused.push(
            "the replica has never been connected to its source, which therefore can not be told from another: start replication once"
                .to_owned(),
        ),
        Some(_) => {}
    }
    let own = match server.flavour() {
        Flavour::MariaDb => format!("mariadb-server-{}", server.server_id),
        Flavour::MySql => String::new(),
    };
    if source.identity == own {
        refused.push("source and replica have the same server_id".to_owned());
    }
    if server.flavour() == Flavour::MySql && status.positioning == Positioning::Gtid && !source.gtids {
        refused.push("the replica uses GTIDs, and gtid_mode is not ON on the source".to_owned());
    }
    if status.positioning == Positioning::File && server.flavour_is_mariadb && server.workers > 0 {
        let GtidState::MariaDb(position) = &source.executed else { return };
        if position.iter().count() > 1 {
            refused.push(
                "several domains are applied in parallel, and one file position can not say how far each has come: use \
                 MASTER_USE_GTID=slave_pos"
                    .to_owned(),
            );
        }
    }
    if server.open_temp_tables > 0 && source.binlog_format == "ROW" {
        // MySQL 5.7 and 8.0 count some that are not there, seen while definitions were applied.
        warnings.push(format!(
            "the applier counts {} temporary tables, which are lost when it stops: with binlog_format=ROW nothing reads them, and heddle stops at a \
             statement that does",
            server.open_temp_tables
        ));
    } else if server.open_temp_tables > 0 {
        refused.push(format!(
            "the applier holds {} temporary tables, which are lost when it stops: try again when Replica_open_temp_tables \
             (Slave_open_temp_tables) is 0",
            server.open_temp_tables
        ));
    }
    if source.binlog_format != "ROW" {
        warnings.push(format!(
            "the source has binlog_format={}: statements are applied one at a time, and a temporary table that is in use at the moment \
             of the hand-back is lost",
            source.binlog_format
        ));
    }
    notes.push(format!("the source is {} and its binary log ends at {}", source.describe(), source.end));
}

/// MariaDB: `logged` is the source's `gtid_binlog_state`, the last GTID of each server in each domain; `last` its `gtid_binlog_pos`, read
/// before or after while it is being written. A position says what is applied
/// only if sequence numbers never go back, and a native applier leaves out what its own server has logged first.
pub fn order(logged: &str, last: &GtidState, server: &Server, findings: &mut Findings) {
    let GtidState::MariaDb(last) = last else { return };
    let applied = match &server.gtids {
        GtidState::MariaDb(applied) => applied.clone(),
        _ => binlog::gtids::GtidPos::default(),
    };
    for gtid in logged.split(',').filter_map(|text| text.trim().parse::<binlog::gtids::mariadb::Gtid>().ok()) {
        if last.get(gtid.domain).is_some_and(|last| last.server != gtid.server && last.seq < gtid.seq) {
            findings.refused.push(format!(
                "sequence numbers of domain {} have gone back on the source ({gtid} came before {}): a position can not say what is applied. \
                 Use gtid_strict_mode, and a domain for each server that is written",
                gtid.domain,
                last.get(gtid.domain).map_or_else(String::new, |last| last.to_string())
            ));
        }
        if gtid.server == server.server_id && !applied.contains(gtid) {
            findings.refused.push(format!(
                "the source has {gtid}, which began on this replica: they replicate in a ring. Open it first"
            ));
        }
    }
}
