//! `--dry-run`: checks both ends and says what would happen.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::report::out::say;
use crate::runtime::channel::Spec;
use crate::source::Source;
use crate::source::state::SourceState;

#[derive(Debug, Serialize)]
pub struct DryRun {
    pub source: String,
    pub target: String,
    pub workers: usize,
    /// What would work as it is.
    pub ok: Vec<String>,
    /// What may hurt, but does not stop the channel.
    pub warnings: Vec<String>,
    /// What would stop it, with what to do.
    pub problems: Vec<String>,
}

pub fn run(spec: &Spec, json: bool) -> Result<ExitCode> {
    let mut report = DryRun {
        source: String::new(),
        target: spec.target.describe(),
        workers: spec.workers,
        ok: Vec::new(),
        warnings: Vec::new(),
        problems: Vec::new(),
    };
    match &spec.source {
        Source::Live(options) => check_live(options, &mut report),
        Source::Files(files) => {
            report.source = format!(
                "{} binary log files, {} first",
                files.len(),
                files.first().map_or("none".into(), |f| f.display().to_string())
            );
        }
    }
    spec.target.check(&mut report);
    let failed = !report.problems.is_empty();
    if json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn print(report: &DryRun) {
    say!("source  {}\ntarget  {}\nworkers {}", report.source, report.target, report.workers);
    for (sign, lines) in [("ok     ", &report.ok), ("warning", &report.warnings), ("PROBLEM", &report.problems)] {
        for line in lines {
            say!("{sign} {line}");
        }
    }
    say!("nothing was changed; leave --dry-run out to start");
}

fn check_live(options: &wire::ConnectOptions, report: &mut DryRun) {
    report.source = options.address();
    let mut connection = match wire::Connection::connect(options) {
        Ok(connection) => connection,
        Err(error) => return report.problems.push(format!("source: {error}")),
    };
    match SourceState::read(&mut connection) {
        Ok(state) => judge(&state, report),
        Err(error) => report.problems.push(format!("source: {error:#}")),
    }
    match connection.rows("SHOW GRANTS") {
        Ok(grants) => {
            let grants: Vec<&str> = grants.iter().filter_map(|row| row.text(0).ok().flatten()).collect();
            let has = |privilege: &str| {
                grants.iter().any(|grant| {
                    grant.contains(" ON *.*") && (grant.contains(privilege) || grant.contains("ALL PRIVILEGES"))
                })
            };
            if has("REPLICATION SLAVE") || has("REPLICATION REPLICA") {
                report.ok.push("source: may read the binary log".to_owned());
            } else {
                report.problems.push(format!(
                    "source: GRANT REPLICATION SLAVE ON *.* TO {} is missing: heddle can not read the binary log",
                    options.user
                ));
            }
        }
        Err(error) => report.warnings.push(format!("source: SHOW GRANTS: {error}")),
    }
}

fn judge(state: &SourceState, report: &mut DryRun) {
    report.source = format!("{} ({})", report.source, state.describe());
    report.ok.push(format!("source: binary log up to {}, GTIDs {}", state.end, if state.gtids { "on" } else { "off" }));
    if state.binlog_format != "ROW" {
        report.warnings.push(format!(
            "source: binlog_format={}: statements are applied one at a time; ROW lets them run in parallel and grouped",
            state.binlog_format
        ));
    }
    if !state.row_image.eq_ignore_ascii_case("FULL") {
        report.warnings.push(format!(
            "source: binlog_row_image={}: rows are grouped, but not merged; tables with several unique keys are ordered by table",
            state.row_image
        ));
    }
}
