//! Whether a replica can be rescued: facts in, findings out. Pure.

use binlog::Flavour;
use binlog::gtids::GtidState;
use serde::Serialize;

use super::look::Server;
use super::run::LogBin;
use super::status::{Positioning, ReplicaStatus};
use channel::source::state::SourceState;

/// What stands in the way, or should be known.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Each with what to do. Nothing is done while there is one.
    pub refused: Vec<String>,
    pub warnings: Vec<String>,
    /// What will happen that somebody might not expect.
    pub notes: Vec<String>,
}

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
    let Findings { refused, warnings, notes } = findings;
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
    refused.extend(server.lenient.iter().map(|(what, remedy)| format!("{what}: {remedy}")));
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
    let Findings { notes, .. } = findings;
    if server.super_read_only {
        notes.push("super_read_only is switched off meanwhile; read_only stays as it is".to_owned());
    }
    if flavour == Flavour::MySql && server.version < (8, 0, 0) && server.gtid_mode.starts_with("ON") {
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
pub fn applier(settings: &std::collections::BTreeMap<String, String>, findings: &mut Findings) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rescue::status::Columns;

    fn status(change: (&str, &str)) -> ReplicaStatus {
        let text = include_str!("recorded/mysql-9.7.txt").replace(change.0, change.1);
        let columns = text.lines().filter_map(|line| line.trim_start().split_once(':'));
        let columns = columns.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        ReplicaStatus::parse(&Columns::new(columns), Flavour::MySql).unwrap()
    }

    fn server() -> Server {
        Server { version: (9, 7, 0), gtid_mode: "ON".to_owned(), server_id: 2, ..Server::default() }
    }

    #[test]
    fn order_of_mariadb_gtids() {
        let check = |logged: &str, last: &str, applied: &str, expected: &[&str]| {
            let server = Server { server_id: 2, gtids: applied.parse().unwrap(), ..Server::default() };
            let mut findings = Findings::default();
            order(logged, &last.parse().unwrap(), &server, &mut findings);
            assert_eq!(findings.refused.len(), expected.len(), "{findings:?}");
            for (found, expected) in findings.refused.iter().zip(expected) {
                assert!(found.contains(expected), "{found}");
            }
        };
        check("0-1-100", "0-1-100", "0-1-50", &[]);
        check("", "", "", &[]);
        // Written between the two questions.
        check("0-1-103", "0-1-100", "0-1-50", &[]);
        // A failover: this replica was the source once.
        check("0-2-40,0-1-100", "0-1-100", "0-1-50", &[]);
        check("0-3-120,0-1-100", "0-1-100", "0-1-50", &["gone back"]);
        check("0-2-90,0-1-100", "0-1-100", "0-1-50", &["ring"]);
        check("0-1-100,7-2-1", "0-1-100,7-2-1", "0-1-50", &["ring"]);
    }

    #[test]
    fn temporary_tables() {
        let check = |format: &str, open: u64, refused: bool, warned: bool| {
            let status = status(("", ""));
            let source = SourceState {
                flavour: Flavour::MySql,
                version_text: String::new(),
                version: (9, 7, 0),
                identity: status.source_identity.clone().unwrap(),
                machine: String::new(),
                binlog_format: format.to_owned(),
                row_image: "FULL".to_owned(),
                gtids: true,
                end: "b.000001:4".parse().unwrap(),
                executed: GtidState::None,
                now_us: 0,
                replicated: binlog::gtids::GtidPos::default(),
                logs: Vec::new(),
                purged: false,
            };
            let mut findings = Findings::default();
            super::source(&Server { open_temp_tables: open, ..server() }, &status, &source, &mut findings);
            assert_eq!(findings.refused.iter().any(|one| one.contains("temporary")), refused, "{format} {open}");
            assert_eq!(findings.warnings.iter().any(|one| one.contains("counts")), warned, "{format} {open}");
        };
        check("ROW", 0, false, false);
        check("ROW", 1, false, true);
        check("MIXED", 1, true, false);
        check("MIXED", 0, false, false);
    }

    #[test]
    fn filters() {
        let check = |alter: &dyn Fn(&mut Server), change: (&str, &str), expected: &[&str]| {
            let (mut server, status) = (server(), status(change));
            alter(&mut server);
            let mut findings = Findings::default();
            replica(&server, std::slice::from_ref(&status), &status, false, &mut findings);
            assert_eq!(findings.refused.len(), expected.len(), "{findings:?}");
            for (found, expected) in findings.refused.iter().zip(expected) {
                assert!(found.contains(expected), "{found}");
            }
        };
        check(&|_| {}, ("", ""), &[]);
        check(&|_| {}, ("Replicate_Do_DB:", "Replicate_Do_DB: shop"), &["replicate_do_db = shop"]);
        check(
            &|server| server.skips_marked = Some("FILTER_ON_MASTER".to_owned()),
            ("", ""),
            &["replicate_events_marked_for_skip = FILTER_ON_MASTER"],
        );
    }

    #[test]
    fn applier_settings() {
        let check = |column: &str, value: &str, refused: usize| {
            let settings = [(column.to_owned(), value.to_owned())].into();
            let mut findings = Findings::default();
            applier(&settings, &mut findings);
            assert_eq!(findings.refused.len(), refused, "{column} {value}");
        };
        check("privilege_checks_user", "", 0);
        check("privilege_checks_user", "'a'@'%'", 1);
        check("require_row_format", "NO", 0);
        check("require_row_format", "YES", 1);
        check("assign_gtids_to_anonymous_transactions_type", "LOCAL", 1);
        check("require_table_primary_key_check", "STREAM", 0);
        check("require_table_primary_key_check", "GENERATE", 1);
    }

    #[test]
    fn accounts() {
        let check = |alter: &dyn Fn(&mut Server), grants: &[&str], expected: &[&str]| {
            let mut server = server();
            alter(&mut server);
            let mut findings = Findings::default();
            let grants: Vec<String> = grants.iter().map(|grant| (*grant).to_owned()).collect();
            account(&server, &grants, &mut findings);
            assert_eq!(findings.refused.len(), expected.len(), "{findings:?}");
            for (found, expected) in findings.refused.iter().zip(expected) {
                assert!(found.contains(expected), "{found}");
            }
        };
        let same = |_: &mut Server| {};
        let read_only = |server: &mut Server| server.read_only = true;
        let mariadb = |server: &mut Server| (server.flavour_is_mariadb, server.version) = (true, (10, 11, 0));
        check(&same, &["GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION"], &[]);
        check(
            &read_only,
            &[
                "GRANT SELECT, RELOAD, PROCESS ON *.* TO `a`@`%`",
                "GRANT REPLICATION_SLAVE_ADMIN,SYSTEM_VARIABLES_ADMIN ON *.* TO `a`@`%`",
            ],
            &["CONNECTION_ADMIN"],
        );
        check(&same, &["GRANT PROCESS, RELOAD, SUPER ON *.* TO `a`@`%`"], &[]);
        check(
            &same,
            &["GRANT ALL PRIVILEGES ON `d`.* TO `a`@`%`"],
            &["PROCESS", "RELOAD", "REPLICATION_SLAVE_ADMIN", "SYSTEM_VAR"],
        );
        check(&mariadb, &["GRANT PROCESS, RELOAD, SUPER ON *.* TO `a`@`%`"], &["REPLICATION SLAVE ADMIN"]);
        check(&mariadb, &["GRANT PROCESS, RELOAD, REPLICATION SLAVE ADMIN ON *.* TO `a`@`%`"], &[]);
    }

    #[test]
    fn reasons_to_refuse() {
        let check_asked = |asked: LogBin, change: (&str, &str), alter: &dyn Fn(&mut Server), expected: Option<&str>| {
            let (mut server, status) = (server(), status(change));
            alter(&mut server);
            let mut findings = Findings::default();
            let logged = logged(&server, asked);
            replica(&server, std::slice::from_ref(&status), &status, logged, &mut findings);
            match expected {
                None => assert!(findings.refused.is_empty(), "{findings:?}"),
                Some(text) => assert!(findings.refused.iter().any(|one| one.contains(text)), "{text}: {findings:?}"),
            }
        };
        let check = |change: (&str, &str), alter: &dyn Fn(&mut Server), expected: Option<&str>| {
            check_asked(LogBin::Auto, change, alter, expected);
        };
        let as_it_is = ("", "");
        let same = |_: &mut Server| {};
        check(as_it_is, &same, None);
        check(("Replicate_Do_DB:", "Replicate_Do_DB: shop"), &same, Some("replicate_do_db"));
        check(("Replicate_Ignore_Server_Ids:", "Replicate_Ignore_Server_Ids: 7"), &same, Some("ignore_server_ids"));
        check(("SQL_Delay: 0", "SQL_Delay: 3600"), &same, Some("3600 s behind"));
        check(("Skip_Counter: 0", "Skip_Counter: 1"), &same, Some("skip"));
        check(("Until_Condition: None", "Until_Condition: Source"), &same, Some("UNTIL"));
        check(("Until_Condition: None", "Until_Condition: DONE"), &same, None);
        check(("Last_SQL_Errno: 0", "Last_SQL_Errno: 1062"), &same, Some("1062"));
        check(("Channel_Name:", "Channel_Name: group_replication_applier"), &same, Some("Group Replication"));
        check(as_it_is, &|server| server.version = (5, 6, 14), Some("5.7"));
        let logs = |server: &mut Server| (server.log_bin, server.log_replica_updates) = (true, true);
        check(as_it_is, &logs, None);
        let feeds = |server: &mut Server| {
            logs(server);
            server.replicas = 1;
        };
        check(as_it_is, &feeds, None);
        check_asked(LogBin::Off, as_it_is, &feeds, Some("replicas of its own"));
        check_asked(LogBin::On, as_it_is, &same, Some("no binary log"));
        let strict = |server: &mut Server| {
            feeds(server);
            (server.flavour_is_mariadb, server.version, server.gtid_strict_mode) = (true, (10, 11, 0), true);
        };
        check(as_it_is, &strict, Some("gtid_strict_mode"));
        check(as_it_is, &|server| server.replicas = 1, None);
    }
}
