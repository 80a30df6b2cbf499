//! The thread that reads the relay log and hands out transactions has no time left, while workers have.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Finding, Limits};
use crate::rules::rule::{Rule, by_lag, idle_workers, of_samples, rescue_command};
use output::numbers::percent;

pub const RULE: Rule = Rule {
    name: "coordinator",
    looks_at: "the coordinator's states",
    advice: "Heddle, which groups transactions: the server's coordinator is one thread",
    check,
};

const SHARE_MIN: f64 = 0.7;
/// Transactions a second.
const RATE_MIN: f64 = 200.0;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let share = seen.coordinator_share(Activity::Read);
    let has_idle = seen.busy_workers() < 0.7 * seen.workers.len() as f64;
    if !seen.has_backlog() || seen.is_single() || share < SHARE_MIN || !has_idle {
        return None;
    }
    // Reading one large transaction is another matter.
    let rate = seen.applied_per_second().filter(|&rate| rate >= RATE_MIN)?;
    let mut evidence = vec![of_samples(seen, Activity::Read), idle_workers(seen)];
    evidence.push(format!("{rate:.0} transactions/s applied"));
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!(
            "the one thread that reads the relay log and hands out transactions is busy in {} of the time, while workers have time left",
            percent(share)
        ),
        share,
        evidence,
        server: ActionTarget::Heddle,
        statement: format!("{} --dry-run", rescue_command(seen)),
        risk: "none: it only looks; admin: an account as docs/privileges.md has it for rescues".to_owned(),
        effect: "no number of workers helps; grouping hands out many transactions at once".to_owned(),
        ..Finding::default()
    })
}
