//! The applier waits for a lock that another session of the replica holds.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::{number, text};
use crate::facts::states::Activity;
use crate::questions::LOCKS;
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use crate::rules::rule::{Rule, by_lag};
use output::numbers::duration;

pub const RULE: Rule = Rule {
    name: "blocked",
    looks_at: "locks that the applier's transactions wait for, and who holds them; metadata and backup locks in the threads' states",
    advice: "end the session that holds the lock",
    check,
};

const SHARE_MIN: f64 = 0.5;
const SECONDS_MIN: u64 = 1;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let applier = |session: u64| seen.is_applier(session);
    let open = seen.open_transactions();
    let held = seen.period.after.rows(LOCKS).iter().find_map(|row| {
        let (waits, holds) = (number::<u64>(row, "waits")?, number::<u64>(row, "holds")?);
        // A lock that is soon free is usual.
        let is_long = open.iter().any(|one| one.session == waits && one.seconds >= SECONDS_MIN);
        (applier(waits) && !applier(holds) && is_long).then_some((waits, holds, row))
    });
    if let Some((waits, holds, row)) = held {
        let since = |session: u64| open.iter().find(|one| one.session == session).map_or(0, |one| one.seconds);
        let query = open.iter().find(|one| one.session == holds).map_or("", |one| one.query.as_str());
        let table = text(row, "table_name").replace('`', "");
        let mut evidence = vec![
            format!(
                "session {waits} of the applier waits for a row of {table}, index {}, {}",
                text(row, "index_name"),
                text(row, "lock_data")
            ),
            format!("session {holds} holds it; its transaction is open for {}", duration(since(holds) as f64)),
        ];
        evidence.push(if query.is_empty() { "it runs no statement".to_owned() } else { format!("it runs: {query}") });
        return Some(Finding {
            severity: by_lag(seen, limits).max(Severity::Warning),
            cause: format!("session {holds} on the replica holds a lock of {table} that the applier waits for"),
            share: 1.0,
            evidence,
            server: ActionTarget::Replica,
            statement: format!("KILL {holds}"),
            risk: "that session's transaction is rolled back".to_owned(),
            effect: "the applier goes on at once".to_owned(),
            ..Finding::default()
        });
    }
    let share = seen
        .work_share(Activity::Lock)
        .max(seen.workers.iter().map(|worker| worker.share(Activity::Lock)).fold(0.0, f64::max));
    if share < SHARE_MIN {
        return None;
    }
    let waiting = seen.workers.iter().find(|worker| worker.share(Activity::Lock) >= SHARE_MIN);
    let state = waiting.map_or(seen.status.applier_state.as_str(), |worker| worker.last_state.as_str());
    let mut evidence = vec![format!("state: {state}")];
    evidence.extend(
        waiting.filter(|worker| !worker.last_info.is_empty()).map(|worker| format!("statement: {}", worker.last_info)),
    );
    Some(Finding {
        severity: by_lag(seen, limits).max(Severity::Warning),
        cause: format!("the applier waits for a lock of another session ({state})"),
        share,
        evidence,
        server: ActionTarget::Replica,
        statement: if seen.period.mariadb {
            "SELECT id, user, time, state, info FROM information_schema.processlist WHERE user<>'system user' ORDER BY time DESC".to_owned()
        } else {
            "SELECT * FROM sys.schema_table_lock_waits".to_owned()
        },
        risk: "none: it shows who holds the lock; ending that session rolls back its transaction".to_owned(),
        effect: "the applier goes on once the lock is free".to_owned(),
        ..Finding::default()
    })
}
