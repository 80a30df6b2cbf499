//! What a rule is, and what several of them say in the same words. Pure.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::lag;
use crate::facts::states::Activity;
use crate::facts::trend;
use crate::rules::finding::{Finding, Limits, Severity};
use output::numbers::percent;
use replica::settings;

pub struct Rule {
    pub name: &'static str,
    /// For docs/watch.md.
    pub looks_at: &'static str,
    pub advice: &'static str,
    pub check: fn(&ChannelFacts<'_>, Limits) -> Option<Finding>,
}

/// As bad as the lag, and where it goes. What is asked for (`SQL_Delay`) is none.
pub fn by_lag(seen: &ChannelFacts<'_>, limits: Limits) -> Severity {
    let delay = seen.status.delay_s as f64;
    match lag::of(seen).seconds {
        Some(lag) if lag >= limits.critical_s + delay => Severity::Critical,
        Some(lag) if lag >= limits.warn_s + delay || trend::falls_behind(seen, limits.warn_s) => Severity::Warning,
        _ => Severity::Ok,
    }
}

/// `62 of 64 workers had no work on average`; MariaDB's may have some that they can not begin.
pub fn idle_workers(seen: &ChannelFacts<'_>) -> String {
    let all = seen.workers.len();
    let idle = (all as f64 - seen.busy_workers()).max(0.0);
    let waits = seen.workers.iter().any(|worker| worker.share(Activity::Dependency) > 0.0);
    let had = if waits { "had nothing that they could begin" } else { "had no work" };
    format!("{idle:.0} of {all} workers {had} on average")
}

pub fn of_samples(seen: &ChannelFacts<'_>, doing: Activity) -> String {
    format!(
        "the coordinator {} in {} of {} samples",
        doing.words(),
        percent(seen.coordinator_share(doing)),
        seen.samples
    )
}

/// Stops the applier, sets, starts it again.
pub fn restarted(seen: &ChannelFacts<'_>, settings: &[String]) -> String {
    let set: Vec<String> = settings.iter().map(|setting| format!("SET GLOBAL {setting}")).collect();
    format!("{}; {}; {}", seen.native.stop_applier(), set.join("; "), seen.native.start_applier())
}

/// What makes settings outlive a restart, where they are to.
pub fn kept(seen: &ChannelFacts<'_>, settings: &[String]) -> String {
    let native = settings::ServerVersion { mariadb: seen.period.mariadb, version: seen.period.version };
    native.kept(settings.iter().map(String::as_str))
}

/// The command that rescues this replica, by an account that may: not by the one that looks.
pub fn rescue_command(seen: &ChannelFacts<'_>) -> String {
    let replica = seen.period.replica.as_str();
    let address =
        replica.rsplit_once('@').map_or_else(|| replica.trim_start_matches("mysql://"), |(_, address)| address);
    format!("heddle rescue mysql://{ADMIN}@{address}")
}

/// Stands for an account with the rights that docs/privileges.md lists.
const ADMIN: &str = "admin";

/// A setting's name and the same of older versions.
pub const WORKERS: [&str; 3] = ["replica_parallel_workers", "slave_parallel_workers", "slave_parallel_threads"];
