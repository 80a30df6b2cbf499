//! XA transactions that are prepared and ended apart: each is ended once, whoever ends it, in whatever order, through kills.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::fmt::Write;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const PRESERVE: &[&str] = &["--gtids", "preserve"];
const GTIDS: &[&str] = &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];

/// Nothing is prepared there, and InnoDB has no transaction that nobody can end.
fn nothing_is_left(server: &Server) -> Result<()> {
    let prepared = server.rows("XA RECOVER")?;
    ensure!(prepared.is_empty(), "prepared: {prepared:?}");
    server.wait_until("SELECT COUNT(*) = 0 FROM information_schema.innodb_trx")
}

/// Thousands of branches, each ended right after it was prepared: MySQL 5.7 and MariaDB show a branch to other connections before InnoDB has
/// let go of it.
fn adjacent(server: &str, count: usize, options: &[&str]) -> Result<()> {
    let kind: Kind = server.parse()?;
    let more = if kind.is_mariadb() { &[] } else { GTIDS };
    let pair = Pair::start_with(kind, more, more)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")?;
    let mut sql = String::new();
    for number in 0..count {
        let end = if number % 3 == 0 { "ROLLBACK" } else { "COMMIT" };
        // Writing to a String does not fail.
        let _ = writeln!(
            sql,
            "XA START 'x{number}'; INSERT INTO d.t (v) VALUES ({number}); XA END 'x{number}'; XA PREPARE 'x{number}';
             XA {end} 'x{number}'; INSERT INTO d.t (v) VALUES (-1);"
        );
    }
    pair.source.run_script(sql.as_bytes())?;
    pair.to_the_end(options)?;
    nothing_is_left(&pair.target)
}

/// More branches at once than connections are kept for, ended in any order, by others than prepared them; heddle is killed again and again.
fn interleaved(server: &str, options: &[&str]) -> Result<()> {
    let kind: Kind = server.parse()?;
    let seed = e2e::seed(20_261_124, "prepared interleaved");
    let mut random = StdRng::seed_from_u64(seed);
    let more = if kind.is_mariadb() { &[] } else { GTIDS };
    let pair = Pair::start_with(kind, more, more)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")?;
    let mut arguments = vec!["--until-end"];
    arguments.extend(options);
    let (mut open, mut number) = (Vec::new(), 0);
    for round in 0..6 {
        for _ in 0..random.random_range(6..14) {
            number += 1;
            let sql = format!(
                "XA START 'x{number}'; INSERT INTO d.t VALUES ({number}, {round}); XA END 'x{number}'; XA PREPARE 'x{number}';"
            );
            // In a session that ends with it.
            pair.source.run_script(sql.as_bytes())?;
            open.push(number);
        }
        open.shuffle(&mut random);
        let mut sql = String::new();
        let ends = random.random_range(4..16).min(open.len());
        for ended in open.drain(..ends) {
            let end = if random.random_bool(0.3) { "ROLLBACK" } else { "COMMIT" };
            let _ = writeln!(sql, "XA {end} 'x{ended}'; INSERT INTO d.t VALUES ({}, 0);", 1000 + ended);
        }
        pair.source.run_script(sql.as_bytes())?;
        for _ in 0..random.random_range(0..3) {
            let running = pair.begin(&arguments)?;
            thread::sleep(Duration::from_millis(random.random_range(100..400)));
            running.kill()?;
            running.wait()?;
        }
        if random.random_bool(0.5) {
            pair.to_the_end(options)?;
        }
    }
    let rest: String = open.iter().map(|number| format!("XA COMMIT 'x{number}';")).collect();
    pair.source.run_script(rest.as_bytes())?;
    pair.to_the_end(options)?;
    nothing_is_left(&pair.target)
}

/// Heddle is killed again and again while it ends branches that changed nothing, of which the target has no trace but heddle's own.
fn empty_branches_survive_kills(options: &[&str]) -> Result<()> {
    let pair = Pair::start(MARIADB_10_11)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    let mut sql = String::new();
    for number in 0..3000 {
        let end = if number % 2 == 0 { "ROLLBACK" } else { "COMMIT" };
        sql += &format!(
            "XA START 'x{number}'; INSERT IGNORE INTO d.t VALUES (1); XA END 'x{number}'; XA PREPARE 'x{number}'; XA {end} 'x{number}';"
        );
    }
    pair.source.run_script(sql.as_bytes())?;
    pair.source.execute("INSERT INTO d.t VALUES (2)")?;
    let mut line = vec!["--until-end"];
    line.extend(options);
    for wait in (0..30).map(|round| 100 + round * 37 % 150) {
        let running = pair.begin(&line)?;
        thread::sleep(Duration::from_millis(wait));
        running.kill()?;
        running.wait()?;
    }
    pair.to_the_end(options).map(drop)
}

/// Prepared XA transactions outlive restarts of heddle, the target and the source; some are too large to be held in memory.
fn prepared_outlives_all(kind: Kind) -> Result<()> {
    let durable = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
    let pair = Pair::start_with(kind, &durable, &[])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)")?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")?;
    let prepare = |name: &str, sql: &str| {
        // Each in a session that ends with it.
        pair.source.run_script(format!("XA START '{name}'; {sql}; XA END '{name}'; XA PREPARE '{name}';").as_bytes())
    };
    prepare("commit", "UPDATE d.t SET v = 'changed' WHERE id = 1; INSERT INTO d.t VALUES (10, 'new')")?;
    prepare("back", "DELETE FROM d.t WHERE id = 2")?;
    prepare("large", "INSERT INTO d.t VALUES (11, REPEAT('x', 9000000)), (12, REPEAT('y', 9000000))")?;
    prepare("large back", "UPDATE d.t SET v = REPEAT('z', 18000000) WHERE id = 3")?;
    pair.source.execute("INSERT INTO d.t VALUES (20, 'beside')")?;
    let prepared = |server: &Server| -> Result<usize> { Ok(server.rows("XA RECOVER")?.len()) };
    pair.to_the_end(&[])?;
    ensure!(prepared(&pair.target)? == 4, "{:?}", pair.target.rows("XA RECOVER")?);
    pair.target.kill()?;
    pair.target.restart(&[])?;
    pair.source.kill()?;
    pair.source.restart(&[])?;
    ensure!(prepared(&pair.target)? == 4 && prepared(&pair.source)? == 4, "lost by a restart");
    pair.source.execute("INSERT INTO d.t VALUES (21, 'beside')")?;
    pair.source.execute(
        "XA COMMIT 'commit'; XA ROLLBACK 'large back'; XA ROLLBACK 'back'; XA COMMIT 'large'; UPDATE d.t SET v = 'last' WHERE id < 12",
    )?;
    pair.to_the_end(&[])?;
    ensure!(prepared(&pair.target)? == 0 && prepared(&pair.source)? == 0, "{:?}", pair.target.rows("XA RECOVER")?);
    Ok(())
}

/// A backlog of branches of several sessions, between each other, which need not be prepared on the target while their ends are in sight; heddle is
/// killed, or stopped, again and again.
fn behind(server: &str) -> Result<()> {
    const SESSIONS: u64 = 8;
    const BRANCHES: u64 = 500;
    let seed = e2e::seed(20_261_125, "prepared behind");
    let pair = Pair::start(server.parse()?)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")?;
    let rows: Vec<String> = (0..300).map(|id| format!("({id}, 0)")).collect();
    pair.source.execute(&format!("INSERT INTO d.t VALUES {}", rows.join(",")))?;
    pair.to_the_end(&[])?;
    let session = |number: u64| {
        let mut random = StdRng::seed_from_u64(seed + number);
        let mut sql = String::new();
        for branch in 0..BRANCHES {
            // A name that has ended is used again.
            let xid = format!("'{number} {}'", branch % 20);
            let end = if random.random_bool(0.1) { "ROLLBACK" } else { "COMMIT" };
            let (id, new) = (random.random_range(0..300), 1000 * number + 1000 + branch);
            let _ = writeln!(
                sql,
                "XA START {xid}; UPDATE d.t SET v = v + 1 WHERE id = {id}; INSERT INTO d.t VALUES ({new}, {branch}); XA END {xid};
                 XA PREPARE {xid}; XA {end} {xid}; UPDATE d.t SET v = 2 * v WHERE id = {};",
                random.random_range(0..300)
            );
            if branch % 100 == number {
                let _ = writeln!(sql, "CREATE TABLE d.t{number}_{branch} (id INT PRIMARY KEY);");
            }
        }
        pair.source.run_script(sql.as_bytes()).map(drop)
    };
    thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS).map(|number| scope.spawn(move || session(number))).collect();
        sessions.into_iter().try_for_each(|session| session.join().expect("a session"))
    })?;
    for left in 0..3 {
        let sql = format!(
            "XA START 'left {left}'; INSERT INTO d.t VALUES (-{left} - 1, 1); XA END 'left {left}'; XA PREPARE 'left {left}';"
        );
        pair.source.run_script(sql.as_bytes())?;
    }
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..12 {
        let running = pair.begin(&["--until-end"])?;
        thread::sleep(Duration::from_millis(random.random_range(150..600)));
        if round % 2 == 0 {
            running.kill()?;
            running.wait()?;
        } else {
            running.terminate()?;
            running.wait()?;
            let kept = pair.target.rows("SELECT xid FROM heddle.kept_branches")?;
            ensure!(kept.is_empty(), "kept: {kept:?}");
        }
    }
    pair.to_the_end(&[])?;
    let (here, there) = (pair.target.rows("XA RECOVER")?, pair.source.rows("XA RECOVER")?);
    ensure!(here.len() == 3 && there.len() == 3, "{here:?}, {there:?}");
    let prepared = pair.target.rows("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")?;
    let count: u64 = prepared.first().and_then(|row| row.last()?.parse().ok()).unwrap_or(u64::MAX);
    ensure!(count < SESSIONS * BRANCHES / 2, "{count} branches were prepared on the target");
    pair.source.run_script(b"XA COMMIT 'left 1'; XA ROLLBACK 'left 0'; XA COMMIT 'left 2';")?;
    pair.to_the_end(&[])?;
    nothing_is_left(&pair.target)
}

e2e::tests! {
    mariadb_adjacent: adjacent("mariadb-10.11", 1500, &[]);
    mariadb_adjacent_preserve: adjacent("mariadb-10.11", 1500, PRESERVE);
    mysql_adjacent: adjacent("mysql-9.7", 1500, &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_adjacent: adjacent("mysql-5.7.22", 5000, &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_adjacent_preserve: adjacent("mysql-5.7.22", 5000, PRESERVE);
    #[ignore = "another server; run by the nightly script"]
    mariadb_11_8_adjacent: adjacent("mariadb-11.8", 5000, &[]);
    mariadb_interleaved: interleaved("mariadb-10.11", &[]);
    mariadb_interleaved_preserve: interleaved("mariadb-10.11", PRESERVE);
    mysql_interleaved: interleaved("mysql-9.7", &[]);
    mysql_interleaved_preserve: interleaved("mysql-9.7", PRESERVE);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_interleaved: interleaved("mysql-5.7.22", &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_interleaved_preserve: interleaved("mysql-5.7.22", PRESERVE);
    mariadb_behind: behind("mariadb-10.11");
    mysql_behind: behind("mysql-9.7");
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_behind: behind("mysql-5.7.22");
    #[ignore = "another server; run by the nightly script"]
    mariadb_11_8_behind: behind("mariadb-11.8");
    mariadb_empty_branches: empty_branches_survive_kills(&["--gtids", "preserve"]);
    mariadb_empty_branches_relaxed: empty_branches_survive_kills(&["--gtids", "preserve", "--commit-order", "relaxed"]);
    mariadb_prepared_outlives_all: prepared_outlives_all(MARIADB_10_11);
    mysql_prepared_outlives_all: prepared_outlives_all(MYSQL_9_7);
}
