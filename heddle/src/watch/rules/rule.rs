//! What a rule is, and what several of them say in the same words. Pure.

use crate::report::numbers::percent;
use crate::watch::facts::lag;
use crate::watch::facts::seen::Seen;
use crate::watch::facts::states::Doing;
use crate::watch::said::finding::{Finding, Limits, Severity};

pub struct Rule {
    pub name: &'static str,
    /// For docs/watch.md.
    pub looks_at: &'static str,
    pub advice: &'static str,
    pub check: fn(&Seen<'_>, Limits) -> Option<Finding>,
}

/// Of a rule about speed: as bad as the lag.
pub fn by_lag(seen: &Seen<'_>, limits: Limits) -> Severity {
    match lag::of(seen).seconds {
        Some(lag) if lag >= limits.critical_s => Severity::Critical,
        Some(lag) if lag >= limits.warn_s => Severity::Warning,
        _ => Severity::Ok,
    }
}

/// `62 of 64 workers had no work on average`; MariaDB's may have some that they can not begin.
pub fn idle_workers(seen: &Seen<'_>) -> String {
    let all = seen.workers.len();
    let idle = (all as f64 - seen.busy_workers()).max(0.0);
    let waits = seen.workers.iter().any(|worker| worker.share(Doing::Dependency) > 0.0);
    let had = if waits { "had nothing that they could begin" } else { "had no work" };
    format!("{idle:.0} of {all} workers {had} on average")
}

pub fn of_samples(seen: &Seen<'_>, doing: Doing) -> String {
    format!(
        "the coordinator {} in {} of {} samples",
        doing.words(),
        percent(seen.coordinator_share(doing)),
        seen.samples
    )
}

/// Stops the applier, sets, starts it again.
pub fn restarted(seen: &Seen<'_>, settings: &[String]) -> String {
    let set: Vec<String> = settings.iter().map(|setting| format!("SET GLOBAL {setting}")).collect();
    format!("{}; {}; {}", seen.native.stop_applier(), set.join("; "), seen.native.start_applier())
}

/// A setting's name and the same of older versions.
pub const WORKERS: [&str; 3] = ["replica_parallel_workers", "slave_parallel_workers", "slave_parallel_threads"];
