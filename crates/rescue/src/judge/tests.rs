//! Facts in, findings out: one row a reason.

use binlog::Flavour;
use binlog::gtids::GtidState;
use channel::start::source_state::SourceState;

use super::*;
use crate::request::LogBin;
use crate::server::Server;
use ::replica::status::{Columns, ReplicaStatus};

pub(super) fn status(change: (&str, &str)) -> ReplicaStatus {
    let text = include_str!("../../../replica/src/recorded/mysql-9.7.txt").replace(change.0, change.1);
    let columns = text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let columns = columns.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    ReplicaStatus::parse(&Columns::new(columns), Flavour::MySql).unwrap()
}

pub(super) fn server() -> Server {
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
        let state = SourceState {
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
            log: channel::start::source_state::SourceLog::default(),
            purged: false,
            purged_gtids: GtidState::None,
            needs_password_cache: false,
            may_read_log: true,
        };
        let mut findings = Findings::default();
        source(&Server { open_temp_tables: open, ..server() }, &status, &state, &mut findings);
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
    check(&|_| {}, ("Replicate_Do_DB:", "Replicate_Do_DB: shop"), &[]);
    check(&|_| {}, ("Replicate_Rewrite_DB:", "Replicate_Rewrite_DB: (a,b)"), &[]);
    check(&|_| {}, ("Replicate_Rewrite_DB:", "Replicate_Rewrite_DB: (a,b,c)"), &["replicate_rewrite_db = (a,b,c)"]);
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
    check(("Replicate_Do_DB:", "Replicate_Do_DB: shop"), &same, None);
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
    let may_feed = |server: &mut Server| {
        logs(server);
        (server.flavour_is_mariadb, server.version, server.gtid_strict_mode) = (true, (10, 11, 0), true);
    };
    check(as_it_is, &may_feed, Some("gtid_strict_mode"));
    check_asked(LogBin::Off, as_it_is, &may_feed, None);
    // A replica of its own may be away.
    let asked = |alter: &dyn Fn(&mut Server)| {
        let mut server = server();
        alter(&mut server);
        [LogBin::Auto, LogBin::Off].map(|asked| logged(&server, asked))
    };
    let gtids = |mode: &'static str, replicas| {
        move |server: &mut Server| {
            logs(server);
            (server.gtid_mode, server.replicas) = (mode.to_owned(), replicas);
        }
    };
    assert_eq!(asked(&may_feed), [true, false], "MariaDB");
    assert_eq!(asked(&gtids("ON", 0)), [false, false], "MySQL's GTIDs tell it what it lacks");
    assert_eq!(asked(&gtids("ON", 1)), [true, false]);
    assert_eq!(asked(&gtids("OFF", 0)), [true, false]);
    assert_eq!(asked(&same), [false, false], "no binary log");
    check(as_it_is, &|server| server.replicas = 1, None);
}

#[test]
fn through_a_stream() {
    let check = |alter: &dyn Fn(&mut Server), change: (&str, &str), setting: (&str, &str), expected: &[&str]| {
        let (mut server, status) = (server(), status(change));
        alter(&mut server);
        let settings = std::iter::once((setting.0.to_owned(), setting.1.to_owned())).collect();
        let mut findings = Findings::default();
        via_serve(&server, std::slice::from_ref(&status), &status, &settings, None, &mut findings);
        // The recorded replica connects with TLS.
        let mut refused = findings.refused.iter().filter(|one| !one.contains("--tls-cert"));
        for expected in expected {
            assert!(refused.next().is_some_and(|one| one.contains(expected)), "{expected}: {findings:?}");
        }
        assert_eq!(refused.next(), None, "{expected:?}");
    };
    let nothing = |_: &mut Server| {};
    let no = ("", "");
    check(&nothing, no, no, &[]);
    check(&nothing, ("Auto_Position: 1", "Auto_Position: 0"), no, &["by file and position"]);
    check(&nothing, ("SQL_Delay: 0", "SQL_Delay: 60"), no, &["stay 60 s behind"]);
    check(&nothing, ("Until_Condition: None", "Until_Condition: SQL_BEFORE_GTIDS"), no, &["start it without UNTIL"]);
    check(&nothing, ("Last_SQL_Errno: 0", "Last_SQL_Errno: 1062"), no, &["error 1062"]);
    // Its own applier keeps to its filters.
    check(&nothing, ("Replicate_Do_DB:", "Replicate_Do_DB: shop"), no, &[]);
    check(&nothing, no, ("require_row_format", "YES"), &["REQUIRE_ROW_FORMAT"]);
    check(&nothing, no, ("require_row_format", "NO"), &[]);
    check(&nothing, no, ("privilege_checks_user", "'a'@'%'"), &["PRIVILEGE_CHECKS_USER"]);
    check(&nothing, no, ("source_connection_auto_failover", "1"), &["SOURCE_CONNECTION_AUTO_FAILOVER"]);
    check(&|server| server.version = (5, 7, 44), no, no, &["MySQL 8.0 at least"]);
    check(&|server| server.gtid_mode = "ON_PERMISSIVE".to_owned(), no, no, &["ON_PERMISSIVE"]);
}

#[test]
fn replicas_that_are_steered_by_procedures() {
    let check = |change: (&str, &str), given, expected: &[&str]| {
        let mut findings = Findings::default();
        procedures(&status(change), Flavour::MySql, given, &mut findings);
        assert_eq!(findings.refused.len(), expected.len(), "{findings:?}");
        for (found, expected) in findings.refused.iter().zip(expected) {
            assert!(found.contains(expected), "{found}");
        }
    };
    check(("", ""), GivenPassword::Yes, &[]);
    check(("", ""), GivenPassword::No, &["HEDDLE_REPLICA_PASSWORD"]);
    check(("Source_User: heddle", "Source_User: rdsrepladmin"), GivenPassword::Yes, &["read replica itself"]);
    check(("Auto_Position: 1", "Auto_Position: 0"), GivenPassword::Yes, &["rds_set_source_auto_position(1)"]);
}
