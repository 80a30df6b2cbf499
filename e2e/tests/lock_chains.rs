//! An earlier group waits for a client of the target, and the client for a later group, which waits for its turn: the later one gives way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::pair::Pair;
use e2e::{tests, until};

const ROUNDS: u64 = 10;
/// From this one on, somebody reads InnoDB's tables all the time: MariaDB's then show always the same.
const WATCHED_FROM: u64 = 6;
/// Where nobody gives way, a wait lasts for the server's 50 s.
const WAIT_MS_MAX: u64 = 30_000;

/// Not read from InnoDB's tables in information_schema: who reads them often is always shown the same, and so is heddle.
fn waits_for_rows(pair: &Pair) -> Result<bool> {
    let rows = pair.target.rows("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")?;
    Ok(rows.first().and_then(|row| row.get(1)).is_some_and(|waits| waits != "0"))
}

/// The longest that any session of the target has waited for a row, in milliseconds, as the target counts it.
fn longest_wait(pair: &Pair) -> Result<u64> {
    let rows = pair.target.rows("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_time_max'")?;
    Ok(rows.first().and_then(|row| row.get(1)).context("no such counter")?.parse()?)
}

fn chains(server: &str) -> Result<()> {
    let pair = Pair::start(server.parse()?)?;
    let ended = AtomicBool::new(false);
    let watched = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| -> Result<()> {
            let mut watcher = pair.target.connect()?;
            while !ended.load(Ordering::Relaxed) {
                if watched.load(Ordering::Relaxed) {
                    watcher.execute("SELECT COUNT(*) FROM information_schema.innodb_trx")?;
                }
                thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        });
        let done = beside(&pair, &watched);
        ended.store(true, Ordering::Relaxed);
        watching.join().map_err(|_| anyhow!("the watcher panicked"))??;
        done
    })
}

fn beside(pair: &Pair, watched: &AtomicBool) -> Result<()> {
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; CREATE TABLE d.u LIKE d.t;
         INSERT INTO d.t VALUES (1, 0), (2, 0), (4, 0), (7, 0), (9, 0); INSERT INTO d.u VALUES (1, 0), (2, 0)",
    )?;
    pair.to_the_end(&[])?;
    let running = pair.begin(&["--workers", "4"])?;
    let mut client = pair.target.connect()?;
    // Sees what is applied and not committed.
    let mut dirty = pair.target.connect()?;
    dirty.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")?;
    for round in 1..=ROUNDS {
        watched.store(round >= WATCHED_FROM, Ordering::Relaxed);
        client.execute("BEGIN")?;
        client.execute("SELECT v FROM d.t WHERE id BETWEEN 1 AND 2 LOCK IN SHARE MODE")?;
        pair.source.execute(&format!("UPDATE d.t SET v = {round} WHERE id = 2"))?;
        until("a wait for a row", || waits_for_rows(pair))?;
        pair.source.execute(&format!("UPDATE d.t SET v = {round} WHERE id = 7"))?;
        if round < WATCHED_FROM {
            let applied = |value: Option<String>| value.as_deref() == Some(round.to_string().as_str());
            until("the row of the group", || Ok(applied(dirty.scalar("SELECT v FROM d.t WHERE id = 7")?)))?;
        } else {
            // It may have given way already, as nobody shows heddle for whom the first one waits.
            thread::sleep(Duration::from_millis(300));
        }
        // Fails after the server's 50 s where nobody gives way.
        client.execute("SELECT v FROM d.t WHERE id = 7 FOR UPDATE")?;
        client.execute("ROLLBACK")?;
        pair.target.wait_until(&format!("SELECT COUNT(*) = 2 FROM d.t WHERE v = {round} AND id IN (2, 7)"))?;
    }
    let longest = longest_wait(pair)?;
    ensure!(longest < WAIT_MS_MAX, "somebody waited for a row for {longest} ms");
    // The same with locks of tables: the client that waits holds up who comes behind it.
    client.execute("LOCK TABLES d.t WRITE")?;
    pair.source.execute("BEGIN; UPDATE d.t SET v = 100 WHERE id = 1; UPDATE d.u SET v = 100 WHERE id = 1; COMMIT")?;
    let waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for table metadata lock'";
    pair.target.wait_until(waits)?;
    pair.source.execute("UPDATE d.u SET v = 100 WHERE id = 2")?;
    // Time for the second to take its locks. It may have given way already.
    thread::sleep(Duration::from_millis(300));
    thread::scope(|scope| -> Result<()> {
        let altering =
            scope.spawn(|| pair.target.execute("SET SESSION lock_wait_timeout = 100; ALTER TABLE d.u COMMENT = 'x'"));
        client.execute("UNLOCK TABLES")?;
        altering.join().map_err(|_| anyhow!("ALTER panicked"))?.map(drop)
    })?;
    pair.target.wait_until("SELECT COUNT(*) = 2 FROM d.u WHERE v = 100")?;
    running.terminate()?;
    let run = running.wait()?;
    ensure!(run.number("aborts")? >= ROUNDS, "{run}");
    Ok(())
}

tests! {
    mariadb: chains("mariadb-10.11");
    mysql: chains("mysql-9.7");
}
