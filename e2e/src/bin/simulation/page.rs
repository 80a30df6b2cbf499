//! The section of bench/results/simulation.md: tables of predicted and measured, their errors, a picture.

use super::stages::{Line, Table};
use anyhow::Result;
use e2e::bench::arguments::line as command;
use e2e::bench::page::Page;
use e2e::bench::{machine, median};
use pages::picture::{Point, against, amount};
use std::fmt::Write;
use std::path::Path;

/// How far a prediction is off, as a share of what was measured.
fn error(predicted: f64, measured: f64) -> f64 {
    (predicted / measured - 1.0).abs()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Median errors of throughput and of speedup.
fn medians<'a>(lines: impl Iterator<Item = (&'a Table, &'a Line)> + Clone) -> (f64, f64) {
    let rates = lines.clone().map(|(_, line)| error(line.predicted, line.measured));
    let speedups = lines.filter(|(_, line)| line.policy != "serial").map(|(table, line)| {
        let (predicted, measured) = table.speedups(line);
        error(predicted, measured)
    });
    (median(rates), median(speedups))
}

pub fn write(path: &Path, tables: &[Table]) -> Result<()> {
    let mut page = Page::open(path.to_owned())?;
    let all = tables.iter().flat_map(|table| table.lines.iter().map(move |line| (table, line)));
    let (rate, speedup) = medians(all.clone());
    let points: Vec<Point> = all
        .clone()
        .map(|(table, line)| Point {
            x: line.measured,
            y: line.predicted,
            ours: line.policy.starts_with("heddle"),
            title: format!("{}, {}: {}, {} workers", table.version, table.workload, line.policy, line.workers),
        })
        .collect();
    let picture = page.picture(
        "predicted",
        "predicted and measured transactions a second",
        &against("Transactions/s: predicted (up) against measured (right)", &points),
    )?;
    let mut text = format!(
        "**The median error is {} of throughput and {} of the speedup** over the server's own serial replication, over {} comparisons:\n\n\
         | | throughput | speedup |\n|---|---:|---:|\n",
        percent(rate),
        percent(speedup),
        all.clone().count()
    );
    let mut policies: Vec<&str> = all.clone().map(|(_, line)| line.policy).collect();
    policies.sort_unstable();
    policies.dedup();
    for policy in policies {
        let (rate, speedup) = medians(all.clone().filter(|(_, line)| line.policy == policy));
        let speedup = if speedup.is_nan() { "–".to_owned() } else { percent(speedup) };
        writeln!(text, "| {policy} | {} | {speedup} |", percent(rate))?;
    }
    write!(text, "\n{picture}\n")?;
    for table in tables {
        let (rate, speedup) = medians(table.lines.iter().map(|line| (table, line)));
        write!(
            text,
            "### {}: {}\n\n{} transactions, {} rows. Median error {} of throughput, {} of speedup. Costs by `--calibrate`: `{}`\n\n\
             | | workers | predicted/s | measured/s | error | predicted speedup | measured |\n|---|---:|---:|---:|---:|---:|---:|\n",
            table.version,
            table.workload,
            amount(table.transactions as f64),
            amount(table.rows as f64),
            percent(rate),
            percent(speedup),
            table.costs
        )?;
        for line in &table.lines {
            let (predicted, measured) = table.speedups(line);
            writeln!(
                text,
                "| {} | {} | {} | {} | {:+.0} % | {predicted:.2} | {measured:.2} |",
                line.policy,
                line.workers,
                amount(line.predicted),
                amount(line.measured),
                100.0 * (line.predicted / line.measured - 1.0)
            )?;
        }
        text.push('\n');
    }
    let machine = machine();
    let line = command();
    write!(text, "Measured on {machine}, with `{}`.\n\n", format!("bench/simulation {line}").trim_end())?;
    page.write("predicted", &text)
}
