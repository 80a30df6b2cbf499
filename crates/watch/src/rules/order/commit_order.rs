//! Workers have applied their transactions and wait for earlier ones to commit.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::coordinator;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits};
use crate::rules::rule::{Rule, by_lag, kept, restarted};
use output::numbers::percent;

pub const RULE: Rule = Rule {
    name: "commit_order",
    looks_at: "the workers' states, the component `replication_applier_metrics` where it is installed",
    advice: "what committing in any order would give, and what it costs; on MariaDB cheaper commits",
    check,
};

const SHARE_MIN: f64 = 0.3;
/// MariaDB's workers start ahead and wait as a rule.
const MARIADB_SHARE_MIN: f64 = 0.6;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let share = seen.work_share(Activity::CommitOrder);
    let least = if seen.period.mariadb { MARIADB_SHARE_MIN } else { SHARE_MIN };
    if !seen.has_backlog() || seen.is_single() || share < least {
        return None;
    }
    let busy = (1.0 - seen.work_share(Activity::NoWork)).max(share);
    let mut evidence = vec![
        format!(
            "the workers waited for their turn to commit in {} of their time, {} of what they had work",
            percent(share),
            percent(share / busy)
        ),
        format!(
            "they applied in {}, committed in {}",
            percent(seen.work_share(Activity::Apply)),
            percent(seen.work_share(Activity::Commit))
        ),
    ];
    let counted = coordinator::metrics(&seen.period.before, &seen.period.after, &seen.status.channel, seen.seconds);
    evidence.extend(counted.map(|counted| {
        format!(
            "the server counts {:.1} s of such waits in a second, of all workers together",
            counted.commit_order_seconds
        )
    }));
    evidence.extend(seen.applied_per_second().map(|rate| format!("{rate:.0} transactions/s applied")));
    let names = ["replica_preserve_commit_order", "slave_preserve_commit_order"];
    let name = names.into_iter().find(|name| seen.variable(&[name]).is_some()).filter(|_| !seen.period.mariadb);
    let times = 1.0 / (1.0 - (share / busy).min(0.9));
    let off = name.map(|name| format!("{name}=OFF"));
    let (statement, risk, effect) = match &off {
        Some(off) => (
            restarted(seen, std::slice::from_ref(off)),
            "readers see states that the source never had, and after a crash of a replica without GTIDs there may be gaps".to_owned(),
            format!("up to {times:.1} times as fast: the workers' time that waits now"),
        ),
        None => (
            "SET GLOBAL innodb_flush_log_at_trx_commit=2".to_owned(),
            "the last second of commits may be missing after a crash of the machine; with GTIDs the replica fetches them again only if its position is \
             as old"
                .to_owned(),
            "each commit is shorter, and so is the queue behind it; MariaDB always keeps the order within a domain".to_owned(),
        ),
    };
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!("the workers wait for their turn to commit in {} of their time", percent(share)),
        share,
        evidence,
        server: ActionTarget::Replica,
        statement,
        risk,
        effect,
        change: Change {
            keep: off.as_ref().map_or_else(String::new, |off| kept(seen, std::slice::from_ref(off))),
            times: off.as_ref().map(|_| times),
            settings: name.map_or_else(|| vec!["innodb_flush_log_at_trx_commit"], |name| vec![name]),
        },
        ..Finding::default()
    })
}
