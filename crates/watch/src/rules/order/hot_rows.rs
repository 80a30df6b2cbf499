//! Transactions change the same rows one after the other: they cannot run beside each other.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::{number, text};
use crate::questions::LOCKS;
use crate::rules::finding::{ActionTarget, Finding, Limits};
use crate::rules::order::dependency;
use crate::rules::rule::{Rule, by_lag, rescue_command};
use output::numbers::percent;

pub const RULE: Rule = Rule {
    name: "hot_rows",
    looks_at: "with `--source`: the rows that chains of transactions share; else locks between workers, and retries",
    advice: "spread the row over several, or group (`heddle rescue`)",
    check,
};

const SHARE_MIN: f64 = 0.3;
/// Of what MariaDB applies.
const RETRIES_MIN: f64 = 0.05;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    if !seen.has_backlog() || seen.workers_set < 2 {
        return None;
    }
    let hot = seen.period.source.as_ref().and_then(|source| source.hot.iter().find(|hot| hot.share >= SHARE_MIN));
    let waits = dependency::share(seen);
    let retried =
        seen.grown("Slave_retried_transactions").unwrap_or(0) as f64 / seen.applied.unwrap_or(0).max(1) as f64;
    let between = seen.period.after.rows(LOCKS).iter().find(|row| {
        let ours = |name| number::<u64>(row, name).is_some_and(|session| seen.is_applier(session));
        ours("waits") && ours("holds")
    });
    let (what, share, mut evidence) = match (hot, between) {
        (Some(hot), _) if waits > 0.2 || seen.busy_workers() < 2.0 || retried >= RETRIES_MIN => (
            hot.rows.clone(),
            hot.share,
            vec![format!("{} of the longest chain of the source's log waits for {}", percent(hot.share), hot.rows)],
        ),
        (_, Some(row)) if retried >= RETRIES_MIN || waits > 0.2 => {
            let table = text(row, "table_name").replace('`', "");
            (
                format!("rows of {table}"),
                retried.max(waits).min(1.0),
                vec![format!("a worker waits for another one's lock of {table}, {}", text(row, "lock_data"))],
            )
        }
        (None, None) if retried >= RETRIES_MIN => ("the same rows".to_owned(), retried.min(1.0), Vec::new()),
        _ => return None,
    };
    if retried > 0.0 {
        evidence.push(format!("{} of the transactions were rolled back and run again", percent(retried)));
    }
    if waits > 0.0 {
        evidence.push(format!("the applier waited for dependencies in {} of the time", percent(waits)));
    }
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!("transactions change {what} one after the other"),
        share,
        evidence,
        server: ActionTarget::Heddle,
        statement: format!("{} --dry-run", rescue_command(seen)),
        risk: "none: it only looks; admin: an account as docs/privileges.md has it for rescues".to_owned(),
        effect: "no number of workers helps: spread the row over several in the application; grouping merges the changes of a row".to_owned(),
        ..Finding::default()
    })
}
