//! Rows are read from the disk before they can be changed.

use crate::facts::channel_facts::ChannelFacts;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits};
use crate::rules::rule::{Rule, by_lag, kept};
use output::numbers::{bytes, thousands};

pub const RULE: Rule = Rule {
    name: "buffer_pool",
    looks_at: "pages read from the disk for each row changed, `innodb_buffer_pool_size`",
    advice: "a larger buffer pool",
    check,
};

/// Pages for each row changed.
const PAGES_MIN: f64 = 0.2;
/// In a second.
const RATE_MIN: f64 = 100.0;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let pages = seen.grown("Innodb_buffer_pool_reads")?;
    let asked = seen.grown("Innodb_buffer_pool_read_requests").unwrap_or(0).max(1);
    let sum = |names: [&str; 3]| names.iter().map(|name| seen.grown(name)).sum::<Option<u64>>();
    // MariaDB from 10.5 on has those of all engines alone.
    let changed = sum(["Innodb_rows_inserted", "Innodb_rows_updated", "Innodb_rows_deleted"])
        .or_else(|| sum(["Handler_write", "Handler_update", "Handler_delete"]))?;
    let each = pages as f64 / changed.max(1) as f64;
    if !seen.has_backlog() || each < PAGES_MIN || (pages as f64) < RATE_MIN * seen.seconds {
        return None;
    }
    let size: u64 = seen.variable(&["innodb_buffer_pool_size"])?.parse().ok()?;
    let wanted = size.saturating_mul(4);
    let setting = format!("innodb_buffer_pool_size={wanted}");
    let waits = seen.grown("Innodb_buffer_pool_wait_free").unwrap_or(0);
    let mut evidence = vec![
        format!(
            "{} pages read from the disk for {} rows changed ({each:.2} each)",
            thousands(pages),
            thousands(changed)
        ),
        format!("{:.1} % of all page requests", pages as f64 / asked as f64 * 100.0),
    ];
    if waits > 0 {
        evidence.push(format!("{} waits for a free page", thousands(waits)));
    }
    Some(Finding {
        severity: by_lag(seen, limits),
        cause: format!("the buffer pool ({}) is too small, so that rows are read from the disk", bytes(size)),
        share: (pages as f64 / changed.max(1) as f64).min(1.0),
        evidence,
        server: ActionTarget::Replica,
        statement: format!("SET GLOBAL {setting}"),
        risk: format!("the server takes {} of memory: only what the machine has", bytes(wanted)),
        effect: "fewer pages from the disk for each row".to_owned(),
        change: Change {
            keep: kept(seen, std::slice::from_ref(&setting)),
            settings: vec!["innodb_buffer_pool_size"],
            ..Change::default()
        },
        ..Finding::default()
    })
}
