//! The report as one HTML file: no scripts, no network, light and dark.

use std::fmt::Write as _;

use pages::html::{bars, document, grid, tiles};
use pages::{Axis, Line, escape, lines};

use super::model::{HotKeyReport, InspectReport, MinuteReport};
use super::text::place;
use output::numbers::{bytes, counted, duration, per_second, percent, thousands};

/// Tables whose traffic is drawn.
const TABLES_DRAWN: usize = 8;

/// The whole page.
pub fn page(report: &InspectReport) -> String {
    let mut body = String::new();
    heading(&mut body, report);
    findings(&mut body, report);
    parallelism(&mut body, report);
    over_time(&mut body, report);
    blockers(&mut body, report);
    tables(&mut body, report);
    hot_keys(&mut body, report);
    sizes(&mut body, report);
    problems(&mut body, report);
    document("Binary log inspection", &body)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

fn heading(out: &mut String, report: &InspectReport) {
    let version =
        report.files.iter().filter_map(|file| file.server_version.as_deref()).next_back().unwrap_or("unknown server");
    let span = match (&report.first_time, &report.last_time) {
        (Some(first), Some(last)) => format!(" · {first} to {last}"),
        _ => String::new(),
    };
    let names: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
    let named = match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, .., last] => format!("{first} … {last} ({} files)", names.len()),
    };
    let _ = write!(
        out,
        "<header><h1>What holds a replica back</h1><p>{}<br>{}{}</p></header>",
        escape(&named),
        escape(version),
        escape(&span)
    );
    verdict(out, report);
    for note in &report.notes {
        let _ = write!(out, "<p>Note: {}</p>", escape(note));
    }
    let exact = report.exact.as_ref();
    tiles(
        out,
        &[
            ("transactions", thousands(report.transactions)),
            ("rows", thousands(report.rows)),
            ("log", bytes(report.bytes)),
            ("transactions/s", report.transactions_per_second.map_or_else(|| "–".to_owned(), per_second)),
            (
                "can run beside each other",
                exact.and_then(|exact| exact.width_average).map_or_else(|| "–".to_owned(), |w| format!("{w:.1}")),
            ),
            (
                "speedup at most",
                exact.and_then(|exact| exact.speedup_max).map_or_else(|| "–".to_owned(), |s| format!("{s:.1}×")),
            ),
        ],
    );
}

fn verdict(out: &mut String, report: &InspectReport) {
    let _ = write!(out, "<article class=\"verdict\"><p>{}</p>", escape(&report.verdict.sentence));
    if !report.verdict.settings.is_empty() {
        out.push_str("<p class=\"advice\">Settings for a native replica, the first one first:");
        for setting in &report.verdict.settings {
            let _ = write!(out, " <code>{}</code> on the {}.", escape(&setting.setting), escape(setting.server));
        }
        out.push_str("</p>");
    }
    out.push_str("</article>");
}

fn findings(out: &mut String, report: &InspectReport) {
    out.push_str("<section><h2>Findings</h2>");
    if report.findings.is_empty() {
        out.push_str("<p>Nothing in the log stands out.</p>");
    }
    for finding in &report.findings {
        let share = finding.critical_share.filter(|&share| share > 0.0);
        let _ = write!(
            out,
            "<article><h3>{}{}</h3><p>{}</p><p class=\"advice\">{}</p>",
            escape(&finding.title),
            share.map_or_else(String::new, |share| format!("<em>{} of the critical path</em>", percent(share))),
            escape(&finding.evidence),
            escape(&finding.advice)
        );
        if let Some(example) = &finding.example {
            let _ = write!(out, "<p class=\"example\">For example <code>{}</code></p>", escape(&place(example)));
        }
        out.push_str("</article>");
    }
    out.push_str("</section>");
}

fn parallelism(out: &mut String, report: &InspectReport) {
    out.push_str(
        "<section><h2>Parallelism</h2><p>AMIL is the average modified interval length of logical clock tags; the pseudo group \
         size (2·AMIL − 1) is the size of equally parallel group commits.</p>",
    );
    let rows: Vec<Vec<String>> = [
        ("as the source tagged it", report.amil, report.pseudo_group_size),
        ("the same, intervals not modified", report.amil_unmodified, None),
        ("WRITESET would give", report.amil_writeset, report.pseudo_group_size_writeset),
        ("WRITESET_SESSION would give", report.amil_writeset_session, report.pseudo_group_size_writeset_session),
        ("exact dependencies would give", report.amil_exact, report.pseudo_group_size_exact),
        ("MariaDB group commits", None, report.mariadb_group_size),
    ]
    .into_iter()
    .map(|(name, amil, group)| vec![name.to_owned(), number(amil), number(group)])
    .collect();
    grid(out, &["", "AMIL", "group size"], &rows, 1);
    if let Some(exact) = &report.exact {
        let _ = write!(
            out,
            "<h3>The critical path, by what was waited for</h3><p>{} of {} estimated work, in windows of {} transactions; {} µs a \
             transaction and {} µs a row.</p>",
            duration(exact.critical_path_seconds),
            duration(exact.work_seconds),
            thousands(exact.window_transactions as u64),
            exact.cost_transaction_us,
            exact.cost_row_us
        );
        let mut by: Vec<(String, f64, String)> =
            exact.critical_path_by.iter().map(|(name, &share)| (name.clone(), share, percent(share))).collect();
        by.sort_by(|a, b| b.1.total_cmp(&a.1));
        out.push_str(&bars(&by));
    }
    out.push_str("</section>");
}

fn over_time(out: &mut String, report: &InspectReport) {
    if report.series.buckets.len() < 2 {
        return;
    }
    let width = report.series.seconds;
    let chart = |name: &str, value: &dyn Fn(&MinuteReport) -> Option<f64>| {
        let buckets = report.series.buckets.iter();
        Line { name: name.to_owned(), points: means(buckets.map(|minute| (minute.start, value(minute))), width) }
    };
    let rate = |name: &str, count: &dyn Fn(&MinuteReport) -> u64| {
        let buckets = report.series.buckets.iter();
        let counted = buckets.map(|minute| (minute.start, minute.covered_seconds, count(minute)));
        Line { name: name.to_owned(), points: rates(counted, width) }
    };
    let _ = write!(
        out,
        "<section><h2>Over time</h2><p>By {}. Of the first and the last the log has a part: rates are over that part, and one of \
         less than a tenth is not drawn.</p><h3>Transactions a second</h3>",
        counted(width, "second")
    );
    out.push_str(&lines(&[rate("transactions/s", &|minute| minute.transactions)], &Axis::Time, ""));
    out.push_str("<h3>Rows a second</h3>");
    out.push_str(&lines(
        &[
            rate("inserts", &|minute| minute.inserts),
            rate("updates", &|minute| minute.updates),
            rate("deletes", &|minute| minute.deletes),
        ],
        &Axis::Time,
        "",
    ));
    out.push_str("<h3>Bytes a second</h3>");
    out.push_str(&lines(&[rate("bytes/s", &|minute| minute.bytes)], &Axis::Time, ""));
    let quality: Vec<Line> = [
        chart("source's tags", &|minute| minute.amil),
        chart("WRITESET", &|minute| minute.amil_writeset),
        chart("WRITESET_SESSION", &|minute| minute.amil_writeset_session),
        chart("exact", &|minute| minute.amil_exact),
        chart("MariaDB group size", &|minute| minute.mariadb_group_size),
    ]
    .into_iter()
    .filter(|line| line.points.iter().any(|(_, y)| y.is_finite()))
    .collect();
    out.push_str("<h3>AMIL</h3>");
    out.push_str(&lines(&quality, &Axis::Time, ""));
    let drawn: Vec<String> =
        report.tables.iter().take(TABLES_DRAWN).map(|table| format!("{}.{}", table.schema, table.table)).collect();
    let tables: Vec<Line> = drawn
        .iter()
        .map(|name| {
            let own = report.table_series.buckets.iter().filter(|bucket| bucket.table.as_ref() == Some(name));
            let counted = own.map(|bucket| (bucket.start, bucket.covered_seconds, bucket.bytes));
            Line { name: name.clone(), points: rates(counted, report.table_series.seconds) }
        })
        .collect();
    out.push_str("<h3>Bytes of rows a second, by table</h3>");
    out.push_str(&lines(&tables, &Axis::Time, ""));
    out.push_str("</section>");
}

/// (start, mean) of each bucket; where there is none, or no mean, the line is broken.
fn means(buckets: impl Iterator<Item = (u64, Option<f64>)>, width: u64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut next = None;
    for (start, mean) in buckets {
        if let Some(next) = next.filter(|&next| next < start) {
            points.push((next as f64, f64::NAN));
        }
        points.push((start as f64, mean.unwrap_or(f64::NAN)));
        next = Some(start + width);
    }
    points
}

/// (start, seconds that the log has of it, how many) of each bucket → rates over time, 0 where there is no bucket.
fn rates(buckets: impl Iterator<Item = (u64, f64, u64)>, width: u64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut next = None;
    for (start, covered, count) in buckets.filter(|(_, covered, _)| 10.0 * covered >= width as f64) {
        if let Some(next) = next.filter(|&next| next < start) {
            points.extend([(next as f64, 0.0), ((start - width) as f64, 0.0)]);
        }
        points.push((start as f64, count as f64 / covered));
        next = Some(start + width);
    }
    points.dedup();
    points
}

fn blockers(out: &mut String, report: &InspectReport) {
    if report.barrier_details.is_empty() && report.writeset_fallbacks.is_empty() {
        return;
    }
    out.push_str("<section><h2>Barriers</h2>");
    for (title, list) in [
        ("Nothing runs beside these", &report.barrier_details),
        ("Where MySQL's WRITESET does without write sets", &report.writeset_fallbacks),
    ] {
        if list.is_empty() {
            continue;
        }
        let _ = write!(out, "<h3>{title}</h3>");
        let rows: Vec<Vec<String>> = list
            .iter()
            .map(|barrier| {
                vec![
                    barrier.title.clone(),
                    place(&barrier.example),
                    thousands(barrier.count),
                    duration(barrier.seconds as f64),
                    barrier.critical_share.map_or_else(|| "–".to_owned(), percent),
                ]
            })
            .collect();
        grid(out, &["", "for example", "transactions", "ran on the source", "critical path"], &rows, 2);
    }
    out.push_str("</section>");
}

fn tables(out: &mut String, report: &InspectReport) {
    out.push_str("<section><h2>Tables</h2>");
    let rows: Vec<Vec<String>> = report
        .tables
        .iter()
        .map(|table| {
            vec![
                format!("{}.{}", table.schema, table.table),
                table.ordered_as_a_whole.unwrap_or(if report.exact.is_some() { "by key" } else { "–" }).to_owned(),
                thousands(table.transactions),
                thousands(table.inserts),
                thousands(table.updates),
                thousands(table.deletes),
                bytes(table.bytes),
                // Waited for as a whole, or for its rows.
                table.critical_share.or(table.keys_critical_share).map_or_else(|| "–".to_owned(), percent),
            ]
        })
        .collect();
    grid(out, &["", "ordered", "transactions", "inserts", "updates", "deletes", "bytes", "critical path"], &rows, 2);
    out.push_str("</section>");
}

fn hot_keys(out: &mut String, report: &InspectReport) {
    if report.hot_keys.is_empty() {
        return;
    }
    out.push_str("<section><h2>Hot rows</h2>");
    let mut keys: Vec<&HotKeyReport> = report.hot_keys.iter().collect();
    keys.sort_by_key(|key| std::cmp::Reverse(key.transactions));
    let rows: Vec<Vec<String>> = keys
        .into_iter()
        .map(|key| {
            let table = match (&key.schema, &key.table) {
                (Some(schema), Some(table)) => format!("{schema}.{table}"),
                _ => "–".to_owned(),
            };
            vec![
                table,
                key.index.clone().unwrap_or_default(),
                key.values.clone().unwrap_or_else(|| "not decoded".to_owned()),
                key.example.as_ref().map_or_else(String::new, place),
                thousands(key.transactions),
                thousands(key.error),
                percent(key.critical_share),
            ]
        })
        .collect();
    grid(out, &["table", "index", "key", "for example", "transactions", "at most more", "critical path"], &rows, 4);
    out.push_str("</section>");
}

fn sizes(out: &mut String, report: &InspectReport) {
    out.push_str("<section><h2>Transactions by size</h2><h3>Rows</h3>");
    let shown = |buckets: &[super::model::BucketReport], name: &dyn Fn(u64) -> String| {
        let list: Vec<(String, f64, String)> = buckets
            .iter()
            .map(|bucket| {
                let range = if bucket.from == bucket.to {
                    name(bucket.from)
                } else {
                    format!("{} – {}", name(bucket.from), name(bucket.to))
                };
                (range, bucket.count as f64, thousands(bucket.count))
            })
            .collect();
        bars(&list)
    };
    out.push_str(&shown(&report.rows_histogram, &thousands));
    out.push_str("<h3>Bytes</h3>");
    out.push_str(&shown(&report.bytes_histogram, &bytes));
    for (title, list) in
        [("Largest", &report.largest_transactions), ("Longest under way", &report.longest_transactions)]
    {
        if list.is_empty() {
            continue;
        }
        let _ = write!(out, "<h3>{title}</h3>");
        let rows: Vec<Vec<String>> = list
            .iter()
            .map(|transaction| {
                vec![
                    place(&transaction.example),
                    transaction.time.clone(),
                    thousands(transaction.rows),
                    bytes(transaction.bytes),
                    duration(transaction.seconds.into()),
                ]
            })
            .collect();
        grid(out, &["", "committed", "rows", "bytes", "under way"], &rows, 2);
    }
    out.push_str("</section>");
}

fn problems(out: &mut String, report: &InspectReport) {
    if report.problems.is_empty() {
        return;
    }
    out.push_str("<section class=\"bad\"><h2>Not read</h2>");
    let rows: Vec<Vec<String>> = report
        .problems
        .iter()
        .map(|problem| vec![problem.file.clone(), problem.problem.clone(), thousands(problem.offset)])
        .collect();
    grid(out, &["file", "", "offset"], &rows, 2);
    if report.problems_not_listed > 0 {
        let _ = write!(out, "<p>and {} more</p>", thousands(report.problems_not_listed));
    }
    out.push_str("</section>");
}

#[cfg(test)]
mod tests {
    use super::{means, rates};

    #[test]
    fn means_are_broken_where_the_log_has_nothing() {
        let points = means([(0, Some(1.0)), (60, None), (240, Some(2.0))].into_iter(), 60);
        let shown: Vec<(f64, Option<f64>)> =
            points.into_iter().map(|(at, y)| (at, y.is_finite().then_some(y))).collect();
        assert_eq!(shown, [(0.0, Some(1.0)), (60.0, None), (120.0, None), (240.0, Some(2.0))]);
    }

    #[test]
    fn rates_are_over_what_the_log_has() {
        // Ten seconds of the first minute, a whole one, none for two, one, and two seconds.
        let buckets = [(0, 10.0, 100), (60, 60.0, 300), (240, 60.0, 60), (300, 2.0, 50)];
        let points = [(0.0, 10.0), (60.0, 5.0), (120.0, 0.0), (180.0, 0.0), (240.0, 1.0)];
        assert_eq!(rates(buckets.into_iter(), 60), points);
        assert_eq!(rates([(0, 60.0, 60), (120, 60.0, 120)].into_iter(), 60), [(0.0, 1.0), (60.0, 0.0), (120.0, 2.0)]);
    }
}
