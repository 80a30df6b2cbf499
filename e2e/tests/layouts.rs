//! Columns that get other types without a word in the log: a rolling change, the target first, then the source with `sql_log_bin=0`. Each row has the types
//! that its own table map says.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::Result;
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};

const TABLES: &str = "CREATE DATABASE d; USE d;
    CREATE TABLE amounts (id INT PRIMARY KEY, v DECIMAL(10,3)) ENGINE=InnoDB;
    INSERT INTO amounts VALUES (1, 0), (2, 0), (3, 0);";

const CHANGE: &str =
    "SET SESSION sql_log_bin = 0; ALTER TABLE d.amounts MODIFY v DECIMAL(11,4); SET SESSION sql_log_bin = 1;";

/// Small transactions, that share a statement: with the types of before the change, and with those of after it.
const BEFORE: &str = "USE d; UPDATE amounts SET v = 1.5 WHERE id = 1; INSERT INTO amounts VALUES (4, 2.5), (5, 3);";
const AFTER: &str = "USE d; UPDATE amounts SET v = 2.5 WHERE id = 2; INSERT INTO amounts VALUES (6, 4.5), (7, 7); UPDATE amounts SET v = 9 WHERE id = 3;";

fn rolling_change(kind: Kind) -> Result<()> {
    let conversions = if kind.is_mariadb() {
        "--slave-type-conversions=ALL_NON_LOSSY"
    } else {
        "--replica-type-conversions=ALL_NON_LOSSY"
    };
    let pair = Pair::start_with(kind, &[], &[conversions])?;
    pair.source.execute(TABLES)?;
    pair.to_the_end(&[])?;
    pair.target.execute(CHANGE)?;
    for sql in [BEFORE, CHANGE, AFTER] {
        pair.source.execute(sql)?;
    }
    pair.to_the_end(&[]).map(drop)
}

e2e::tests! {
    mariadb_layouts: rolling_change(MARIADB_10_11);
    mysql_layouts: rolling_change(MYSQL_9_7);
}
