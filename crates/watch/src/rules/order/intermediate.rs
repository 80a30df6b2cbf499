//! The source is itself a replica, and what it writes is less parallel than what its own source wrote.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::clock::seconds_of;
use crate::facts::period::text;
use crate::questions::{BY_WORKER, CLOCK};
use crate::rules::finding::{ActionTarget, Finding, Limits};
use crate::rules::order::dependency;
use crate::rules::rule::{Rule, by_lag, idle_workers};
use output::numbers::percent;

pub const RULE: Rule = Rule {
    name: "intermediate",
    looks_at: "whether transactions come from another server than the source, beside `dependency` and idle workers",
    advice: "`heddle serve` in place of the intermediate server",
    check,
};

const SHARE_MIN: f64 = 0.3;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    if !seen.has_backlog() || seen.workers_set < 2 {
        return None;
    }
    let dependency = dependency::share(seen);
    let idle = 1.0 - seen.busy_workers() / seen.workers.len().max(1) as f64;
    if dependency < SHARE_MIN && idle < 0.7 {
        return None;
    }
    let mut evidence = origin(seen)?;
    if dependency >= SHARE_MIN {
        evidence.push(format!("the next transaction waited for a dependency in {} of the time", percent(dependency)));
    }
    evidence.push(idle_workers(seen));
    let host = format!("{}:{}", seen.status.host, seen.status.port);
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!(
            "the source {host} is itself a replica, and its log is less parallel than that of its own source"
        ),
        share: dependency.max(idle),
        evidence,
        server: ActionTarget::Heddle,
        statement: "heddle serve --from mysql://THE-FIRST-SOURCE --dir /var/lib/heddle/serve --listen 0.0.0.0:3307"
            .to_owned(),
        risk: "a machine with room for a copy of the log; the replica is pointed at it".to_owned(),
        effect:
            "the replica gets the first source's log with its own tags, and is as parallel as a replica of that one"
                .to_owned(),
        ..Finding::default()
    })
}

/// Why the source is taken for an intermediate server.
fn origin(seen: &ChannelFacts<'_>) -> Option<Vec<String>> {
    if seen.period.source.as_ref().is_some_and(|source| source.server.is_replica) {
        return Some(vec!["the source has a replication channel of its own".to_owned()]);
    }
    // A source that was restored from its own log has first commits that are older, under GTIDs of its own.
    let own_gtids = seen.status.source_identity.as_deref().unwrap_or("-");
    let own = seen.period.after.rows(BY_WORKER).iter().filter(|row| {
        text(row, "CHANNEL_NAME") == seen.status.channel
            && !text(row, "LAST_APPLIED_TRANSACTION").starts_with(own_gtids)
    });
    let later = own.filter_map(|row| {
        let original = seconds_of(text(row, "LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP"))?;
        let immediate = seconds_of(text(row, "LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP"))?;
        (immediate > original).then_some(immediate - original)
    });
    if let Some(seconds) = later.max_by(f64::total_cmp) {
        return Some(vec![format!(
            "transactions were committed on the source {seconds:.3} s after their first commit elsewhere"
        )]);
    }
    if !seen.period.mariadb {
        return None;
    }
    // MariaDB: the server id in the GTIDs is the first source's.
    let id = seen.status.source_identity.as_deref()?.rsplit('-').next()?.to_owned();
    let last = seen.period.after.first(CLOCK, "executed")?;
    let other = last.split(',').find_map(|gtid| gtid.trim().split('-').nth(1).filter(|server| *server != id))?;
    Some(vec![format!("the transactions are server {other}'s, and the source is server {id}")])
}
