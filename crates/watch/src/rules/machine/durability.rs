//! Workers spend their time in syncs of commits.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits};
use crate::rules::rule::{Rule, by_lag};
use output::numbers::percent;

pub const RULE: Rule = Rule {
    name: "durability",
    looks_at: "the workers' time in commits, `sync_binlog`, `innodb_flush_log_at_trx_commit`",
    advice: "fewer syncs until the replica has caught up",
    check,
};

const SHARE_MIN: f64 = 0.3;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let busy = 1.0 - seen.work_share(Activity::NoWork);
    let share = seen.work_share(Activity::Commit) / busy.max(0.05);
    let flush = seen.variable(&["innodb_flush_log_at_trx_commit"]) == Some("1");
    let logs = seen.is_on(&["log_bin"]) && seen.is_on(&["log_replica_updates", "log_slave_updates"]);
    let sync = logs && seen.variable(&["sync_binlog"]).is_some_and(|value| value != "0");
    if !seen.has_backlog() || share < SHARE_MIN || !(flush || sync) {
        return None;
    }
    let mut settings = Vec::new();
    settings.extend(flush.then_some("innodb_flush_log_at_trx_commit=2"));
    settings.extend(sync.then_some("sync_binlog=0"));
    let statements: Vec<String> = settings.iter().map(|setting| format!("SET GLOBAL {setting}")).collect();
    let each = if flush && sync { "two syncs" } else { "a sync" };
    let mut evidence =
        vec![format!("{} of the time in which there was work went into commits, with {each} each", percent(share))];
    evidence.extend(seen.applied_per_second().map(|rate| format!("{rate:.0} transactions/s applied")));
    let times = 1.0 / (1.0 - share.min(0.9));
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!("commits wait for the disk in {} of the applier's time", percent(share)),
        share,
        evidence,
        server: ActionTarget::Replica,
        statement: statements.join("; "),
        risk: "a crash of the machine may cost the replica its last second; set both back to 1 when it has caught up"
            .to_owned(),
        effect: format!("up to {times:.1} times as fast"),
        change: Change {
            times: Some(times),
            settings: vec!["innodb_flush_log_at_trx_commit", "sync_binlog"],
            ..Change::default()
        },
        ..Finding::default()
    })
}
