//! Rows as SQL (`--rows sql`), with accounts that have no more than the administrators of managed services: the same rows as on the source, and as strict as row
//! events. (`HEDDLE_E2E_ROWS=sql` runs whole other programs so, `cases` among them.)

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, Run, heddle};
use e2e::managed::{COMMON, SERVICES, create_administrator, privileges};
use e2e::matrix;
use e2e::pair::Pair;
use e2e::refusal::refused_with_remedy;
use e2e::served::certificate;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};
use e2e::until;

/// The least with which rows and such DDL go.
const LEAST: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, REFERENCES";

const NO_TRIGGERS: &str = "--no-triggers";

const TABLES: &str = "SET time_zone = 'SYSTEM'; SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';
    CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4;
    CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(40), n INT, KEY (n));
    CREATE TABLE d.many (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1, u INT UNIQUE,
        at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6));
    CREATE TABLE d.kinds (id VARCHAR(8) COLLATE utf8mb4_bin PRIMARY KEY, e ENUM('a','b'), s SET('x','y'), b BIT(64), y YEAR, d DATE, dt DATETIME(3), tm TIME(6),
        ts TIMESTAMP NULL, de DECIMAL(65,30), f FLOAT, db DOUBLE, g GEOMETRY, bi BINARY(4), bl BLOB, tx TEXT CHARACTER SET gbk,
        gen INT AS (LENGTH(id)) STORED);
    CREATE TABLE d.keyless (a INT, b VARCHAR(9));
    CREATE TABLE d.p (id INT PRIMARY KEY); CREATE TABLE d.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES d.p (id) ON DELETE CASCADE)";

const CHANGES: &str = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';
    INSERT INTO d.t VALUES (1, 'a', 1), (2, 'b\\'\\\\', 1), (3, 'c', NULL), (4, 'd', 4), (5, '', 5);
    INSERT INTO d.many (id, v, u, at) VALUES (0, 'zero', 0, '2024-03-31 01:30:00.000001'), (1, 'one', 1, '2024-10-27 01:30:00'), (2, 'two', 2, '1970-01-01 00:00:01');
    INSERT INTO d.kinds (id, e, s, b, y, d, dt, tm, ts, de, f, db, g, bi, bl, tx) VALUES
        ('a', 0, 3, 18446744073709551615, 0, '2020-02-31', '0000-00-00', '-838:59:58.000001', '2038-01-01 00:00:00',
         -12345678901234567890123456789012345.123456789012345678901234567891, 1.1, 5e-324, ST_GeomFromText('POINT(1 2)', 4326), X'01', X'00275c00ff', _gbk X'815c'),
        ('A', 'b', '', 1, 2155, '0000-00-00', '9999-12-31 23:59:59.999', '838:59:59', NULL, 0.000000000000000000000000000001, -1e30, -1.7976931348623157e308, NULL, X'', '', '');
    INSERT INTO d.keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
    INSERT INTO d.p VALUES (1), (2); INSERT INTO d.c VALUES (1, 1), (2, 2);
    UPDATE d.t SET v = CONCAT(v, 'x'), n = id; UPDATE d.t SET id = id + 10 ORDER BY id DESC;
    UPDATE d.many SET u = u + 1 ORDER BY u DESC; UPDATE d.many SET v = 'm\u{e9}', at = at WHERE id = 1;
    UPDATE d.kinds SET e = 'a', b = b - 1, db = 0.1, bl = CONCAT(bl, X'27') WHERE id = 'a'; UPDATE d.kinds SET e = 0 WHERE id = 'A';
    UPDATE d.keyless SET b = 'y' WHERE a = 1 LIMIT 1; DELETE FROM d.keyless WHERE a IS NULL;
    DELETE FROM d.p WHERE id = 1; DELETE FROM d.t WHERE id IN (12, 14);
    ALTER TABLE d.t ADD COLUMN w INT DEFAULT 7 FIRST; INSERT INTO d.t (id, v) VALUES (99, 'later'); UPDATE d.t SET w = w + 1";

/// A pair, and the target's address for an account with these privileges.
fn begun(kind: Kind, privileges: &str, target: &[&str]) -> Result<(Pair, String)> {
    let pair = Pair::start_with(kind, &[], target)?;
    create_administrator(&pair.target, "admin", privileges)?;
    let to = pair.target.url().replace("heddle@", "admin@");
    Ok((pair, to))
}

fn run(pair: &Pair, to: &str, more: &[&str]) -> Result<Run> {
    pair.begin_into(to, &[&["--until-end"], more].concat())?.wait()
}

fn same_rows(kind: Kind, privileges: &str, target: &[&str], more: &[&str]) -> Result<()> {
    let (pair, to) = begun(kind, privileges, target)?;
    pair.source.execute(TABLES)?;
    run(&pair, &to, more)?.successful()?;
    pair.source.execute(CHANGES)?;
    let done = run(&pair, &to, more)?.successful()?;
    ensure!(done.stderr.contains("(--rows sql), since the account 'admin'@"), "{done}");
    pair.assert_same_rows()?;
    let dry =
        Heddle::start(&["replicate", "--from", &pair.from, "--to", &to, "--relay-dir", &pair.relay, "--dry-run"])?
            .wait()?;
    ensure!(dry.stdout.contains("rows are written as INSERT, UPDATE, DELETE (--rows sql), since the account"), "{dry}");
    let names = if kind.is_mariadb() { "BINLOG REPLAY" } else { "BINLOG_ADMIN" };
    ensure!(dry.stdout.contains(names), "{dry}");
    // Nobody has to choose it.
    let refused = run(&pair, &to, &["--rows", "binlog"])?;
    refused_with_remedy(&refused, &[names])
}

#[test]
fn an_administrator_of_rds_applies_rows_to_mysql() -> Result<()> {
    same_rows(MYSQL_9_7, COMMON, &["--binlog-format=MIXED", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"], &[])
}

#[test]
fn an_administrator_of_rds_applies_rows_to_mariadb() -> Result<()> {
    same_rows(MARIADB_10_11, COMMON, &["--binlog-format=MIXED"], &["--grouping", "off"])
}

#[test]
fn the_least_privileges_are_enough_on_mysql() -> Result<()> {
    same_rows(
        MYSQL_9_7,
        LEAST,
        &["--sql-generate-invisible-primary-key=OFF"],
        &["--compare-before", "key", NO_TRIGGERS],
    )
}

#[test]
fn the_least_privileges_are_enough_on_mariadb() -> Result<()> {
    same_rows(MARIADB_10_11, LEAST, &[], &["--compare-before", "key", NO_TRIGGERS])
}

/// What the account could not see would be fired: it says so, and nothing was changed.
fn hidden_triggers(kind: Kind) -> Result<()> {
    let (pair, to) = begun(kind, LEAST, &[])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    refused_with_remedy(&run(&pair, &to, &[])?, &["is not shown triggers", "GRANT TRIGGER ON *.*", "--no-triggers"])?;
    let dry = run(&pair, &to, &["--dry-run"])?;
    ensure!(dry.status.code() == Some(1) && dry.stdout.contains("is not shown triggers"), "{dry}");
    let there =
        pair.target.scalar("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN ('d', 'heddle')")?;
    ensure!(there == "0", "something was made");
    run(&pair, &to, &[NO_TRIGGERS])?.successful()?;
    pair.assert_same_rows()
}

#[test]
fn triggers_that_the_account_cannot_see_are_refused_on_mysql() -> Result<()> {
    hidden_triggers(MYSQL_9_7)
}

#[test]
fn triggers_that_the_account_cannot_see_are_refused_on_mariadb() -> Result<()> {
    hidden_triggers(MARIADB_10_11)
}

/// An account that is shown the triggers of some tables: rows of others stop the channel, by the table's name, before any trigger is fired.
fn triggers_of_some(kind: Kind) -> Result<()> {
    let (pair, to) = begun(kind, LEAST, &[])?;
    pair.target.execute("SET sql_log_bin = 0; GRANT TRIGGER ON `a\\_1`.* TO admin@'%', admin@localhost")?;
    pair.source.execute("CREATE DATABASE a_1; CREATE DATABASE ax1; CREATE TABLE a_1.t (id INT PRIMARY KEY); CREATE TABLE ax1.t (id INT PRIMARY KEY)")?;
    run(&pair, &to, &[])?.successful()?;
    pair.target.execute("CREATE TABLE ax1.fired (id INT PRIMARY KEY); CREATE TRIGGER ax1.fires AFTER INSERT ON ax1.t FOR EACH ROW INSERT INTO ax1.fired VALUES (NEW.id)")?;
    pair.source.execute("INSERT INTO a_1.t VALUES (1); INSERT INTO ax1.t VALUES (1)")?;
    // MariaDB shows triggers to accounts that may change the table.
    let seen = ["ax1.t has triggers on the target (fires)"];
    let words = ["is not shown triggers of ax1.t", "GRANT TRIGGER ON `ax1`.`t`", "--no-triggers-on ax1.t"];
    refused_with_remedy(
        &run(&pair, &to, &["--grouping", "off"])?,
        if kind.is_mariadb() { &seen[..] } else { &words[..] },
    )?;
    let there = pair.target.scalar("SELECT (SELECT COUNT(*) FROM a_1.t) * 10 + (SELECT COUNT(*) FROM ax1.fired)")?;
    ensure!(there == "10", "{there}");
    pair.target.execute("DROP TABLE ax1.fired; DROP TRIGGER ax1.fires")?;
    refused_with_remedy(&run(&pair, &to, &["--no-triggers-on", "a*.u"])?, &words)?;
    run(&pair, &to, &["--no-triggers-on", "x", "--no-triggers-on", "ax*"])?.successful()?;
    pair.assert_same_rows()
}

#[test]
fn triggers_of_tables_that_the_account_cannot_see_are_refused_on_mysql() -> Result<()> {
    triggers_of_some(MYSQL_9_7)
}

#[test]
fn triggers_of_tables_that_the_account_cannot_see_are_refused_on_mariadb() -> Result<()> {
    triggers_of_some(MARIADB_10_11)
}

/// What somebody has done to the target; what the source does then; the words of the message; what brings the target back.
const DIVERGENCES: [(&str, &str, &[&str], &str); 6] = [
    (
        "DELETE FROM d.t WHERE id = 2",
        "UPDATE d.t SET v = 'new'",
        &["update of d.t key (id=2)", "differs there"],
        "INSERT INTO d.t VALUES (2, 'b', 2)",
    ),
    (
        "UPDATE d.t SET n = 7 WHERE id = 3",
        "UPDATE d.t SET v = 'newer' WHERE id > 1",
        &["update of d.t key (id=3)"],
        "UPDATE d.t SET n = 3 WHERE id = 3",
    ),
    (
        "UPDATE d.t SET v = 'NEWER' WHERE id = 3",
        "DELETE FROM d.t WHERE id IN (3, 4)",
        &["delete from d.t key (id=3)"],
        "UPDATE d.t SET v = 'newer' WHERE id = 3",
    ),
    (
        "DELETE FROM d.t WHERE id = 5",
        "DELETE FROM d.t WHERE id IN (5, 6)",
        &["delete from d.t key (id=5)"],
        "INSERT INTO d.t VALUES (5, 'newer', 5)",
    ),
    (
        "INSERT INTO d.t VALUES (20, 'x', 0)",
        "INSERT INTO d.t VALUES (19, 'y', 0), (20, 'y', 0)",
        &["insert into d.t key (id=20)", "1062"],
        "DELETE FROM d.t WHERE id = 20",
    ),
    (
        "UPDATE d.keyless SET b = 'other' WHERE a = 2",
        "DELETE FROM d.keyless WHERE a = 2",
        &["delete from d.keyless"],
        "UPDATE d.keyless SET b = 'y' WHERE a = 2",
    ),
];

fn strict(kind: Kind) -> Result<()> {
    let (pair, to) = begun(kind, &format!("{LEAST}, TRIGGER"), &[])?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20), n INT); CREATE TABLE d.keyless (a INT, b VARCHAR(9));
         INSERT INTO d.t VALUES (1,'a',1), (2,'b',2), (3,'c',3), (4,'d',4), (5,'e',5), (6,'f',6); INSERT INTO d.keyless VALUES (1,'x'), (2,'y')",
    )?;
    run(&pair, &to, &[])?.successful()?;
    for (spoil, change, words, repair) in DIVERGENCES {
        pair.target.execute(spoil)?;
        pair.source.execute(change)?;
        let stopped = run(&pair, &to, &[])?;
        refused_with_remedy(&stopped, words)?;
        ensure!(stopped.summary()?["error"]["kind"] == "Divergence", "{stopped}");
        pair.target.execute(repair)?;
        run(&pair, &to, &[])?.successful()?;
        pair.assert_same_rows()?;
    }
    // Only the key, when that is asked for.
    pair.target.execute("UPDATE d.t SET n = 70 WHERE id = 1")?;
    pair.source.execute("UPDATE d.t SET v = 'last' WHERE id = 1")?;
    run(&pair, &to, &["--compare-before", "key"])?.successful()?;
    let row = pair.target.scalar("SELECT CONCAT(v, n) FROM d.t WHERE id = 1")?;
    ensure!(row == "last70", "{row}");
    Ok(())
}

#[test]
fn a_row_that_differs_stops_the_channel_on_mysql() -> Result<()> {
    strict(MYSQL_9_7)
}

#[test]
fn a_row_that_differs_stops_the_channel_on_mariadb() -> Result<()> {
    strict(MARIADB_10_11)
}

/// What statements would do otherwise than row events.
fn refused_by_name(kind: Kind) -> Result<()> {
    let (pair, to) = begun(kind, COMMON, &[])?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v DECIMAL(10,2)); INSERT INTO d.t VALUES (1, 1)",
    )?;
    run(&pair, &to, &[])?.successful()?;
    pair.target.execute("CREATE TRIGGER d.counts AFTER INSERT ON d.t FOR EACH ROW SET @a = 1")?;
    pair.source.execute("UPDATE d.t SET v = 2; INSERT INTO d.t VALUES (2, 2.25)")?;
    refused_with_remedy(&run(&pair, &to, &[])?, &["d.t has triggers on the target (counts)"])?;
    pair.target.execute("DROP TRIGGER d.counts; ALTER TABLE d.t MODIFY v DECIMAL(10,1)")?;
    refused_with_remedy(&run(&pair, &to, &[])?, &["d.t column `v` is decimal(10,1) on the target"])?;
    pair.target.execute("ALTER TABLE d.t MODIFY v DECIMAL(10,2)")?;
    run(&pair, &to, &[])?.successful()?;
    pair.assert_same_rows()
}

#[test]
fn triggers_and_narrower_columns_are_refused_on_mysql() -> Result<()> {
    refused_by_name(MYSQL_9_7)
}

#[test]
fn triggers_and_narrower_columns_are_refused_on_mariadb() -> Result<()> {
    refused_by_name(MARIADB_10_11)
}

/// Documents are text there, and have a type of their own here.
#[test]
fn json_goes_from_mysql_to_mariadb() -> Result<()> {
    let pair = Pair::start_two((MYSQL_9_7, &[]), (MARIADB_10_11, &[]))?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    let rows = ["--rows", "sql"];
    pair.run_to_the_end(&rows)?;
    pair.source.execute("SET sql_log_bin = 0; ALTER TABLE d.t ADD j JSON")?;
    pair.target.execute("SET sql_log_bin = 0; ALTER TABLE d.t ADD j JSON")?;
    pair.source.execute("INSERT INTO d.t VALUES (1, '{\"a\": [1, 2.5, \"x\"]}'), (2, NULL); UPDATE d.t SET j = '[true]' WHERE id = 2; DELETE FROM d.t WHERE id = 1")?;
    pair.run_to_the_end(&rows)?;
    pair.assert_same_rows()
}

#[test]
fn json_goes_from_mariadb_to_mysql() -> Result<()> {
    let pair = Pair::start_two((MARIADB_10_11, &[]), (MYSQL_9_7, &[]))?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    let rows = ["--rows", "sql"];
    pair.run_to_the_end(&rows)?;
    pair.source.execute("SET sql_log_bin = 0; ALTER TABLE d.t ADD j JSON")?;
    pair.target.execute("SET sql_log_bin = 0; ALTER TABLE d.t ADD j JSON")?;
    pair.source.execute("INSERT INTO d.t VALUES (1, '{\"a\": [1, 2.5, \"x\"]}'), (2, NULL); UPDATE d.t SET j = '[true]' WHERE id = 2; DELETE FROM d.t WHERE id = 1")?;
    pair.run_to_the_end(&rows)?;
    pair.assert_same_rows()
}

/// A whole channel with the account of a service's administrator, over TLS where the server can insist on it: rows of all types, statements, definitions; a target that becomes read-only, as a
/// service's does when it fails over, and writable again.
fn of_service(kind: Kind, service: &str) -> Result<()> {
    eprintln!("{kind}, the administrator of {service}");
    let tls = tempfile::tempdir()?;
    certificate(tls.path())?;
    let file = |name: &str| tls.path().join(name).display().to_string();
    let (cert, key) = (format!("--ssl-cert={}", file("cert.pem")), format!("--ssl-key={}", file("key.pem")));
    let mut options = vec!["--log-bin-trust-function-creators=ON"];
    if kind.has_new_words() || kind.version() >= vec![10, 5] && kind.is_mariadb() {
        options.extend(["--require-secure-transport=ON", &cert, &key]);
    }
    if kind.is_mariadb() && options.len() > 1 {
        options.push("--ssl=ON");
    }
    let (pair, to) = begun(kind, &privileges(service, kind), &options)?;
    let (read_only, writable) = if kind.is_mariadb() {
        ("SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0")
    } else {
        ("SET GLOBAL super_read_only = 1", "SET GLOBAL super_read_only = 0, GLOBAL read_only = 0")
    };
    pair.source.execute(TABLES)?;
    pair.target.execute(read_only)?;
    let refused = run(&pair, &to, &["--dry-run"])?;
    ensure!(refused.status.code() == Some(1) && refused.stdout.contains("read-only"), "{refused}");
    pair.target.execute(writable)?;
    run(&pair, &to, &[])?.successful()?;
    pair.source.execute(CHANGES)?;
    run(&pair, &to, &[])?.successful()?;
    pair.assert_same_rows()?;
    pair.source.execute(matrix::ROWS)?;
    run(&pair, &to, &[])?.successful()?;
    // Rows as SQL would fire the triggers; a definer has to be the account itself, or one that it may name.
    let others = |line: &&str| !line.starts_with("CREATE TRIGGER") && !line.starts_with("CREATE VIEW");
    let definitions: Vec<&str> = matrix::DEFINITIONS.lines().filter(others).collect();
    pair.source.execute(&definitions.join("\n"))?;
    pair.source.execute("CREATE DEFINER=admin@localhost VIEW m.seen AS SELECT id, n FROM m.top")?;
    run(&pair, &to, &["--grouping", "off"])?.successful()?;
    pair.assert_same_rows()?;
    let mut live = pair.begin_into(&to, &[])?;
    pair.source.execute("INSERT INTO d.t (id, v) VALUES (999, 'live')")?;
    until("the channel runs", || Ok(pair.target.scalar("SELECT COUNT(*) FROM d.t WHERE id = 999")? == "1"))?;
    pair.target.execute(read_only)?;
    pair.source.execute("INSERT INTO d.t (id, v) VALUES (1000, 'while read-only')")?;
    live.wait_for_log("takes no changes, waiting")?;
    pair.target.execute(writable)?;
    until("the row arrives", || Ok(pair.target.scalar("SELECT COUNT(*) FROM d.t WHERE id = 1000")? == "1"))?;
    live.terminate()?;
    live.wait()?.successful()?;
    pair.assert_same_rows()?;
    let settled = heddle(&["settle", &to])?.successful()?;
    ensure!(settled.stdout.contains("no GTID is missing"), "{settled}");
    Ok(())
}

fn of_services(kind: &str) -> Result<()> {
    let kind: Kind = kind.parse()?;
    let services = if kind.is_mariadb() { &SERVICES[..1] } else { &SERVICES[..] };
    services.iter().try_for_each(|service| of_service(kind, service).with_context(|| format!("{kind}, {service}")))
}

e2e::tests! {
    rds_for_mysql: of_service(MYSQL_9_7, "RDS");
    rds_for_mariadb: of_service(MARIADB_10_11, "RDS");
    #[ignore = "scripts/nightly"] services_on_mysql_9_7: of_services("mysql-9.7");
    #[ignore = "scripts/nightly"] services_on_mysql_8_4: of_services("mysql-8.4");
    #[ignore = "scripts/nightly"] services_on_mysql_8_0_46: of_services("mysql-8.0.46");
    #[ignore = "scripts/nightly"] services_on_mysql_8_0: of_services("mysql-8.0.15");
    #[ignore = "scripts/nightly"] services_on_mysql_5_7: of_services("mysql-5.7.22");
    #[ignore = "scripts/nightly"] services_on_mariadb_10_6: of_services("mariadb-10.6");
    #[ignore = "scripts/nightly"] services_on_mariadb_11_4: of_services("mariadb-11.4");
    #[ignore = "scripts/nightly"] services_on_mariadb_11_8: of_services("mariadb-11.8");
}
