//! Statements of the source that share a target transaction: each is executed once and in order, whatever comes in between.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::fmt::Write;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::pair::Pair;

const IN_STATEMENTS: &[&str] = &["--binlog-format=STATEMENT", "--sync-binlog=0"];
const TABLES: &str = "CREATE DATABASE d; CREATE DATABASE e; CREATE TABLE d.t (id INT PRIMARY KEY, v INT, s VARCHAR(50)) ENGINE=InnoDB;
    CREATE TABLE e.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB; CREATE TABLE d.log (v INT) ENGINE=MyISAM;
    INSERT INTO d.t SELECT seq.n, 0, '' FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) SELECT n FROM c) seq";

/// Each builds on those before, so that one that is lost, or executed twice or out of order, leaves other rows.
fn chain(rounds: usize) -> String {
    let mut sql = String::new();
    for round in 0..rounds {
        let id = round % 100 + 1;
        // Writing to a String does not fail.
        let _ = writeln!(
            sql,
            "USE d; UPDATE t SET v = v + {round}, s = CONCAT(LEFT(s, 40), '{}') WHERE id = {id};",
            round % 10
        );
        if round % 7 == 0 {
            let _ = writeln!(sql, "USE e; INSERT INTO t (v) SELECT v FROM d.t WHERE id = {id};");
        }
        if round % 11 == 0 {
            let _ = writeln!(
                sql,
                "SET binlog_format = 'ROW'; UPDATE d.t SET v = v * 3 % 100003 WHERE id = {id}; SET binlog_format = 'STATEMENT';"
            );
        }
        if round % 13 == 0 {
            let _ = writeln!(sql, "SET sql_mode = 'ANSI_QUOTES'; SET timestamp = {}; UPDATE d.t SET \"s\" = CONCAT(LEFT(s, 20), NOW(), 'x') WHERE id = {id};
                SET sql_mode = DEFAULT; SET timestamp = DEFAULT;", 1_600_000_000 + round);
        }
        if round % 17 == 0 {
            let _ = writeln!(sql, "SET @x = {round}; UPDATE d.t SET v = v + @x WHERE id = {id};");
        }
        if round % 6 == 0 {
            // Of a table that is there: nobody waits for it.
            let _ = writeln!(sql, "CREATE TABLE IF NOT EXISTS e.t (id INT);");
        }
        if round % 19 == 0 {
            let _ = writeln!(
                sql,
                "BEGIN; UPDATE d.t SET v = v + 1; SAVEPOINT a; DELETE FROM d.t WHERE id = {id}; ROLLBACK TO a; INSERT INTO e.t (v) VALUES ({round}); COMMIT;"
            );
        }
    }
    sql
}

fn pair(server: &str, target: &[&str]) -> Result<Pair> {
    let pair = Pair::start_with(server.parse()?, IN_STATEMENTS, target)?;
    pair.source.execute(TABLES)?;
    pair.to_the_end(&[])?;
    Ok(pair)
}

fn share(server: &str, options: &[&str]) -> Result<()> {
    let pair = pair(server, &[])?;
    pair.source.run_script(chain(400).as_bytes())?;
    let run = pair.to_the_end(options)?;
    let (transactions, groups) = (run.number("transactions")?, run.number("groups")?);
    ensure!(transactions > 500 && groups < 60, "{transactions} transactions in {groups}: {run}");
    Ok(())
}

/// Tables that can not be rolled back on the target, or on the source: one after the other.
fn no_rollback(server: &str, target: &[&str]) -> Result<()> {
    let pair = pair(server, target)?;
    pair.target.execute("ALTER TABLE e.t ENGINE=MyISAM")?;
    let mut sql = chain(60);
    sql.push_str("USE d; INSERT INTO log VALUES (1); INSERT INTO log SELECT v + 1 FROM log; UPDATE t SET v = 5 WHERE id = 1; INSERT INTO log VALUES (9);");
    pair.source.run_script(sql.as_bytes())?;
    pair.run_to_the_end(&[])?;
    pair.assert_same_rows()
}

/// One of many fails on the target: it is named, what is before it is there, and nothing behind it.
fn one_fails(server: &str) -> Result<()> {
    let pair = pair(server, &[])?;
    pair.target.execute("INSERT INTO d.t VALUES (777, 0, 'in the way')")?;
    pair.source.run_script(chain(50).as_bytes())?;
    let before = pair.source.rows("SELECT * FROM d.t ORDER BY id")?;
    pair.source.execute("USE d; INSERT INTO t VALUES (777, 1, '')")?;
    pair.source.run_script(chain(50).as_bytes())?;
    let run = pair.begin(&["--until-end"])?.wait()?;
    run.failed_with("statement: INSERT INTO t VALUES (777, 1, '')")?;
    run.failed_with("1062")?;
    let now = pair.target.rows("SELECT * FROM d.t WHERE id <> 777 ORDER BY id")?;
    ensure!(now == before, "not what the source had before the statement: {now:?}, {before:?}");
    pair.target.execute("DELETE FROM d.t WHERE id = 777")?;
    pair.to_the_end(&[]).map(drop)
}

/// Whoever ends the transaction on the target in the middle, what was sent behind it is not committed by itself.
fn ended_from_outside(server: &str) -> Result<()> {
    let pair = pair(server, &[])?;
    for round in 0..6 {
        pair.source.run_script(chain(300).as_bytes())?;
        let holder = pair.target.hold(&format!("UPDATE d.t SET v = v WHERE id = {}", round * 15 + 3))?;
        let running = pair.begin(&["--until-end"])?;
        let waits = "FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE%' AND USER = 'heddle'";
        pair.target.wait_until(&format!("SELECT COUNT(*) {waits}"))?;
        thread::sleep(Duration::from_millis(300));
        let what = if round % 2 == 0 { "QUERY" } else { "CONNECTION" };
        for row in pair.target.rows(&format!("SELECT ID {waits}"))? {
            // It may have ended by itself.
            let _ = pair.target.execute(&format!("KILL {what} {}", row.first().map_or("0", String::as_str)));
        }
        thread::sleep(Duration::from_millis(200));
        drop(holder);
        running.wait()?.successful()?;
        pair.assert_equal()?;
    }
    Ok(())
}

/// Heddle, and every third time the target, is killed again and again.
fn killed(server: &str, options: &[&str]) -> Result<()> {
    let pair = pair(server, &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"])?;
    pair.source.run_script(chain(6_000).as_bytes())?;
    for kill in 0..15 {
        let mut running = pair.begin(options)?;
        thread::sleep(Duration::from_millis(150 + 70 * (kill % 5)));
        ensure!(!running.has_ended()?, "ended by itself: {}", running.wait()?);
        if kill % 3 == 2 {
            pair.target.kill()?;
        }
        running.kill()?;
        running.wait()?;
        if kill % 3 == 2 {
            pair.target.restart(&[])?;
        }
    }
    pair.to_the_end(options).map(drop)
}

/// As a server's own applier, which takes no locks by name: clients of the target get them. And Heddle keeps its own.
fn locks_by_name(server: &str) -> Result<()> {
    let pair = pair(server, &[])?;
    let running = pair.begin(&[])?;
    let statements = "SET binlog_format = 'STATEMENT'; UPDATE d.t SET v = GET_LOCK('a', 0) >= 0 WHERE id = 1;
        UPDATE d.t SET v = RELEASE_ALL_LOCKS() >= 0 WHERE id = 2; UPDATE d.t SET v = GET_LOCK('b', 0) >= 0 WHERE id = 3; UPDATE d.t SET v = 7 WHERE id = 4";
    pair.source.execute(statements)?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.t WHERE id = 4 AND v = 7")?;
    let locks = pair.target.rows(
        "SELECT IS_FREE_LOCK('a'), IS_FREE_LOCK('b'), IS_FREE_LOCK('heddle.default/4096'), (SELECT COUNT(*) FROM d.t WHERE v = 1 AND id < 4)",
    )?;
    running.terminate()?;
    ensure!(locks == [["1", "1", "0", "3"]], "locks after the statements: {locks:?}");
    Ok(())
}

/// Statements, and whether they are unsafe. Where the servers judge otherwise (both, MariaDB, MySQL), why.
const UNSAFE: &[(&str, bool, Option<&str>)] = &[
    ("INSERT INTO d.t (id, s) VALUES (#, UUID())", true, None),
    ("INSERT INTO d.t (id, s) VALUES (#, UUID_SHORT())", true, None),
    ("INSERT INTO d.t (id, s) VALUES (#, SYSDATE())", true, None),
    ("INSERT INTO d.t (id, s) VALUES (#, LOAD_FILE('/etc/hostname'))", true, None),
    ("INSERT INTO d.t (id, v) VALUES (#, FOUND_ROWS())", true, None),
    ("INSERT INTO d.t (id, v) VALUES (#, ROW_COUNT())", true, None),
    ("INSERT INTO d.t (id, v) VALUES (#, GET_LOCK('x', 0))", true, None),
    ("INSERT INTO d.t (id, v) VALUES (#, IS_FREE_LOCK('x'))", true, None),
    ("INSERT INTO d.t (id, v) VALUES (#, IS_USED_LOCK('y'))", true, None),
    ("INSERT INTO d.t (id, v) VALUES (#, RELEASE_LOCK('x'))", true, None),
    ("INSERT INTO d.t (id, v) VALUES (#, SLEEP(0))", true, None),
    ("INSERT INTO d.t (id, s) VALUES (#, VERSION())", true, None),
    ("INSERT INTO d.t (id, s) VALUES (#, @@hostname)", true, None),
    ("INSERT INTO d.t (id, s) VALUES (#, @@session.time_zone)", false, None),
    ("INSERT INTO d.t (id, s) VALUES (#, NOW())", false, None),
    ("INSERT INTO d.t (id, v) VALUES (#, LAST_INSERT_ID())", false, None),
    ("INSERT INTO d.t (id, v) VALUES (#, CONNECTION_ID())", false, None),
    ("INSERT INTO d.t (id, v) VALUES (#, 100 * RAND())", false, Some("the seeds are in the log")),
    ("INSERT INTO d.t (id, v) SELECT #, 100 * RAND(7)", false, Some("a constant seed")),
    ("DELETE FROM d.t WHERE id > 900 LIMIT 1", true, None),
    ("UPDATE d.t SET v = 1 WHERE id > 900 LIMIT 1", true, None),
    (
        "DELETE FROM d.t WHERE id > 900 ORDER BY id LIMIT 1",
        false,
        Some("in the order of a key the same rows are taken"),
    ),
    ("INSERT INTO d.t (id, v) SELECT id + 1000, v FROM d.t WHERE id = 5 LIMIT 1", true, None),
    ("DELETE FROM d.t WHERE id > 900 LIMIT 0", false, Some("MySQL only: no row is taken")),
    ("INSERT IGNORE INTO d.t (id) SELECT v FROM e.t", true, None),
    ("REPLACE INTO d.t (id) SELECT id FROM e.t", true, None),
    ("INSERT INTO d.t (id) SELECT id FROM e.t ON DUPLICATE KEY UPDATE v = 5", true, None),
    ("UPDATE IGNORE d.t SET id = id + 1 WHERE id > 2000", true, None),
    ("INSERT INTO e.t (v) SELECT v FROM d.t WHERE id < 4", true, None),
    ("INSERT INTO e.t (v) SELECT v FROM d.t WHERE id < 4 ORDER BY id", false, Some("the order of the rows is said")),
    ("INSERT INTO e.t (v) VALUES (1), (2)", false, None),
    ("UPDATE d.t SET v = v + 1 WHERE id = 5", false, None),
];

/// As the servers' own warnings have it, but where a reason is named.
fn judged_as_by_the_server(server: &str) -> Result<()> {
    let server = e2e::Server::start(server.parse()?, IN_STATEMENTS)?;
    server.execute(TABLES)?;
    let mut session = server.connect()?;
    let mut wrong = Vec::new();
    for (number, (sql, expected, why)) in UNSAFE.iter().enumerate() {
        let sql = sql.replace('#', &(200 + number).to_string());
        session.execute(&sql)?;
        let warnings = session.rows("SHOW WARNINGS")?;
        let theirs = warnings.iter().any(|row| row.get(1) == Some(b"1592".as_slice()));
        let mode = engine::sql::SqlMode::default();
        let class = engine::sql::classify(sql.as_bytes(), "d", mode).class;
        let logged = engine::sql::LoggedContext { seeds: sql.contains("RAND()"), insert_id: sql.contains("INTO e.t") };
        let ours = !engine::sql::unsafeties(sql.as_bytes(), &class, mode, logged).is_empty();
        if ours != *expected || theirs != ours && why.is_none() {
            wrong.push(format!("{sql}: the server says {theirs}, heddle {ours}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A statement that is not deterministic: named once, or the channel stops before it.
fn not_deterministic(server: &str) -> Result<()> {
    let pair = pair(server, &[])?;
    let statements = "USE d; INSERT INTO t VALUES (1000, 1, 'before'); INSERT INTO t VALUES (1001, 1, UUID()); INSERT INTO t VALUES (1002, 1, UUID());
        DELETE FROM t WHERE id < 5 LIMIT 1; CREATE TRIGGER r AFTER UPDATE ON t FOR EACH ROW INSERT INTO e.t (v) VALUES (NEW.v);
        UPDATE t SET v = 5 WHERE id IN (50, 51)";
    pair.source.execute(statements)?;
    let count = |id: u32| pair.target.scalar(&format!("SELECT COUNT(*) FROM d.t WHERE id = {id}"));
    let run = pair.begin(&["--until-end", "--unsafe-statements", "stop"])?.wait()?;
    run.failed_with("UUID: it gives another value on each server")?;
    run.failed_with("statement: INSERT INTO t VALUES (1001, 1, UUID())")?;
    run.failed_with("--unsafe-statements warn")?;
    ensure!(count(1000)? == "1" && count(1001)? == "0", "not just before the statement: {run}");
    let run = pair.run_to_the_end(&[])?;
    ensure!(count(1002)? == "1", "{run}");
    let named = |what: &str| run.stderr.matches(what).count();
    for kind in ["UUID: it gives", "LIMIT: without ORDER BY", "INSERT_ID: a trigger"] {
        ensure!(named(kind) == 1, "{kind}: not once: {run}");
    }
    ensure!(named("binlog_format=STATEMENT") == 1 && run.stderr.contains("binlog."), "{run}");
    let dry = pair.begin(&["--dry-run"])?.wait()?;
    ensure!(dry.stdout.contains("binlog_format=STATEMENT"), "{dry}");
    Ok(())
}

e2e::tests! {
    mariadb_judged_as_by_the_server: judged_as_by_the_server("mariadb-10.11");
    mysql_judged_as_by_the_server: judged_as_by_the_server("mysql-9.7");
    mariadb_not_deterministic: not_deterministic("mariadb-10.11");
    mysql_not_deterministic: not_deterministic("mysql-9.7");
    mariadb_share: share("mariadb-10.11", &[]);
    mysql_share: share("mysql-9.7", &[]);
    mariadb_share_relaxed: share("mariadb-10.11", &["--commit-order", "relaxed", "--policy", "serial"]);
    mysql_share_relaxed: share("mysql-9.7", &["--commit-order", "relaxed"]);
    mariadb_no_rollback: no_rollback("mariadb-10.11", &[]);
    mysql_no_rollback: no_rollback("mysql-9.7", &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]);
    mariadb_one_fails: one_fails("mariadb-10.11");
    mysql_one_fails: one_fails("mysql-9.7");
    mariadb_ended_from_outside: ended_from_outside("mariadb-10.11");
    mysql_ended_from_outside: ended_from_outside("mysql-9.7");
    mariadb_killed: killed("mariadb-10.11", &[]);
    mysql_killed: killed("mysql-9.7", &["--commit-order", "relaxed"]);
    mariadb_locks_by_name: locks_by_name("mariadb-10.11");
    mysql_locks_by_name: locks_by_name("mysql-9.7");
}
