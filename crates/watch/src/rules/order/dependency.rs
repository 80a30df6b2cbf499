//! The coordinator holds back the next transaction until an earlier one has committed, while workers have no work: more of them do not help.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::coordinator;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits};
use crate::rules::rule::{Rule, by_lag, idle_workers, kept, of_samples, restarted};
use output::numbers::percent;
use replica::settings;

pub const RULE: Rule = Rule {
    name: "dependency",
    looks_at: "the coordinator's states, the workers' idle time, note MY-010559",
    advice: "write-set tracking or larger group commits on the source; where it has them, Heddle",
    check,
};

const SHARE_MIN: f64 = 0.4;

/// Of the time, somebody waits for a dependency: MySQL's coordinator, or MariaDB's workers.
pub fn share(seen: &ChannelFacts<'_>) -> f64 {
    seen.coordinator_share(Activity::Dependency).max(seen.work_share(Activity::Dependency))
}

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let share = share(seen);
    if !seen.has_backlog() || seen.workers_set < 2 || share < SHARE_MIN {
        return None;
    }
    let mut evidence = vec![];
    if seen.coordinator_share(Activity::Dependency) > 0.0 {
        evidence.push(of_samples(seen, Activity::Dependency));
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
    let Remedy { server, statement, keep, risk, effect } = remedy(seen);
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
        risk: risk.to_owned(),
        effect: effect.to_owned(),
        change: Change { keep, ..Change::default() },
        ..Finding::default()
    })
}

struct Remedy {
    server: ActionTarget,
    statement: String,
    keep: String,
    risk: &'static str,
    effect: &'static str,
}

fn remedy(seen: &ChannelFacts<'_>) -> Remedy {
    let source = seen.period.source.as_ref();
    let version = source.map_or(seen.period.version, |source| source.server.version);
    let kind = settings::ServerVersion { mariadb: seen.period.mariadb, version };
    let tracking = source.map_or("", |source| source.server.tracking.as_str());
    if seen.period.mariadb {
        return Remedy {
            server: ActionTarget::Replica,
            statement: restarted(seen, &["slave_parallel_mode='optimistic'".to_owned()]),
            keep: kept(seen, &["slave_parallel_mode=optimistic".to_owned()]),
            risk: "transactions that conflict are rolled back and run again",
            effect: "transactions of different group commits run at the same time",
        };
    }
    match kind.writeset().filter(|_| !tracking.starts_with("WRITESET")) {
        Some(setting) => Remedy {
            server: ActionTarget::Source,
            statement: format!("SET GLOBAL {}", setting.setting),
            keep: kind.kept(std::iter::once(setting.setting.as_str())),
            risk: "a little more work and memory for each commit of the source; from MySQL 8.0 no session has to reconnect",
            effect: "new transactions wait only for those that changed the same rows; what is in the log already keeps its tags",
        },
        None => Remedy {
            server: ActionTarget::Heddle,
            statement: format!("heddle inspect --from mysql://{}:{}", seen.status.host, seen.status.port),
            keep: String::new(),
            risk: "none: it only reads",
            effect: "the source tags by write sets already, so the transactions share rows, tables without keys or foreign keys: it names them. \
                     What it says of workers is for replicas whose workers are all busy: here they are not. heddle rescue groups such transactions",
        },
    }
}
