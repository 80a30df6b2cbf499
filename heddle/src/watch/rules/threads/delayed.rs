//! The replica is to stay behind.

use crate::report::numbers::{about, percent};
use crate::watch::facts::seen::Seen;
use crate::watch::facts::states::Doing;
use crate::watch::rules::rule::Rule;
use crate::watch::said::finding::{Finding, Limits, On, Severity};

pub const RULE: Rule = Rule { name: "delayed", looks_at: "`SQL_Delay`", advice: "nothing, or no delay", check };

fn check(seen: &Seen<'_>, _: Limits) -> Option<Finding> {
    let delay = seen.status.delay_s;
    (delay > 0).then(|| Finding {
        severity: Severity::Ok,
        cause: format!("it is to stay {} behind on purpose (SQL_Delay)", about(delay)),
        share: seen.coordinator_share(Doing::Delay),
        evidence: vec![
            format!("SQL_Delay={delay}"),
            format!("the applier waited on purpose in {} of the time", percent(seen.coordinator_share(Doing::Delay))),
        ],
        server: On::Replica,
        statement: String::new(),
        risk: String::new(),
        effect: "lag up to the delay is what was asked for".to_owned(),
        ..Finding::default()
    })
}
