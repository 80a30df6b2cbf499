//! Values that MySQL works out anew when it applies rows come out as in the session that changed them: its time zone, SQL mode and names of days.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Result, ensure};
use e2e::pair::Pair;
use e2e::server::{MYSQL_9_7, Server};

const TABLES: &str = "
    CREATE TABLE d.times (id INT PRIMARY KEY, n INT, u INT, ts TIMESTAMP NOT NULL, day DATE AS (DATE(ts)) STORED, hour INT AS (HOUR(ts)) VIRTUAL,
        KEY (hour), UNIQUE (u, (DATE(ts))));
    CREATE TABLE d.texts (id INT PRIMARY KEY, n INT, c CHAR(6), day DATETIME, padded VARCHAR(20) AS (CONCAT(c, 'x')) STORED,
        name VARCHAR(20) AS (DATE_FORMAT(day, '%W')) STORED, KEY (name));
    CREATE TABLE d.large (id INT PRIMARY KEY, data LONGBLOB, ts TIMESTAMP NOT NULL, day DATE AS (DATE(ts)) STORED)";

/// Changes of sessions that differ, between each other, with ids from `from`.
fn changes(from: u32) -> String {
    let mut sql = String::new();
    for round in 0..12 {
        let id = from + 10 * round;
        let zone = ["+05:30", "-07:00", "SYSTEM", "+00:00"][round as usize % 4];
        let mode = ["", "PAD_CHAR_TO_FULL_LENGTH", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"][round as usize % 3];
        let names = ["en_US", "de_DE"][round as usize % 2];
        sql += &format!(
            "SET time_zone = '{zone}', sql_mode = '{mode}', lc_time_names = '{names}';
             INSERT INTO d.times (id, n, u, ts) VALUES ({id}, 0, {id}, '2024-01-04 10:30:00'), ({id} + 1, 0, {id}, '2024-01-05 01:30:00');
             INSERT INTO d.texts (id, n, c, day) VALUES ({id}, 0, 'ab', '2024-01-05 01:30:00');
             SET time_zone = '+03:00';
             UPDATE d.times SET n = n + 1 WHERE id = {id} + 1; UPDATE d.texts SET n = n + 1 WHERE id = {id};
             DELETE FROM d.times WHERE id = {id};"
        );
    }
    sql
}

fn shown(server: &Server) -> Result<Vec<Vec<String>>> {
    let mut rows = server.rows("SELECT id, n, u, UNIX_TIMESTAMP(ts), day, hour FROM d.times ORDER BY id")?;
    rows.extend(server.rows("SELECT id, n, c, padded, name FROM d.texts ORDER BY id")?);
    rows.extend(server.rows("SELECT id, LENGTH(data), UNIX_TIMESTAMP(ts), day FROM d.large ORDER BY id")?);
    Ok(rows)
}

/// The virtual column is worked out by who reads it, so it is read in one time zone; what its index has is not.
fn applied(pair: &Pair, options: &[&str]) -> Result<()> {
    pair.run_to_the_end(options)?;
    let (here, there) = (shown(&pair.target)?, shown(&pair.source)?);
    let differ = there.iter().zip(&here).find(|(there, here)| there != here);
    ensure!(here.len() == there.len() && differ.is_none(), "{options:?}: source and target differ: {differ:?}");
    Ok(())
}

fn worked_out() -> Result<()> {
    let gtids = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    let pair = Pair::start_with(
        MYSQL_9_7,
        &[&gtids[..], &["--default-time-zone=+00:00"]].concat(),
        &[&gtids[..], &["--default-time-zone=+00:00"]].concat(),
    )?;
    pair.source.execute(&format!("CREATE DATABASE d; {TABLES}"))?;
    let ways: [&[&str]; 5] = [
        &[],
        &["--grouping", "3"],
        &["--grouping", "off"],
        &["--commit-order", "relaxed"],
        &["--grouping", "off", "--commit-order", "relaxed"],
    ];
    for (from, way) in (0..).step_by(1000).zip(ways) {
        pair.source.run_script(changes(from).as_bytes())?;
        // Few rows at once, and with them statements, branches, and a transaction too large to be held.
        pair.source.run_script(
            format!(
                "SET time_zone = '+09:00'; SET binlog_format = 'STATEMENT'; UPDATE d.texts SET n = n + 5 WHERE id = {from}; SET binlog_format = 'ROW';
                 INSERT INTO d.times (id, n, u, ts) VALUES ({from} + 500, 0, {from} + 500, '2024-01-05 01:30:00');
                 XA START 'x{from}'; INSERT INTO d.times (id, n, u, ts) VALUES ({from} + 501, 0, {from} + 501, '2024-01-05 01:30:00'); XA END 'x{from}';
                 XA PREPARE 'x{from}'; XA COMMIT 'x{from}';
                 INSERT INTO d.large (id, data, ts) VALUES ({from}, REPEAT('x', 9000000), '2024-01-05 01:30:00'), ({from} + 1, REPEAT('y', 9000000), '2024-01-05 01:30:00');"
            )
            .as_bytes(),
        )?;
        applied(&pair, way)?;
    }
    Ok(())
}

e2e::tests! {
    values_that_are_worked_out_anew: worked_out();
}
