//! A few pairs of the matrix of servers (`torture matrix` has them all): from one flavour to the other.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use e2e::matrix::check;
use e2e::pair::Pair;
use e2e::server::{MARIADB_10_11, MYSQL_9_7};

#[test]
fn mariadb_to_mysql() {
    check(MARIADB_10_11, MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn mysql_to_mariadb() {
    check(MYSQL_9_7, MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}

/// Sessions with collations that only MariaDB has, as all of MariaDB 11.5 and later are: their statements need none of them.
#[test]
fn collations_of_mariadb_alone_into_mysql() {
    let check = || -> anyhow::Result<()> {
        let pair = Pair::start_two(
            (MARIADB_10_11, &["--character-set-server=utf8mb4", "--collation-server=utf8mb4_thai_520_w2"]),
            (MYSQL_9_7, &[]),
        )?;
        pair.source.execute(
            "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin; CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) CHARACTER SET utf8mb4; \
             DROP DATABASE IF EXISTS nowhere; SET collation_connection = utf8mb4_uca1400_ai_ci; INSERT INTO t VALUES (1, 'ä'); SET @name = 'ö'; \
             SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET binlog_format = STATEMENT; INSERT INTO t VALUES (2, @name); \
             UPDATE t SET v = CONCAT(v, 'x') WHERE id = 1; SET collation_connection = utf8mb3_uca1400_german2_as_cs; INSERT INTO t VALUES (3, 'ß')",
        )?;
        pair.run_to_the_end(&[])?;
        pair.assert_same_rows()
    };
    check().unwrap_or_else(|error| panic!("{error:#}"));
}

/// A definition that both understand makes a column of another type.
#[test]
fn json_of_mariadb_into_mysql() {
    let check = || -> anyhow::Result<()> {
        let pair = Pair::start_two((MARIADB_10_11, &[]), (MYSQL_9_7, &[]))?;
        pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, j JSON); INSERT INTO d.t VALUES (1, '{\"a\": 1}')")?;
        let run = pair.begin(&["--until-end"])?.wait()?;
        let message = run.to_string();
        anyhow::ensure!(!run.status.success() && message.contains("column j is JSON on the target"), "{message}");
        pair.target.execute("ALTER TABLE d.t MODIFY j LONGTEXT")?;
        pair.run_to_the_end(&[])?;
        pair.assert_same_rows()
    };
    check().unwrap_or_else(|error| panic!("{error:#}"));
}
