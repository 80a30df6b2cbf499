//! The coordinator waits for room in the workers' queues.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits};
use crate::rules::rule::{Rule, by_lag, idle_workers, kept, of_samples, restarted};
use output::numbers::bytes;

pub const RULE: Rule =
    Rule { name: "queue_full", looks_at: "the coordinator's states", advice: "larger queues", check };

const SHARE_MIN: f64 = 0.5;
const NAMES: [&str; 3] = ["replica_pending_jobs_size_max", "slave_pending_jobs_size_max", "slave_parallel_max_queued"];
const FACTOR: u64 = 8;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let share = seen.coordinator_share(Activity::QueueFull);
    // All have work: the queues are not what limits.
    let has_idle = seen.busy_workers() < 0.8 * seen.workers.len() as f64;
    let name = NAMES.into_iter().find(|name| seen.variable(&[name]).is_some())?;
    let now: u64 = seen.variable(&[name])?.parse().ok()?;
    if !seen.has_backlog() || share < SHARE_MIN || !has_idle {
        return None;
    }
    let setting = format!("{name}={}", now.saturating_mul(FACTOR));
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!("the coordinator waits for room in the workers' queues ({name}={})", bytes(now)),
        share,
        evidence: vec![of_samples(seen, Activity::QueueFull), idle_workers(seen)],
        server: ActionTarget::Replica,
        statement: restarted(seen, std::slice::from_ref(&setting)),
        risk: format!(
            "up to {} of memory{}",
            bytes(now.saturating_mul(FACTOR)),
            if seen.period.mariadb { " a worker" } else { "" }
        ),
        effect: "transactions behind a large one reach the other workers".to_owned(),
        change: Change { keep: kept(seen, std::slice::from_ref(&setting)), settings: vec![name], ..Change::default() },
        ..Finding::default()
    })
}
