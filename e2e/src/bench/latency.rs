//! From commit on the source to visible on the target: one row, updated again and again on the source, read again and again
//! on the target. The same for heddle and for native replication.
//!
//! The source is updated at fixed times whatever the target has seen: a replica that falls behind for a second has all updates of that
//! second late, not one.

use crate::server::Server;
use anyhow::{Context, Result, ensure};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use wire::Connection;

/// Between two looks at the target, at least; and as a share of what the change has taken so far.
const LOOK_EVERY: Duration = Duration::from_micros(200);
const LOOK_SHARE: u32 = 20;
const PROBE_EVERY: Duration = Duration::from_millis(20);
const LOST_AFTER: Duration = Duration::from_secs(120);

/// To be executed on the source.
pub const TABLE: &str = "CREATE DATABASE IF NOT EXISTS probe; CREATE TABLE IF NOT EXISTS probe.beat (id INT PRIMARY KEY, n BIGINT NOT NULL);
    REPLACE INTO probe.beat VALUES (1, 0)";

/// Seconds from the answer to a commit until the change was seen, of probes over `time`. The target has all that was before.
pub fn probe(source: &Server, target: &Server, time: Duration) -> Result<Vec<f64>> {
    let (mut source, mut target) = (source.connect()?, target.connect()?);
    let before = count(&mut source)?;
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let beating = scope.spawn(move || beat(&mut source, time, &tell));
        let found = watch(&mut target, before, &told)?;
        beating.join().map_err(|_| anyhow::anyhow!("the thread that commits has panicked"))??;
        Ok(found)
    })
}

/// Counts on, and tells when each commit was answered.
fn beat(source: &mut Connection, time: Duration, tell: &Sender<Instant>) -> Result<()> {
    let started = Instant::now();
    for n in 1.. {
        let at = PROBE_EVERY * n;
        if at > time {
            break;
        }
        std::thread::sleep(at.saturating_sub(started.elapsed()));
        source.execute("UPDATE probe.beat SET n = n + 1 WHERE id = 1")?;
        if tell.send(Instant::now()).is_err() {
            break;
        }
    }
    Ok(())
}

fn count(server: &mut Connection) -> Result<u64> {
    Ok(server.scalar("SELECT n FROM probe.beat WHERE id = 1")?.context("no row")?.parse()?)
}

/// How long each after `before` took until it was seen.
fn watch(target: &mut Connection, before: u64, told: &Receiver<Instant>) -> Result<Vec<f64>> {
    let mut found = Vec::new();
    let mut seen = before;
    for (n, committed) in (before + 1..).zip(told) {
        loop {
            if seen < n {
                seen = count(target)?;
            }
            let waiting = committed.elapsed();
            if seen >= n {
                found.push(waiting.as_secs_f64());
                break;
            }
            ensure!(waiting < LOST_AFTER, "a change does not arrive");
            std::thread::sleep(LOOK_EVERY.max(waiting / LOOK_SHARE));
        }
    }
    Ok(found)
}
