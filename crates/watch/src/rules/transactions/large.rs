//! A transaction is large or long, and the others wait for it.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::{number, text};
use crate::facts::states::Activity;
use crate::questions::TABLES;
use crate::rules::finding::{ActionTarget, Finding, Limits};
use crate::rules::rule::{Rule, by_lag};
use crate::rules::transactions::ddl;
use output::numbers::{duration, percent, thousands};

pub const RULE: Rule = Rule {
    name: "large_transaction",
    looks_at: "the applier's open transactions: rows changed so far, age, tables",
    advice: "smaller transactions in the application",
    check,
};

const ROWS_MIN: u64 = 20_000;
const SECONDS_MIN: f64 = 5.0;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let of_applier =
        |session: u64| seen.workers.iter().any(|worker| worker.session == session) || seen.is_applier(session);
    let open = seen.open_transactions();
    let largest = open
        .iter()
        .filter(|one| of_applier(one.session) && !one.waits_for_lock && !ddl::is_ddl(&one.query))
        .max_by_key(|one| (one.rows_modified, one.seconds))?;
    let worker = seen.workers.iter().find(|worker| worker.session == largest.session);
    // One that waits for its turn is held up by another.
    if worker.is_some_and(|worker| worker.share(Activity::CommitOrder) > 0.3 || worker.share(Activity::Lock) > 0.3) {
        return None;
    }
    let (gtid, seconds) = match worker.and_then(|worker| worker.applying.as_ref()) {
        Some((gtid, seconds)) => (Some(gtid.as_str()), *seconds),
        None => (None, largest.seconds as f64),
    };
    if largest.rows_modified < ROWS_MIN && (seconds < SECONDS_MIN || largest.rows_modified == 0) {
        return None;
    }
    let mut evidence = vec![format!(
        "session {} of the replica: {} rows changed so far, in {}",
        largest.session,
        thousands(largest.rows_modified),
        duration(seconds)
    )];
    evidence.extend(gtid.map(|gtid| format!("GTID {gtid}")));
    let tables = seen.period.after.rows(TABLES).iter();
    let of_it: Vec<&str> = tables
        .filter(|row| number::<u64>(row, "session") == Some(largest.session))
        .map(|row| text(row, "table_name"))
        .filter(|name| !name.starts_with("mysql."))
        .collect();
    if !of_it.is_empty() {
        evidence.push(format!("tables: {}", of_it.join(", ")));
    }
    if !largest.query.is_empty() {
        evidence.push(format!("statement: {}", largest.query));
    }
    let idle = 1.0 - seen.busy_workers() / seen.workers.len().max(1) as f64;
    if seen.workers.len() > 1 {
        evidence.push(format!("the workers had no work in {} of their time", percent(idle)));
    }
    let named = of_it.first().map_or_else(String::new, |table| format!(" of {table}"));
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!(
            "one large transaction is being applied: {} rows{named} so far, for {}",
            thousands(largest.rows_modified),
            duration(seconds)
        ),
        share: 1.0 - seen.work_share(Activity::NoWork).min(idle.max(0.0)),
        evidence,
        server: ActionTarget::Application,
        statement: String::new(),
        risk: String::new(),
        effect: "it ends by itself; change fewer rows in one transaction (DELETE … LIMIT in a loop), then others run beside and lag stays small".to_owned(),
        ..Finding::default()
    })
}
