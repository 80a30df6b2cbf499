//! What `heddle simulate` predicts: as data, for people, as a page.

use std::fmt::Write as _;

use engine::quality::jain_index;
use pages::html::{document, grid, tiles};
use pages::{Axis, Line, escape, lines};
use serde::Serialize;
use sim::replica::{Costs, Knee, Model, Outcome, knee};

use crate::report::numbers::{percent, thousands};
use crate::simulate::calibrate::Measured;

/// `--json`: names and units are stable; fields may be added.
#[derive(Debug, Serialize)]
pub struct SimulateReport {
    pub transactions: u64,
    pub rows: u64,
    /// One after the other.
    pub serial_transactions_per_second: f64,
    pub workers: Vec<usize>,
    /// The log has more than were simulated.
    pub truncated: bool,
    /// `--costs` reads them.
    pub costs: Costs,
    /// `defaults`, `calibration` or `file`; single ones may have been set beside.
    pub costs_from: &'static str,
    pub calibration: Option<Measured>,
    pub assumptions: Vec<&'static str>,
    /// What makes the predictions worse than they need be.
    pub notes: Vec<String>,
    pub policies: Vec<PolicyReport>,
    /// Files or parts of them that could not be read.
    pub problems: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct PolicyReport {
    pub policy: String,
    pub runs: Vec<RunReport>,
    pub recommended_workers: Option<usize>,
    /// What further workers would mostly wait for.
    pub limited_by: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub struct RunReport {
    pub workers: usize,
    pub seconds: f64,
    pub transactions_per_second: f64,
    /// Against one after the other.
    pub speedup: f64,
    /// Of the workers' time, with a transaction.
    pub utilisation: f64,
    /// Of the processors' time.
    pub processors: f64,
    /// Of transactions among workers: 1 is even.
    pub jain: Option<f64>,
    /// Shares of the workers' time.
    pub idle: f64,
    pub commit_order: f64,
    pub commits: f64,
    pub machine: f64,
    pub work: f64,
    /// MariaDB: transactions that met an earlier one's row.
    pub conflicts: u64,
}

impl PolicyReport {
    /// `serial_seconds`: what one after the other takes.
    pub fn new(model: Model, outcomes: &[Outcome], serial_seconds: f64) -> Self {
        let knee: Option<Knee> = knee(outcomes);
        Self {
            policy: model.name(),
            runs: outcomes.iter().map(|outcome| run(outcome, serial_seconds)).collect(),
            recommended_workers: knee.as_ref().map(|knee| knee.workers),
            limited_by: knee.map(|knee| knee.limited_by),
        }
    }
}

fn run(outcome: &Outcome, serial_seconds: f64) -> RunReport {
    let whole = (outcome.seconds * 1e6 * outcome.shares.len() as f64).max(1e-9);
    let share = |us: f64| us / whole;
    RunReport {
        workers: outcome.workers,
        seconds: outcome.seconds,
        transactions_per_second: outcome.transactions_per_second(),
        speedup: if outcome.seconds > 0.0 { serial_seconds / outcome.seconds } else { 0.0 },
        utilisation: outcome.utilisation,
        processors: outcome.processors,
        jain: jain_index(outcome.shares.iter().map(|&share| share as f64)),
        idle: share(outcome.waits.dependency_us),
        commit_order: share(outcome.waits.order_us),
        commits: share(outcome.waits.commit_us),
        machine: share(outcome.waits.machine_us),
        work: share(outcome.waits.work_us),
        conflicts: outcome.conflicts,
    }
}

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
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} transactions with {} rows{}; transactions/s and, in brackets, speedup over one after the other:\n",
        thousands(report.transactions),
        thousands(report.rows),
        if report.truncated { " (the log has more: --transactions)" } else { "" }
    );
    let width = report.policies.iter().map(|policy| policy.policy.len() + 2).max().unwrap_or(0).max(30);
    let _ = write!(out, "{:<width$}", "workers");
    report.workers.iter().for_each(|number| {
        let _ = write!(out, "{number:>16}");
    });
    out.push('\n');
    for policy in &report.policies {
        let _ = write!(out, "{:<width$}", policy.policy);
        for run in &policy.runs {
            let cell = format!("{} ({:.1}x)", thousands(run.transactions_per_second.round() as u64), run.speedup);
            let _ = write!(out, "{cell:>16}");
        }
        out.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(out, "\nNote: {note}");
    }
    let _ = writeln!(out, "\nWorkers that are worth it (95 % of the best), and what limits there:");
    for policy in report.policies.iter().filter(|policy| policy.policy != "serial") {
        let (Some(workers), Some(limit)) = (policy.recommended_workers, policy.limited_by) else { continue };
        let run = policy.runs.iter().find(|run| run.workers == workers);
        let _ = writeln!(
            out,
            "{:<width$}{workers:>5}  {}; utilisation {}, Jain's index {}",
            policy.policy,
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
    let recommended = |policy: &PolicyReport| {
        let run = policy.runs.iter().find(|run| Some(run.workers) == policy.recommended_workers);
        run.map(|run| (policy.policy.clone(), run.workers, run.speedup))
    };
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
    let mut heads = vec![String::new()];
    heads.extend(report.workers.iter().map(ToString::to_string));
    heads.push("worth it".to_owned());
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = report
        .policies
        .iter()
        .map(|policy| {
            let mut row = vec![policy.policy.clone()];
            row.extend(policy.runs.iter().map(|run| thousands(run.transactions_per_second.round() as u64)));
            row.push(policy.recommended_workers.map_or_else(String::new, |workers| workers.to_string()));
            row
        })
        .collect();
    grid(body, &heads, &rows, 1);
}

/// At the recommended number of workers.
fn shares(body: &mut String, report: &SimulateReport) {
    let rows: Vec<Vec<String>> = report
        .policies
        .iter()
        .filter_map(|policy| {
            let run = policy.runs.iter().find(|run| Some(run.workers) == policy.recommended_workers)?;
            Some(vec![
                policy.policy.clone(),
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
    let _ = write!(
        body,
        "</ul><p><code>{}</code></p></section>",
        escape(&serde_json::to_string(&report.costs).unwrap_or_default())
    );
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
