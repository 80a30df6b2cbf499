use super::*;
use crate::inventory::{Inventory, SourceFacts};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;

#[derive(Debug)]
struct Two;

impl Sessions for Two {
    fn list(&self) -> Vec<SessionLine> {
        let replica = ReplicaLine { server_id: 7, host: "h".to_owned(), port: 3306, uuid: "U".to_owned() };
        let line = SessionLine { number: 2, user: "repl".to_owned(), replica: Some(replica), ..SessionLine::default() };
        vec![SessionLine { number: 1, ..SessionLine::default() }, line]
    }

    fn kill(&self, number: u32, user: &str) -> bool {
        number == 2 && user == "repl"
    }
}

fn source(greeting: &str, variables: &[(&str, &str)]) -> SourceFacts {
    SourceFacts {
        greeting: greeting.to_owned(),
        charset: 45,
        version: if greeting.contains("MariaDB") { (10, 11, 6) } else { (9, 7, 0) },
        variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

pub(super) fn mysql() -> SourceFacts {
    source(
        "9.7.0",
        &[
            ("binlog_checksum", "CRC32"),
            ("gtid_mode", "ON"),
            ("hostname", "theirs"),
            ("log_bin", "ON"),
            ("net_write_timeout", "60"),
            ("port", "3306"),
            ("server_id", "17"),
            ("server_uuid", "3E11FA47-71CA-11E1-9E33-C80AA9429562"),
            ("version", "9.7.0"),
        ],
    )
}

/// Rows as `a|b` with NULL, or the error's number.
fn ask(sql: &str, variables: &mut Variables, source: &SourceFacts) -> String {
    ask_with(sql, variables, source, None)
}

/// The same where tables are known.
pub(super) fn ask_with(
    sql: &str,
    variables: &mut Variables,
    source: &SourceFacts,
    schema: Option<&engine::survey::Definitions>,
) -> String {
    let inventory = Inventory::new(Path::new("/nonexistent"));
    let own = ServerValues { hostname: "ours".to_owned(), port: 3307, groups: false, started: 0 };
    let who = Client { number: 1, user: "repl", from: [127, 0, 0, 1].into() };
    let world = World { inventory: &inventory, source, receiving: None, schema, own: &own, who, sessions: &Two };
    match answer(sql.as_bytes(), variables, world) {
        Ok(Answer::Done) => "done".to_owned(),
        Ok(Answer::Leave) => "leave".to_owned(),
        Ok(Answer::Rows(rows)) => {
            let cell = |cell: &wire::server::Cell| cell.clone().unwrap_or_else(|| "NULL".to_owned());
            let line = |row: &Vec<wire::server::Cell>| row.iter().map(cell).collect::<Vec<_>>().join("|");
            rows.rows.iter().map(line).collect::<Vec<_>>().join(";")
        }
        Err(error) => error.code.to_string(),
    }
}

#[test]
fn what_replicas_and_tools_ask() {
    let mut variables = Variables::default();
    let source = mysql();
    let mut check = |sql: &str, want: &str| assert_eq!(ask(sql, &mut variables, &source), want, "{sql}");
    check("SELECT @@GLOBAL.SERVER_ID", "17");
    check("select @@log_bin, @@gtid_mode, @@hostname AS h, @@port limit 1", "1|ON|ours|3307");
    check("SHOW VARIABLES LIKE 'SERVER\\_ID'", "server_id|17");
    check("show global variables like 'server%'", "server_id|17;server_uuid|3E11FA47-71CA-11E1-9E33-C80AA9429562");
    check(
        "SHOW VARIABLES WHERE Variable_name = 'log_bin' OR Variable_name IN ('server_id')",
        "log_bin|ON;server_id|17",
    );
    check("SET @master_heartbeat_period = 5000, @source_heartbeat_period = 5000", "done");
    check(
        "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum= @@global.binlog_checksum",
        "done",
    );
    check("SELECT @source_binlog_checksum, @MASTER_HEARTBEAT_PERIOD, @none", "CRC32|5000|NULL");
    check("/* driver */ SET NAMES utf8mb4", "done");
    check("/*!40101 SET @a = 'x''y\\'z' */;", "done");
    check("SELECT @a -- the end", "x'y'z");
    check("SET SESSION net_write_timeout=600, @b := -1", "done");
    check("SELECT @@net_write_timeout, @@global.net_write_timeout, @b", "600|60|-1");
    check("SET GLOBAL net_write_timeout=1", "1227");
    check("SET nonsense=1", "1193");
    check("SELECT @@nonsense", "1193");
    check("SELECT @@global.rpl_semi_sync_source_enabled", "1");
    check("SELECT @@global.rpl_semi_sync_master_enabled", "1193");
    check("SHOW VARIABLES LIKE 'rpl_semi_sync_%'", "rpl_semi_sync_source_enabled|ON");
    check("SHOW STATUS LIKE 'Rpl_semi_sync_%'", "Rpl_semi_sync_source_clients|0;Rpl_semi_sync_source_status|ON");
    check("SET @rpl_semi_sync_replica = 1, @rpl_semi_sync_slave = 1", "done");
    check("SELECT 1 FROM dual", "1");
    check("SELECT CONNECTION_ID(), USER(), DATABASE(), version()", "1|repl@127.0.0.1|NULL|9.7.0");
    check(
        "SELECT GTID_SUBSET('3E11FA47-71CA-11E1-9E33-C80AA9429562:1', '3E11FA47-71CA-11E1-9E33-C80AA9429562:1-3')",
        "1",
    );
    check("SELECT BINLOG_GTID_POS('b.1', 4)", "1305");
    check("SHOW REPLICAS", "7|h|3306|17|U");
    check("SHOW REPLICA STATUS", "");
    check("SHOW SLAVE STATUS", "1064");
    check("SHOW MASTER STATUS", "1064");
    check("SHOW SLAVE HOSTS", "1064");
    check("SHOW ALL SLAVES STATUS", "1064");
    check("select ifnull(NULL, 'a'), 'A' = 'a', 'a' = NULL, coalesce('b', 'c'), concat('d', 'e')", "a|1|NULL|b|de");
    check("select substring_index('a:b:c', ':', 2), substring_index('a:b:c', ':', -1)", "a:b|c");
    check(
        "select substring_index(host, ':', 1) as h, user from information_schema.processlist where command IN ('Binlog Dump', 'Binlog Dump GTID')",
        "|repl",
    );
    check("select id from information_schema.processlist", "1;2");
    check("select id from information_schema.processlist where user = 'nobody'", "");
    check("select nothing from information_schema.processlist", "1054");
    check("SELECT nothing", "1054");
    check("SHOW WARNINGS", "");
    check("SHOW TABLES", "1046");
    check("SELECT * FROM information_schema.tables", "1235");
    check("INSERT INTO t VALUES (1)", "1235");
    check("KILL 2", "done");
    check("KILL QUERY 3", "1094");
    check("KILL 1", "leave");
    check("", "done");
    check("SELECT 'open", "1064");
}

#[test]
fn mariadb_has_other_names() {
    let mut variables = Variables::default();
    let source = source("5.5.5-10.11.6-MariaDB", &[("server_id", "17"), ("gtid_domain_id", "3")]);
    let mut check = |sql: &str, want: &str| assert_eq!(ask(sql, &mut variables, &source), want, "{sql}");
    check("SELECT @@GLOBAL.gtid_domain_id", "3");
    check("SET @slave_connect_state='0-1-5,1-2-3'", "done");
    check("SET @slave_gtid_strict_mode=0", "done");
    check("SET skip_replication=1", "done");
    check("SELECT CONCAT_WS(' ', @@global.server_id, NULL, @@global.gtid_domain_id), CONCAT_WS(NULL, 1)", "17 3|NULL");
    check("SELECT @@gtid_executed", "1193");
    check("SELECT @@gtid_binlog_pos", "");
    check("SHOW SLAVE HOSTS", "7|h|3306|17");
    assert!(variables.is_on("skip_replication"));
    assert_eq!(variables.user("slave_connect_state").as_deref(), Some("0-1-5,1-2-3"));
}

/// The values of one line, by their columns.
fn status_of(
    sql: &str,
    source: &SourceFacts,
    monitor: &crate::mirror::Monitor,
) -> std::collections::BTreeMap<String, String> {
    let own = ServerValues { hostname: "ours".to_owned(), port: 3307, groups: false, started: 0 };
    let who = Client { number: 1, user: "repl", from: [127, 0, 0, 1].into() };
    let (inventory, receiving) = (Inventory::new(Path::new("/nonexistent")), monitor.receiving());
    let receiving = receiving.as_ref();
    let world = World { inventory: &inventory, source, receiving, schema: None, own: &own, who, sessions: &Two };
    let Answer::Rows(rows) = answer(sql.as_bytes(), &mut Variables::default(), world).unwrap() else { panic!() };
    assert_eq!(rows.rows.len(), 1);
    let cells = rows.rows[0].iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".to_owned()));
    rows.columns.iter().map(|(name, _)| name.clone()).zip(cells).collect()
}

#[test]
fn a_replica_that_receives_and_has_no_applier() {
    let monitor = crate::mirror::Monitor::default();
    let options = wire::ConnectOptions { host: "there".to_owned(), ..wire::ConnectOptions::default() };
    monitor.expects(&options);
    let mariadb = source("5.5.5-10.11.6-MariaDB", &[("server_id", "17")]);
    let status = status_of("SHOW SLAVE STATUS", &mariadb, &monitor);
    assert_eq!((&*status["Master_Host"], &*status["Slave_IO_Running"]), ("there", "Connecting"));
    assert_eq!((&*status["Slave_SQL_Running"], &*status["Seconds_Behind_Master"]), ("No", "NULL"));
    monitor.connected(&options, "its identity");
    let status = status_of("SHOW REPLICA STATUS", &mysql(), &monitor);
    assert_eq!((&*status["Source_Host"], &*status["Replica_IO_Running"]), ("there", "Yes"));
    assert_eq!(status["Replica_IO_State"], "Waiting for source to send event");
    monitor.lost("it is gone");
    let status = status_of("SHOW REPLICA STATUS FOR CHANNEL ''", &mysql(), &monitor);
    assert_eq!((&*status["Replica_IO_Running"], &*status["Last_IO_Errno"]), ("Connecting", "2003"));
    assert_eq!(status["Last_IO_Error"], "it is gone");
    let status = status_of("SHOW ALL SLAVES STATUS", &mariadb, &monitor);
    assert_eq!((&*status["Connection_name"], &*status["Last_IO_Error"]), ("", "it is gone"));
}

#[test]
fn a_session_holds_no_more_than_it_may() {
    let mut variables = Variables::default();
    let source = mysql();
    let long = "x".repeat(600_000);
    assert_eq!(ask(&format!("SET @a = '{long}'"), &mut variables, &source), "done");
    assert_eq!(ask(&format!("SET @b = '{long}'"), &mut variables, &source), "1038");
    assert_eq!(variables.user("a"), None);
}

#[test]
fn any_text() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let source = mysql();
    let parts = [
        "SELECT",
        "SET",
        "SHOW",
        "KILL",
        "@@",
        "@",
        "global",
        ".",
        "server_id",
        "'",
        "\"",
        "`",
        "(",
        ")",
        ",",
        "=",
        "VARIABLES",
        "LIKE",
        "WHERE",
        "/*",
        "*/",
        "/*!",
        "--",
        "\\",
        "%",
        "_",
        ";",
        "1",
        "-",
        "é",
        "\u{1f980}",
        " ",
        "LIMIT",
        "AS",
        "IN",
    ];
    for _ in 0..20_000 {
        let count = random.random_range(0..14);
        let sql: String = (0..count)
            .map(|_| parts[random.random_range(0..parts.len())])
            .collect::<Vec<_>>()
            .join(if random.random_bool(0.5) { " " } else { "" });
        let _ = ask(&sql, &mut Variables::default(), &source);
    }
    let deep = format!("SELECT {}1{}", "f(".repeat(5000), ")".repeat(5000));
    assert_eq!(ask(&deep, &mut Variables::default(), &source), "1235");
    assert_eq!(ask(&format!("SELECT {}1", "-".repeat(9000)), &mut Variables::default(), &source), "1235");
}
