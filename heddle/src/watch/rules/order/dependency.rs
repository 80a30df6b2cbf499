//! The coordinator holds back the next transaction until an earlier one has committed, while workers have no work: more of them do not help.

use crate::report::native;
use crate::report::numbers::percent;
use crate::watch::facts::coordinator;
use crate::watch::facts::seen::Seen;
use crate::watch::facts::states::Doing;
use crate::watch::rules::rule::{Rule, by_lag, idle_workers, of_samples, restarted};
use crate::watch::said::finding::{Finding, Limits, On};

pub const RULE: Rule = Rule {
    name: "dependency",
    looks_at: "the coordinator's states, the workers' idle time, note MY-010559",
    advice: "write-set tracking or larger group commits on the source; where it has them, Heddle",
    check,
};

const SHARE_MIN: f64 = 0.4;

/// Of the time, somebody waits for a dependency: MySQL's coordinator, or MariaDB's workers.
pub fn share(seen: &Seen<'_>) -> f64 {
    seen.coordinator_share(Doing::Dependency).max(seen.work_share(Doing::Dependency))
}

fn check(seen: &Seen<'_>, limits: Limits) -> Option<Finding> {
    let share = share(seen);
    if !seen.has_backlog() || seen.workers_set < 2 || share < SHARE_MIN {
        return None;
    }
    let mut evidence = vec![];
    if seen.coordinator_share(Doing::Dependency) > 0.0 {
        evidence.push(of_samples(seen, Doing::Dependency));
    } else {
        evidence.push(format!("the workers waited for the group commit before in {} of their time", percent(share)));
    }
    evidence.push(idle_workers(seen));
    let blocking = seen.workers.iter().filter_map(|worker| worker.applying.as_ref()).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((gtid, seconds)) = blocking {
        evidence.push(format!("under way: {gtid}, for {seconds:.3} s"));
    }
    if let Some(jain) = seen.jain() {
        evidence.push(format!("Jain's index {jain:.2} over {} workers", seen.workers.len()));
    }
    let statistics = coordinator::statistics(&seen.period.after, &seen.status.channel);
    if let Some(statistics) = statistics.filter(|statistics| statistics.elapsed_seconds > 0) {
        evidence.push(format!(
            "note MY-010559: {} of the last {} s at clock conflicts",
            percent(statistics.clock_conflicts_share),
            statistics.elapsed_seconds
        ));
    }
    let hot = seen.period.source.as_ref().and_then(|source| source.hot.first()).filter(|hot| hot.share >= SHARE_MIN);
    let because =
        hot.map_or_else(String::new, |hot| format!(", as transactions change {} one after the other", hot.rows));
    let (server, statement, risk, effect) = remedy(seen);
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!(
            "the transaction that comes next waits for one that it depends on in {} of the time{because}, while {}: more workers do not help",
            percent(share),
            idle_workers(seen)
        ),
        share,
        evidence,
        server,
        statement,
        risk,
        effect,
        ..Finding::default()
    })
}

fn remedy(seen: &Seen<'_>) -> (On, String, String, String) {
    let source = seen.period.source.as_ref();
    let version = source.map_or(seen.period.version, |source| source.server.version);
    let kind = native::Native { mariadb: seen.period.mariadb, version };
    let tracking = source.map_or("", |source| source.server.tracking.as_str());
    if seen.period.mariadb {
        return (
            On::Replica,
            restarted(seen, &["slave_parallel_mode='optimistic'".to_owned()]),
            "transactions that conflict are rolled back and run again".to_owned(),
            "transactions of different group commits run at the same time".to_owned(),
        );
    }
    match kind.writeset().filter(|_| !tracking.starts_with("WRITESET")) {
        Some(setting) => (
            On::Source,
            format!("SET GLOBAL {}", setting.setting),
            "a little more work and memory for each commit of the source; from MySQL 8.0 no session has to reconnect".to_owned(),
            "new transactions wait only for those that changed the same rows; what is in the log already keeps its tags".to_owned(),
        ),
        None => (
            On::Heddle,
            format!("heddle inspect --from mysql://{}:{}", seen.status.host, seen.status.port),
            "none: it only reads".to_owned(),
            "the source tags by write sets already, so the transactions share rows, tables without keys or foreign keys: it names them. \
             heddle rescue groups such transactions"
                .to_owned(),
        ),
    }
}
