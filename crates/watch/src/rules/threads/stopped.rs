//! A replication thread does not run, or has no connection.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::text;
use crate::questions::BY_WORKER;
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use crate::rules::rule::Rule;
use replica::statements::HOLD_S;
use replica::status::Receiver;

pub const RULE: Rule = Rule {
    name: "stopped",
    looks_at: "the state and the last error of the receiver and of the applier",
    advice: "start the thread; with an error, what to repair first",
    check,
};

/// Of an error in the verdict.
const ERROR_CHARS: usize = 160;

/// What an error means and what has to come before the start.
fn remedy(error: &str) -> (&'static str, &'static str) {
    let number: u32 = error.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    match number {
        1032 | 1062 => (
            "source and replica differ in this row: compare and repair it first",
            "without the repair it stops there again",
        ),
        1146 | 1054 | 1050 | 1060 => {
            ("a table is not as on the source: make it so first", "without that it stops there again")
        }
        1236 | 13114 => (
            "the source has purged what comes next: load the replica anew from a copy",
            "without that it stops there again",
        ),
        1045 | 1044 | 2061 => {
            ("the replication account cannot log in to the source: repair account or password", "none")
        }
        1129 | 2002 | 2003 | 2005 | 2006 | 2013 => {
            ("the source cannot be reached: look at it and at the network", "none")
        }
        0 => ("", "none"),
        _ => ("repair what the error says first", "without that it stops there again"),
    }
}

/// Of the worker that failed: the coordinator only points to it.
fn of_worker(seen: &ChannelFacts<'_>) -> Option<String> {
    let rows = seen.period.after.rows(BY_WORKER).iter();
    let mut own = rows.filter(|row| text(row, "CHANNEL_NAME") == seen.status.channel);
    let failed = own.find(|row| !matches!(text(row, "LAST_ERROR_NUMBER"), "" | "0"))?;
    Some(format!("{} ({})", text(failed, "LAST_ERROR_NUMBER"), text(failed, "LAST_ERROR_MESSAGE")))
}

fn check(seen: &ChannelFacts<'_>, _: Limits) -> Option<Finding> {
    let status = &seen.status;
    if status.delay_s == HOLD_S {
        return None;
    }
    let failed = of_worker(seen).filter(|_| status.applier_error.is_some()).or_else(|| status.applier_error.clone());
    let (what, error, state) = match (status.applier_runs, status.receiver) {
        (false, Receiver::Stopped) if status.applier_error.is_none() => {
            ("its receiver and its applier are stopped", status.receiver_error.as_ref(), "")
        }
        (false, _) => ("its applier is stopped", failed.as_ref(), status.applier_state.as_str()),
        (true, Receiver::Stopped) => ("its receiver is stopped", status.receiver_error.as_ref(), ""),
        // Without an error it is about to connect.
        (true, Receiver::Connecting) => {
            let error = status.receiver_error.as_ref()?;
            ("its receiver cannot connect to the source", Some(error), status.receiver_state.as_str())
        }
        (true, Receiver::Connected) => return None,
    };
    let (first, risk) = error.map_or(("", "none"), |error| remedy(error));
    let repair = if first.is_empty() { String::new() } else { format!("; {first}") };
    let mut evidence: Vec<String> = error.map(|error| format!("error {error}")).into_iter().collect();
    if !state.is_empty() {
        evidence.push(format!("state: {state}"));
    }
    if let Some(position) = &status.applied {
        evidence.push(format!("applied up to {position}"));
    }
    // The evidence has all of it.
    let shortened = |error: &String| {
        let short: String = error.chars().take(ERROR_CHARS).collect();
        if short.len() < error.len() { format!("{short}…") } else { short }
    };
    let because = error.map_or_else(
        || ", without an error: somebody stopped it".to_owned(),
        |error| format!(" by error {}{repair}", shortened(error)),
    );
    let start = if status.receiver == Receiver::Connecting { String::new() } else { seen.native.start() };
    Some(Finding {
        severity: Severity::Critical,
        cause: format!("{what}{because}"),
        share: 1.0,
        evidence,
        server: ActionTarget::Replica,
        statement: start,
        risk: risk.to_owned(),
        effect: if first.is_empty() {
            "it goes on where it stopped".to_owned()
        } else {
            format!("{first}; then it goes on where it stopped")
        },
        ..Finding::default()
    })
}
