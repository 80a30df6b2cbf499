//! A DDL statement runs, beside which nothing is applied.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::{Role, Thread, number, text};
use crate::facts::states::{Activity, doing};
use crate::questions::TABLES;
use crate::rules::finding::{ActionTarget, Finding, Limits};
use crate::rules::rule::{Rule, by_lag};
use output::numbers::{duration, percent};

pub const RULE: Rule = Rule {
    name: "ddl",
    looks_at: "the statements of the applier's threads",
    advice: "nothing now; the next time online tools, or `ALGORITHM=INSTANT`",
    check,
};

/// Of the samples: shorter ones do not matter.
const SHARE_MIN: f64 = 0.3;
const VERBS: [&str; 7] = ["ALTER", "CREATE", "DROP", "OPTIMIZE", "TRUNCATE", "RENAME", "ANALYZE"];

/// Whether a statement begins as DDL does; comments before it are left out.
pub fn is_ddl(statement: &str) -> bool {
    let mut rest = statement.trim_start();
    while let Some(comment) = rest.strip_prefix("/*").filter(|comment| !comment.starts_with('!')) {
        rest = comment.split_once("*/").map_or("", |(_, behind)| behind).trim_start();
    }
    let verb = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    VERBS.iter().any(|known| verb.eq_ignore_ascii_case(known))
}

/// MySQL does not always show the statement of an applier's thread; its state tells an ALTER TABLE all the same.
pub fn is_state_of_ddl(state: &str) -> bool {
    let state = state.to_ascii_lowercase();
    ["alter table", "altering table", "copy to tmp table", "preparing for alter", "committing alter", "creating index"]
        .iter()
        .any(|part| state.starts_with(part))
}

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let runs = |thread: &&Thread| {
        let active = doing(thread.role, &thread.state) != Activity::NoWork;
        thread.role != Role::Receiver && active && (is_ddl(&thread.info) || is_state_of_ddl(&thread.state))
    };
    let samples: Vec<&Thread> =
        seen.period.samples.iter().filter_map(|sample| sample.threads.iter().find(runs)).collect();
    let share = samples.len() as f64 / seen.samples.max(1) as f64;
    let last = samples.last().filter(|_| share >= SHARE_MIN)?;
    // MySQL says when it began; else as long as it was seen.
    let worker = seen.workers.iter().find(|worker| worker.id == last.id);
    let since =
        worker.and_then(|worker| worker.applying.as_ref()).map_or(share * seen.seconds, |(_, seconds)| *seconds);
    let tables = seen.period.after.rows(TABLES).iter();
    let mut open =
        tables.filter(|row| number::<u64>(row, "session") == Some(last.session)).map(|row| text(row, "table_name"));
    // Beside what it makes for itself.
    let table = open.rfind(|name| !name.starts_with("mysql.") && !name.contains("#sql"));
    let what = match table {
        _ if !last.info.is_empty() => last.info.clone(),
        Some(table) => format!("{} on {table}", last.state),
        None => last.state.clone(),
    };
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!("a DDL statement runs and nothing is applied beside it: {what}"),
        share,
        evidence: vec![
            format!("seen in {} of {} samples, for {}", percent(share), seen.samples, duration(since)),
            format!("state: {}", if last.state.is_empty() { "-" } else { &last.state }),
            seen.behind_transactions().map_or_else(
                || "transactions wait behind it".to_owned(),
                |waiting| format!("{waiting} received transactions wait"),
            ),
        ],
        server: ActionTarget::Nowhere,
        statement: String::new(),
        risk: "ending it (KILL) stops the applier with an error".to_owned(),
        effect: "it ends by itself; the next time use ALGORITHM=INSTANT where the server can, gh-ost or pt-online-schema-change".to_owned(),
        ..Finding::default()
    })
}
