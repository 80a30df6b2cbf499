//! The report in one sentence: what limits a replica, how much, what to change, and where. Text, JSON and HTML show this one. Pure.
//!
//! It weighs nothing itself: the findings come with their weights.

use super::model::{Finding, InspectReport, Verdict};
use output::numbers::{counted, percent};
use replica::settings::{ServerVersion, Setting, named, workers_for};

/// Fewer transactions say nothing about a load.
const TRANSACTIONS_MIN: u64 = 100;
/// With less than this there is nothing that parallel workers could use.
const SPEEDUP_MIN: f64 = 1.5;

/// A log does not say what a replica's workers do.
const IF_BUSY: &str = " (if it has fewer, and heddle watch says that they are busy)";

pub fn verdict(report: &InspectReport) -> Verdict {
    let speedup_max = report.exact.as_ref().and_then(|exact| exact.speedup_max);
    let base = Verdict { speedup_max, settings: settings(report), ..Verdict::default() };
    let (Some(speedup), true) = (speedup_max, report.transactions > 0) else { return unread(report, base) };
    if report.transactions < TRANSACTIONS_MIN {
        let sentence = format!(
            "{} are too few to judge what limits a replica; inspect the log of an hour.",
            counted(report.transactions, "transaction")
        );
        return Verdict { sentence, limit: "too_short".to_owned(), ..base };
    }
    match worst(report) {
        Some(cause) => limited(&cause, speedup, base),
        None if speedup < SPEEDUP_MIN => Verdict {
            sentence: format!(
                "A replica can be at most {speedup:.1} times as fast as with one worker, and no cause stands out."
            ),
            limit: "spread".to_owned(),
            ..base
        },
        None => free(report, speedup, base),
    }
}

fn unread(report: &InspectReport, base: Verdict) -> Verdict {
    if report.transactions == 0 {
        return Verdict {
            sentence: "The log has no transactions, so nothing in it limits a replica.".to_owned(),
            limit: "nothing".to_owned(),
            ..base
        };
    }
    let groups = report.pseudo_group_size.or(report.mariadb_group_size);
    let known = groups.map_or_else(
        || "what limits a replica is not known".to_owned(),
        |size| format!("all that is known is that the source's tags let {size:.1} transactions run at a time"),
    );
    Verdict {
        sentence: format!("Keys were not read (--quick), so {known}; inspect again without --quick."),
        limit: "keys_not_read".to_owned(),
        change: "inspect again without --quick".to_owned(),
        server: "heddle",
        ..base
    }
}

/// Findings of one kind: what is changed for one of them helps little while the others stay.
struct Cause<'a> {
    first: &'a Finding,
    critical_share: f64,
    weight: f64,
    subject: String,
}

/// The kind of findings that weighs most; of equals the first.
fn worst(report: &InspectReport) -> Option<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    for finding in &report.findings {
        let (weight, share) = (finding.weight.unwrap_or(0.0), finding.critical_share.unwrap_or(0.0));
        match causes.iter_mut().find(|cause| cause.first.kind == finding.kind) {
            _ if weight <= 0.0 => {}
            Some(cause) => {
                (cause.critical_share, cause.weight) = (cause.critical_share + share, cause.weight + weight);
                cause.subject = several(report, &cause.first.kind);
            }
            None => {
                let subject = finding.subject.clone();
                causes.push(Cause { first: finding, critical_share: share, weight, subject });
            }
        }
    }
    causes.into_iter().rev().max_by(|a, b| a.weight.total_cmp(&b.weight))
}

fn several(report: &InspectReport, kind: &str) -> String {
    let own = report.findings.iter().filter(|finding| finding.kind == kind);
    let tables: Vec<&str> = match kind {
        "hot_key" => report.hot_tables.iter().filter_map(|table| table.name.as_deref()).take(own.count()).collect(),
        _ => own.map(|finding| finding.subject.as_str()).collect(),
    };
    format!("{}{}", if kind == "hot_key" { "hot rows of " } else { "" }, tables.join(", "))
}

fn limited(cause: &Cause<'_>, speedup: f64, base: Verdict) -> Verdict {
    let finding = cause.first;
    Verdict {
        sentence: format!(
            "A replica can be at most {speedup:.1} times as fast as with one worker: {} of the critical path waits for {}; {}: {}.",
            percent(cause.critical_share),
            cause.subject,
            place(finding.server),
            finding.change
        ),
        limit: finding.kind.clone(),
        critical_share: Some(cause.critical_share),
        change: finding.change.to_owned(),
        server: finding.server,
        ..base
    }
}

/// Nothing in the rows is in the way: settings are.
fn free(report: &InspectReport, speedup: f64, base: Verdict) -> Verdict {
    let possible = format!("up to {speedup:.1} times the speed of one worker is possible");
    let (source, replica): (Vec<&Setting>, Vec<&Setting>) =
        base.settings.iter().partition(|setting| setting.server == "source");
    let on_replica = named(replica.iter().copied());
    let tags = report.findings.iter().find(|finding| finding.kind == "tags_commit_order");
    if let Some(finding) = tags {
        let tagged = report.pseudo_group_size.unwrap_or(1.0);
        let change = if source.is_empty() { finding.change.to_owned() } else { format!("set {}", named(source)) };
        return Verdict {
            sentence: format!(
                "The rows do not limit a replica ({possible}), but the source's tags let only {tagged:.1} transactions run at a time; on the \
                 source: {change}; then on the replica: set {on_replica}{IF_BUSY}."
            ),
            limit: finding.kind.clone(),
            change,
            server: "source",
            ..base
        };
    }
    let at_times = stall(report)
        .map_or_else(String::new, |finding| format!(", but it lags at times because of {}", finding.subject));
    Verdict {
        sentence: format!(
            "Nothing in the log limits a replica: {possible}{at_times}; on the replica: set {on_replica}{IF_BUSY}."
        ),
        limit: "nothing".to_owned(),
        change: format!("set {on_replica}"),
        server: "replica",
        ..base
    }
}

/// What makes a replica lag for a while, however little of the log it is.
fn stall(report: &InspectReport) -> Option<&Finding> {
    let is_long = |finding: &&Finding| finding.kind == "long_transaction";
    let is_barrier = |finding: &&Finding| report.barrier_details.iter().any(|barrier| barrier.cause == finding.kind);
    report.findings.iter().find(|finding| is_long(finding) || is_barrier(finding) && finding.weight.is_some())
}

/// What makes a native replica use the parallelism that is there.
fn settings(report: &InspectReport) -> Vec<Setting> {
    let speedup = report.exact.as_ref().and_then(|exact| exact.speedup_max).unwrap_or(0.0);
    if speedup < SPEEDUP_MIN {
        return Vec::new();
    }
    let version = report.files.iter().filter_map(|file| file.server_version.as_deref()).next_back().unwrap_or_default();
    let native = ServerVersion { mariadb: report.flavour == "mariadb", ..ServerVersion::of_text(version) };
    let has = |kind: &str| report.findings.iter().any(|finding| finding.kind == kind);
    let tags = native.writeset().filter(|_| has("tags_commit_order"));
    // Workers go by the source's tags, unless these are about to change.
    let tagged = report.pseudo_group_size.filter(|_| !native.mariadb && tags.is_none()).unwrap_or(speedup);
    let workers = workers_for(speedup.min(tagged));
    let mut settings: Vec<Setting> = tags.into_iter().chain(native.parallel(workers)).collect();
    let mode = "slave_parallel_mode=optimistic";
    if has("small_groups") && settings.iter().all(|setting| setting.setting != mode) {
        settings.push(Setting { server: "replica", setting: mode.to_owned() });
    }
    settings
}

fn place(server: &str) -> &'static str {
    match server {
        "source" => "on the source",
        "replica" => "on the replica",
        "application" => "in the application",
        _ => "with heddle",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use engine::survey::totals::Costs;
    use engine::survey::{Depth, Totals};

    use super::super::build::Limits;
    use super::super::findings;
    use super::super::model::{ExactReport, ExampleReport, FileReport, HotTable, TransactionReport};
    use super::super::{InspectReport, html, text};
    use super::*;
    use crate::inspect::{LogSurvey, pipeline};

    const LIMITS: Limits = Limits { hot_keys: 50, tables: 50 };

    /// A report of 1,000 transactions that can be so many times as fast as one after the other.
    fn report(version: &str, speedup: f64) -> InspectReport {
        let totals = Totals::new(Depth::Keys, Costs::default());
        let found = LogSurvey { totals, files: Vec::new(), troubles: Vec::new(), more_troubles: 0 };
        let mut report = InspectReport::new(found, LIMITS);
        report.transactions = 1_000;
        report.flavour = if version.contains("MariaDB") { "mariadb" } else { "mysql" };
        report.files =
            vec![FileReport { path: "log.000001".to_owned(), bytes: 1, server_version: Some(version.to_owned()) }];
        report.exact = Some(ExactReport {
            window_transactions: 65_536,
            windows: 1,
            width_average: Some(speedup),
            width_max: 100,
            critical_path_transactions: 100,
            critical_path_seconds: 1.0,
            work_seconds: speedup,
            speedup_max: Some(speedup),
            critical_path_by: [("key".to_owned(), 0.1)].into(),
            cost_transaction_us: 150.0,
            cost_row_us: 15.0,
        });
        report
    }

    fn hot(share: f64) -> HotTable {
        HotTable {
            name: Some("shop.counter".to_owned()),
            rows: 1,
            transactions: 500,
            error: 0,
            critical_share: share,
            reference_share: 0.0,
            values: vec!["id=1".to_owned()],
            example: None,
        }
    }

    fn judged(mut report: InspectReport, change: &dyn Fn(&mut InspectReport)) -> InspectReport {
        change(&mut report);
        report.findings = findings::find(&report);
        report.verdict = verdict(&report);
        report
    }

    #[test]
    fn what_limits_and_where_to_change_it() {
        let check = |report: InspectReport, limit: &str, server: &str, says: &[&str]| {
            let Verdict { sentence, .. } = &report.verdict;
            assert_eq!((report.verdict.limit.as_str(), report.verdict.server), (limit, server), "{sentence}");
            for part in says {
                assert!(sentence.contains(part), "{part} in {sentence}");
            }
        };
        let hot_row = |share: f64| move |report: &mut InspectReport| report.hot_tables = vec![hot(share)];
        check(
            judged(report("9.7.4", 2.0), &hot_row(0.9)),
            "hot_key",
            "application",
            &[
                "at most 2.0 times",
                "90.0 % of the critical path waits for the hot row shop.counter, id=1",
                "spread the row",
            ],
        );
        let tables = |report: &mut InspectReport| {
            let other = HotTable { name: Some("shop.item".to_owned()), ..hot(0.3) };
            report.hot_tables = vec![hot(0.4), other];
        };
        let says = ["70.0 % of the critical path waits for hot rows of shop.counter, shop.item; in the application"];
        check(judged(report("9.7.4", 2.0), &tables), "hot_key", "application", &says);
        // With 16 workers nobody would notice it.
        check(
            judged(report("9.7.4", 38.0), &hot_row(0.2)),
            "nothing",
            "replica",
            &["up to 38.0 times", "replica_parallel_workers=16"],
        );
        let open = |report: &mut InspectReport| {
            report.longest_transactions = vec![TransactionReport {
                example: ExampleReport { gtid: None, file: "log.000001".to_owned(), position: 4, statement: None },
                time: String::new(),
                rows: 1,
                bytes: 1,
                seconds: 600,
            }];
        };
        let says = ["up to 38.0 times", "it lags at times because of transactions that were open for long"];
        check(judged(report("9.7.4", 38.0), &open), "nothing", "replica", &says);
        check(judged(report("9.7.4", 1.1), &hot_row(0.01)), "spread", "", &["at most 1.1 times"]);
        let tags = |report: &mut InspectReport| {
            (report.pseudo_group_size, report.pseudo_group_size_writeset) = (Some(1.2), Some(20.0));
        };
        check(
            judged(report("8.0.36", 20.0), &tags),
            "tags_commit_order",
            "source",
            &[
                "only 1.2",
                "on the source: set binlog_transaction_dependency_tracking=WRITESET",
                "replica_parallel_workers=16",
            ],
        );
        let groups = |report: &mut InspectReport| report.mariadb_group_size = Some(1.1);
        check(
            judged(report("10.11.6-MariaDB", 6.0), &groups),
            "nothing",
            "replica",
            &["slave_parallel_threads=8, slave_parallel_mode=optimistic"],
        );
        check(judged(report("9.7.4", 2.0), &|report| report.transactions = 99), "too_short", "", &["too few"]);
        check(judged(report("9.7.4", 2.0), &|report| report.transactions = 0), "nothing", "", &["no transactions"]);
        check(judged(report("9.7.4", 2.0), &|report| report.exact = None), "keys_not_read", "heddle", &["--quick"]);
    }

    #[test]
    fn every_output_shows_it_first() {
        let report = judged(report("9.7.4", 2.0), &|report| report.hot_tables = vec![hot(0.9)]);
        let sentence = &report.verdict.sentence;
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text::summary(&report, false)).starts_with(&format!("Verdict {sentence}")), "{sentence}");
        let page = html::page(&report);
        let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what} in {page}"));
        assert!(at(sentence) < at("class=\"tiles\""));
        assert_eq!(serde_json::to_value(&report).unwrap()["verdict"]["sentence"], sentence.as_str());
    }

    /// Whatever a server wrote.
    #[test]
    fn golden_logs_have_one_sentence() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../binlog/tests/golden");
        let mut judged = 0;
        for dir in std::fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let is_log = |path: &std::path::PathBuf| path.extension().is_some_and(|name| name == "binlog");
            for log in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(is_log) {
                let totals = Totals::new(Depth::Keys, Costs::default());
                let definitions = engine::survey::Definitions::default();
                let read = std::sync::atomic::AtomicU64::new(0);
                let found = pipeline::run(vec![log.clone()].into(), definitions, 1, totals, None, &read, &[]);
                let Verdict { sentence, .. } = InspectReport::new(found, LIMITS).verdict;
                let is_one = sentence.ends_with('.') && !sentence.contains(". ") && !sentence.contains("NaN");
                assert!(is_one, "{}: {sentence:?}", log.display());
                judged += 1;
            }
        }
        assert!(judged >= 50, "{judged}");
    }
}
