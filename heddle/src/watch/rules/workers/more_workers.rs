//! Every worker has work all the time, or there is one only.

use crate::report::native;
use crate::report::numbers::percent;
use crate::watch::facts::seen::Seen;
use crate::watch::facts::states::Doing;
use crate::watch::rules::rule::{Rule, WORKERS, by_lag, of_samples, restarted};
use crate::watch::said::finding::{Finding, Limits, On};

pub const RULE: Rule = Rule {
    name: "more_workers",
    looks_at: "the number of workers, how busy they are, Jain's index; only while there is a backlog",
    advice: "twice as many workers; 16 where there is one",
    check,
};

/// Of the time, the coordinator waits for a worker.
const SHARE_MIN: f64 = 0.3;
/// Or all have work nearly all the time.
const BUSY_MIN: f64 = 0.9;
/// Workers that wait for each other are not short of hands.
const WAITING_MAX: f64 = 0.4;
/// More rarely help a server's own applier.
const WORKERS_MAX: u64 = 128;

fn check(seen: &Seen<'_>, limits: Limits) -> Option<Finding> {
    if !seen.has_backlog() {
        return None;
    }
    let kind = native::Native { mariadb: seen.period.mariadb, version: seen.period.version };
    let parallel = seen.period.source.as_ref().and_then(|source| source.parallel());
    let rate = seen.applied_per_second().map(|rate| format!("{rate:.0} transactions/s applied"));
    let risk = "the applier stops for a moment; each worker takes a session and memory".to_owned();
    if seen.workers_set < 2 {
        let wanted = parallel.map_or(native::WORKERS, native::workers_for);
        let settings: Vec<String> = kind.parallel(wanted).into_iter().map(|setting| setting.setting).collect();
        let busy = 1.0 - seen.coordinator_share(Doing::NoWork);
        let mut evidence = vec![
            format!("{}={}", kind.workers(), seen.workers_set),
            format!("the one applier was busy in {} of {} samples", percent(busy), seen.samples),
        ];
        evidence.extend(rate);
        evidence.extend(parallel.map(|size| format!("the source's tags let {size:.1} transactions run at a time")));
        return Some(Finding {
            severity: by_lag(seen, limits),
            cause: format!("one worker applies all transactions in turn ({}={})", kind.workers(), seen.workers_set),
            share: busy,
            evidence,
            server: On::Replica,
            statement: restarted(seen, &settings),
            risk,
            effect: match parallel {
                Some(size) => format!("up to {size:.1} transactions at a time"),
                None => "as many transactions at a time as the source's tags allow".to_owned(),
            },
            settings: WORKERS.to_vec(),
            ..Finding::default()
        });
    }
    let waits = seen.coordinator_share(Doing::WorkersBusy);
    let busy = seen.busy_workers() / seen.workers.len().max(1) as f64;
    let waiting = seen.work_share(Doing::CommitOrder) + seen.work_share(Doing::Lock);
    let is_limit = (waits >= SHARE_MIN || busy >= BUSY_MIN) && waiting < WAITING_MAX;
    let wanted = (seen.workers_set * 2).min(WORKERS_MAX);
    if !is_limit || wanted <= seen.workers_set || parallel.is_some_and(|size| size < seen.workers_set as f64) {
        return None;
    }
    let mut evidence = vec![
        format!("{:.1} of {} workers were busy on average", seen.busy_workers(), seen.workers.len()),
        of_samples(seen, Doing::WorkersBusy),
    ];
    evidence.extend(seen.jain().map(|jain| format!("Jain's index {jain:.2}")));
    evidence.extend(rate);
    evidence.extend(parallel.map(|size| format!("the source's tags let {size:.1} transactions run at a time")));
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: if waits >= SHARE_MIN {
            format!(
                "the coordinator waits for one of the {} workers to be free in {} of the time",
                seen.workers.len(),
                percent(waits)
            )
        } else {
            format!("all {} workers have work in {} of their time, and more of it waits", seen.workers.len(), percent(busy))
        },
        share: busy.max(waits),
        evidence,
        server: On::Replica,
        statement: restarted(seen, &[format!("{}={wanted}", kind.workers())]),
        risk,
        effect: "up to twice as fast while the machine has processors and disk left; Jain's index falls below 0.8 when it is enough".to_owned(),
        settings: WORKERS.to_vec(),
        ..Finding::default()
    })
}
