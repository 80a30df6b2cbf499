//! What each worker has.

use channel::snapshot::{Snapshot, WorkerSample};
use serde::{Deserialize, Serialize};

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lane {
    pub worker: usize,
    /// Of the time between the snapshots, with a group.
    pub busy: f64,
    /// `idle`, `applying`, `waits to commit`, `waits for a lock`, `tries again`, `runs alone`.
    pub state: String,
    /// The first in the log's order: the others wait for it, if they wait.
    pub is_first: bool,
    /// Why it has none, most of the time.
    pub idle_because: String,
    #[serde(flatten)]
    pub group: LaneGroup,
}

/// The group that a worker has; all empty: it has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaneGroup {
    /// Of its first transaction.
    pub gtid: String,
    pub position: String,
    pub transactions: u64,
    pub rows: u64,
    pub bytes: u64,
    pub age_s: f64,
    /// Why it runs alone.
    pub barrier: Option<String>,
    /// Tables, or the statement.
    pub subject: String,
    /// A table of which rows are searched for although no key tells them apart.
    pub keyless: Option<String>,
}

pub const APPLYING: &str = "applying";
pub const IDLE: &str = "idle";
pub const WAITS_TO_COMMIT: &str = "waits to commit";
pub const WAITS_FOR_LOCK: &str = "waits for a lock";
pub const TRIES_AGAIN: &str = "tries again";
pub const RUNS_ALONE: &str = "runs alone";

pub fn lanes(before: &Snapshot, now: &Snapshot) -> Vec<Lane> {
    let seconds = (now.taken - before.taken).as_secs_f64().max(1e-9);
    let each = || now.workers.each.iter();
    let first = each().filter_map(|worker| worker.running.as_ref().map(|running| running.first.seq)).min();
    let lane = |(number, worker): (usize, &WorkerSample)| {
        let then = before.workers.each.get(number);
        let busy = worker.done.busy.saturating_sub(then.map_or_else(Default::default, |then| then.done.busy));
        let mut lane = Lane {
            worker: number,
            busy: (busy.as_secs_f64() / seconds).min(1.0),
            state: IDLE.to_owned(),
            idle_because: idle_because(then, worker),
            ..Lane::default()
        };
        let Some(running) = &worker.running else { return lane };
        let is_alone = running.barrier.is_some();
        let holders = now.trouble.target.holders.iter().filter(|holder| !holder.is_own);
        let is_held =
            holders.into_iter().any(|holder| holder.worker == Some(number) || (is_alone && holder.worker.is_none()));
        let state = match () {
            () if worker.waits_to_commit => WAITS_TO_COMMIT,
            () if is_held => WAITS_FOR_LOCK,
            () if now.trouble.target.retried.is_some() && first == Some(running.first.seq) => TRIES_AGAIN,
            () if is_alone => RUNS_ALONE,
            () => APPLYING,
        };
        state.clone_into(&mut lane.state);
        lane.is_first = first == Some(running.first.seq);
        let subject = &running.subject;
        lane.group = LaneGroup {
            gtid: running.first.gtid.clone(),
            position: running.first.position.clone(),
            transactions: running.transactions as u64,
            rows: running.rows,
            bytes: running.bytes,
            age_s: running.time.as_secs_f64(),
            barrier: running.barrier.map(|cause| cause.as_str().to_owned()),
            subject: if subject.statement.is_empty() { subject.tables.join(", ") } else { subject.statement.clone() },
            keyless: subject.keyless.clone(),
        };
        lane
    };
    each().enumerate().map(lane).collect()
}

/// Where most of its time without a group has gone.
fn idle_because(then: Option<&WorkerSample>, worker: &WorkerSample) -> String {
    let before =
        |cause| then.and_then(|then| then.idle.iter().find(|(other, _)| *other == cause)).map(|(_, time)| *time);
    let grown =
        worker.idle.iter().map(|(cause, time)| (time.saturating_sub(before(*cause).unwrap_or_default()), cause));
    let most = grown.filter(|(time, _)| !time.is_zero()).max_by_key(|(time, _)| *time);
    most.map_or_else(String::new, |(_, cause)| cause.as_str().replace('_', " "))
}
