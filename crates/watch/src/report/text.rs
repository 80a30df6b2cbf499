//! A report as text: the same lines on a terminal and in a file. Pure.

use std::fmt::Write;

use crate::report::model::{Report, Share, Stage};
use crate::rules::finding::{Finding, Limits, Severity};
use output::numbers::{about, bytes, per_second, thousands};

/// Workers that are shown one a line.
const WORKERS_SHOWN: usize = 8;
const BAR: usize = 10;
const WIDTH: usize = 100;

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "OK",
        Severity::Warning => "WARNING",
        Severity::Critical => "CRITICAL",
        Severity::Unknown => "UNKNOWN",
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn bar(share: f64) -> String {
    let full = ((share.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
    format!("{}{}", "█".repeat(full), "·".repeat(BAR - full))
}

fn states(shares: &[Share]) -> String {
    let shown = shares.iter().filter(|share| share.share >= 0.005).take(5);
    let words: Vec<String> = shown.map(|share| format!("{} {}", share.state.words(), percent(share.share))).collect();
    if words.is_empty() { "not seen".to_owned() } else { words.join(" · ") }
}

fn stage(stage: &Stage) -> String {
    let mut words = vec![stage.stage.to_owned()];
    words.extend(stage.share.map(|share| format!("{} {}", bar(share), percent(share))));
    words.extend(stage.transactions.map(|waiting| format!("{} trx", thousands(waiting))));
    words.extend(stage.bytes.map(bytes));
    words.extend(stage.seconds.filter(|&seconds| seconds >= 0.1).map(|seconds| format!("{seconds:.1} s")));
    words.join(" ")
}

/// Breaks between words; later lines begin below the first.
fn folded(text: &mut String, head: &str, body: &str) {
    let width = WIDTH.saturating_sub(head.chars().count()).max(20);
    let mut line = String::new();
    let mut lines = Vec::new();
    for word in body.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    let blank = " ".repeat(head.chars().count());
    for (at, line) in lines.iter().enumerate() {
        let _ = writeln!(text, "{}{line}", if at == 0 { head } else { &blank });
    }
}

fn finding(text: &mut String, number: usize, one: &Finding) {
    folded(text, &format!("{number:>2}. "), &format!("{} ({}, {})", one.cause, one.rule, percent(one.share)));
    for evidence in &one.evidence {
        folded(text, "      because  ", evidence);
    }
    if !one.statement.is_empty() {
        let on = one.server.words();
        let _ = writeln!(text, "      {on:<8} {}", one.statement);
    }
    if !one.change.keep.is_empty() {
        folded(text, "      to keep  ", &one.change.keep);
    }
    if !one.risk.is_empty() {
        folded(text, "      risk     ", &one.risk);
    }
    if !one.effect.is_empty() {
        folded(text, "      expect   ", &one.effect);
    }
}

fn workers(text: &mut String, report: &Report) {
    let mut words = vec![format!("{:.1} of {} were busy", report.applier.busy_workers, report.applier.workers.len())];
    words.extend(report.applier.jain.map(|jain| format!("Jain's index {jain:.2}")));
    words.extend(
        report
            .applier
            .commits_percentiles
            .map(|of| format!("commits each p10 {} p50 {} p90 {} max {}", of.p10, of.p50, of.p90, of.max)),
    );
    folded(text, "workers      ", &words.join(" · "));
    let mut sorted: Vec<_> = report.applier.workers.iter().collect();
    sorted.sort_by(|a, b| b.busy_share.total_cmp(&a.busy_share).then(b.commits.cmp(&a.commits)));
    for worker in sorted.iter().take(WORKERS_SHOWN) {
        let commits = worker.commits.map_or_else(String::new, |commits| format!(" {commits} commits"));
        let transaction = worker.transaction.as_ref().map_or_else(String::new, |gtid| format!(" {gtid}"));
        let state = if worker.state.is_empty() { "-" } else { &worker.state };
        let _ = writeln!(text, "  {:>9} {}{commits} {state}{transaction}", worker.thread, bar(worker.busy_share));
    }
    let idle = sorted.iter().skip(WORKERS_SHOWN).filter(|worker| worker.busy_share == 0.0).count();
    let more = sorted.len().saturating_sub(WORKERS_SHOWN);
    if more > 0 {
        let _ = writeln!(text, "            and {more} more, {idle} of them without any work");
    }
    folded(text, "their time   ", &states(&report.applier.work));
}

fn statistics(text: &mut String, report: &Report) {
    if let Some(of) = &report.applier.coordinator_statistics {
        let words = format!(
            "last {} s: {} events/s assigned · clock conflicts {} · workers occupied {} times, {} · queue full {} · total size {}",
            of.elapsed_seconds,
            per_second(of.events_per_second),
            percent(of.clock_conflicts_share),
            thousands(of.workers_occupied_count),
            percent(of.workers_occupied_share),
            of.waited_queue_full,
            of.waited_total_size,
        );
        folded(text, "MY-010559    ", &words);
    }
    if let Some(of) = &report.applier.applier_metrics {
        let words = format!(
            "no work {} · dependency {} · workers busy {} · queues full {} · commit order {:.2} s/s of all workers",
            percent(of.no_work_share),
            percent(of.dependency_share),
            percent(of.workers_busy_share),
            percent(of.queue_full_share),
            of.commit_order_seconds
        );
        folded(text, "component    ", &words);
    }
}

const CAUSES_MAX: usize = 3;

fn source(text: &mut String, report: &Report) {
    if let Some(source) = &report.source {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        let mut words = vec![format!(
            "{} transactions of its log: AMIL {}",
            thousands(source.transactions),
            number(source.parallelism.amil),
        )];
        if source.parallelism.keys_unknown {
            words.push("what write sets would give is not known, as some tables' keys are not".to_owned());
        } else {
            let by = [("with write sets", source.parallelism.amil_writeset), ("exact", source.parallelism.amil_exact)];
            words.extend(by.into_iter().filter_map(|(name, amil)| Some(format!("{name} {:.1}", amil?))));
        }
        words.extend(source.parallelism.group_size.map(|size| format!("{size:.1} a group commit")));
        words.extend(source.simulated.what_if.iter().map(|one| one.words(report.applier.workers_configured)));
        words.extend(
            source.simulated.heddle_times.map(|times| format!("simulated: heddle is {times:.1} times as fast as now")),
        );
        words.extend(source.simulated.predictions_off.map(|off| format!("such predictions were {} off", percent(off))));
        folded(text, "source       ", &words.join(" · "));
        for cause in source.causes.iter().take(CAUSES_MAX) {
            folded(text, "its log      ", &cause.words());
        }
        if !source.commands.is_empty() {
            folded(text, "more         ", &source.commands.join(" · "));
        }
    }
}

/// The first line for monitoring systems (Nagios, Icinga): state, text, and after a bar the numbers. The worst replica's text.
pub fn plugin_line(reports: &[&Report], worst: Severity, limits: Limits) -> String {
    let all = reports.len();
    let first = reports.iter().find(|report| report.severity == worst).or(reports.first());
    let words = first.map_or("no replica was seen", |report| report.verdict.as_str());
    let who = match first {
        Some(first) if all > 1 => {
            let as_bad = reports.iter().filter(|report| report.severity == worst).count();
            format!("{as_bad} of {all} channels, {}: ", first.identity.replica)
        }
        _ => String::new(),
    };
    let numbers: Vec<String> = reports.iter().flat_map(|report| numbers(report, all > 1, limits)).collect();
    let numbers = if numbers.is_empty() { String::new() } else { format!(" | {}", numbers.join(" ")) };
    format!("{} - {}{numbers}", severity(worst), format!("{who}{words}").replace('|', "/").replace('\n', " "))
}

/// `'label'=value[unit];warning;critical;minimum`
fn numbers(report: &Report, names_replica: bool, limits: Limits) -> Vec<String> {
    let of = if names_replica {
        format!("{} {} ", report.identity.replica.trim_start_matches("mysql://"), report.identity.channel)
            .replace(['\'', '=', '|'], "_")
    } else {
        String::new()
    };
    let of = of.split_whitespace().map(|part| format!("{part} ")).collect::<String>();
    let behind = &report.behind;
    let mut all = Vec::new();
    all.extend(behind.lag_seconds.map(|lag| format!("'{of}lag'={lag:.1}s;{};{};0", limits.warn_s, limits.critical_s)));
    all.extend(behind.behind_transactions.map(|waiting| format!("'{of}waiting'={waiting};;;0")));
    all.extend(behind.applied_per_second.map(|rate| format!("'{of}applied_per_second'={rate:.1};;;0")));
    all.extend(behind.received_per_second.map(|rate| format!("'{of}received_per_second'={rate:.1};;;0")));
    all
}

/// One channel of one replica.
pub fn text(report: &Report) -> String {
    with_verdict(report, true)
}

/// The same behind [`plugin_line`], which has the verdict.
pub fn text_below(report: &Report) -> String {
    with_verdict(report, false)
}

/// A replica of a replica says so.
fn level(report: &Report) -> String {
    match report.identity.depth {
        Some(depth @ 2..) => format!(" (level {depth})"),
        _ => String::new(),
    }
}

fn with_verdict(report: &Report, verdict: bool) -> String {
    let mut text = String::new();
    let channel = if report.identity.channel.is_empty() {
        String::new()
    } else {
        format!(", channel {}", report.identity.channel)
    };
    if report.identity.server.is_empty() {
        let _ = writeln!(text, "replica      {}{}", report.identity.replica, level(report));
    } else {
        let _ = writeln!(
            text,
            "replica      {} ({}){channel}, source {}{}",
            report.identity.replica,
            report.identity.server,
            report.identity.source_address,
            level(report)
        );
    }
    if verdict {
        folded(&mut text, "             ", &format!("{}: {}", severity(report.severity), report.verdict));
    }
    if report.severity == Severity::Unknown {
        return text;
    }
    let lag = report.behind.lag_seconds.map_or_else(|| "unknown".to_owned(), |lag| format!("{lag:.1} s"));
    let mut words =
        vec![format!("{lag} ({})", report.behind.lag_from.replace('_', " ")), report.behind.trend.replace('_', " ")];
    words.extend(report.behind.applied_per_second.map(|rate| format!("{} transactions/s applied", per_second(rate))));
    words.extend(report.behind.received_per_second.map(|rate| format!("{} received", per_second(rate))));
    words.extend(
        report.behind.caught_up_in_seconds.map(|left| format!("will have caught up in about {}", about(left as u64))),
    );
    words.extend(
        report
            .behind
            .backlog_seconds
            .filter(|_| report.behind.caught_up_in_seconds.is_none())
            .map(|left| format!("what waits takes about {}", about(left as u64))),
    );
    folded(&mut text, "lag          ", &words.join(" · "));
    let stages: Vec<String> = report.applier.stages.iter().map(stage).collect();
    folded(&mut text, "stages       ", &stages.join(" → "));
    folded(&mut text, "coordinator  ", &states(&report.applier.coordinator));
    statistics(&mut text, report);
    if !report.applier.workers.is_empty() {
        workers(&mut text, report);
    }
    if let Some(size) = report.period.binlog_group_size {
        let _ = writeln!(text, "own binlog   {size:.1} transactions a group commit");
    }
    source(&mut text, report);
    for (at, one) in report.findings.iter().enumerate() {
        finding(&mut text, at + 1, one);
    }
    for outcome in &report.follow_ups {
        let came = match outcome.came_true {
            None => "changed, judged at the next look",
            Some(true) => "came true",
            Some(false) => "did not come true",
        };
        let body = format!(
            "{} ({}): {came}; {}; expected: {}",
            outcome.change, outcome.rule, outcome.evidence, outcome.expected
        );
        folded(&mut text, "advice       ", &body);
    }
    for note in &report.period.notes {
        folded(&mut text, "note         ", note);
    }
    text
}

/// Several replicas: a line each, then what is worst.
pub fn overview(reports: &[&Report]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<9} {:>10} {:>9} {:>11} {:>5}  replica: verdict",
        "severity", "lag", "applied/s", "workers", "Jain"
    );
    for report in reports {
        let lag = report.behind.lag_seconds.map_or_else(|| "?".to_owned(), |lag| format!("{lag:.1} s"));
        let rate = report.behind.applied_per_second.map_or_else(|| "?".to_owned(), |rate| format!("{rate:.0}"));
        let workers = format!("{:.1}/{}", report.applier.busy_workers, report.applier.workers.len().max(1));
        let jain = report.applier.jain.map_or_else(|| "-".to_owned(), |jain| format!("{jain:.2}"));
        let channel =
            if report.identity.channel.is_empty() { String::new() } else { format!(" {}", report.identity.channel) };
        let _ = writeln!(
            text,
            "{:<9} {lag:>10} {rate:>9} {workers:>11} {jain:>5}  {}{}{channel}: {}",
            severity(report.severity),
            report.identity.replica,
            level(report),
            report.verdict
        );
    }
    text
}
