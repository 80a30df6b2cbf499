//! What `heddle simulate` predicts: as data, for people, as a page.

mod model;
mod verdict;

use std::fmt::Write as _;

pub use model::{PolicyReport, SimulateReport, SourceRate, Verdict};
pub use verdict::verdict;

use pages::html::{document, grid, tiles};
use pages::{Axis, Line, escape, lines};

use output::numbers::{per_second, percent, thousands};

/// Why more workers do not help, in words.
fn because(limited_by: &str) -> &'static str {
    match limited_by {
        "dependencies" => "more would be idle: what could come next has to wait for what is under way",
        "commit_order" => "more would wait for their turn to commit",
        "commits" => "more would wait for syncs and the serial part of commits",
        "machine" => "more would wait for processors, or for pages",
        _ => "no more were tried",
    }
}

/// For people.
pub fn text(report: &SimulateReport) -> String {
    let mut out = format!("Verdict: {}\n\n", report.verdict.sentence);
    let _ = writeln!(
        out,
        "{} transactions with {} rows{}{}; transactions/s and, in brackets, speedup over one after the other:\n",
        thousands(report.transactions),
        thousands(report.rows),
        if report.truncated { " (the log has more: --transactions)" } else { "" },
        of_source(&report.source)
    );
    let width = report.policies.iter().map(|policy| policy.label().chars().count() + 2).max().unwrap_or(0).max(30);
    let _ = write!(out, "{:<width$}", "workers");
    report.workers.iter().for_each(|number| {
        let _ = write!(out, "{number:>16}");
    });
    out.push_str("  beside the source\n");
    for policy in &report.policies {
        let _ = write!(out, "{:<width$}", policy.label());
        for run in &policy.runs {
            let cell = format!("{} ({:.1}x)", thousands(run.transactions_per_second.round() as u64), run.speedup);
            let _ = write!(out, "{cell:>16}");
        }
        let _ = writeln!(out, "  {}", policy.beside_source());
    }
    for note in &report.notes {
        let _ = writeln!(out, "\nNote: {note}");
    }
    let _ = writeln!(out, "\nWorkers that are worth it (95 % of the best), and what limits there:");
    for policy in report.policies.iter().filter(|policy| policy.policy != "serial") {
        let (Some(workers), Some(limit)) = (policy.recommended_workers, policy.limited_by) else { continue };
        let run = policy.recommended();
        let _ = writeln!(
            out,
            "{:<width$}{workers:>5}  {}; utilisation {}, Jain's index {}",
            policy.label(),
            because(limit),
            run.map_or_else(String::new, |run| percent(run.utilisation)),
            run.and_then(|run| run.jain).map_or_else(|| "–".to_owned(), |jain| format!("{jain:.2}"))
        );
    }
    let costs = &report.costs;
    let _ = writeln!(
        out,
        "\nCosts{}: a transaction {:.0} µs, a row {:.1} µs, handing out {:.1} µs, a commit {:.1} µs, syncs of {:.0} µs (engine) and {:.0} µs (binary log); {} of \
         rows not cached, {:.0} µs each; {} processors; Heddle: {:.0} µs more for a transaction by itself, {:.0} µs for an answer, {:.0} µs for a \
         group and {:.1} µs for a row in it.",
        match (&report.calibration, report.costs_from) {
            (Some(measured), _) => format!(", measured on {}", measured.server),
            (None, "file") => ", of an earlier run".to_owned(),
            (None, _) => " (defaults: --calibrate mysql://… measures a server)".to_owned(),
        },
        costs.transaction_us,
        costs.row_us,
        costs.dispatch_us,
        costs.commit_us,
        costs.sync_us,
        costs.log_sync_us,
        percent(costs.miss_share),
        costs.miss_us,
        costs.cores,
        costs.heddle_us,
        costs.round_trip_us,
        costs.group_us,
        costs.group_row_us
    );
    out.push_str("Assumed:\n");
    for assumption in &report.assumptions {
        let _ = writeln!(out, "  - {assumption}");
    }
    for problem in report.problems.iter().take(PROBLEMS_TOLD) {
        let _ = writeln!(out, "Not read: {problem}");
    }
    if report.problems.len() > PROBLEMS_TOLD {
        let _ =
            writeln!(out, "Not read: {} more, see --json", thousands((report.problems.len() - PROBLEMS_TOLD) as u64));
    }
    out
}

/// The source's own rate, in brackets.
fn of_source(source: &SourceRate) -> String {
    match (source.transactions_per_second, source.busiest_transactions_per_second) {
        (Some(mean), Some(most)) => format!(
            " (the source wrote {} transactions/s on average, {} in its busiest {})",
            per_second(mean),
            per_second(most),
            match source.busiest_seconds {
                1 => "second".to_owned(),
                60 => "minute".to_owned(),
                seconds => format!("{} s", thousands(seconds)),
            }
        ),
        _ => String::new(),
    }
}

/// Problems that are told one by one.
const PROBLEMS_TOLD: usize = 20;

/// One HTML file.
pub fn page(report: &SimulateReport) -> String {
    let mut body = String::from(
        "<header><h1>How fast replicas would be</h1><p>A simulation; what it rests on is below.</p></header>",
    );
    heading(&mut body, report);
    body.push_str("<section><h2>Speedup by number of workers</h2>");
    plots(&mut body, report);
    body.push_str("</section><section><h2>Transactions a second</h2>");
    rates(&mut body, report);
    body.push_str("</section><section><h2>Where the workers' time goes</h2>");
    shares(&mut body, report);
    body.push_str("</section><section><h2>Assumptions</h2>");
    assumptions(&mut body, report);
    document("Replica simulation", &body)
}

/// The best of all, in large; what to know before the figures.
fn heading(body: &mut String, report: &SimulateReport) {
    let _ = write!(body, "<article class=\"verdict\"><p>{}</p></article>", escape(&report.verdict.sentence));
    let recommended =
        |policy: &PolicyReport| policy.recommended().map(|run| (policy.policy.clone(), run.workers, run.speedup));
    // Of equals the first: policies come in the order in which people choose.
    let best = report.policies.iter().filter_map(recommended).rev().max_by(|a, b| a.2.total_cmp(&b.2));
    tiles(
        body,
        &[
            ("transactions", thousands(report.transactions)),
            ("rows", thousands(report.rows)),
            ("best speedup", best.as_ref().map_or_else(|| "–".to_owned(), |(_, _, speedup)| format!("{speedup:.1}×"))),
            ("workers for it", best.as_ref().map_or_else(|| "–".to_owned(), |(_, workers, _)| workers.to_string())),
            ("best policy", best.map_or_else(|| "–".to_owned(), |(policy, ..)| policy)),
        ],
    );
    let truncated =
        report.truncated.then(|| "The log has more transactions than were simulated: --transactions.".to_owned());
    for note in truncated.iter().chain(&report.notes) {
        let _ = write!(body, "<article><p>{}</p></article>", escape(note));
    }
}

fn rates(body: &mut String, report: &SimulateReport) {
    let mut heads = vec![String::new(), "beside the source".to_owned()];
    heads.extend(report.workers.iter().map(ToString::to_string));
    heads.push("worth it".to_owned());
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = report
        .policies
        .iter()
        .map(|policy| {
            let mut row = vec![policy.label(), policy.beside_source()];
            row.extend(policy.runs.iter().map(|run| thousands(run.transactions_per_second.round() as u64)));
            row.push(policy.recommended_workers.map_or_else(String::new, |workers| workers.to_string()));
            row
        })
        .collect();
    grid(body, &heads, &rows, 2);
}

/// At the recommended number of workers.
fn shares(body: &mut String, report: &SimulateReport) {
    let rows: Vec<Vec<String>> = report
        .policies
        .iter()
        .filter_map(|policy| {
            let run = policy.recommended()?;
            Some(vec![
                policy.label(),
                run.workers.to_string(),
                percent(run.utilisation),
                percent(run.work),
                percent(run.idle),
                percent(run.commit_order),
                percent(run.commits),
                percent(run.machine),
                run.jain.map_or_else(|| "–".to_owned(), |jain| format!("{jain:.2}")),
            ])
        })
        .collect();
    grid(
        body,
        &[
            "at the recommended number",
            "workers",
            "utilisation",
            "work",
            "idle",
            "commit order",
            "commits",
            "machine",
            "Jain",
        ],
        &rows,
        1,
    );
}

fn assumptions(body: &mut String, report: &SimulateReport) {
    body.push_str("<ul>");
    for assumption in &report.assumptions {
        let _ = write!(body, "<li>{}</li>", escape(assumption));
    }
    body.push_str("</ul><h3>Costs</h3>");
    let costs = &report.costs;
    let us = |value: f64| format!("{value:.1} µs");
    let rows = [
        ("a transaction", us(costs.transaction_us)),
        ("a row", us(costs.row_us)),
        ("handing out", us(costs.dispatch_us)),
        ("a commit", us(costs.commit_us)),
        ("a sync of the engine's log", us(costs.sync_us)),
        ("a sync of the binary log", us(costs.log_sync_us)),
        ("rows that are not cached", percent(costs.miss_share)),
        ("reading the page of such a row", us(costs.miss_us)),
        ("processors", costs.cores.to_string()),
        ("Heddle: a transaction by itself, more", us(costs.heddle_us)),
        ("Heddle: an answer", us(costs.round_trip_us)),
        ("Heddle: a group", us(costs.group_us)),
        ("Heddle: a row in a group", us(costs.group_row_us)),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    grid(body, &["", "takes"], &rows, 1);
    body.push_str("</section>");
    if !report.problems.is_empty() {
        body.push_str("<section class=\"bad\"><h2>Not read</h2><ul>");
        for problem in &report.problems {
            let _ = write!(body, "<li>{}</li>", escape(problem));
        }
        body.push_str("</ul></section>");
    }
}

/// Lines that one plot can show.
const LINES_MAX: usize = 10;

/// One plot, or one of each kind of replica when there are many.
fn plots(body: &mut String, report: &SimulateReport) {
    let shown: Vec<&PolicyReport> = report.policies.iter().filter(|policy| policy.policy != "serial").collect();
    let kind = |policy: &PolicyReport| match policy.policy.as_str() {
        name if !name.starts_with("heddle") => "Native",
        name if name.ends_with("-grouping") => "Heddle, with grouping",
        name if name.ends_with("-unordered") => "Heddle, commits in any order",
        _ => "Heddle, commits in the source's order",
    };
    let plot = |policies: &[&PolicyReport]| {
        let line = |policy: &&PolicyReport| Line {
            name: policy.policy.clone(),
            points: policy.runs.iter().map(|run| (run.workers as f64, run.speedup)).collect(),
        };
        lines(&policies.iter().map(line).collect::<Vec<_>>(), &Axis::Numbers { log: true }, "×")
    };
    if shown.len() <= LINES_MAX {
        return body.push_str(&plot(&shown));
    }
    let mut kinds: Vec<&str> = shown.iter().map(|policy| kind(policy)).collect();
    kinds.sort_unstable_by_key(|name| std::cmp::Reverse(*name));
    kinds.dedup();
    for name in kinds {
        let own: Vec<&PolicyReport> = shown.iter().copied().filter(|policy| kind(policy) == name).collect();
        let _ = write!(body, "<h3>{name}</h3>{}", plot(&own));
    }
}
