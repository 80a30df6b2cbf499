//! Statements, results, pipelining, large payloads, local files, ends of connections.

use std::time::Duration;

use wire::{Connection, Error};

use crate::Case;
use crate::support::{Skip, TestServer};

pub const CASES: &[Case] = &[
    ("basics", basics),
    ("multi_statements", multi_statements),
    ("pipelining", pipelining),
    ("large_payloads", large_payloads),
    ("packet_boundaries", packet_boundaries),
    ("too_large_a_query", too_large_a_query),
    ("local_infile", local_infile),
    ("shutdown_handle", shutdown_handle),
    ("read_timeout", read_timeout),
    ("killed", killed),
    ("reset", reset),
];

fn basics(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.database("wire_basics");
    let info = c.server().clone();
    let said = c.scalar("SELECT VERSION()").unwrap().unwrap();
    assert_eq!(said, info.version_text);
    let id = c.scalar("SELECT CONNECTION_ID()").unwrap().unwrap();
    assert_eq!(id, info.connection_id.to_string());
    let ok = c.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100), b BLOB)").unwrap();
    assert_eq!(ok.affected, 0);
    let ok = c.execute("INSERT INTO t (v, b) VALUES ('käse 🧀', x'00ff'), (NULL, '')").unwrap();
    assert_eq!((ok.affected, ok.last_insert_id), (2, 1));
    let rows = c.rows("SELECT id, v, b FROM t ORDER BY id").unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].parse::<u32>("ID").unwrap(), Some(1));
    assert_eq!(rows[0].text("v").unwrap(), Some("käse 🧀"));
    assert_eq!(rows[0].get(2), Some(&[0, 255][..]));
    assert!(rows[0].text("b").is_err());
    assert_eq!((rows[1].get("v"), rows[1].get("b")), (None, Some(&b""[..])));
    assert_eq!(rows[0].columns()[1].table, "t");
    assert!(c.rows("SELECT * FROM t WHERE id = 99").unwrap().is_empty());
    assert!(c.row("SELECT * FROM t WHERE id = 99").unwrap().is_none());
    assert_eq!(c.scalar("SELECT NULL").unwrap(), None);
    assert_eq!(c.execute("SELECT CAST('x' AS SIGNED)").unwrap().warnings, 1);
    c.ping().unwrap();
    let attributes = "SELECT COUNT(*) FROM performance_schema.session_connect_attrs WHERE PROCESSLIST_ID = \
                      CONNECTION_ID() AND ATTR_NAME = 'program_name' AND ATTR_VALUE = 'heddle'";
    if c.scalar("SELECT @@performance_schema").unwrap().as_deref() == Some("1") {
        assert_eq!(c.scalar(attributes).unwrap().as_deref(), Some("1"));
    }
    c.close();
    Ok(())
}

fn multi_statements(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.database("wire_multi");
    c.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    let results =
        c.query("INSERT INTO t VALUES (1); SELECT id FROM t; INSERT INTO t VALUES (2),(3); SELECT 7").unwrap();
    assert_eq!(results.len(), 4);
    assert_eq!((results[0].ok.affected, results[2].ok.affected), (1, 2));
    assert_eq!(results[1].rows[0].text(0).unwrap(), Some("1"));
    assert_eq!(results[3].rows[0].text("7").unwrap(), Some("7"));
    let error =
        c.query("INSERT INTO t VALUES (4); SELECT 1; INSERT INTO t VALUES (1); INSERT INTO t VALUES (5)").unwrap_err();
    assert_eq!((error.code(), error.statement_index()), (Some(1062), Some(2)));
    assert!(!error.is_connection_lost());
    assert_eq!(c.scalar("SELECT GROUP_CONCAT(id ORDER BY id) FROM t").unwrap().as_deref(), Some("1,2,3,4"));
    // An error after the first rows of a result.
    let error = c.query("SELECT 1; SELECT id, (SELECT 1 UNION SELECT 2) FROM t").unwrap_err();
    assert_eq!((error.code(), error.statement_index()), (Some(1242), Some(1)));
    let error = c.query("SELEC").unwrap_err();
    assert!(matches!(&error, Error::Server { code: 1064, sqlstate, .. } if sqlstate == "42000"), "{error}");
    let error = c.query("ALTER USER x IDENTIFIED BYE 'hunter2'").unwrap_err();
    assert!(error.code() == Some(1064) && !format!("{error:?}").contains("hunter2"), "{error}");
    Ok(())
}

fn pipelining(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.database("wire_pipeline");
    c.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    for id in 0..500 {
        let sql = format!("INSERT INTO t VALUES ({})", if id == 250 { 249 } else { id });
        if id % 2 == 0 {
            c.send_query(sql.as_bytes()).unwrap();
        } else {
            c.send_query_parts(&[b"BEGIN;", sql.as_bytes(), b"", b";COMMIT"]).unwrap();
        }
    }
    assert!(matches!(c.query("SELECT 1"), Err(Error::Busy { pending: 500 })));
    for id in 0..500 {
        match c.read_result() {
            Ok(outcome) => {
                assert_eq!(outcome.results.len(), if id % 2 == 0 { 1 } else { 3 });
                assert_eq!(outcome.affected(), 1);
            }
            Err(error) => assert_eq!((id, error.code()), (250, Some(1062))),
        }
    }
    assert!(c.read_result().is_err());
    assert_eq!(c.scalar("SELECT COUNT(*) FROM t").unwrap().as_deref(), Some("499"));
    Ok(())
}

fn large_payloads(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.database("wire_large");
    c.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB)").unwrap();
    let value: Vec<u8> = (0..40 << 20).map(|at| b'a' + (at % 23) as u8).collect();
    let (first, second) = value.split_at(12_345_678);
    c.send_query_parts(&[b"INSERT INTO t VALUES (1, '", first, second, b"')"]).unwrap();
    assert_eq!(c.read_result().unwrap().affected(), 1);
    let row = c.row("SELECT v FROM t").unwrap().unwrap();
    assert!(row.get(0) == Some(&value[..]));
    // A value of 16 MiB and more has a length that starts with 0xfe, as an end of rows has.
    let row = c.row("SELECT REPEAT('x', 17000000) AS v").unwrap().unwrap();
    assert_eq!(row.get("v").map(<[u8]>::len), Some(17_000_000));
    c.ping().unwrap();
    Ok(())
}

fn packet_boundaries(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    for length in [0xff_ff_fd, 0xff_ff_fe, 0xff_ff_ff, 0x1_00_00_00] {
        let comment = vec![b'-'; length - "SELECT 1 /**/".len()];
        c.send_query_parts(&[b"SELECT 1 /*", &comment, b"*/"]).unwrap();
        let outcome = c.read_result().unwrap();
        assert_eq!(outcome.results[0].rows[0].text(0).unwrap(), Some("1"), "{length}");
    }
    // Rows of just that size: 4 bytes length before the value.
    for length in [0xff_ff_fa, 0xff_ff_fb, 0xff_ff_fc, 0xff_ff_fd] {
        let row = c.row(format!("SELECT REPEAT('x', {length})")).unwrap().unwrap();
        assert_eq!(row.get(0).map(<[u8]>::len), Some(length), "{length}");
    }
    Ok(())
}

fn too_large_a_query(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    let limit: usize = c.row("SELECT @@max_allowed_packet").unwrap().unwrap().required(0).unwrap();
    let filler = vec![b' '; limit + 1000];
    let error = c.query(&filler).unwrap_err();
    assert!(error.is_connection_lost(), "{error}");
    assert!(matches!(error, Error::Lost { .. }) || error.code() == Some(1153), "{error}");
    assert!(c.is_broken());
    assert!(matches!(c.query("SELECT 1"), Err(Error::Lost { .. })));
    Ok(())
}

fn local_infile(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.database("wire_infile");
    if c.scalar("SELECT @@local_infile").unwrap().as_deref() != Some("1") {
        return Err(Skip("local_infile is off".into()));
    }
    c.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))").unwrap();
    let load = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t";
    let error = c.query(format!("SELECT 1; {load}; SELECT 2")).unwrap_err();
    assert!(matches!(&error, Error::LocalInfileRefused { file } if file == "/etc/passwd"), "{error}");
    assert_eq!(c.scalar("SELECT COUNT(*) FROM t").unwrap().as_deref(), Some("0"));
    let text: String = (0..300_000).map(|id| format!("{id}\tvalue {id}\n")).collect();
    let results = c.query_with_local_infile(load, &mut text.as_bytes()).unwrap();
    assert_eq!(results[0].ok.affected, 300_000);
    assert_eq!(c.scalar("SELECT MAX(id) FROM t").unwrap().as_deref(), Some("299999"));
    // A second file in the same query is not given.
    let error = c.query_with_local_infile(format!("DELETE FROM t; {load}; {load}"), &mut &b"1\ta\n"[..]).unwrap_err();
    assert!(matches!(error, Error::LocalInfileRefused { .. }), "{error}");
    assert_eq!(c.scalar("SELECT COUNT(*) FROM t").unwrap().as_deref(), Some("1"));
    Ok(())
}

fn shutdown_handle(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    let handle = c.shutdown_handle();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        handle.clone().shutdown();
        handle.shutdown();
    });
    let error = c.query("SELECT SLEEP(600)").unwrap_err();
    assert!(matches!(error, Error::ShutDown), "{error}");
    assert!(matches!(c.ping(), Err(Error::ShutDown)));
    other.join().unwrap();
    Ok(())
}

fn read_timeout(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    c.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let error = c.query("SELECT SLEEP(600)").unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }) && error.is_connection_lost(), "{error}");
    assert!(c.ping().is_err());
    Ok(())
}

fn killed(server: &TestServer) -> Result<(), Skip> {
    let mut victim = server.connect();
    let mut admin = server.connect();
    admin.execute(format!("KILL {}", victim.server().connection_id)).unwrap();
    let gone = |c: &mut Connection| c.query("SELECT SLEEP(1)");
    let error = loop {
        if let Err(error) = gone(&mut victim) {
            break error;
        }
    };
    assert!(error.is_connection_lost() && error.is_transient_network(), "{error:?}");
    Ok(())
}

fn reset(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    c.execute("SET @x = 'kept'").unwrap();
    match c.reset() {
        Err(error) if error.code() == Some(1047) => return Err(Skip(error.to_string())),
        other => other.unwrap(),
    }
    assert_eq!(c.scalar("SELECT @x").unwrap(), None);
    assert_eq!(c.scalar("SELECT @@character_set_client").unwrap().as_deref(), Some("utf8mb4"));
    Ok(())
}
