//! The simulation in one sentence: which replica keeps up with the source, and what to set for it. Pure.

use super::model::{PolicyReport, SimulateReport, Verdict};
use output::numbers::{counted, per_second};
use replica::settings::{ServerVersion, Setting, named};

pub fn verdict(report: &SimulateReport) -> Verdict {
    let Some(best) = best(report) else {
        return Verdict { sentence: "No policy was simulated.".to_owned(), ..Verdict::default() };
    };
    let Some(rate) = report.source.transactions_per_second else { return alone(report, best) };
    let source = format!("The source wrote {} transactions/s", per_second(rate));
    let default = ours(report).map_or_else(String::new, |policy| {
        let verb = if policy.keeps_up == Some(true) { "keeps up" } else { "falls behind" };
        format!("heddle's default {verb} ({})", described(policy))
    });
    let with_default = if default.is_empty() { String::new() } else { format!(", {default}") };
    if let Some(policy) = native_that_keeps_up(report) {
        let workers = policy.keeps_up_from_workers.unwrap_or(1);
        if workers == 1 {
            return Verdict {
                sentence: format!("{source}: one native worker keeps up{with_default}, so nothing has to be changed."),
                policy: Some(policy.policy.clone()),
                workers: Some(1),
                ..Verdict::default()
            };
        }
        let settings = settings(&policy.policy, workers, report);
        return Verdict {
            sentence: format!(
                "{source}: a native replica keeps up with {} ({}){with_default}; set {}.",
                counted(workers as u64, "worker"),
                policy.policy,
                placed(&settings)
            ),
            policy: Some(policy.policy.clone()),
            workers: Some(workers),
            settings,
        };
    }
    let keeps_up = |policy: &&PolicyReport| policy.keeps_up == Some(true);
    let heddle = ours(report).filter(keeps_up).or_else(|| report.policies.iter().find(keeps_up));
    if let Some(policy) = heddle {
        return Verdict {
            sentence: format!(
                "{source}: no native replica keeps up, and {} does ({}); apply with heddle replicate.",
                if policy.is_heddle_default { "heddle's default".to_owned() } else { policy.policy.clone() },
                described(policy)
            ),
            policy: Some(policy.policy.clone()),
            workers: policy.keeps_up_from_workers,
            ..Verdict::default()
        };
    }
    Verdict {
        sentence: format!(
            "{source}: no simulated replica keeps up, the fastest being {} ({}); heddle inspect says what limits.",
            best.label(),
            described(best)
        ),
        ..Verdict::default()
    }
}

/// Against one after the other, as the source's rate is not known.
fn alone(report: &SimulateReport, best: &PolicyReport) -> Verdict {
    let speedup = |policy: &PolicyReport| policy.recommended().map_or(1.0, |run| run.speedup);
    let fastest = format!(
        "the fastest is {}, {:.1} times as fast as one native worker ({})",
        best.label(),
        speedup(best),
        described(best)
    );
    let default = ours(report).filter(|policy| policy.policy != best.policy).map_or_else(String::new, |policy| {
        format!("; heddle's default is {:.1} times as fast ({})", speedup(policy), described(policy))
    });
    Verdict {
        sentence: format!("The log is too short to tell the source's own rate: {fastest}{default}."),
        ..Verdict::default()
    }
}

fn ours(report: &SimulateReport) -> Option<&PolicyReport> {
    report.policies.iter().find(|policy| policy.is_heddle_default)
}

/// Of equals the first: policies come in the order in which people choose.
fn best(report: &SimulateReport) -> Option<&PolicyReport> {
    let rate = |policy: &PolicyReport| policy.recommended().map_or(0.0, |run| run.transactions_per_second);
    report.policies.iter().rev().max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// With the fewest workers; of equals the first.
fn native_that_keeps_up(report: &SimulateReport) -> Option<&PolicyReport> {
    let native = report.policies.iter().filter(|policy| !policy.policy.starts_with("heddle"));
    native.filter(|policy| policy.keeps_up == Some(true)).min_by_key(|policy| policy.keeps_up_from_workers)
}

/// `1,234/s with 4 workers`
fn described(policy: &PolicyReport) -> String {
    policy.recommended().map_or_else(String::new, |run| {
        format!("{}/s with {}", per_second(run.transactions_per_second), counted(run.workers as u64, "worker"))
    })
}

/// What makes a native replica work like a simulated line.
fn settings(policy: &str, workers: usize, report: &SimulateReport) -> Vec<Setting> {
    let native = ServerVersion::of_text(report.source.version.as_deref().unwrap_or_default());
    if let Some(mode) = policy.strip_prefix("mariadb-") {
        return ["slave_parallel_threads", "slave_parallel_mode"]
            .into_iter()
            .zip([workers.to_string(), mode.to_owned()])
            .map(|(name, value)| Setting { server: "replica", setting: format!("{name}={value}") })
            .collect();
    }
    let tags = native.writeset().filter(|_| policy.contains("writeset"));
    let mut settings: Vec<Setting> = tags.into_iter().chain(native.parallel(workers as u64)).collect();
    if policy == "mysql-database" {
        settings.retain(|setting| setting.setting.contains("parallel_workers"));
        if native.version >= (5, 7, 0) {
            let name = if native.version >= (8, 0, 26) { "replica_parallel_type" } else { "slave_parallel_type" };
            settings.push(Setting { server: "replica", setting: format!("{name}=DATABASE") });
        }
    }
    settings
}

/// `a=1 on the source, b=2, c=3 on the replica`
fn placed(settings: &[Setting]) -> String {
    let parts = ["source", "replica"].into_iter().filter_map(|server| {
        let own: Vec<&Setting> = settings.iter().filter(|setting| setting.server == server).collect();
        (!own.is_empty()).then(|| format!("{} on the {server}", named(own)))
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use sim::replica::Costs;

    use super::super::model::{RunReport, SourceRate};
    use super::super::{page, text};
    use super::*;

    fn policy(name: &str, rate: f64, rates: &[f64]) -> PolicyReport {
        let run = |(workers, &rate): (usize, &f64)| RunReport {
            workers: 1 << workers,
            seconds: 1.0,
            transactions_per_second: rate,
            speedup: rate / 1_000.0,
            utilisation: 1.0,
            processors: 1.0,
            jain: None,
            idle: 0.0,
            commit_order: 0.0,
            commits: 0.0,
            machine: 0.0,
            work: 1.0,
            conflicts: 0,
        };
        let runs: Vec<RunReport> = rates.iter().enumerate().map(run).collect();
        let enough = runs.iter().find(|run| rate > 0.0 && run.transactions_per_second >= rate).map(|run| run.workers);
        PolicyReport {
            policy: name.to_owned(),
            is_heddle_default: name == "heddle-grouping",
            keeps_up_from_workers: enough,
            keeps_up: (rate > 0.0).then_some(enough.is_some()),
            recommended_workers: runs.last().map(|run| run.workers),
            runs,
            limited_by: None,
        }
    }

    /// Of a source with this rate (0: not known): one worker applies 1,000/s.
    fn report(version: &str, rate: f64, native: &str, best: f64, heddle: f64) -> SimulateReport {
        let policies = vec![
            policy("serial", rate, &[1_000.0]),
            policy(native, rate, &[1_000.0, best]),
            policy("heddle-grouping", rate, &[heddle]),
        ];
        let mut report = SimulateReport {
            verdict: Verdict::default(),
            transactions: 1_000,
            rows: 1_000,
            serial_transactions_per_second: 1_000.0,
            workers: vec![1, 2],
            truncated: false,
            costs: Costs::default(),
            costs_from: "defaults",
            calibration: None,
            assumptions: Vec::new(),
            notes: Vec::new(),
            source: SourceRate {
                version: Some(version.to_owned()),
                transactions_per_second: (rate > 0.0).then_some(rate),
                busiest_transactions_per_second: (rate > 0.0).then_some(2.0 * rate),
                busiest_seconds: 60,
            },
            policies,
            problems: Vec::new(),
        };
        report.verdict = verdict(&report);
        report
    }

    #[test]
    fn who_keeps_up() {
        let check = |report: SimulateReport, policy: Option<&str>, says: &[&str]| {
            let Verdict { sentence, policy: advised, .. } = &report.verdict;
            assert_eq!(advised.as_deref(), policy, "{sentence}");
            for part in says {
                assert!(sentence.contains(part), "{part} in {sentence}");
            }
        };
        let slow = &[
            "The source wrote 500",
            "one native worker keeps up",
            "heddle's default keeps up (3,000/s with 1 worker)",
        ];
        check(report("9.7.4", 500.0, "mysql-writeset", 1_500.0, 3_000.0), Some("serial"), slow);
        check(
            report("8.0.36", 1_200.0, "mysql-writeset", 1_500.0, 1_100.0),
            Some("mysql-writeset"),
            &[
                "keeps up with 2 workers (mysql-writeset), heddle's default falls behind",
                "set binlog_transaction_dependency_tracking=WRITESET on the source, replica_parallel_workers=2 on the replica.",
            ],
        );
        check(
            report("10.11.6-MariaDB", 1_200.0, "mariadb-aggressive", 1_500.0, 3_000.0),
            Some("mariadb-aggressive"),
            &["slave_parallel_threads=2, slave_parallel_mode=aggressive on the replica"],
        );
        check(
            report("8.0.20", 1_200.0, "mysql-database", 1_500.0, 3_000.0),
            Some("mysql-database"),
            &["slave_parallel_workers=2, slave_parallel_type=DATABASE on the replica"],
        );
        check(
            report("9.7.4", 2_000.0, "mysql-writeset", 1_500.0, 3_000.0),
            Some("heddle-grouping"),
            &["no native replica keeps up, and heddle's default does"],
        );
        check(
            report("9.7.4", 9_000.0, "mysql-writeset", 1_500.0, 3_000.0),
            None,
            &["no simulated replica keeps up", "heddle-grouping (heddle's default)"],
        );
        check(report("9.7.4", 0.0, "mysql-writeset", 1_500.0, 3_000.0), None, &["too short", "3.0 times as fast"]);
    }

    #[test]
    fn lines_stand_beside_the_source() {
        let report = report("9.7.4", 1_200.0, "mysql-writeset", 1_500.0, 3_000.0);
        let (text, page) = (text(&report), page(&report));
        assert!(text.starts_with(&format!("Verdict: {}", report.verdict.sentence)), "{text}");
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        for (name, says) in [
            ("serial", "falls behind"),
            ("mysql-writeset", "keeps up from 2"),
            ("heddle-grouping (heddle's default)", "keeps up"),
        ] {
            assert!(line(name).ends_with(says), "{name}: {text}");
        }
        assert!(
            page.contains("beside the source") && page.contains("falls behind") && !page.contains("{&quot;"),
            "{page}"
        );
    }
}
