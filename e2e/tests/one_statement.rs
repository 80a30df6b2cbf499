//! When the target keeps up a group is one statement, its progress a row in it: on every version, and as right as with statements; whatever the
//! target is set to do to statements and transactions of its clients.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, heddle};
use e2e::pair::Pair;

const ROWS: u64 = 30;

fn status(pair: &Pair) -> Result<serde_json::Value> {
    let run = heddle(&["status", "--to", &pair.target.url(), "--json"])?.successful()?;
    let status: serde_json::Value = serde_json::from_str(&run.stdout)?;
    Ok(status[0].clone())
}

fn number(status: &serde_json::Value, field: &str) -> Result<f64> {
    status[field].as_f64().with_context(|| format!("no {field} in {status}"))
}

/// COMMIT statements that the target has executed.
fn commits(pair: &Pair) -> Result<u64> {
    let rows = pair.target.rows("SHOW GLOBAL STATUS LIKE 'Com_commit'")?;
    rows.first().and_then(|row| row.get(1)).context("no such counter")?.parse().context("a counter")
}

/// Waits until the row is on the target.
fn wait_for(pair: &Pair, row: u64) -> Result<()> {
    pair.target.wait_until(&format!("SELECT COUNT(*) FROM d.t WHERE id = {row}"))
}

/// A heddle that has begun, and has nothing left to apply.
fn keeping_up(pair: &Pair, options: &[&str]) -> Result<Heddle> {
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT DEFAULT 0) ENGINE=InnoDB;
         CREATE TABLE d.u (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO d.t (id) VALUES (0)",
    )?;
    pair.to_the_end(options)?;
    let running = pair.begin(options)?;
    pair.source.execute("UPDATE d.t SET id = 999 WHERE id = 0")?;
    wait_for(pair, 999)?;
    Ok(running)
}

fn small_groups(server: &str, order: &str) -> Result<()> {
    let pair = Pair::start(server.parse()?)?;
    let options = ["--commit-order", order];
    let running = keeping_up(&pair, &options)?;
    let before = (commits(&pair)?, number(&status(&pair)?, "low_water")?);
    let began = Instant::now();
    for row in 1..=ROWS {
        pair.source.execute(&format!(
            "BEGIN; INSERT INTO d.t VALUES ({row}, 0); INSERT INTO d.u VALUES ({row}); UPDATE d.t SET v = {row} WHERE id = 999; COMMIT"
        ))?;
        wait_for(&pair, row)?;
    }
    // In relaxed order the low water is noted twice a second. By statements there would be one for each row beside these.
    let most = if order == "preserve" { 0 } else { (ROWS / 2).max(2 * began.elapsed().as_secs() + 4) };
    ensure!(commits(&pair)? - before.0 <= most, "groups were committed by statements");
    if order == "preserve" {
        let status = status(&pair)?;
        ensure!((number(&status, "low_water")? - before.1 - ROWS as f64).abs() < 0.5, "{status}");
        let last = pair.source.current_log()?;
        let file = last.file_name().context("a log has a name")?.to_string_lossy().into_owned();
        ensure!(status["source_position"].as_str().is_some_and(|at| at.starts_with(&file)), "{file}: {status}");
        // By the target's clock, which is this machine's.
        ensure!((0.0..10.0).contains(&number(&status, "idle_seconds")?), "{status}");
        ensure!((0.0..10.0).contains(&number(&status, "delay_seconds")?), "{status}");
    }
    running.kill()?;
    running.wait()?;
    pair.source.execute("INSERT INTO d.u VALUES (1000)")?;
    pair.to_the_end(&options).map(drop)
}

/// Where the text of the progress has other bytes than ASCII, it is written by statements.
fn other_character_set(server: &str) -> Result<()> {
    let pair = Pair::start(server.parse()?)?;
    pair.target.execute("CREATE DATABASE heddle CHARACTER SET utf16")?;
    let running = keeping_up(&pair, &[])?;
    ensure!(
        status(&pair)?["source_position"].as_str().is_some_and(|at| at.starts_with("binlog.0")),
        "{}",
        status(&pair)?
    );
    running.kill()?;
    running.wait()?;
    pair.source.execute("INSERT INTO d.u VALUES (1)")?;
    pair.to_the_end(&[]).map(drop)
}

/// What the target does to its clients, but not to its own applier, it does not do to heddle.
fn strict_with_clients(server: &str, settings: &[&str]) -> Result<()> {
    let kind = server.parse()?;
    let pair = Pair::start_with(kind, &[], settings)?;
    pair.target.execute("SET GLOBAL sql_select_limit = 1")?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB; CREATE TABLE d.keyless (a BIGINT, b BIGINT) ENGINE=InnoDB;
         INSERT INTO d.t VALUES (0); INSERT INTO d.keyless VALUES (1, 2), (3, 4)",
    )?;
    pair.run_to_the_end(&[])?;
    let running = pair.begin(&[])?;
    let mut other = pair.target.connect()?;
    for row in 1..=ROWS {
        pair.source.execute(&format!("INSERT INTO d.t VALUES ({row})"))?;
        wait_for(&pair, row)?;
        let open = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_rows_modified > 0";
        ensure!(pair.target.scalar(open)? == "0", "a transaction is left open");
    }
    // For longer than a statement may take there.
    other.execute("BEGIN")?;
    other.execute("SELECT id FROM d.t WHERE id = 1 FOR UPDATE")?;
    pair.source.execute("UPDATE d.t SET id = 100 WHERE id = 1")?;
    thread::sleep(Duration::from_millis(1500));
    other.execute("ROLLBACK")?;
    wait_for(&pair, 100)?;
    running.terminate()?;
    let run = running.wait()?.successful()?;
    ensure!(run.number("retries")? == 0, "{run}");
    pair.target.execute("SET GLOBAL sql_select_limit = DEFAULT")?;
    pair.to_the_end(&[]).map(drop)
}

/// Somebody removes the row that the progress goes into.
fn progress_removed(server: &str) -> Result<()> {
    let pair = Pair::start(server.parse()?)?;
    let running = keeping_up(&pair, &[])?;
    pair.target.execute("DELETE FROM heddle.progress")?;
    pair.source.execute("INSERT INTO d.u VALUES (1)")?;
    let run = running.wait()?;
    ensure!(run.stderr.contains("in heddle.progress is gone"), "{run}");
    run.failed_with("restore it")
}

e2e::tests! {
    mariadb: small_groups("mariadb-10.11", "preserve");
    mysql: small_groups("mysql-9.7", "preserve");
    mariadb_relaxed: small_groups("mariadb-10.11", "relaxed");
    mysql_relaxed: small_groups("mysql-9.7", "relaxed");
    mariadb_strict_with_clients: strict_with_clients("mariadb-10.11", &["--completion-type=CHAIN", "--max-statement-time=1"]);
    mysql_strict_with_clients: strict_with_clients("mysql-9.7", &["--completion-type=CHAIN", "--max-execution-time=1000", "--sql-generate-invisible-primary-key=ON"]);
    mariadb_other_character_set: other_character_set("mariadb-10.11");
    mysql_other_character_set: other_character_set("mysql-9.7");
    mariadb_progress_removed: progress_removed("mariadb-10.11");
    mysql_progress_removed: progress_removed("mysql-9.7");
    #[ignore = "scripts/nightly"] mysql_5_6: small_groups("mysql-5.6.14", "preserve");
    #[ignore = "scripts/nightly"] mysql_5_7: small_groups("mysql-5.7.22", "preserve");
    #[ignore = "scripts/nightly"] mysql_8_0: small_groups("mysql-8.0.15", "preserve");
    #[ignore = "scripts/nightly"] mysql_8_0_46: small_groups("mysql-8.0.46", "preserve");
    #[ignore = "scripts/nightly"] mysql_8_4: small_groups("mysql-8.4", "preserve");
    #[ignore = "scripts/nightly"] mariadb_10_6: small_groups("mariadb-10.6", "preserve");
    #[ignore = "scripts/nightly"] mariadb_10_1: small_groups("mariadb-10.1", "preserve");
    #[ignore = "scripts/nightly"] mariadb_10_2: small_groups("mariadb-10.2", "preserve");
    #[ignore = "scripts/nightly"] mariadb_11_4: small_groups("mariadb-11.4", "preserve");
    #[ignore = "scripts/nightly"] mariadb_11_8: small_groups("mariadb-11.8", "preserve");
}
