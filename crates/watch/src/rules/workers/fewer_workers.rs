//! While the replica catches up most workers have nothing to do: their number is not what limits, and fewer do the same.

use crate::facts::channel_facts::ChannelFacts;
use crate::rules::finding::{ActionTarget, Change, Finding, Limits, Severity};
use crate::rules::rule::{Rule, WORKERS, idle_workers, kept, restarted};
use replica::settings;

pub const RULE: Rule = Rule {
    name: "fewer_workers",
    looks_at: "Jain's index over the workers' commits, only while there is a backlog: idle workers of a replica that keeps up mean nothing",
    advice: "as many workers as had work, and a half more",
    check,
};

const JAIN_MAX: f64 = 0.5;
const WORKERS_MIN: usize = 8;

fn check(seen: &ChannelFacts<'_>, _: Limits) -> Option<Finding> {
    let jain = seen.jain().filter(|&jain| jain <= JAIN_MAX)?;
    let all = seen.workers.len();
    if !seen.has_backlog() || all < WORKERS_MIN {
        return None;
    }
    // Jain's index times their number: workers that did all of the work, had they shared it evenly.
    let used = (jain * all as f64).max(seen.busy_workers());
    let wanted = ((used * 1.5).ceil() as u64).next_power_of_two().max(4);
    if wanted * 2 > all as u64 {
        return None;
    }
    let kind = settings::ServerVersion { mariadb: seen.period.mariadb, version: seen.period.version };
    let setting = format!("{}={wanted}", kind.workers());
    Some(Finding {
        severity: Severity::Ok,
        cause: format!("{wanted} workers would do what {all} do"),
        share: 1.0 - used / all as f64,
        evidence: vec![format!("Jain's index {jain:.2} over {all} workers while catching up"), idle_workers(seen)],
        server: ActionTarget::Replica,
        statement: restarted(seen, std::slice::from_ref(&setting)),
        risk: "the applier stops for a moment; write sets on the source may need more workers again".to_owned(),
        effect: "as fast as now, with fewer sessions and less memory".to_owned(),
        change: Change {
            keep: kept(seen, std::slice::from_ref(&setting)),
            settings: WORKERS.to_vec(),
            ..Change::default()
        },
        ..Finding::default()
    })
}
