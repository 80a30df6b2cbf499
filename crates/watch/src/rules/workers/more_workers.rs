//! Every worker has work all the time, or there is one only.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits};
use crate::rules::rule::{Rule, WORKERS, by_lag, kept, of_samples, restarted};
use output::numbers::percent;
use replica::settings;

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
/// What many workers give in place of one, where nothing is known of the source's tags.
const ONE_TO_MANY: f64 = 2.0;
/// More rarely help a server's own applier.
const WORKERS_MAX: u64 = 128;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    if !seen.has_backlog() {
        return None;
    }
    let kind = settings::ServerVersion { mariadb: seen.period.mariadb, version: seen.period.version };
    let parallel = seen.period.source.as_ref().and_then(|source| source.parallel());
    let rate = seen.applied_per_second().map(|rate| format!("{rate:.0} transactions/s applied"));
    let risk = "the applier stops for a moment; each worker takes a session and memory".to_owned();
    if seen.workers_set < 2 {
        let wanted = parallel.map_or(settings::WORKERS, settings::workers_for);
        let settings: Vec<String> = kind.parallel(wanted).into_iter().map(|setting| setting.setting).collect();
        let busy = 1.0 - seen.coordinator_share(Activity::NoWork);
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
            server: ActionTarget::Replica,
            statement: restarted(seen, &settings),
            risk,
            effect: match parallel {
                Some(size) => format!("up to {size:.1} transactions at a time"),
                None => "as many transactions at a time as the source's tags allow".to_owned(),
            },
            change: Change {
                keep: kept(seen, &settings),
                times: Some(parallel.map_or(ONE_TO_MANY, |size| size.min(wanted as f64)).max(1.0)),
                settings: WORKERS.to_vec(),
            },
            ..Finding::default()
        });
    }
    let waits = seen.coordinator_share(Activity::WorkersBusy);
    let busy = seen.busy_workers() / seen.workers.len().max(1) as f64;
    let waiting = seen.work_share(Activity::CommitOrder) + seen.work_share(Activity::Lock);
    let is_limit = (waits >= SHARE_MIN || busy >= BUSY_MIN) && waiting < WAITING_MAX;
    let wanted = (seen.workers_set * 2).min(WORKERS_MAX);
    if !is_limit || wanted <= seen.workers_set || parallel.is_some_and(|size| size < seen.workers_set as f64) {
        return None;
    }
    let setting = format!("{}={wanted}", kind.workers());
    let mut evidence = vec![
        format!("{:.1} of {} workers were busy on average", seen.busy_workers(), seen.workers.len()),
        of_samples(seen, Activity::WorkersBusy),
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
        server: ActionTarget::Replica,
        statement: restarted(seen, std::slice::from_ref(&setting)),
        risk,
        effect: "up to twice as fast while the machine has processors and disk left; Jain's index falls below 0.8 when it is enough".to_owned(),
        change: Change { keep: kept(seen, std::slice::from_ref(&setting)), times: Some(parallel.map_or(2.0, |size| (size / seen.workers_set as f64).clamp(1.0, 2.0))), settings: WORKERS.to_vec() },
        ..Finding::default()
    })
}
