//! `replicate --copy`: from an empty target to a replica while the source is written to; kills in the middle; every kind of key; definitions that change meanwhile.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

mod added;
mod rows_from;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::heddle::Heddle;
use e2e::native::{gtids, native_replica, start_applier, stop_applier};
use e2e::pair::Pair;
use e2e::refusal::refused_with_remedy;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server};
use e2e::{seed, until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const GTIDS: [&str; 2] = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];

/// Tables with every kind of key, of value and of relation, and programs beside them.
const DEFINITIONS: &str = "CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4; CREATE DATABASE empty_schema;
    CREATE TABLE d.n (id INT PRIMARY KEY, v VARCHAR(20), u INT UNIQUE);
    CREATE TABLE d.composite (a BIGINT, b VARCHAR(10) COLLATE utf8mb4_general_ci, c DATETIME(3), v FLOAT, PRIMARY KEY (a, b, c));
    CREATE TABLE d.words (w VARCHAR(30) CHARACTER SET latin1 PRIMARY KEY, n INT);
    CREATE TABLE d.bins (b VARBINARY(16) PRIMARY KEY, v BLOB);
    CREATE TABLE d.uniq (a INT NOT NULL, b INT, UNIQUE KEY (a), KEY (b));
    CREATE TABLE d.keyless (a INT, b VARCHAR(9));
    CREATE TABLE d.nullable (a INT NULL UNIQUE, b INT);
    CREATE TABLE d.none (id INT PRIMARY KEY);
    CREATE TABLE d.gen (id INT PRIMARY KEY, a INT, b INT AS (a + 1) STORED, c INT AS (a * 2) VIRTUAL, KEY (c));
    CREATE TABLE d.kinds (id INT PRIMARY KEY, e ENUM('a','b'), s SET('x','y'), b BIT(64), y YEAR, dt DATETIME(3), tm TIME(6), ts TIMESTAMP(6) NULL,
        de DECIMAL(65,30), f FLOAT, db DOUBLE, g GEOMETRY, bi BINARY(4), tx TEXT CHARACTER SET utf8mb3, l1 TEXT CHARACTER SET latin1, sj VARCHAR(9) CHARACTER SET sjis);
    CREATE TABLE d.huge (id INT PRIMARY KEY, v LONGBLOB);
    CREATE TABLE d.parts (id INT, v INT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 3;
    CREATE TABLE d.p (id INT PRIMARY KEY, v INT); CREATE TABLE d.c (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES d.p (id) ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE d.g (id INT PRIMARY KEY, c INT, CONSTRAINT g_of_c FOREIGN KEY (c) REFERENCES d.c (id) ON DELETE SET NULL);
    CREATE VIEW d.a_view AS SELECT v.id FROM d.z_view v; ";

const PROGRAMS: &str = "DROP VIEW IF EXISTS d.a_view; CREATE VIEW d.z_view AS SELECT id FROM d.n; CREATE VIEW d.a_view AS SELECT v.id FROM d.z_view v;
    CREATE TRIGGER d.tr BEFORE INSERT ON d.parts FOR EACH ROW SET NEW.v = IFNULL(NEW.v, 0) + 1;
    CREATE FUNCTION d.twice (x INT) RETURNS INT DETERMINISTIC RETURN x * 2;
    CREATE PROCEDURE d.nothing () SELECT 'it''s', 1;
    CREATE EVENT d.sometimes ON SCHEDULE EVERY 1 DAY DO DELETE FROM d.none;";

const ROWS: &str = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00';
    INSERT INTO d.n VALUES (-2147483648, 'least', NULL), (0, 'zero', 0), (2147483647, 'most', 1);
    INSERT INTO d.composite VALUES (-1, 'a', '2020-01-01', 1.1), (-1, 'B', '2020-01-01', -0.0), (5, '', '0000-00-00', 1e-30), (5, '\u{e9}', '2020-01-01 00:00:00.001', 3e38);
    INSERT INTO d.words VALUES ('', 0), ('a', 1), ('\u{e9}t\u{e9}', 2), ('z\\'\\\\', 3);
    INSERT INTO d.bins VALUES (X'', X''), (X'00', X'00275c'), (X'ff00', NULL), (X'27', X'ff');
    INSERT INTO d.uniq VALUES (-5, 1), (7, NULL);
    INSERT INTO d.keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
    INSERT INTO d.nullable VALUES (NULL, 1), (NULL, 1), (3, 2);
    INSERT INTO d.gen (id, a) VALUES (1, 1), (2, NULL);
    INSERT INTO d.kinds VALUES (1, 0, 3, 18446744073709551615, 0, '0000-00-00', '-838:59:58.000001', '2024-10-27 01:30:00.000001',
         -12345678901234567890123456789012345.123456789012345678901234567891, 1.1, 5e-324, ST_GeomFromText('POINT(1 2)', 4326), X'01', '\u{e9}', '\u{e9}', '\u{8868}'),
        (2, 'b', '', 1, 2155, '9999-12-31 23:59:59.999', '838:59:59', NULL, 0.1, -1e30, -1.7976931348623157e308, NULL, X'', '', NULL, 'a');
    INSERT INTO d.huge VALUES (1, REPEAT(X'27005c', 2000000)), (2, ''), (3, REPEAT('b', 3000000)), (4, NULL);
    INSERT INTO d.p VALUES (1, 1), (2, 1), (3, 1); INSERT INTO d.c VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1); INSERT INTO d.g VALUES (1, 1), (2, 3);";

/// Many rows, so that a copy takes a while.
fn fill(rows: u32) -> String {
    let table = |name: &str, columns: &str| {
        format!(
            "INSERT IGNORE INTO {name} SELECT {columns} FROM (SELECT a.n + b.n * 100 + c.n * 10000 AS i FROM d.hundred a JOIN d.hundred b JOIN d.hundred c) x WHERE i < {rows};"
        )
    };
    format!(
        "CREATE TABLE d.hundred (n INT PRIMARY KEY); INSERT INTO d.hundred VALUES {}; {}{}{}{}{}{}{}",
        (0..100).map(|n| format!("({n})")).collect::<Vec<_>>().join(","),
        table("d.n", "i * 7 - 50000, CONCAT('v', i), i"),
        table("d.composite", "i % 50 - 9, CONCAT('k', i), '2020-01-01', i / 3"),
        table("d.words", "CONCAT('w', i), i"),
        table("d.parts", "i, i"),
        table("d.p", "i + 10, i"),
        table("d.c", "i + 10, i + 10, i"),
        table("d.keyless", "i, 'fill'"),
    )
}

fn filled(kind: Kind, rows: u32) -> Result<Pair> {
    let options: &[&str] = if kind.is_mariadb() { &[] } else { &GTIDS };
    let pair = Pair::start_with(kind, options, &["--max-allowed-packet=64M"])?;
    pair.source.execute(&DEFINITIONS.replace("CREATE VIEW d.a_view AS SELECT v.id FROM d.z_view v; ", ""))?;
    pair.source.execute(ROWS)?;
    pair.source.execute(&fill(rows))?;
    pair.source.execute(PROGRAMS)?;
    Ok(pair)
}

/// Sessions that change the source until they are stopped.
struct Changes {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Changes {
    /// `statement` makes one from a random number.
    fn start(pair: &Pair, sessions: u64, seed: u64, statement: fn(&mut StdRng) -> String) -> Result<Self> {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut threads = Vec::new();
        for session in 0..sessions {
            let mut connection = pair.source.connect()?;
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            threads.push(thread::spawn(move || {
                let random = &mut StdRng::seed_from_u64(seed * 100 + session);
                while !stop.load(Ordering::Relaxed) {
                    match connection.query(statement(random)) {
                        // Duplicates, foreign keys, deadlocks.
                        Ok(_) => drop(done.fetch_add(1, Ordering::Relaxed)),
                        Err(error) if error.code().is_some() => drop(connection.query("ROLLBACK")),
                        Err(error) => return Err(error.into()),
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            }));
        }
        Ok(Self { stop, done, threads })
    }

    fn wait_for(&self, more: u64) -> Result<()> {
        let wanted = self.done.load(Ordering::Relaxed) + more;
        until("the source changes", || Ok(self.done.load(Ordering::Relaxed) >= wanted))
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    }
}

fn change(random: &mut StdRng) -> String {
    let (i, j) = (random.random_range(0..20_000), random.random_range(0..20_000));
    match random.random_range(0..16) {
        0 => format!("UPDATE d.n SET v = CONCAT('x', {j}) WHERE u = {i}"),
        1 => format!("UPDATE d.n SET id = {j} * 7 - 49999 WHERE u = {i}"),
        // A unique value moves from one row to another.
        2 => format!("BEGIN; UPDATE d.n SET u = NULL WHERE u = {i}; UPDATE d.n SET u = {i} WHERE u = {j}; COMMIT"),
        3 => format!("DELETE FROM d.n WHERE u = {i}"),
        4 => format!("INSERT INTO d.n VALUES ({i} * 7 - 49998, 'new', {j})"),
        5 => format!("UPDATE d.composite SET b = CONCAT('K', {j}) WHERE b = 'k{i}'"),
        6 => format!("INSERT INTO d.composite VALUES ({i}, 'new', NOW(3), {j} / 7)"),
        7 => format!("UPDATE d.words SET w = UPPER(w), n = n + 1 WHERE w = 'w{i}'"),
        8 => format!("DELETE FROM d.words WHERE w = 'w{i}'"),
        9 => format!("INSERT INTO d.parts (id, v) VALUES ({i} + 30000, {j}) ON DUPLICATE KEY UPDATE v = {j}"),
        10 => format!("DELETE FROM d.p WHERE id = {i}"),
        11 => format!("INSERT INTO d.c SELECT {i} + 40000, id, {j} FROM d.p ORDER BY id LIMIT 1"),
        12 => format!("INSERT INTO d.g SELECT {i}, id FROM d.c ORDER BY id DESC LIMIT 1"),
        13 => format!("UPDATE d.c SET v = {j} WHERE id = {i}"),
        14 => format!("REPLACE INTO d.gen (id, a) VALUES ({i} % 100, {j})"),
        _ => format!("UPDATE d.kinds SET f = {j} / 7, b = {i}, e = 0 WHERE id = 1 + {i} % 2"),
    }
}

/// The same, and rows of a table without a key: each may come just as that table is read.
fn change_any(random: &mut StdRng) -> String {
    match random.random_range(0..10) {
        0 => format!("UPDATE d.keyless SET a = a + 1 WHERE b = 'fill' LIMIT {}", random.random_range(1..4)),
        1 => "INSERT INTO d.keyless VALUES (7, 'new'), (7, 'new')".to_owned(),
        _ => change(random),
    }
}

const COPY: &str = "--copy";
const COPIES_THERE: &str =
    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'heddle' AND TABLE_NAME = 'copies'";

/// A run that has not ended by itself.
fn end(mut heddle: Heddle) -> Result<()> {
    ensure!(!heddle.has_ended()?, "{}", heddle.log());
    heddle.terminate()?;
    heddle.wait().map(drop)
}

/// The channel after the copy, to the end of the source's log; both ends equal.
fn goes_on(pair: &Pair, heddle: Heddle) -> Result<()> {
    end(heddle)?;
    pair.to_the_end(&[COPY])?;
    pair.source
        .execute("INSERT INTO d.none VALUES (1), (2); UPDATE d.kinds SET db = 1.5; DELETE FROM d.uniq WHERE a = 7")?;
    pair.to_the_end(&[])?;
    Ok(())
}

fn at_rest(kind: Kind) -> Result<()> {
    let pair = filled(kind, 300)?;
    let dry = pair.begin(&[COPY, "--dry-run"])?.wait()?.successful()?;
    ensure!(dry.stdout.contains("\"tables\": 16"), "{dry}");
    ensure!(dry.stdout.contains("d.keyless: it has no unique key"), "{dry}");
    pair.to_the_end(&[COPY])?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM information_schema.EVENTS WHERE STATUS <> 'ENABLED'")? == "1");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'd'")? == "1");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM heddle.copies")? == "0");
    pair.source.execute("INSERT INTO d.c VALUES (100000, 2, 1); DELETE FROM d.p WHERE id = 2; UPDATE d.n SET id = id - 1 WHERE u = 1; INSERT INTO d.parts VALUES (99999, NULL)")?;
    pair.to_the_end(&[COPY])?;
    Ok(())
}

fn under_load(kind: Kind) -> Result<()> {
    let pair = filled(kind, 20_000)?;
    let changes = Changes::start(&pair, 3, seed(7, "copy"), change_any)?;
    changes.wait_for(100)?;
    let mut heddle = pair.begin(&[COPY])?;
    heddle.wait_for_log("all rows are there")?;
    changes.wait_for(200)?;
    changes.stop()?;
    goes_on(&pair, heddle)
}

const PRESERVE: [&str; 3] = [COPY, "--gtids", "preserve"];

/// Under the source's GTIDs, killed in the middle: the target has those of the source and no others, and a native replica of the source goes on at it.
fn under_the_sources_gtids(kind: Kind) -> Result<()> {
    let seed = seed(19, "copy");
    let random = &mut StdRng::seed_from_u64(seed);
    let pair = filled(kind, 10_000)?;
    let own = gtids(&pair.target)?;
    let changes = Changes::start(&pair, 2, seed, change_any)?;
    for _ in 0..3 {
        let heddle = pair.begin(&PRESERVE)?;
        thread::sleep(Duration::from_millis(random.random_range(500..2500)));
        heddle.kill()?;
        heddle.wait()?;
        if pair.target.scalar(COPIES_THERE)? == "1" && pair.target.scalar("SELECT COUNT(*) FROM heddle.copies")? == "1"
        {
            refused_with_remedy(&pair.begin(&[COPY])?.wait()?, &["was begun with --gtids preserve"])?;
        }
    }
    let mut heddle = pair.begin(&PRESERVE)?;
    heddle.wait_for_log("workers, policy")?;
    changes.wait_for(100)?;
    changes.stop()?;
    end(heddle)?;
    pair.to_the_end(&PRESERVE)?;
    pair.source.execute("INSERT INTO d.none VALUES (1)")?;
    pair.to_the_end(&PRESERVE)?;
    let all = if kind.is_mariadb() || own.is_empty() {
        gtids(&pair.source)?
    } else {
        format!("{},{own}", gtids(&pair.source)?)
    };
    if kind.is_mariadb() {
        ensure!(gtids(&pair.target)? == all, "{} instead of {all}", gtids(&pair.target)?);
        return Ok(());
    }
    let differ = format!(
        "SELECT CONCAT(GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{all}'), GTID_SUBTRACT('{all}', @@GLOBAL.gtid_executed))"
    );
    let differ = pair.target.scalar(&differ)?;
    ensure!(differ.is_empty(), "{differ}");
    // The server's own replication goes on from there.
    native_replica(&pair.source, &pair.target)?;
    pair.source.execute("INSERT INTO d.none VALUES (2)")?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.none WHERE id = 2")?;
    pair.assert_equal()
}

/// A replica of the target that does not replicate holds the copy up.
fn lag(kind: Kind) -> Result<()> {
    let pair = filled(kind, 3_000)?;
    let replica = Server::start(kind, &[])?;
    let limits = [COPY, "--max-lag", "2", "--replica", &replica.url()];
    pair.begin(&limits)?.wait()?.failed_with("it is no replica")?;
    native_replica(&pair.target, &replica)?;
    stop_applier(&replica)?;
    let mut heddle = pair.begin(&limits)?;
    heddle.wait_for_log("copy: waits (--max-lag)")?;
    thread::sleep(Duration::from_secs(2));
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.n")? == "0", "rows were placed");
    start_applier(&replica)?;
    heddle.wait_for_log("all rows are there")?;
    goes_on(&pair, heddle)?;
    Ok(())
}

/// A prepared XA branch of the source that has changed these rows.
fn prepare_branch(pair: &Pair, name: &str, changes: &[&str]) -> Result<()> {
    let mut session = pair.source.connect()?;
    session.execute(format!("XA START '{name}'"))?;
    for change in changes {
        session.execute(*change)?;
    }
    session.execute(format!("XA END '{name}'"))?;
    session.execute(format!("XA PREPARE '{name}'"))?;
    // The server keeps it.
    Ok(())
}

/// Branches that were prepared before the copy, or are so as a table is read that takes no rows of the log: the copy waits for their ends. Others stay.
fn open_branches(kind: Kind, options: &[&str]) -> Result<()> {
    let pair = filled(kind, 20_000)?;
    prepare_branch(&pair, "before", &["INSERT INTO d.uniq VALUES (900, 1)", "UPDATE d.keyless SET a = 8 WHERE a = 1"])?;
    prepare_branch(&pair, "undone", &["INSERT INTO d.uniq VALUES (901, 1)"])?;
    let mut heddle = pair.begin(options)?;
    heddle.wait_for_log("waits for the source: 2 XA transactions prepared")?;
    pair.source.execute("XA COMMIT 'before'; XA ROLLBACK 'undone'")?;
    heddle.wait_for_log("round 1: copying")?;
    prepare_branch(
        &pair,
        "whole",
        &["INSERT INTO d.uniq VALUES (902, 1)", "INSERT INTO d.keyless VALUES (902, 'xa')"],
    )?;
    heddle.wait_for_log("waits for the source: 1 XA transaction prepared")?;
    pair.source.execute("XA COMMIT 'whole'")?;
    heddle.wait_for_log("round 2: copying")?;
    prepare_branch(&pair, "chunks", &["INSERT INTO d.uniq VALUES (903, 1)", "DELETE FROM d.words WHERE w = 'w7'"])?;
    heddle.wait_for_log("all rows are there")?;
    pair.source.execute("XA COMMIT 'chunks'; INSERT INTO d.none VALUES (9)")?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.none WHERE id = 9").map_err(|error| error.context(heddle.log()))?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.uniq WHERE a BETWEEN 900 AND 910")? == "3");
    heddle.terminate()?;
    heddle.wait()?;
    pair.to_the_end(options).map(|_| ())
}

/// An account that is not shown which branches are prepared: the copy stops where it would have to know.
fn branches_are_not_shown() -> Result<()> {
    let mut pair = filled(MYSQL_9_7, 20_000)?;
    pair.source.execute(&format!(
        "SET sql_log_bin=0; CREATE USER copier@'%' IDENTIFIED BY '{PASSWORD}'; \
         GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, SHOW_ROUTINE, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO copier@'%'"
    ))?;
    let from = pair.from.replace("heddle@", "copier@");
    let from = std::mem::replace(&mut pair.from, from);
    let mut heddle = pair.begin(&[COPY])?;
    heddle.wait_for_log("round 1: copying")?;
    prepare_branch(&pair, "whole", &["INSERT INTO d.keyless VALUES (902, 'xa')"])?;
    refused_with_remedy(&heddle.wait()?, &["XA transactions are prepared", "XA_RECOVER_ADMIN"])?;
    pair.source.execute("XA COMMIT 'whole'; SET sql_log_bin=0; DROP USER copier@'%'")?;
    pair.from = from;
    pair.to_the_end(&[COPY]).map(|_| ())
}

fn killed(kind: Kind, times: u64) -> Result<()> {
    let seed = seed(11, "copy");
    let random = &mut StdRng::seed_from_u64(seed);
    let pair = filled(kind, 20_000)?;
    let changes = Changes::start(&pair, 2, seed, change)?;
    for _ in 0..times {
        let heddle = pair.begin(&[COPY])?;
        thread::sleep(Duration::from_millis(random.random_range(300..3000)));
        heddle.kill()?;
        heddle.wait()?;
        if pair.target.scalar(COPIES_THERE)? == "1" && pair.target.scalar("SELECT COUNT(*) FROM heddle.copies")? == "1"
        {
            let refused = pair.begin(&[])?.wait()?;
            refused_with_remedy(&refused, &["is not finished"])?;
        }
    }
    changes.wait_for(50)?;
    changes.stop()?;
    let mut heddle = pair.begin(&[COPY])?;
    // Copied by an earlier run, or by this one.
    heddle.wait_for_log("workers, policy")?;
    goes_on(&pair, heddle)
}

/// What changes a table's definition, or a whole table.
fn define(random: &mut StdRng) -> String {
    let i = random.random_range(0..1000);
    match random.random_range(0..200) {
        0 => format!("ALTER TABLE d.n ADD COLUMN c{i} INT DEFAULT {i}"),
        1 => "TRUNCATE TABLE d.words".to_owned(),
        2 => format!("RENAME TABLE d.bins TO d.bins{i}"),
        3 => format!("CREATE TABLE d.new{i} (id INT PRIMARY KEY); INSERT INTO d.new{i} VALUES (1), (2)"),
        4 => format!("DROP TABLE IF EXISTS d.new{i}"),
        5 => format!("CREATE OR REPLACE VIEW d.z_view AS SELECT id, {i} AS i FROM d.n"),
        6 => format!("UPDATE d.p SET id = id + 50000 WHERE id = {i}"),
        7 => format!("CREATE INDEX i{i} ON d.composite (v)"),
        _ => change(random),
    }
}

fn definitions_change(kind: Kind) -> Result<()> {
    let pair = filled(kind, 10_000)?;
    let changes = Changes::start(&pair, 2, seed(13, "copy"), define)?;
    changes.wait_for(20)?;
    let mut heddle = pair.begin(&[COPY])?;
    thread::sleep(Duration::from_secs(4));
    changes.stop()?;
    heddle.wait_for_log("all rows are there")?;
    goes_on(&pair, heddle)
}

fn refusals(kind: Kind) -> Result<()> {
    let options: &[&str] = if kind.is_mariadb() { &[] } else { &GTIDS };
    let pair = Pair::start_with(kind, options, &[])?;
    let (kept, why) = if kind.is_mariadb() {
        ("WITH SYSTEM VERSIONING", "d.m keeps the history of its rows")
    } else {
        ("ENGINE=BLACKHOLE", "d.m is of the engine BLACKHOLE")
    };
    pair.source.execute(&format!(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); CREATE TABLE d.m (id INT) {kept}; INSERT INTO d.t VALUES (1)"
    ))?;
    pair.target.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (7)")?;
    let refused = pair.begin(&[COPY, "--until-end"])?.wait()?;
    refused_with_remedy(&refused, &[why, "d.t is there already"])?;
    ensure!(pair.target.scalar("SELECT SUM(id) FROM d.t")? == "7");
    pair.target.execute("DROP TABLE d.t")?;
    pair.run_to_the_end(&[COPY, "--ignore", "d.m"])?;
    ensure!(pair.target.scalar("SELECT SUM(id) FROM d.t")? == "1");
    pair.source.execute("INSERT INTO d.t VALUES (2); INSERT INTO d.m VALUES (1)")?;
    pair.run_to_the_end(&["--ignore", "d.m"])?;
    ensure!(pair.target.scalar("SELECT SUM(id) FROM d.t")? == "3");
    Ok(())
}

/// Into the other vendor's server, or another version: what its definitions are there.
fn across(source: Kind, target: Kind) -> Result<()> {
    let options: &[&str] = if source.is_mariadb() { &[] } else { &GTIDS };
    let pair = Pair::start_two((source, options), (target, &[]))?;
    pair.source.execute(
        "CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
         CREATE TABLE d.t (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20) NOT NULL DEFAULT 'x', n DECIMAL(20,5), f DOUBLE, d DATE,
             at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, b BLOB, e ENUM('a','b'), j JSON, KEY (v), UNIQUE KEY (n));
         CREATE TABLE d.w (w VARCHAR(30) CHARACTER SET latin1 PRIMARY KEY, t_id BIGINT UNSIGNED, FOREIGN KEY (t_id) REFERENCES d.t (id) ON DELETE CASCADE);
         INSERT INTO d.t (v, n, f, d, b, e, j) VALUES ('\u{e9}', 1.5, 0.1, '2020-02-29', X'00ff27', 'b', '{\"a\": [1, null, \"x\"]}'), ('', -0.5, -0.0, NULL, NULL, NULL, NULL);
         INSERT INTO d.w VALUES ('\u{e9}t\u{e9}', 1), ('b', 2), ('c', NULL);
         CREATE VIEW d.v AS SELECT id FROM d.t; CREATE TABLE d.quiet (id INT PRIMARY KEY); CREATE TRIGGER d.tr BEFORE INSERT ON d.quiet FOR EACH ROW SET NEW.id = NEW.id + 1;
         CREATE FUNCTION d.twice (x INT) RETURNS INT DETERMINISTIC RETURN x * 2;
         CREATE EVENT d.daily ON SCHEDULE EVERY 1 DAY STARTS '2038-01-01 00:00:00' DO DELETE FROM d.w WHERE w = 'never'",
    )?;
    let changes = Changes::start(&pair, 1, seed(17, "copy"), |random| {
        let i = random.random_range(0..50);
        match random.random_range(0..4) {
            0 => format!("INSERT INTO d.t (id, v, j) VALUES ({i} + 10, '{i}', '{{\"i\": {i}}}')"),
            1 => format!("UPDATE d.t SET f = {i} / 7 WHERE id = {i} + 10"),
            2 => format!("REPLACE INTO d.w VALUES ('{i}', NULL)"),
            _ => format!("DELETE FROM d.t WHERE id = {i} + 10"),
        }
    })?;
    changes.wait_for(50)?;
    let mut heddle = pair.begin(&[COPY, "--rows", "sql"])?;
    heddle.wait_for_log("all rows are there")?;
    changes.wait_for(50)?;
    changes.stop()?;
    heddle.terminate()?;
    heddle.wait()?;
    pair.run_to_the_end(&[COPY, "--rows", "sql"])?;
    for (table, key) in [("d.t", "id"), ("d.w", "w")] {
        let columns =
            if table == "d.t" { "id, v, n, f, d, at, HEX(b), e, REPLACE(j, ' ', '')" } else { "HEX(w), t_id" };
        let rows = format!("SELECT {columns} FROM {table} ORDER BY {key}");
        ensure!(pair.source.rows(&rows)? == pair.target.rows(&rows)?, "{table} differs");
    }
    for programs in [
        "VIEWS WHERE TABLE_SCHEMA",
        "TRIGGERS WHERE TRIGGER_SCHEMA",
        "ROUTINES WHERE ROUTINE_SCHEMA",
        "EVENTS WHERE EVENT_SCHEMA",
    ] {
        let count = pair.target.scalar(&format!("SELECT COUNT(*) FROM information_schema.{programs} = 'd'"))?;
        ensure!(count == "1", "{programs}: {count}");
    }
    Ok(())
}

/// Of engines without transactions, while they and others change.
fn without_transactions(kind: Kind) -> Result<()> {
    let pair = filled(kind, 300)?;
    let other = if kind.is_mariadb() { "Aria" } else { "MyISAM" };
    pair.source.execute(&format!(
        "CREATE TABLE d.my (id INT PRIMARY KEY, v INT) ENGINE=MyISAM; INSERT INTO d.my SELECT n, n FROM d.hundred;
         CREATE TABLE d.other (v TEXT) ENGINE={other}; INSERT INTO d.other VALUES ('a'), ('a'), (NULL)"
    ))?;
    let changes = Changes::start(&pair, 2, seed(23, "copy"), |random| match random.random_range(0..40) {
        0 => format!("UPDATE d.my SET v = v + 1 WHERE id = {}", random.random_range(0..100)),
        1 => "INSERT INTO d.other VALUES ('new')".to_owned(),
        _ => change(random),
    })?;
    let mut heddle = pair.begin(&[COPY])?;
    heddle.wait_for_log("all rows are there")?;
    changes.wait_for(40)?;
    changes.stop()?;
    goes_on(&pair, heddle)
}

/// Under other names: tables, foreign keys, views and triggers.
fn renamed(kind: Kind) -> Result<()> {
    let pair = filled(kind, 300)?;
    let renaming = ["--rename", "d.words=archive.old_words", "--rename", "d=store"];
    let changes = Changes::start(&pair, 1, seed(19, "copy"), change)?;
    let mut heddle = pair.begin(&[&[COPY], &renaming[..]].concat())?;
    heddle.wait_for_log("all rows are there")?;
    changes.wait_for(20)?;
    changes.stop()?;
    end(heddle)?;
    pair.source.execute("INSERT INTO d.parts VALUES (99999, NULL); UPDATE d.words SET n = n + 1")?;
    pair.run_to_the_end(&[&[COPY], &renaming[..]].concat())?;
    for (table, there, order) in [
        ("d.n", "store.n", "id"),
        ("d.c", "store.c", "id"),
        ("d.g", "store.g", "id"),
        ("d.parts", "store.parts", "id"),
        ("d.words", "archive.old_words", "w"),
        ("d.a_view", "store.a_view", "id"),
    ] {
        let rows = |of: &str| format!("SELECT * FROM {of} ORDER BY {order}");
        ensure!(pair.source.rows(&rows(table))? == pair.target.rows(&rows(there))?, "{table} and {there} differ");
    }
    let keys = "SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'store' AND UNIQUE_CONSTRAINT_SCHEMA = 'store'";
    ensure!(pair.target.scalar(keys)? == "2");
    ensure!(
        pair.target.scalar("SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'store'")? == "1"
    );
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'd'")? == "0");
    Ok(())
}

/// MariaDB's sequences: with their state, in use while they are copied, and as what tables take their defaults from.
fn sequences() -> Result<()> {
    let pair = Pair::start_with(MARIADB_10_11, &[], &[])?;
    pair.source.execute(
        "CREATE DATABASE d; USE d; CREATE SEQUENCE d.z START WITH 7 INCREMENT BY 3 MAXVALUE 100000 CACHE 5 CYCLE; CREATE SEQUENCE d.quiet; SELECT NEXTVAL(d.quiet);
         CREATE SEQUENCE d.down START WITH -1 INCREMENT BY -2 MINVALUE -1000 MAXVALUE -1 NOCACHE;
         CREATE TABLE d.a (id INT PRIMARY KEY DEFAULT NEXTVAL(d.z), v INT); INSERT INTO d.a (v) SELECT seq FROM seq_1_to_2000",
    )?;
    let next = |random: &mut StdRng| match random.random_range(0..4) {
        0 => "SELECT NEXTVAL(d.down)".to_owned(),
        1 => format!("SELECT SETVAL(d.down, -{})", random.random_range(1..900)),
        _ => "INSERT INTO d.a (v) VALUES (1)".to_owned(),
    };
    let changes = Changes::start(&pair, 2, seed(43, "copy"), next)?;
    changes.wait_for(20)?;
    let mut heddle = pair.begin(&[COPY])?;
    heddle.wait_for_log("all rows are there")?;
    changes.wait_for(20)?;
    changes.stop()?;
    pair.source.execute("ALTER SEQUENCE d.quiet RESTART 500; SELECT NEXTVAL(d.quiet)")?;
    end(heddle)?;
    pair.to_the_end(&[COPY])?;
    for sequence in ["z", "quiet", "down"] {
        let state = format!("SELECT * FROM d.{sequence}");
        ensure!(pair.source.rows(&state)? == pair.target.rows(&state)?, "{sequence}: {:?}", pair.target.rows(&state)?);
    }
    let other = Pair::start_two((MARIADB_10_11, &[]), (MYSQL_9_7, &[]))?;
    other.source.execute("CREATE DATABASE d; CREATE SEQUENCE d.s")?;
    let refused = other.begin(&[COPY, "--rows", "sql"])?.wait()?;
    refused_with_remedy(&refused, &["d.s is a sequence, which the target's server does not have"])
}

/// What the target does not take is said before any row is copied.
fn definitions_not_taken() -> Result<()> {
    let pair = Pair::start_two((MYSQL_9_7, &GTIDS), (MARIADB_10_11, &[]))?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.ok (id INT PRIMARY KEY) COLLATE utf8mb4_bin; CREATE TABLE d.t (id INT PRIMARY KEY, v TEXT) COLLATE utf8mb4_0900_ai_ci;
        INSERT INTO d.ok VALUES (1)")?;
    for more in [&["--dry-run"][..], &["--until-end"]] {
        let run = pair.begin(&[&[COPY, "--rows", "sql"], more].concat())?.wait()?;
        ensure!(run.status.code() == Some(1), "{run}");
        ensure!(format!("{run}").contains("d.t") && format!("{run}").contains("utf8mb4_0900_ai_ci"), "{run}");
    }
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'd'")? == "0");
    Ok(())
}

e2e::tests! {
    without_transactions_mysql: without_transactions(MYSQL_9_7);
    without_transactions_mariadb: without_transactions(MARIADB_10_11);
    renamed_mysql: renamed(MYSQL_9_7);
    renamed_mariadb: renamed(MARIADB_10_11);
    mysql_into_mariadb: across(MYSQL_9_7, MARIADB_10_11);
    mariadb_into_mysql: across(MARIADB_10_11, MYSQL_9_7);
    sequences_mariadb: sequences();
    definitions_that_the_target_does_not_take: definitions_not_taken();
    #[ignore = "another version: scripts/nightly"]
    mysql_5_7_into_9_7: across("mysql-5.7.22".parse().expect("a server"), MYSQL_9_7);
    #[ignore = "another version: scripts/nightly"]
    mysql_8_0_into_5_7: across("mysql-8.0.15".parse().expect("a server"), "mysql-5.7.22".parse().expect("a server"));
    #[ignore = "another version: scripts/nightly"]
    mysql_8_0_46_into_8_4: across("mysql-8.0.46".parse().expect("a server"), "mysql-8.4".parse().expect("a server"));
    #[ignore = "another version: scripts/nightly"]
    mariadb_10_6_into_10_11: across("mariadb-10.6".parse().expect("a server"), MARIADB_10_11);
    #[ignore = "another version: scripts/nightly"]
    mariadb_11_8_into_10_11: across("mariadb-11.8".parse().expect("a server"), MARIADB_10_11);
    every_kind_of_table_mysql: at_rest(MYSQL_9_7);
    every_kind_of_table_mariadb: at_rest(MARIADB_10_11);
    under_load_mysql: under_load(MYSQL_9_7);
    under_load_mariadb: under_load(MARIADB_10_11);
    killed_in_the_middle_mysql: killed(MYSQL_9_7, 4);
    killed_in_the_middle_mariadb: killed(MARIADB_10_11, 4);
    under_the_sources_gtids_mysql: under_the_sources_gtids(MYSQL_9_7);
    under_the_sources_gtids_mariadb: under_the_sources_gtids(MARIADB_10_11);
    lag_mysql: lag(MYSQL_9_7);
    lag_mariadb: lag(MARIADB_10_11);
    open_branches_mysql: open_branches(MYSQL_9_7, &[COPY]);
    open_branches_mariadb: open_branches(MARIADB_10_11, &[COPY]);
    open_branches_under_the_sources_gtids: open_branches(MYSQL_9_7, &PRESERVE);
    branches_are_not_shown_mysql: branches_are_not_shown();
    definitions_change_mysql: definitions_change(MYSQL_9_7);
    definitions_change_mariadb: definitions_change(MARIADB_10_11);
    added_under_load_mysql: added::under_load(MYSQL_9_7, added::Load::Rows, &[]);
    added_under_load_mariadb: added::under_load(MARIADB_10_11, added::Load::Rows, &[]);
    added_as_definitions_change_mysql: added::under_load(MYSQL_9_7, added::Load::Definitions, &[]);
    added_as_definitions_change_mariadb: added::under_load(MARIADB_10_11, added::Load::Definitions, &[]);
    added_under_the_sources_gtids_mysql: added::under_load(MYSQL_9_7, added::Load::Rows, &PRESERVE[1..]);
    added_under_the_sources_gtids_mariadb: added::under_load(MARIADB_10_11, added::Load::Rows, &PRESERVE[1..]);
    added_through_kills_mysql: added::killed(MYSQL_9_7, 4);
    added_through_kills_mariadb: added::killed(MARIADB_10_11, 4);
    added_at_rest_mysql: added::at_rest(MYSQL_9_7, &[]);
    added_at_rest_mariadb: added::at_rest(MARIADB_10_11, &[]);
    added_at_rest_in_any_order_mysql: added::at_rest(MYSQL_9_7, &["--commit-order", "relaxed"]);
    added_at_rest_in_any_order_mariadb: added::at_rest(MARIADB_10_11, &["--commit-order", "relaxed"]);
    added_and_the_channel_fails: added::channel_fails();
    added_refusals: added::refusals();
    #[ignore = "many kills: scripts/nightly"]
    added_through_many_kills_mysql: added::killed(MYSQL_9_7, 40);
    #[ignore = "many kills: scripts/nightly"]
    added_through_many_kills_mariadb: added::killed(MARIADB_10_11, 40);
    rows_of_a_replica_mysql: rows_from::through_a_replica(MYSQL_9_7);
    rows_of_a_replica_mariadb: rows_from::through_a_replica(MARIADB_10_11);
    log_of_a_mirror_mysql: rows_from::log_of_a_mirror(MYSQL_9_7);
    log_of_a_mirror_mariadb: rows_from::log_of_a_mirror(MARIADB_10_11);
    rows_from_refusals: rows_from::refusals();
    refusals_mysql: refusals(MYSQL_9_7);
    refusals_mariadb: refusals(MARIADB_10_11);
    #[ignore = "many kills: scripts/nightly"]
    killed_often_mysql: killed(MYSQL_9_7, 40);
    #[ignore = "many kills: scripts/nightly"]
    killed_often_mariadb: killed(MARIADB_10_11, 40);
    #[ignore = "another version: scripts/nightly"]
    under_load_mysql_5_7: under_load("mysql-5.7.22".parse().expect("a server"));
    #[ignore = "another version: scripts/nightly"]
    under_load_mysql_8_4: under_load("mysql-8.4".parse().expect("a server"));
    #[ignore = "another version: scripts/nightly"]
    under_load_mariadb_10_6: under_load("mariadb-10.6".parse().expect("a server"));
    #[ignore = "another version: scripts/nightly"]
    under_load_mariadb_11_8: under_load("mariadb-11.8".parse().expect("a server"));
}
