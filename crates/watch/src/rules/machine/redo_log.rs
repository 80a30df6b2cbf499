//! The redo log is too small for what is written.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::{number, text};
use crate::questions::NOTES;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits, Severity};
use crate::rules::rule::{Rule, by_lag, kept};
use output::numbers::{bytes, percent};

pub const RULE: Rule = Rule {
    name: "redo_log",
    looks_at: "how full the redo log is with what is not yet in the data files, warning MY-013865",
    advice: "a larger redo log",
    check,
};

/// From here on the server writes pages as fast as it can, and commits wait.
const FULL_MIN: f64 = 0.75;
/// A warning of the error log counts for so long, in seconds.
const RECENT_S: f64 = 120.0;

fn capacity(seen: &ChannelFacts<'_>) -> Option<u64> {
    let of = |name: &str| seen.variable(&[name])?.parse::<u64>().ok();
    if let Some(all) = of("innodb_redo_log_capacity") {
        return Some(all);
    }
    Some(of("innodb_log_file_size")? * of("innodb_log_files_in_group").unwrap_or(1))
}

/// MySQL keeps two of its 32 files free, and a margin for what is being written.
fn usable(capacity: u64) -> u64 {
    (capacity / 32 * 30).saturating_sub(1 << 20).max(1)
}

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let capacity = capacity(seen)?;
    let used = seen.counter("Innodb_checkpoint_age").or_else(|| seen.counter("Innodb_redo_log_logical_size"))?;
    let limit = seen.counter("Innodb_checkpoint_max_age").filter(|&max| max > 0).unwrap_or_else(|| usable(capacity));
    let full = used as f64 / limit.max(1) as f64;
    let now = seen.now_s().unwrap_or(0.0);
    let warned = seen.period.after.rows(NOTES).iter().filter(|row| {
        let age = now - number::<f64>(row, "logged_s").unwrap_or(0.0);
        text(row, "code") == "MY-013865" && age <= RECENT_S
    });
    let warned = warned.count();
    if !(warned > 0 || full >= FULL_MIN && seen.has_backlog()) {
        return None;
    }
    let wanted = capacity.saturating_mul(4);
    let mut evidence =
        vec![format!("{} of {} are not yet in the data files ({})", bytes(used), bytes(limit), percent(full))];
    if warned > 0 {
        evidence
            .push(format!("{warned} warnings MY-013865 (waiting for a new redo log file) in the last {RECENT_S:.0} s"));
    }
    let online = match (seen.period.mariadb, seen.period.version) {
        (true, version) if version >= (10, 9, 0) => Some("innodb_log_file_size"),
        (false, version) if version >= (8, 0, 30) => Some("innodb_redo_log_capacity"),
        _ => None,
    };
    let statement = online.map_or_else(
        || format!("innodb_log_file_size={wanted} in the configuration file, and a restart"),
        |name| format!("SET GLOBAL {name}={wanted}"),
    );
    Some(Finding {
        severity: by_lag(seen, limits).max(if warned > 0 { Severity::Warning } else { Severity::Ok }),
        cause: format!("the redo log ({}) is too small for what is written", bytes(capacity)),
        share: full.min(1.0),
        evidence,
        server: ActionTarget::Replica,
        statement,
        risk: format!("{} of disk; recovery after a crash reads more", bytes(wanted)),
        effect: "pages are written when there is time, and commits do not wait for them".to_owned(),
        change: Change {
            keep: online.map_or_else(String::new, |name| kept(seen, &[format!("{name}={wanted}")])),
            settings: vec!["innodb_redo_log_capacity", "innodb_log_file_size"],
            ..Change::default()
        },
        ..Finding::default()
    })
}
