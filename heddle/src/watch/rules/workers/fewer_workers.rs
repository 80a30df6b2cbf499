//! While the replica catches up most workers have nothing to do: their number is not what limits, and fewer do the same.

use crate::report::native;
use crate::watch::facts::seen::Seen;
use crate::watch::rules::rule::{Rule, WORKERS, idle_workers, restarted};
use crate::watch::said::finding::{Finding, Limits, On, Severity};

pub const RULE: Rule = Rule {
    name: "fewer_workers",
    looks_at: "Jain's index over the workers' commits, only while there is a backlog: idle workers of a replica that keeps up mean nothing",
    advice: "as many workers as had work, and a half more",
    check,
};

const JAIN_MAX: f64 = 0.5;
const WORKERS_MIN: usize = 8;

fn check(seen: &Seen<'_>, _: Limits) -> Option<Finding> {
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
    let kind = native::Native { mariadb: seen.period.mariadb, version: seen.period.version };
    Some(Finding {
        severity: Severity::Ok,
        cause: format!("{wanted} workers would do what {all} do"),
        share: 1.0 - used / all as f64,
        evidence: vec![format!("Jain's index {jain:.2} over {all} workers while catching up"), idle_workers(seen)],
        server: On::Replica,
        statement: restarted(seen, &[format!("{}={wanted}", kind.workers())]),
        risk: "the applier stops for a moment; write sets on the source may need more workers again".to_owned(),
        effect: "as fast as now, with fewer sessions and less memory".to_owned(),
        settings: WORKERS.to_vec(),
        ..Finding::default()
    })
}
