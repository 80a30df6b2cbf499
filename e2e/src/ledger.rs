//! A load of small transactions whose rows show what was applied twice, or not at all: an entry in a log for each, and amounts that are moved from one account to another.

use crate::checksum::{contents, differences};
use crate::patience::until;
use crate::server::Server;
use anyhow::{Result, ensure};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const ROWS: u64 = 500;
const BATCH: usize = 100;
/// Large rows that a cluster takes.
const FITTING: u64 = 8;

/// Makes the tables on the source.
pub fn create(source: &Server) -> Result<()> {
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0)")).collect();
    source.execute(&format!(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; \
         CREATE TABLE d.log (n BIGINT PRIMARY KEY, id INT) ENGINE=InnoDB; INSERT INTO d.t VALUES {}",
        rows.join(",")
    ))
}

/// Transactions on the source until `stop` is set; `pause` between batches of a hundred. `from`: the number of the last one of before; returns that of the last one.
pub fn load(source: &Server, stop: &AtomicBool, pause: Duration, from: u64) -> Result<u64> {
    let mut number = from;
    while !stop.load(Ordering::Relaxed) {
        let mut batch = String::new();
        for _ in 0..BATCH {
            number += 1;
            let (one, other) = (number * 7919 % ROWS, number * 104_729 % ROWS);
            write!(
                batch,
                "BEGIN; UPDATE d.t SET v = v + 1 WHERE id = {one}; UPDATE d.t SET v = v - 1 WHERE id = {other}; INSERT INTO d.log VALUES ({number}, {one}); COMMIT;"
            )?;
        }
        source.execute(&batch)?;
        thread::sleep(pause);
    }
    Ok(number)
}

/// Runs `faults` beside the load. Returns the number of the last transaction.
pub fn beside_load(source: &Server, pause: Duration, faults: impl FnOnce() -> Result<()>) -> Result<u64> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let loading = scope.spawn(|| load(source, &stop, pause, 0));
        let done = faults();
        stop.store(true, Ordering::Relaxed);
        let number = loading.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the load panicked")));
        done.and(number)
    })
}

/// Runs `done` while another client changes what Heddle's transactions change: each may lose.
pub fn beside_competitor<T>(competitor: &Server, done: impl FnOnce() -> Result<T>) -> Result<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = competitor.execute("UPDATE heddle.progress SET applied_at = SYSDATE(6)");
            }
        });
        let done = done();
        stop.store(true, Ordering::Relaxed);
        done
    })
}

/// Rows of which each fits into 150,000 bytes, and all together do not; then one that does not.
pub fn insert_large(source: &Server) -> Result<()> {
    source.execute("CREATE TABLE d.large (id INT PRIMARY KEY, v LONGBLOB) ENGINE=InnoDB")?;
    for id in 0..FITTING {
        source.execute(&format!("INSERT INTO d.large VALUES ({id}, REPEAT('x', 60000))"))?;
    }
    source.execute("INSERT INTO d.large VALUES (100, REPEAT('x', 400000))")
}

/// Those that fit have arrived, and no other one.
pub fn assert_fitting(target: &Server) -> Result<()> {
    let there = target.scalar("SELECT COUNT(*) FROM d.large")?;
    ensure!(there.trim() == FITTING.to_string(), "{there} of {FITTING} that fit are there");
    Ok(())
}

/// The last transaction of all, after which nothing comes.
pub fn finish(source: &Server) -> Result<()> {
    source.execute("INSERT INTO d.log VALUES (0, 0)")
}

/// How many transactions a server has.
pub fn count(server: &Server) -> Result<u64> {
    Ok(server.scalar("SELECT COUNT(*) FROM d.log")?.trim().parse()?)
}

/// Waits until a server has transactions. One that does not answer now is asked again.
pub fn until_there(server: &Server) -> Result<()> {
    until(format!("port {} has transactions", server.port), || Ok(count(server).is_ok_and(|count| count > 0)))
}

/// Waits until a server has so many more than now, or than when it answers again, and one.
pub fn until_more(server: &Server, more: u64) -> Result<()> {
    let mut before = None;
    until(format!("port {} gets more than {more} transactions", server.port), || {
        let Ok(now) = count(server) else { return Ok(false) };
        Ok(now > *before.get_or_insert(now) + more)
    })
}

/// Waits for the last transaction, then all servers have what the source has.
pub fn assert_equal<'a>(source: &Server, targets: impl IntoIterator<Item = &'a Server>) -> Result<()> {
    let expected = contents(source)?;
    for target in targets {
        target.wait_until("SELECT COUNT(*) FROM d.log WHERE n = 0")?;
        let differ = differences(&expected, &contents(target)?);
        ensure!(differ.is_empty(), "port {} differs:\n  {}", target.port, differ.join("\n  "));
        ensure!(target.scalar("SELECT SUM(v) FROM d.t")?.trim() == "0", "amounts got lost on port {}", target.port);
    }
    Ok(())
}
