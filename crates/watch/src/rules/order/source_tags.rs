//! The source's tags are narrower than its write sets would be.

use crate::facts::channel_facts::ChannelFacts;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits};
use crate::rules::rule::{Rule, by_lag, kept, restarted};
use replica::settings;

pub const RULE: Rule = Rule {
    name: "source_tags",
    looks_at: "with `--source`: AMIL of the source's log, and of what write sets would give",
    advice: "`binlog_transaction_dependency_tracking`, or a group-commit delay, with what it would give",
    check,
};

/// Transactions at a time that write sets have to give more, as a factor.
const GAIN_MIN: f64 = 1.5;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let source = seen.period.source.as_ref().filter(|_| seen.has_backlog())?;
    let now = source.parallelism.pseudo_group_size.or(source.parallelism.group_size)?;
    let better = source.parallelism.pseudo_group_size_writeset.or(source.parallelism.pseudo_group_size_exact)?;
    if seen.workers_set < 2 || now * GAIN_MIN > better || now >= seen.workers_set as f64 {
        return None;
    }
    let mut evidence = vec![format!(
        "{} transactions of the source's log: its tags let {now:.1} run at a time (AMIL {:.1}), write sets would {better:.1}",
        source.transactions,
        source.parallelism.amil.unwrap_or(f64::midpoint(now, 1.0)),
    )];
    evidence.extend(source.simulated.what_if.iter().map(|one| one.words(seen.workers_set)));
    let kind = settings::ServerVersion { mariadb: source.server.mariadb, version: source.server.version };
    let (server, statement, setting, risk) = match (kind.writeset(), source.server.mariadb) {
        (Some(setting), _) => (
            ActionTarget::Source,
            format!("SET GLOBAL {}", setting.setting),
            "binlog_transaction_dependency_tracking",
            "a little more work and memory for each commit",
        ),
        (None, true) => (
            ActionTarget::Replica,
            restarted(seen, &["slave_parallel_mode='optimistic'".to_owned()]),
            "slave_parallel_mode",
            "transactions that conflict are rolled back and run again",
        ),
        (None, false) if source.server.version < (8, 4, 0) => (
            ActionTarget::Source,
            "SET GLOBAL binlog_group_commit_sync_delay=3000, binlog_group_commit_sync_no_delay_count=16".to_owned(),
            "binlog_group_commit_sync_delay",
            "each commit of the source takes up to 3 ms longer",
        ),
        // It tags by write sets: the log is of before an upgrade, or an intermediate server's.
        (None, false) => return None,
    };
    let keep = match server {
        ActionTarget::Replica => kept(seen, &["slave_parallel_mode=optimistic".to_owned()]),
        _ => kind.kept(statement.trim_start_matches("SET GLOBAL ").split(", ")),
    };
    let best = source.simulated.what_if.iter().map(|one| one.times).max_by(f64::total_cmp);
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!("the source's tags let {now:.1} transactions run at a time where its write sets let {better:.1}"),
        share: (1.0 - now / better).clamp(0.0, 1.0),
        evidence,
        server,
        statement,
        risk: risk.to_owned(),
        effect: best.map_or_else(
            || format!("up to {:.1} transactions at a time in what the source writes from then on", better.min(seen.workers_set as f64)),
            |times| format!("a replica with {} workers: up to {times:.1} times as fast, for what the source writes from then on", seen.workers_set),
        ),
        change: Change { keep, settings: vec![setting], ..Change::default() },
        ..Finding::default()
    })
}
