//! The stages of the way: what has not passed each of them yet, in seconds of the source's time, transactions and bytes.

use channel::snapshot::{Lag, Snapshot};
use serde::{Deserialize, Serialize};

/// What has not passed it. `None`: not known here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage {
    pub name: String,
    pub lag_s: Option<f64>,
    pub transactions: Option<u64>,
    pub bytes: Option<u64>,
}

/// received → durable → scheduled → applied → committed. Of files: the last three.
pub fn stages(before: &Snapshot, now: &Snapshot) -> Vec<Stage> {
    let mut stages = Vec::new();
    let received = now.received.as_ref();
    let ahead = received.and_then(|received| received.unread_transactions);
    let lag_of = |time_us: u64| lag_since(before, now, time_us);
    if let Some(received) = received {
        let received_s = source_lag(before, now);
        stages.push(Stage { name: "received".to_owned(), lag_s: received_s, transactions: None, bytes: None });
        let (all, disk) = (received.amount, received.on_disk);
        let late = f64::from(all.time_s.saturating_sub(disk.time_s));
        let is_known = disk.time_s > 0 || all.bytes == disk.bytes;
        stages.push(Stage {
            name: "durable".to_owned(),
            lag_s: received_s.filter(|_| is_known).map(|lag| lag + late),
            transactions: (all.transactions > 0).then(|| all.transactions.saturating_sub(disk.transactions)),
            // Heartbeats come too, and are not kept.
            bytes: Some(if all.transactions == disk.transactions && late == 0.0 {
                0
            } else {
                all.bytes.saturating_sub(disk.bytes)
            }),
        });
    }
    let caught_up = now.lag() == Lag::CaughtUp;
    let unread = received.and_then(|received| received.unread_bytes);
    let queued = now.scheduled.queued_bytes;
    let outstanding = now.outstanding_transactions();
    // What the scheduler has given to workers, or has seen committed above the low water.
    let scheduled = &now.scheduled;
    let given = scheduled.outstanding_transactions.saturating_sub(scheduled.queued_transactions as u64);
    let queued_transactions = outstanding.saturating_sub(given);
    let all = |inside: u64| if received.is_some() { ahead.map(|ahead| ahead + inside) } else { Some(inside) };
    let dispatched = if queued_transactions == 0 { now.read.commit_time_us } else { 0 };
    stages.push(Stage {
        name: "scheduled".to_owned(),
        lag_s: if caught_up || (queued_transactions == 0 && unread == Some(0)) {
            Some(0.0)
        } else {
            lag_of(dispatched)
        },
        transactions: all(queued_transactions),
        bytes: unread.map(|unread| unread + queued),
    });
    let running: u64 = now.workers.each.iter().filter(|worker| !worker.waits_to_commit).map(bytes_of).sum();
    let waiting: u64 = now.workers.each.iter().filter(|worker| worker.waits_to_commit).map(bytes_of).sum();
    let applied: u64 = now.workers.each.iter().filter(|worker| worker.waits_to_commit).map(count_of).sum();
    let lag = match now.lag() {
        Lag::CaughtUp => Some(0.0),
        Lag::Behind(lag) => Some(lag.as_secs_f64()),
        Lag::Unknown | Lag::SourceLost(_) => None,
    };
    stages.push(Stage {
        name: "applied".to_owned(),
        lag_s: lag,
        transactions: all(outstanding.saturating_sub(applied)),
        bytes: unread.map(|unread| unread + queued + running),
    });
    stages.push(Stage {
        name: "committed".to_owned(),
        lag_s: lag,
        transactions: all(outstanding),
        bytes: unread.map(|unread| unread + queued + running + waiting),
    });
    stages
}

fn bytes_of(worker: &channel::snapshot::WorkerSample) -> u64 {
    worker.running.as_ref().map_or(0, |running| running.bytes)
}

fn count_of(worker: &channel::snapshot::WorkerSample) -> u64 {
    worker.running.as_ref().map_or(0, |running| running.transactions as u64)
}

/// How far the receiver is behind the source: known while something comes. While nothing comes, all that the source has sent is here.
fn source_lag(before: &Snapshot, now: &Snapshot) -> Option<f64> {
    let received = now.received.as_ref()?;
    if now.trouble.source_lost.is_some() {
        return None;
    }
    let came = before.received.as_ref().is_none_or(|before| before.amount.bytes < received.amount.bytes);
    if !came || received.amount.time_s == 0 {
        return Some(0.0);
    }
    Some(received.amount.age_ms as f64 / 1e3)
}

/// Age of what was committed on the source at that time; 0: not known.
fn lag_since(before: &Snapshot, now: &Snapshot, time_us: u64) -> Option<f64> {
    if time_us == 0 {
        // Something waits to be dispatched: at least as old as what is read.
        return (now.read.commit_time_us > 0).then(|| {
            let age = now.clock_us.saturating_sub(now.read.commit_time_us) as f64 / 1e6;
            age.max(source_lag(before, now).unwrap_or(0.0))
        });
    }
    Some(now.clock_us.saturating_sub(time_us) as f64 / 1e6)
}
