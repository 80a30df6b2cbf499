//! From commit on the source to visible on the target: one row, updated again and again on the source, read again and again
//! on the target. The same for heddle and for native replication.

use crate::server::Server;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

/// Between two looks at the target.
const LOOK_EVERY: Duration = Duration::from_micros(200);
const PROBE_EVERY: Duration = Duration::from_millis(20);
const LOST_AFTER: Duration = Duration::from_secs(30);

/// To be executed on the source.
pub const TABLE: &str = "CREATE DATABASE IF NOT EXISTS probe; CREATE TABLE IF NOT EXISTS probe.beat (id INT PRIMARY KEY, n BIGINT NOT NULL);
    REPLACE INTO probe.beat VALUES (1, 0)";

/// Seconds from the answer to a commit until the change was seen, of probes over `time`.
pub fn probe(source: &Server, target: &Server, time: Duration) -> Result<Vec<f64>> {
    let (mut source, mut target) = (source.connect()?, target.connect()?);
    let started = Instant::now();
    let mut found = Vec::new();
    for n in 1_u64.. {
        source.execute(format!("UPDATE probe.beat SET n = {n} WHERE id = 1"))?;
        let committed = Instant::now();
        loop {
            let seen: u64 = target.scalar("SELECT n FROM probe.beat WHERE id = 1")?.context("no row")?.parse()?;
            if seen >= n {
                break;
            }
            ensure!(committed.elapsed() < LOST_AFTER, "a change does not arrive");
            std::thread::sleep(LOOK_EVERY);
        }
        found.push(committed.elapsed().as_secs_f64());
        if started.elapsed() > time {
            break;
        }
        std::thread::sleep(PROBE_EVERY);
    }
    Ok(found)
}
