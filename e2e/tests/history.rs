//! Targets that keep what the source removes (`--leave-out`): triggers on the source write down what has to be on the target.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use e2e::checksum::{Checksums, contents, differences};
use e2e::heddle::heddle;
use e2e::pair::Pair;
use e2e::refusal::refused_with_remedy;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const KEEPS_ALL: [&str; 4] = ["--leave-out", "delete,truncate", "--ignore", "hist"];

/// Names, columns and keys, and the columns of the primary key.
const TABLES: [(&str, &str, &[&str]); 4] = [
    ("plain", "id INT PRIMARY KEY, n INT, s VARCHAR(40)", &["id"]),
    ("uniq", "id INT PRIMARY KEY, n INT, u VARCHAR(20) NULL, UNIQUE KEY u (u), KEY n (n)", &["id"]),
    ("pair", "a INT, b INT, n INT, d DATE NOT NULL, PRIMARY KEY (a, b), UNIQUE KEY d (d, a)", &["a", "b"]),
    ("timed", "t TIMESTAMP(3) NOT NULL DEFAULT '2020-01-01 00:00:00' PRIMARY KEY, n INT UNIQUE", &["t"]),
];

/// The tables; in `hist`, which is in no log, each as the target has to have it.
fn definitions() -> String {
    let mut sql = "CREATE DATABASE shop;\n".to_owned();
    let mut hidden = "SET sql_log_bin=0;\nCREATE DATABASE hist;\n".to_owned();
    for (name, columns, key) in TABLES {
        let _ = writeln!(sql, "CREATE TABLE shop.{name} ({columns}) ENGINE=InnoDB;");
        let _ = writeln!(hidden, "CREATE TABLE hist.{name} ({columns}) ENGINE=InnoDB;");
        let names: Vec<&str> = columns_of(name).collect();
        let values: Vec<String> = names.iter().map(|column| format!("NEW.{column}")).collect();
        let replace = format!("REPLACE INTO hist.{name} ({}) VALUES ({})", names.join(","), values.join(","));
        let old: Vec<String> = key.iter().map(|column| format!("{column} = OLD.{column}")).collect();
        let _ = writeln!(hidden, "CREATE TRIGGER shop.{name}_i AFTER INSERT ON shop.{name} FOR EACH ROW {replace};");
        let _ = writeln!(
            hidden,
            "DELIMITER //\nCREATE TRIGGER shop.{name}_u AFTER UPDATE ON shop.{name} FOR EACH ROW BEGIN\n\
             DELETE FROM hist.{name} WHERE {};\n{replace};\nEND//\nDELIMITER ;",
            old.join(" AND ")
        );
    }
    sql + &hidden
}

fn columns_of(table: &str) -> impl Iterator<Item = &'static str> {
    let columns: &[&str] = match table {
        "plain" => &["id", "n", "s"],
        "uniq" => &["id", "n", "u"],
        "pair" => &["a", "b", "n", "d"],
        _ => &["t", "n"],
    };
    columns.iter().copied()
}

fn values(random: &mut StdRng, table: &str, number: u32) -> String {
    const TEXTS: [&str; 8] = ["'a'", "'A'", "'b'", "'B '", "'c\\\\'", "'d''e'", "NULL", "'x'"];
    let small = random.random_range(0..25);
    match table {
        "plain" => format!("{small}, {number}, 'of {number}'"),
        "uniq" => format!("{small}, {number}, {}", TEXTS.choose(random).expect("some")),
        "pair" => format!(
            "{}, {}, {number}, '2026-01-{:02}'",
            random.random_range(0..4),
            random.random_range(0..6),
            random.random_range(1..8)
        ),
        _ => format!("'2026-10-25 0{}:30:00.{:03}', {small}", random.random_range(0..5), random.random_range(0..3)),
    }
}

fn statement(random: &mut StdRng, number: u32) -> String {
    let (table, ..) = *TABLES.choose(random).expect("some");
    let names: Vec<&str> = columns_of(table).collect();
    let row = |random: &mut StdRng| format!("({})", values(random, table, number));
    let (id, limit) = (names.first().copied().unwrap_or_default(), random.random_range(1..4));
    match random.random_range(0..10) {
        0..=2 => format!("REPLACE INTO shop.{table} VALUES {}", row(random)),
        3 => format!("INSERT IGNORE INTO shop.{table} VALUES {},{},{}", row(random), row(random), row(random)),
        4 => format!("INSERT INTO shop.{table} VALUES {} ON DUPLICATE KEY UPDATE n = n + 100", row(random))
            .replace(if table == "timed" { "n = n + 100" } else { "\0" }, "n = n"),
        // Not UPDATE IGNORE: MariaDB runs the triggers for rows that it leaves as they are.
        5 => format!("UPDATE shop.{table} SET n = n + 100 ORDER BY n DESC LIMIT {limit}"),
        6 => match table {
            "uniq" => format!(
                "UPDATE shop.uniq SET u = 'a' WHERE id = {} AND (SELECT COUNT(*) FROM (SELECT DISTINCT u FROM shop.uniq WHERE u = 'a') AS x) = 0",
                random.random_range(0..25)
            ),
            "pair" => "UPDATE shop.pair SET a = a + 10 ORDER BY a DESC LIMIT 2".to_owned(),
            "timed" => "UPDATE shop.timed SET t = t + INTERVAL 1 DAY ORDER BY t DESC LIMIT 3".to_owned(),
            _ => "UPDATE shop.plain SET id = id + 1 ORDER BY id DESC LIMIT 5".to_owned(),
        },
        _ => format!(
            "DELETE FROM shop.{table} ORDER BY {id} {} LIMIT {limit}",
            ["ASC", "DESC"].choose(random).expect("some")
        ),
    }
}

fn workload(random: &mut StdRng, transactions: u32) -> String {
    let mut sql = String::new();
    let first = random.random_range(1..1000) * 1000;
    for number in first..first + transactions {
        let count = random.random_range(1..5);
        let statements: String = (0..count).map(|_| statement(random, number) + ";\n").collect();
        let _ = match random.random_range(0..12) {
            0 => write!(
                sql,
                "XA START 'x{number}';\n{statements}XA END 'x{number}';\nXA PREPARE 'x{number}';\nXA COMMIT 'x{number}';\n"
            ),
            _ => write!(sql, "BEGIN;\n{statements}COMMIT;\n"),
        };
        if number % 70 == 0 {
            let _ = writeln!(sql, "TRUNCATE TABLE shop.{};", TABLES.choose(random).expect("some").0);
        }
    }
    sql
}

fn of_schema(of: Checksums, schema: &str) -> Checksums {
    let mark = format!("`{schema}`.");
    of.into_iter()
        .filter_map(|(name, content)| name.strip_prefix(&mark).map(|name| (name.to_owned(), content)))
        .collect()
}

fn assert_kept(pair: &Pair) -> Result<()> {
    let lines = differences(&of_schema(contents(&pair.source)?, "hist"), &of_schema(contents(&pair.target)?, "shop"));
    if lines.is_empty() {
        return Ok(());
    }
    let mut shown = lines.join("\n  ");
    for (table, ..) in TABLES {
        let rows =
            |server: &Server, schema: &str| server.rows(&format!("SELECT * FROM {schema}.{table} ORDER BY 1, 2, 3"));
        let rows = |server: &Server, schema: &str| {
            rows(server, schema).or_else(|_| server.rows(&format!("SELECT * FROM {schema}.{table} ORDER BY 1, 2")))
        };
        let (expected, found) = (rows(&pair.source, "hist")?, rows(&pair.target, "shop")?);
        let missing: Vec<_> = expected.iter().filter(|row| !found.contains(row)).collect();
        let extra: Vec<_> = found.iter().filter(|row| !expected.contains(row)).collect();
        let _ = write!(
            shown,
            "\n  {table}: missing {missing:?}, extra {extra:?}; the source has {:?}",
            rows(&pair.source, "shop")?
        );
    }
    ensure!(false, "they differ:\n  {shown}");
    Ok(())
}

/// Deletes and inserts of the same keys in all kinds of groups, through kills: what is on the target is what the triggers have written down.
fn kept(kind: Kind, options: &[&str], kills: u32) -> Result<()> {
    let seed = e2e::seed(rand::random_range(0..1 << 31), "history");
    let mut random = StdRng::seed_from_u64(seed);
    let pair = Pair::start_with(kind, &["--binlog-format=ROW"], &["--default-time-zone=+02:00"])?;
    pair.source.run_script(definitions().as_bytes())?;
    let options = [&KEEPS_ALL, options].concat();
    let run = pair.run_through_kills(&options, kills, 3, &mut random, |random| workload(random, 300))?;
    assert_kept(&pair).with_context(|| run.to_string())?;
    // A branch whose end has not come: its rows may be kept as text.
    pair.source.run_script(b"REPLACE INTO shop.uniq VALUES (90, 1, 'left'); DELETE FROM shop.uniq WHERE id = 90")?;
    pair.source.run_script(b"XA START 'open'; INSERT INTO shop.uniq VALUES (91, 2, 'LEFT'); UPDATE shop.uniq SET id = 90 WHERE id = 91; XA END 'open'; XA PREPARE 'open'")?;
    pair.source.run_script(b"REPLACE INTO shop.plain VALUES (1, 1, 'beside')")?;
    pair.run_to_the_end(&options)?;
    pair.source.run_script(b"XA COMMIT 'open'")?;
    let run = pair.run_to_the_end(&options)?;
    assert_kept(&pair).with_context(|| run.to_string())
}

/// What the target has of two schemas behind each statement.
fn definitions_are_kept(kind: Kind) -> Result<()> {
    const TABLES_OF_BOTH: &str = "SELECT COALESCE(GROUP_CONCAT(CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) ORDER BY 1), '') FROM information_schema.TABLES \
        WHERE TABLE_SCHEMA IN ('d', 'e')";
    let pair = Pair::start(kind)?;
    let part = ["--leave-out", "drop-table,truncate,drop-database,delete", "--until-end"];
    let cases: [(&str, &str, &str); 7] = [
        (
            "CREATE DATABASE d; CREATE DATABASE e; CREATE TABLE d.a (v INT PRIMARY KEY); CREATE TABLE d.b (v INT PRIMARY KEY); CREATE VIEW d.w AS SELECT 1",
            TABLES_OF_BOTH,
            "d.a,d.b,d.w",
        ),
        ("INSERT INTO d.a VALUES (1), (2); DROP TABLE d.b, d.a; DROP VIEW d.w", TABLES_OF_BOTH, "d.a,d.b"),
        (
            "CREATE TABLE e.p (v INT PRIMARY KEY) PARTITION BY RANGE (v) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20)); INSERT INTO e.p VALUES (1), (11)",
            "SELECT COUNT(*) FROM e.p",
            "2",
        ),
        ("ALTER TABLE e.p TRUNCATE PARTITION p1; ALTER TABLE e.p DROP PARTITION p0", "SELECT COUNT(*) FROM e.p", "2"),
        (
            "INSERT INTO e.p VALUES (12); TRUNCATE TABLE e.p; INSERT INTO e.p VALUES (12)",
            "SELECT COUNT(*) FROM e.p",
            "3",
        ),
        ("DROP DATABASE e; CREATE DATABASE e", TABLES_OF_BOTH, "d.a,d.b,e.p"),
        ("CREATE TEMPORARY TABLE e.t (v INT); DROP TEMPORARY TABLE e.t", TABLES_OF_BOTH, "d.a,d.b,e.p"),
    ];
    for (sql, question, expected) in cases {
        pair.source.run_script(sql.as_bytes())?;
        let run = pair.begin(&part)?.wait()?.successful().with_context(|| sql.to_owned())?;
        let found = pair.target.scalar(question)?;
        ensure!(found == expected, "{sql}\nexpected {expected}\nfound {found}\n{run}");
    }
    // A table that comes again meets the one that was kept.
    pair.source.run_script(b"CREATE TABLE d.a (v INT PRIMARY KEY, w INT)")?;
    refused_with_remedy(&pair.begin(&part)?.wait()?, &["a"])?;
    pair.target.execute("RENAME TABLE d.a TO d.a_of_2026")?;
    pair.begin(&part)?.wait()?.successful()?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.a_of_2026")? == "2");
    let status = heddle(&["status", "--to", &pair.target.url()])?.successful()?;
    ensure!(status.stdout.contains("--leave-out drop-table,truncate,drop-database,delete"), "{status}");
    let run = pair.begin(&["--until-end"])?.wait()?;
    refused_with_remedy(&run, &["--leave-out drop-table,truncate,drop-database,delete", "--selection-changed"])?;
    pair.begin(&["--until-end", "--selection-changed"])?.wait()?.successful()?;
    Ok(())
}

/// Of a log of statements deletes are left out; what would find rows that were kept stops the channel.
fn statements(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &["--binlog-format=STATEMENT"], &[])?;
    let part = ["--leave-out", "delete", "--until-end"];
    pair.source.run_script(b"CREATE DATABASE d; CREATE TABLE d.a (v INT PRIMARY KEY); CREATE TABLE d.b (v INT PRIMARY KEY); SET binlog_format=ROW; INSERT INTO d.a VALUES (1), (2), (3)")?;
    pair.source
        .run_script(b"DELETE FROM d.a WHERE v = 1; DELETE d.a FROM d.a LEFT JOIN d.b ON a.v = b.v WHERE a.v = 2")?;
    pair.begin(&part)?.wait()?.successful()?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.a")? == "3");
    pair.source.run_script(b"UPDATE d.a SET v = v + 10")?;
    refused_with_remedy(&pair.begin(&part)?.wait()?, &["--leave-out delete", "binlog_format=ROW"])?;
    let position = pair.target.scalar("SELECT position FROM heddle.stops WHERE channel = 'default'")?;
    heddle(&["channel", "skip", "default", "--to", &pair.target.url(), "--position", &position, "--yes"])?
        .successful()?;
    pair.begin(&part)?.wait()?.successful()?;
    ensure!(pair.target.scalar("SELECT SUM(v) FROM d.a")? == "6");
    Ok(())
}

/// Parents that come again, children that are kept: nothing cascades on the target.
fn relations(kind: Kind, rows: &str) -> Result<()> {
    let pair = Pair::start(kind)?;
    let options = ["--leave-out", "delete", "--rows", rows];
    pair.source.run_script(
        b"CREATE DATABASE d; CREATE TABLE d.p (id INT PRIMARY KEY, n INT); \
          CREATE TABLE d.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES d.p (id) ON DELETE CASCADE ON UPDATE CASCADE); \
          INSERT INTO d.p VALUES (1, 1), (2, 1); INSERT INTO d.c VALUES (10, 1), (11, 1), (20, 2); \
          DELETE FROM d.p WHERE id = 1; INSERT INTO d.p VALUES (1, 2); INSERT INTO d.c VALUES (10, 1); \
          UPDATE d.p SET id = 3 WHERE id = 2",
    )?;
    let run = pair.run_to_the_end(&options)?;
    let found = pair.target.scalar("SELECT CONCAT((SELECT GROUP_CONCAT(id, '-', n ORDER BY id) FROM d.p), ' ', (SELECT GROUP_CONCAT(id, '-', p ORDER BY id) FROM d.c))")?;
    ensure!(found == "1-2,3-1 10-1,11-1,20-3", "{found}\n{run}");
    // A trigger for rows that are deleted would fire for the one whose place is taken.
    pair.target.execute("CREATE TRIGGER d.t AFTER DELETE ON d.c FOR EACH ROW DELETE FROM d.p WHERE id = 3")?;
    pair.source.run_script(b"DELETE FROM d.c WHERE id = 10; INSERT INTO d.c VALUES (10, 3)")?;
    refused_with_remedy(&pair.begin(&[&options[..], &["--until-end"]].concat())?.wait()?, &["d.c", "triggers"])?;
    pair.target.execute("DROP TRIGGER d.t")?;
    pair.run_to_the_end(&options)?;
    ensure!(pair.target.scalar("SELECT p FROM d.c WHERE id = 10")? == "3");
    Ok(())
}

e2e::tests! {
    rows_are_kept_mysql: kept(MYSQL_9_7, &["--rows", "binlog"], 3);
    rows_are_kept_mariadb: kept(MARIADB_10_11, &["--rows", "binlog"], 3);
    rows_are_kept_as_sql_mysql: kept(MYSQL_9_7, &["--rows", "sql"], 3);
    rows_are_kept_as_sql_mariadb: kept(MARIADB_10_11, &["--rows", "sql"], 3);
    rows_are_kept_relaxed_mysql: kept(MYSQL_9_7, &["--rows", "binlog", "--commit-order", "relaxed"], 3);
    rows_are_kept_relaxed_mariadb: kept(MARIADB_10_11, &["--rows", "sql", "--commit-order", "relaxed"], 3);
    rows_are_kept_with_gtids_mysql: kept(MYSQL_9_7, &["--gtids", "preserve"], 3);
    rows_are_kept_with_gtids_mariadb: kept(MARIADB_10_11, &["--gtids", "preserve"], 3);
    definitions_are_kept_mysql: definitions_are_kept(MYSQL_9_7);
    definitions_are_kept_mariadb: definitions_are_kept(MARIADB_10_11);
    statements_mysql: statements(MYSQL_9_7);
    statements_mariadb: statements(MARIADB_10_11);
    relations_mysql: relations(MYSQL_9_7, "binlog");
    relations_mariadb: relations(MARIADB_10_11, "binlog");
    relations_as_sql_mysql: relations(MYSQL_9_7, "sql");
    relations_as_sql_mariadb: relations(MARIADB_10_11, "sql");
}
