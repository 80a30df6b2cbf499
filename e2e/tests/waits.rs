//! What a channel waits for by itself: ends that are away when it starts, a target that its administrator has closed, errors that pass.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, heddle};
use e2e::pair::Pair;
use e2e::patience::until;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD};
use std::thread;
use std::time::Duration;

/// Longer than several tries take.
const SEVERAL_TRIES: Duration = Duration::from_secs(4);
const TABLES: &str =
    "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); CREATE TABLE d.m (id INT PRIMARY KEY) ENGINE=MyISAM";

/// Both ends are away when heddle starts, and come one after the other; nobody waits who only asks, or is told not to.
fn starts_while_ends_are_away(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(&format!("{TABLES}; INSERT INTO d.t VALUES (1)"))?;
    pair.source.stop()?;
    pair.begin(&["--connect-retry-seconds", "0"])?.wait()?.failed_with("source")?;
    pair.target.stop()?;
    pair.begin(&["--connect-retry-seconds", "1"])?.wait()?.failed_with("target")?;
    pair.begin(&["--dry-run"])?.wait()?.failed_with("target")?;
    let mut running = pair.begin(&["--until-end"])?;
    running.wait_for_log("the target can not be reached, trying again")?;
    pair.target.restart(&[])?;
    running.wait_for_log("the source can not be reached, trying again")?;
    ensure!(!running.has_ended()?, "it has ended: {}", running.wait()?);
    pair.source.restart(&[])?;
    running.wait()?.successful()?;
    pair.assert_equal()
}

/// The connections of eight workers are lost at once; each notices when it is used again. It is said once, in one line, and once that the target is back.
fn workers_say_it_once(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)")?;
    let rows = "INSERT INTO d.t (n) VALUES (1);".repeat(200);
    let mut running = pair.begin(&["--workers", "8", "--grouping", "off"])?;
    pair.source.execute(&rows)?;
    let rows_on_target = |wanted: &str| {
        until(format!("rows: {wanted}"), || {
            Ok(pair.target.scalar(&format!("SELECT COUNT(*) {wanted} FROM d.t")).is_ok_and(|is_so| is_so == "1"))
        })
    };
    rows_on_target("> 0")?;
    pair.source.execute(&rows)?;
    pair.target.kill()?;
    running.wait_for_log("the target can not be reached, trying again")?;
    pair.source.execute(&rows)?;
    pair.target.restart(&[])?;
    rows_on_target("= 600")?;
    let log = running.log();
    let count = |text: &str| log.matches(text).count();
    ensure!(count("the target can not be reached, trying again") == 1, "{log}");
    ensure!(count("the target is reachable again") == 1, "{log}");
    ensure!(count("can not be seen or ended") == 0 && count("does not answer") == 0, "{log}");
    ensure!(log.lines().all(|line| line.starts_with("20") && !line.contains("\\n")), "{log}");
    running.terminate()?;
    running.wait()?.successful()?;
    pair.assert_equal()
}

/// An account that may not write where a server is read-only.
fn plain_account(pair: &Pair) -> Result<String> {
    let apply = if pair.target.kind.is_mariadb() {
        "BINLOG REPLAY, BINLOG ADMIN, PROCESS"
    } else {
        "BINLOG_ADMIN, SESSION_VARIABLES_ADMIN, PROCESS"
    };
    for account in ["plain@'%'", "plain@localhost"] {
        pair.target.execute(&format!(
            "SET sql_log_bin = 0; CREATE USER {account} IDENTIFIED BY '{PASSWORD}'; GRANT {apply} ON *.* TO {account}; \
             GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON *.* TO {account}"
        ))?;
    }
    Ok(pair.target.url().replace("heddle@", "plain@"))
}

/// Until `heddle status` says it.
fn wait_for_status(pair: &Pair, state: &str, text: &str) -> Result<()> {
    let mut said = String::new();
    for _ in 0..150 {
        let run = heddle(&["status", "--to", &pair.target.url(), "--json"])?.successful()?;
        let status: serde_json::Value = serde_json::from_str(&run.stdout)?;
        let retrying = status[0]["retrying"]["message"].as_str().unwrap_or_default();
        if status[0]["state"] == state && retrying.contains(text) {
            return Ok(());
        }
        said = run.stdout;
        thread::sleep(Duration::from_millis(200));
    }
    anyhow::bail!("heddle status never says {state} {text}: {said}")
}

/// `close`, `open`: statements on the target. What comes meanwhile is applied when it is open again, each change once.
fn is_waited_for(pair: &Pair, running: &mut Heddle, close: &str, open: &str, id: u32) -> Result<()> {
    pair.target.execute(close)?;
    pair.source.execute(&format!(
        "INSERT INTO d.t (id) VALUES ({id}); INSERT INTO d.m VALUES ({id}), (-{id}); ALTER TABLE d.t ADD COLUMN c{id} INT; \
         BEGIN; INSERT INTO d.t (id) VALUES (-{id}); UPDATE d.t SET id = -1000 - id WHERE id = {id}; COMMIT"
    ))?;
    thread::sleep(SEVERAL_TRIES);
    ensure!(!running.has_ended()?, "it has ended while {close}");
    pair.target.execute(open)?;
    pair.target
        .wait_until(&format!("SELECT COUNT(*) FROM d.t WHERE id = -1000 - {id}"))
        .with_context(|| close.to_owned())
}

/// An administrator closes the target to changes, or to everybody: that is no error, and no limit of retries counts it.
fn closed_target(kind: Kind, options: &[&str]) -> Result<()> {
    let pair = Pair::start(kind)?;
    let to = plain_account(&pair)?;
    pair.source.execute(TABLES)?;
    let options = [&["--retries", "1", "--connect-retry-seconds", "1"], options].concat();
    let mut running = pair.begin_into(&to, &options)?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'm'")?;
    is_waited_for(&pair, &mut running, "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", 1)?;
    running.wait_for_log("the target takes no changes")?;
    running.wait_for_log("the target takes changes again")?;
    if !kind.is_mariadb() {
        let open = "SET GLOBAL super_read_only = 0; SET GLOBAL read_only = 0";
        is_waited_for(&pair, &mut running, "SET GLOBAL super_read_only = 1", open, 2)?;
        is_waited_for(&pair, &mut running, "SET GLOBAL offline_mode = 1", "SET GLOBAL offline_mode = 0", 3)?;
    }
    pair.target.execute("SET GLOBAL read_only = 1")?;
    pair.source.execute("INSERT INTO d.t (id) VALUES (4)")?;
    wait_for_status(&pair, "retrying", "read_only=ON")?;
    // Whoever asks it to end is not kept.
    running.terminate()?;
    let run = running.wait()?;
    ensure!(run.was_stopped()? && run.status.code() == Some(75), "it was not stopped: {run}");
    run.failed_with("asked to end")?;
    pair.target.execute("SET GLOBAL read_only = 0; SET sql_log_bin = 0; DROP USER plain@'%', plain@localhost")?;
    pair.to_the_end(&[]).map(drop)
}

/// A table on the target that is full: progress line, log and status name it, and it goes on when there is room.
fn full_table(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(&format!("{TABLES}; CREATE TABLE d.f (id INT PRIMARY KEY, v CHAR(200)) ENGINE=MEMORY"))?;
    let mut running = pair.begin(&[])?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'f'")?;
    pair.target.execute("SET sql_log_bin = 0; SET max_heap_table_size = 16384; ALTER TABLE d.f ENGINE=MEMORY")?;
    // Each for itself: one that changed a part of such a table could not be tried again.
    let rows: String = (0..200).map(|id| format!("INSERT INTO d.f VALUES ({id}, 'x');")).collect();
    pair.source.execute(&rows)?;
    running.wait_for_log("is full")?;
    wait_for_status(&pair, "retrying", "is full")?;
    pair.target.execute("SET sql_log_bin = 0; SET max_heap_table_size = 16777216; ALTER TABLE d.f ENGINE=MEMORY")?;
    pair.target.wait_until("SELECT COUNT(*) = 200 FROM d.f")?;
    running.wait_for_log("the target takes changes again")?;
    pair.source.execute("INSERT INTO d.t VALUES (1)")?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.t")?;
    wait_for_status(&pair, "idle", "")?;
    running.terminate()?;
    ensure!(running.wait()?.was_stopped()?, "it was not stopped");
    pair.assert_equal()
}

macro_rules! tests {
    ($($name:ident: $run:expr;)*) => {
        $(#[test]
        fn $name() {
            $run.unwrap_or_else(|error| panic!("{error:#}"));
        })*
    };
}

tests! {
    mariadb_workers_say_it_once: workers_say_it_once(MARIADB_10_11);
    mysql_workers_say_it_once: workers_say_it_once(MYSQL_9_7);
    mariadb_starts_while_ends_are_away: starts_while_ends_are_away(MARIADB_10_11);
    mysql_starts_while_ends_are_away: starts_while_ends_are_away(MYSQL_9_7);
    mariadb_closed_target: closed_target(MARIADB_10_11, &[]);
    mysql_closed_target: closed_target(MYSQL_9_7, &[]);
    mysql_closed_target_relaxed: closed_target(MYSQL_9_7, &["--commit-order", "relaxed", "--grouping", "off"]);
    mariadb_full_table: full_table(MARIADB_10_11);
    mysql_full_table: full_table(MYSQL_9_7);
}
