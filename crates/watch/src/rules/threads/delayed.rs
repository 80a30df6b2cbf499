//! The replica is to stay behind.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::states::Activity;
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use crate::rules::rule::Rule;
use output::numbers::{about, percent};
use replica::statements::HOLD_S;

pub const RULE: Rule = Rule { name: "delayed", looks_at: "`SQL_Delay`", advice: "nothing, or no delay", check };

fn check(seen: &ChannelFacts<'_>, _: Limits) -> Option<Finding> {
    let delay = seen.status.delay_s;
    (delay > 0 && delay != HOLD_S).then(|| Finding {
        severity: Severity::Ok,
        cause: format!("it is to stay {} behind on purpose (SQL_Delay)", about(delay)),
        share: seen.coordinator_share(Activity::Delay),
        evidence: vec![
            format!("SQL_Delay={delay}"),
            format!(
                "the applier waited on purpose in {} of the time",
                percent(seen.coordinator_share(Activity::Delay))
            ),
        ],
        server: ActionTarget::Replica,
        statement: String::new(),
        risk: String::new(),
        effect: "lag up to the delay is what was asked for".to_owned(),
        ..Finding::default()
    })
}
