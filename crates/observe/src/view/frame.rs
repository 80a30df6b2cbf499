//! One moment of a channel, as dashboard and `heddle top` show it, and as JSON. Names and units are stable; fields may be added.

use channel::snapshot::{Lag, Snapshot};
use engine::quality::jain_index;
use serde::{Deserialize, Serialize};

use super::Facts;
use super::fact_values::StopCause;
use super::lanes::{Lane, lanes};
use super::log_lookahead::LogLookahead;
use super::shares::Shares;
use super::stages::{Stage, stages};
use super::verdict::{Verdict, verdict};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    #[serde(flatten)]
    pub head: Head,
    pub verdict: Verdict,
    pub stages: Vec<Stage>,
    pub rates: Rates,
    /// Where the workers' time went.
    pub waits: Shares,
    pub workers: Vec<Lane>,
    pub quality: Quality,
    pub queues: Queues,
    pub counters: Totals,
    #[serde(flatten)]
    pub why: Explanation,
}

/// What the sentence rests on, and what comes next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    pub evidence: Vec<Evidence>,
    /// Once somebody has looked at a channel that is behind.
    pub ahead: Option<LogLookahead>,
}

/// Whose frame it is, and when.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    pub version: String,
    pub channel: String,
    /// Where it reads and where it writes: `a:3306 → b:3306`. Several processes may have channels of one name.
    pub route: String,
    /// When the process began, and when this was, milliseconds since 1970: another `started_ms` is another process.
    pub started_ms: u64,
    pub at_ms: u64,
    /// The run is over.
    pub ended: bool,
    /// Absent: not known.
    pub lag_s: Option<f64>,
}

/// A second.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    pub transactions: f64,
    pub rows: f64,
    pub groups: f64,
    pub received_bytes: f64,
    pub read_bytes: f64,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Quality {
    /// Of the source's tags, and of tags by keys; absent: no tags.
    pub source_amil: Option<f64>,
    pub exact_amil: Option<f64>,
    pub exact_group_size: Option<f64>,
    /// Means, since the frame before: transactions in a group, seconds of a commit, of a sync of the relay log.
    pub group_transactions: Option<f64>,
    pub commit_s: Option<f64>,
    pub relay_sync_s: Option<f64>,
    pub jain: Option<f64>,
    /// Of the transactions, how many wait for an earlier one.
    pub waiting_share: f64,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Queues {
    pub queued_transactions: u64,
    pub queued_bytes: u64,
    pub memory_bytes: u64,
    pub memory_max_bytes: u64,
    pub relay_bytes: u64,
}

/// Since the start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    pub transactions: u64,
    pub rows: u64,
    pub groups: u64,
    pub retries: u64,
    pub aborts: u64,
    pub lock_waits: u64,
    pub barriers: Vec<(String, u64)>,
}

/// What the sentence rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    pub what: String,
    pub gtid: String,
    pub position: String,
    /// Table, key, session, statement.
    pub detail: String,
    pub rows: Option<u64>,
    pub bytes: Option<u64>,
    pub seconds: Option<f64>,
}

/// Which process it is.
#[derive(Clone, Debug)]
pub struct Process {
    pub channel: String,
    pub route: String,
    pub started_ms: u64,
}

const EVIDENCE_MAX: usize = 16;

impl Frame {
    /// `stopped`: the run has ended so.
    pub fn new(process: &Process, before: &Snapshot, now: &Snapshot, stopped: Option<StopCause>) -> Self {
        let facts = Facts { stopped, ..Facts::of(&process.channel, before, now) };
        let seconds = (now.taken - before.taken).as_secs_f64().max(1e-9);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let (then, counters) = (&before.scheduled.counters, &now.scheduled.counters);
        let received = |snapshot: &Snapshot| snapshot.received.as_ref().map_or(0, |received| received.amount.bytes);
        Self {
            head: Head {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                channel: process.channel.clone(),
                route: process.route.clone(),
                started_ms: process.started_ms,
                at_ms: now.clock_us / 1000,
                ended: false,
                lag_s: match now.lag() {
                    Lag::CaughtUp => Some(0.0),
                    Lag::Behind(lag) => Some(lag.as_secs_f64()),
                    Lag::Unknown | Lag::SourceLost(_) => None,
                },
            },
            verdict: verdict(&facts),
            stages: stages(before, now),
            rates: Rates {
                transactions: facts.rate,
                rows: rate(counters.rows, then.rows),
                groups: rate(counters.groups, then.groups),
                received_bytes: rate(received(now), received(before)),
                read_bytes: rate(now.read.bytes, before.read.bytes),
            },
            waits: facts.shares,
            workers: lanes(before, now),
            quality: quality(before, now, &facts),
            queues: Queues {
                queued_transactions: now.scheduled.queued_transactions as u64,
                queued_bytes: now.scheduled.queued_bytes,
                memory_bytes: now.memory.used_bytes,
                memory_max_bytes: now.memory.max_bytes,
                relay_bytes: now.received.as_ref().map_or(0, |received| received.relay_bytes),
            },
            counters: Totals {
                transactions: counters.transactions,
                rows: counters.rows,
                groups: counters.groups,
                retries: counters.retries,
                aborts: counters.aborts,
                lock_waits: now.workers.totals.lock_waits,
                barriers: now
                    .workers
                    .totals
                    .barriers
                    .iter()
                    .map(|(cause, count)| (cause.as_str().to_owned(), *count))
                    .collect(),
            },
            why: Explanation { evidence: evidence(now, &facts), ahead: None },
        }
    }
}

fn quality(before: &Snapshot, now: &Snapshot, facts: &Facts) -> Quality {
    let mean = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
    let syncs = |snapshot: &Snapshot| snapshot.received.as_ref().map_or((0, 0), |one| (one.syncs.sum, one.syncs.count));
    let ((sum, count), (sum_before, count_before)) = (syncs(now), syncs(before));
    let exact = now.read.placed.exact;
    let commits = facts.commits;
    Quality {
        source_amil: now.read.tags.intervals.amil(),
        exact_amil: exact.amil(),
        exact_group_size: exact.pseudo_group_size(),
        group_transactions: (commits.groups > 0).then_some(commits.transactions),
        commit_s: (commits.seconds > 0.0).then_some(commits.seconds),
        relay_sync_s: mean(sum.saturating_sub(sum_before), count.saturating_sub(count_before))
            .map(|micros| micros / 1e6),
        jain: jain_index(now.workers.each.iter().map(|worker| worker.done.busy.as_secs_f64())),
        waiting_share: facts.waiting_share,
    }
}

fn evidence(now: &Snapshot, facts: &Facts) -> Vec<Evidence> {
    let mut rows = Vec::new();
    if let Some(stopped) = &facts.stopped {
        rows.push(Evidence {
            what: format!("stopped: {}", stopped.kind),
            position: stopped.place.clone(),
            detail: stopped.message.clone(),
            ..Evidence::default()
        });
    }
    for holder in &facts.holders {
        let waits = holder.worker.map_or_else(|| "a statement".to_owned(), |worker| format!("worker {worker}"));
        let who = match holder.session {
            0 => "an unknown session".to_owned(),
            session => format!("session {session} {} {}", holder.account, holder.statement),
        };
        let seconds = Some(holder.seconds as f64).filter(|_| holder.session != 0);
        rows.push(Evidence {
            what: format!("lock: {waits} waits"),
            detail: who.trim_end().to_owned(),
            seconds,
            ..Evidence::default()
        });
    }
    if facts.relay_full {
        let what = "the relay log is full: nothing is received until the target has applied more".to_owned();
        rows.push(Evidence { what, ..Evidence::default() });
    }
    if let Some(hot) = facts.hot.as_ref().filter(|_| facts.outstanding > 0) {
        let what = format!("hot row: {:.0} % of the transactions wait", hot.share * 100.0);
        rows.push(Evidence { what, detail: hot.row.clone(), ..Evidence::default() });
    }
    if let Some(retried) = &now.trouble.target.retried {
        rows.push(Evidence {
            what: format!("tried again, {} failures", retried.tries),
            detail: retried.message.clone(),
            seconds: Some(retried.since.elapsed().as_secs_f64()),
            ..Evidence::default()
        });
    }
    let mut lanes: Vec<&Lane> =
        facts.lanes.iter().filter(|lane| !lane.group.gtid.is_empty() || !lane.group.position.is_empty()).collect();
    lanes.sort_by(|a, b| {
        (b.is_first, b.group.age_s).partial_cmp(&(a.is_first, a.group.age_s)).unwrap_or(std::cmp::Ordering::Equal)
    });
    for lane in lanes {
        let what = if lane.is_first {
            format!("worker {}: first, {}", lane.worker, lane.state)
        } else {
            format!("worker {}: {}", lane.worker, lane.state)
        };
        let keyless = lane.group.keyless.as_ref().map_or_else(String::new, |table| format!(" ({table} has no key)"));
        rows.push(Evidence {
            what,
            gtid: lane.group.gtid.clone(),
            position: lane.group.position.clone(),
            detail: format!("{}{keyless}", lane.group.subject),
            rows: Some(lane.group.rows),
            bytes: Some(lane.group.bytes),
            seconds: Some(lane.group.age_s),
        });
    }
    rows.truncate(EVIDENCE_MAX);
    rows
}
