//! The summary for people at a terminal.

use std::fmt::Write as _;

use binlog::text::escape;

use super::model::{ExampleReport, Finding, HotKeyReport, InspectReport, TransactionReport};
use output::numbers::{bytes, duration, per_second, percent, thousands};
use replica::settings::Setting;

/// Problems that are told one by one.
const PROBLEMS_TOLD: usize = 20;
/// Tables, hot keys and transactions of each list.
const LINES: usize = 8;

/// All of it; `colour` for headings.
pub fn summary(report: &InspectReport, colour: bool) -> String {
    let mut out = String::new();
    let head = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let _ = writeln!(out, "{}", head("Verdict"));
    verdict(&mut out, report);
    out.push('\n');
    traffic(&mut out, report);
    let _ = writeln!(out, "\n{}", head("What holds a replica back"));
    if report.findings.is_empty() {
        let _ = writeln!(out, "  Nothing in the log stands out.");
    }
    for (number, finding) in report.findings.iter().enumerate() {
        one(&mut out, number + 1, finding, colour);
    }
    let _ = writeln!(out, "\n{}", head("Parallelism"));
    parallelism(&mut out, report);
    if !report.barriers.is_empty() {
        let _ = writeln!(out, "\n{}", head("Barriers and fallbacks (transactions)"));
        for (cause, count) in &report.barriers {
            let _ = writeln!(out, "  {:<26}{:>12}", cause, thousands(*count));
        }
    }
    tables(&mut out, report, &head("Tables"));
    hot_keys(&mut out, report, &head("Hot rows"));
    transactions(&mut out, report, &head("Largest transactions"));
    open(&mut out, report, &head("Transactions that were open for longest"));
    problems(&mut out, report, &head("Not read"));
    out
}

fn traffic(out: &mut String, report: &InspectReport) {
    let files = report.files.len();
    let version =
        report.files.iter().filter_map(|file| file.server_version.as_deref()).next_back().unwrap_or("unknown");
    let _ = writeln!(
        out,
        "{} transactions, {} rows ({} inserted, {} updated, {} deleted), {} in {files} {} of {version}",
        thousands(report.transactions),
        thousands(report.rows),
        thousands(report.inserts),
        thousands(report.updates),
        thousands(report.deletes),
        bytes(report.bytes),
        if files == 1 { "file" } else { "files" }
    );
    if let (Some(first), Some(last)) = (&report.first_time, &report.last_time) {
        let rate = report
            .transactions_per_second
            .map_or_else(String::new, |rate| format!(": {} transactions/s on average", per_second(rate)));
        let _ = writeln!(out, "{first} to {last} ({}){rate}", duration(report.seconds));
    }
    report.notes.iter().for_each(|note| wrapped(out, note, "Note: "));
}

fn verdict(out: &mut String, report: &InspectReport) {
    wrapped(out, &escape(&report.verdict.sentence), "  ");
    if !report.verdict.settings.is_empty() {
        let set = |setting: &Setting| format!("{} (on the {})", setting.setting, setting.server);
        let settings: Vec<String> = report.verdict.settings.iter().map(set).collect();
        wrapped(
            out,
            &format!("Settings for a native replica, the first one first: {}", settings.join(", then ")),
            "  ",
        );
    }
}

fn one(out: &mut String, number: usize, finding: &Finding, colour: bool) {
    let title = escape(&finding.title);
    let title = if colour { format!("\x1b[1;33m{title}\x1b[0m") } else { title.into_owned() };
    let _ = writeln!(out, "  {number}. {title}");
    wrapped(out, &finding.evidence, "     ");
    wrapped(out, &finding.advice, "     → ");
    if let Some(example) = &finding.example {
        let _ = writeln!(out, "     for example {}", place(example));
    }
}

/// GTID, file and position, statement.
pub fn place(example: &ExampleReport) -> String {
    let mut text = format!("{}:{}", example.file, example.position);
    if let Some(gtid) = &example.gtid {
        text = format!("GTID {gtid}, {text}");
    }
    if let Some(statement) = &example.statement {
        let _ = write!(text, ": {statement}");
    }
    escape(&text).into_owned()
}

/// Lines of up to 110 characters, those after the first indented by as much as `first` is long.
fn wrapped(out: &mut String, text: &str, first: &str) {
    const WIDTH: usize = 110;
    let rest = " ".repeat(first.chars().count());
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line.clone_from(&rest);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(out, "{line}");
}

fn parallelism(out: &mut String, report: &InspectReport) {
    let _ = writeln!(out, "  {:<44}{:>12}{:>20}", "", "AMIL", "pseudo group size");
    let rows = [
        ("as the source tagged it", report.amil, report.pseudo_group_size),
        ("  without \"modifying\" (appliers that overtake)", report.amil_unmodified, None),
        ("WRITESET would give", report.amil_writeset, report.pseudo_group_size_writeset),
        ("WRITESET_SESSION would give", report.amil_writeset_session, report.pseudo_group_size_writeset_session),
        ("exact dependencies would give", report.amil_exact, report.pseudo_group_size_exact),
    ];
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    for (name, amil, group) in rows {
        let group = if name.starts_with(' ') { String::new() } else { number(group) };
        let _ = writeln!(out, "  {name:<44}{:>12}{group:>20}", number(amil));
    }
    if let (Some(mean), Some(max)) = (report.mariadb_group_size, report.mariadb_group_size_max) {
        let _ = writeln!(out, "  MariaDB group commits: {mean:.2} transactions on average, {max} at most");
    }
    if let Some(exact) = &report.exact {
        let _ = writeln!(
            out,
            "  exact dependencies, in windows of {} transactions: width {:.1} on average, {} at most;\n  critical path {} of {} \
             estimated work ({} µs a transaction, {} µs a row)",
            thousands(exact.window_transactions as u64),
            exact.width_average.unwrap_or(0.0),
            thousands(exact.width_max),
            duration(exact.critical_path_seconds),
            duration(exact.work_seconds),
            exact.cost_transaction_us,
            exact.cost_row_us
        );
        let mut by: Vec<(&String, &f64)> =
            exact.critical_path_by.iter().filter(|(_, share)| **share >= 0.001).collect();
        by.sort_by(|a, b| b.1.total_cmp(a.1));
        let parts: Vec<String> = by.iter().map(|(name, share)| format!("{name} {}", percent(**share))).collect();
        let _ = writeln!(out, "  the critical path by what was waited for: {}", parts.join(", "));
    }
}

fn tables(out: &mut String, report: &InspectReport, head: &str) {
    if report.tables.is_empty() {
        return;
    }
    let names =
        report.tables.iter().take(LINES).map(|table| table.schema.chars().count() + table.table.chars().count() + 1);
    let width = names.max().unwrap_or(0).max(36);
    let _ = writeln!(
        out,
        "\n{head}\n  {:<width$}{:>12}{:>12}{:>12}{:>10}  ordered",
        "", "inserts", "updates", "deletes", "bytes"
    );
    for table in report.tables.iter().take(LINES) {
        let _ = writeln!(
            out,
            "  {:<width$}{:>12}{:>12}{:>12}{:>10}  {}",
            escape(&format!("{}.{}", table.schema, table.table)),
            thousands(table.inserts),
            thousands(table.updates),
            thousands(table.deletes),
            bytes(table.bytes),
            match table.ordered_as_a_whole {
                None if report.exact.is_some() => "by key",
                None => "–",
                Some(cause) => cause,
            }
        );
    }
    if report.tables.len() > LINES {
        let _ = writeln!(out, "  and {} more: --json, --html", report.tables.len() - LINES);
    }
}

/// Those that the critical path waits for, and those that most transactions change; by the number of changes.
fn hot_keys_shown(report: &InspectReport) -> Vec<&HotKeyReport> {
    const SHARE_MIN: f64 = 0.01;
    const TRANSACTIONS_MIN: u64 = 10;
    let mut keys: Vec<&HotKeyReport> =
        report.hot_keys.iter().filter(|key| key.transactions >= TRANSACTIONS_MIN).collect();
    keys.sort_by(|a, b| b.critical_share.total_cmp(&a.critical_share));
    let (waited, others) =
        keys.split_at(keys.iter().take(LINES / 2).filter(|key| key.critical_share >= SHARE_MIN).count());
    let (mut waited, mut others) = (waited.to_vec(), others.to_vec());
    others.sort_by_key(|key| std::cmp::Reverse(key.transactions));
    waited.extend(others.into_iter().take(LINES - waited.len()));
    waited.sort_by_key(|key| std::cmp::Reverse(key.transactions));
    waited
}

fn hot_keys(out: &mut String, report: &InspectReport, head: &str) {
    let keys = hot_keys_shown(report);
    if keys.is_empty() {
        return;
    }
    let name = |key: &HotKeyReport| {
        let table = match (&key.schema, &key.table) {
            (Some(schema), Some(table)) => format!("{schema}.{table}"),
            _ => "?".to_owned(),
        };
        let values = key.values.as_deref().unwrap_or("not decoded");
        let index =
            key.index.as_deref().filter(|index| *index != "PRIMARY").map_or_else(String::new, |i| format!(" {i}"));
        escape(&format!("{table}{index} {values}")).into_owned()
    };
    let width = keys.iter().map(|key| name(key).chars().count()).max().unwrap_or(0).max(60);
    let _ = writeln!(out, "\n{head}\n  {:<width$}{:>14}{:>16}", "", "transactions", "critical path");
    for key in keys {
        let (transactions, share) = (thousands(key.transactions), percent(key.critical_share));
        let _ = writeln!(out, "  {:<width$}{transactions:>14}{share:>16}", name(key));
    }
    if report.hot_keys_missed_max > 0 {
        let _ = writeln!(out, "  counts may be up to {} too small", thousands(report.hot_keys_missed_max));
    }
}

fn transactions(out: &mut String, report: &InspectReport, head: &str) {
    let worth = report.largest_transactions.iter().filter(|transaction| transaction.rows >= 1_000);
    few(out, head, worth, |one| format!("{:>12} rows {:>10}", thousands(one.rows), bytes(one.bytes)));
}

/// A replica sees them only at their end.
fn open(out: &mut String, report: &InspectReport, head: &str) {
    const SECONDS_MIN: u32 = 5;
    let worth = report.longest_transactions.iter().filter(|transaction| transaction.seconds >= SECONDS_MIN);
    few(out, head, worth, |one| format!("{:>12} {:>12} rows", duration(one.seconds.into()), thousands(one.rows)));
}

/// The first three transactions, with what makes each worth a look, its time and its place; nothing where there is none.
fn few<'a>(
    out: &mut String,
    head: &str,
    worth: impl Iterator<Item = &'a TransactionReport>,
    what: impl Fn(&TransactionReport) -> String,
) {
    for (index, one) in worth.take(3).enumerate() {
        if index == 0 {
            let _ = writeln!(out, "\n{head}");
        }
        let _ = writeln!(out, "  {}  {}  {}", what(one), one.time, place(&one.example));
    }
}

fn problems(out: &mut String, report: &InspectReport, head: &str) {
    if report.problems.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{head}");
    for problem in report.problems.iter().take(PROBLEMS_TOLD) {
        let place =
            if problem.file.is_empty() { String::new() } else { format!("{} at {}: ", problem.file, problem.offset) };
        let _ = writeln!(out, "  {}", escape(&format!("{place}{}", problem.problem)));
    }
    let more = report.problems.len().saturating_sub(PROBLEMS_TOLD) as u64 + report.problems_not_listed;
    if more > 0 {
        let _ = writeln!(out, "  and {} more", thousands(more));
    }
}
