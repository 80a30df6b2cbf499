//! `--dry-run`: checks both ends and says what would happen.

use std::process::ExitCode;

use anyhow::Result;
use engine::failure::Failure;
use serde::Serialize;

use apply::checks::{Checks, SourceFacts};
use apply::definitions::Definitions;
use channel::checks;
use channel::errors::failure;
use channel::source::Source;
use channel::source::open;
use channel::spec::Spec;
use channel::start::Start;
use channel::start::source_state::SourceState;
use copy::Plan;

use channel::errors::chain;
use output::say;

#[derive(Debug, Serialize)]
struct DryRun {
    source: String,
    target: String,
    /// Where a run would begin; empty when the source could not be asked.
    start: String,
    /// The part of the source that a run would take; null: all.
    selection: Option<String>,
    /// What a run with `--copy` would copy first; null: nothing.
    copy: Option<Plan>,
    #[serde(flatten)]
    checks: Checks,
}

/// `plan`: of the copy that comes before the channel.
pub fn run(spec: &Spec, plan: Option<Plan>, json: bool) -> Result<ExitCode> {
    let copy = plan.filter(|plan| plan.is_needed);
    let mut report = DryRun {
        source: String::new(),
        target: spec.target.describe(),
        start: String::new(),
        selection: None,
        copy,
        checks: Checks { workers: spec.applying.workers, ..Checks::default() },
    };
    let live = match &spec.source {
        Source::Live(options) => check_live(options, &mut report),
        Source::Files(files) => {
            report.source = format!(
                "{} binary log files, {} first",
                files.len(),
                files.first().map_or("none".into(), |f| f.display().to_string())
            );
            None
        }
    };
    let live = live.map(|facts| match &spec.part {
        // The tables come with the copy.
        _ if report.copy.is_some() => SourceFacts { tables: None, ..facts },
        Some(part) => SourceFacts { tables: facts.tables.map(|tables| tables.of_part(part)), ..facts },
        None => facts,
    });
    report.selection = spec.part_text();
    spec.target.check(live.as_ref(), &mut report.checks);
    match report.copy.take() {
        Some(plan) => {
            report.checks.warnings.extend(plan.warnings.iter().cloned());
            report.checks.problems.extend(plan.problems.iter().cloned());
            let start = if plan.adds_tables {
                "the channel goes on; the tables come to it when they are copied"
            } else {
                "a new channel, behind the copy"
            };
            start.clone_into(&mut report.start);
            report.copy = Some(plan);
        }
        None => refusals(spec, live.is_some(), &mut report),
    }
    let failed = !report.checks.problems.is_empty();
    if json {
        output::streams::json(&serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn print(report: &DryRun) {
    say!("source  {}\ntarget  {}\nworkers {}", report.source, report.target, report.checks.workers);
    if !report.start.is_empty() {
        say!("start   {}", report.start);
    }
    if let Some(selection) = &report.selection {
        say!("takes   {selection}");
    }
    if let Some(Plan { tables, rows, accounts, whole, .. }) = &report.copy {
        say!("copy    {tables} tables, about {rows} rows");
        if *accounts > 0 {
            say!("copy    {accounts} accounts, with their grants");
        }
        for table in whole {
            say!("whole   {table}");
        }
    }
    for (sign, lines) in
        [("ok     ", &report.checks.ok), ("warning", &report.checks.warnings), ("PROBLEM", &report.checks.problems)]
    {
        for line in lines {
            say!("{sign} {line}");
        }
    }
    say!("nothing was changed; leave --dry-run out to start");
}

/// What a run would refuse, by the lists that a run asks, and where it would begin.
fn refusals(spec: &Spec, is_live: bool, report: &mut DryRun) {
    let mut add = |failures: Vec<Failure>| {
        for Failure { message, remedy, .. } in failures {
            report.checks.problems.push(if remedy.is_empty() { message } else { format!("{message}; {remedy}") });
        }
    };
    let opened = match spec.target.peek() {
        Ok(opened) => opened,
        // Most often a privilege: the target says which are missing.
        Err(failure) => {
            let refusals = spec.target.refusals();
            return add(if refusals.is_empty() { vec![failure] } else { refusals });
        }
    };
    // Read after the channel's progress, as a run does: the other way round a running channel has applied more than the source seems to have.
    let state = match &spec.source {
        Source::Live(options) if is_live => match open::read_state(options) {
            Ok(state) => Some(state),
            Err(error) => return add(vec![failure(error)]),
        },
        Source::Live(_) | Source::Files(_) => None,
    };
    add(checks::before_opening(spec, state.as_ref()));
    let (start, found) = checks::of_start(spec, state.as_ref(), &opened);
    let is_free = found.is_empty();
    add(found);
    if let Some(start) = start {
        if is_free {
            add(checks::ahead(spec, state.as_ref(), &start).into_iter().collect());
        }
        report.checks.warnings.extend(start.warnings.iter().cloned());
        report.checks.ok.extend(start.passed.clone());
        report.start = described(&start);
    }
}

fn described(start: &Start) -> String {
    let place = match (&start.mark.position, &start.mark.gtids) {
        (Some(position), _) => format!("at {position}"),
        (None, gtids) if !gtids.is_empty() => format!("after GTIDs {gtids}"),
        (None, _) => "with the first event of the oldest log".to_owned(),
    };
    if start.is_new {
        format!("a new channel, {place}")
    } else {
        format!("goes on {place}, after {} transactions", start.mark.seq)
    }
}

/// `None`: it could not be asked, and the report says why.
fn check_live(options: &wire::ConnectOptions, report: &mut DryRun) -> Option<SourceFacts> {
    report.source = options.address();
    let mut connection = match wire::Connection::connect(options) {
        Ok(connection) => connection,
        Err(error) => {
            report.checks.problems.push(format!("source: {error}"));
            return None;
        }
    };
    let state = match SourceState::read(&mut connection) {
        Ok(state) => {
            judge(&state, report);
            Some(state)
        }
        Err(error) => {
            report.checks.problems.push(format!("source: {}", chain(&error)));
            None
        }
    };
    if state.as_ref().is_some_and(|state| state.may_read_log) {
        report.checks.ok.push("source: may read the binary log".to_owned());
    }
    let tables = Definitions::read(&mut connection).unwrap_or_else(|error| {
        report.checks.warnings.push(format!("source: its tables can not be read, they are not compared: {error}"));
        Definitions::default()
    });
    let state = state?;
    let facts = SourceFacts {
        flavour: state.flavour,
        version: state.version,
        version_text: state.version_text.clone(),
        tables: Some(tables),
    };
    Some(facts)
}

fn judge(state: &SourceState, report: &mut DryRun) {
    report.source = format!("{} ({})", report.source, state.describe());
    report.checks.ok.push(format!(
        "source: binary log up to {}, GTIDs {}",
        state.end,
        if state.gtids { "on" } else { "off" }
    ));
    if state.binlog_format == "STATEMENT" {
        report.checks.warnings.push(
            "source: binlog_format=STATEMENT: statements that are not deterministic change other rows on the target; --unsafe-statements stop ends \
             the channel before them"
                .to_owned(),
        );
    }
    if state.binlog_format != "ROW" {
        report.checks.warnings.push(format!(
            "source: binlog_format={}: statements are applied one at a time; ROW lets them run in parallel and grouped",
            state.binlog_format
        ));
    }
    if !state.row_image.eq_ignore_ascii_case("FULL") {
        report.checks.warnings.push(format!(
            "source: binlog_row_image={}: rows are grouped, but not merged; tables with several unique keys are ordered by table",
            state.row_image
        ));
    }
}
