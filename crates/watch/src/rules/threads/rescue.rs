//! The replica is far behind and does not catch up by itself in time.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::lag;
use crate::facts::trend;
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use crate::rules::rule::{Rule, by_lag, rescue_command};
use engine::quality::forecast::Forecast;
use output::numbers::{about, thousands};

pub const RULE: Rule = Rule {
    name: "rescue",
    looks_at: "the lag, the transactions that wait, the rates of receiver and applier",
    advice: "`heddle rescue`, with how long it takes",
    check,
};

/// A replica that has caught up by then needs nobody.
const SOON_S: f64 = 3600.0;

fn check(seen: &ChannelFacts<'_>, limits: Limits) -> Option<Finding> {
    let lag = lag::of(seen).seconds.filter(|&lag| lag >= limits.warn_s && seen.has_backlog())?;
    let trend = trend::of(seen);
    let native = match trend.left {
        Forecast::CaughtUp => return None,
        Forecast::In(seconds) if seconds <= SOON_S => return None,
        Forecast::In(seconds) => format!("its own applier needs about {} more", about(seconds as u64)),
        Forecast::Never => "its own applier does not catch up at this rate".to_owned(),
        Forecast::Unknown => return None,
    };
    let waiting = seen.behind_transactions();
    let mut evidence = vec![format!("{} behind", about(lag as u64)), native.clone()];
    evidence.extend(waiting.map(|waiting| format!("{} transactions wait", thousands(waiting))));
    if let (Some(applied), Some(received)) = (trend.applied_per_second, trend.received_per_second) {
        evidence.push(format!("{applied:.0} transactions/s applied, {received:.0} received"));
    }
    let effect = match trend::heddle_s(seen, &trend) {
        Some((seconds, times)) => format!("about {} ({times:.1} times its own applier, by a simulation of the source's log)", about(seconds as u64)),
        None => "mostly several times as fast as the server's own applier: --dry-run measures it; --source adds an estimate here".to_owned(),
    };
    Some(Finding {
        severity: by_lag(seen, limits).max(Severity::Warning),
        cause: format!("it is {} behind and {native}", about(lag as u64)),
        share: 1.0,
        evidence,
        server: ActionTarget::Heddle,
        statement: format!("{} --dry-run", rescue_command(seen)),
        risk: "none: --dry-run only looks; without it heddle takes over from the applier and hands back. admin: an account as docs/privileges.md has it for rescues".to_owned(),
        effect,
        ..Finding::default()
    })
}
