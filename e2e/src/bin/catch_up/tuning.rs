//! Heddle's own choice of workers and group sizes, beside fixed ones, with each of the workloads.

use super::arguments::Arguments;
use super::tables::{Line, Table};
use super::{contenders, loads};
use anyhow::{Context, Result, ensure};
use e2e::bench::slow_disk;
use e2e::bench::stage::{Stage, Workload};
use pages::picture::amount;
use std::fmt::Write;

/// A workload, and options of the target.
type Case<'a> = (Workload, Vec<&'a str>);

pub fn section(arguments: &Arguments) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let (fsyncs, reads) = (slow_disk::option(dir.path())?, slow_disk::reads(dir.path())?);
    let mut cases = cases(arguments, &fsyncs, &reads);
    cases.retain(|(workload, _)| arguments.has(workload));
    ensure!(!cases.is_empty(), "no workload of this section is named so");
    let mut text = "## Its own choice of workers and groups\n\nTransactions a second with `--workers auto --grouping auto`, and with fixed settings.\n".to_owned();
    for &kind in &arguments.kinds {
        let list = arguments.of(contenders::fixed(kind));
        let (mut rows, mut version) = (String::new(), String::new());
        for (workload, options) in &cases {
            eprintln!("{kind}: {}", workload.title);
            let stage = Stage::new(kind, workload)?;
            let table = Table::measure(arguments, &stage, &list, options).with_context(|| workload.title)?;
            let rates: Vec<String> = table.lines.iter().map(|line| amount(line.rate)).collect();
            let beside = |wanted: fn(&Line) -> bool| beside(&table.lines, wanted);
            writeln!(
                rows,
                "| {} | {} | **{}** | {} |",
                workload.title,
                rates.join(" | "),
                beside(|line| line.name != contenders::AS_IT_COMES),
                beside(|line| line.name == contenders::SERIAL)
            )?;
            version = table.version;
        }
        let names: Vec<&str> = list.iter().map(|(name, _)| name.trim_start_matches("heddle, ")).collect();
        write!(
            text,
            "\n### {version}\n\n| | {} | × best fixed | × 1 worker |\n|---|{}---:|---:|\n{rows}",
            names.join(" | "),
            "---:|".repeat(names.len())
        )?;
    }
    Ok(text)
}

fn cases<'a>(arguments: &Arguments, fsyncs: &'a str, reads: &'a str) -> Vec<Case<'a>> {
    let slow = Workload { title: "the same, each fsync 2 ms longer", ..arguments.updates(1) };
    let [here, cold] = loads::cold(arguments);
    let plain = |workloads: Vec<Workload>| workloads.into_iter().map(|workload| (workload, Vec::new()));
    let mut cases: Vec<Case<'_>> = vec![(arguments.updates(1), Vec::new()), (slow, vec![fsyncs])];
    cases.extend(plain(loads::several(arguments)));
    cases.extend(plain(loads::shapes(arguments)));
    cases.extend(plain(loads::tables(arguments)));
    cases.push((here, vec![loads::COLD_POOL]));
    cases.push((cold, vec![loads::COLD_POOL, reads]));
    cases
}

/// What Heddle's own choice is beside the best of these.
fn beside(lines: &[Line], wanted: fn(&Line) -> bool) -> String {
    let own = lines.iter().find(|line| line.name == contenders::AS_IT_COMES).map(|line| line.rate);
    let best = lines.iter().filter(|line| wanted(line)).map(|line| line.rate).max_by(f64::total_cmp);
    match (own, best) {
        (Some(own), Some(best)) => format!("{:.2}", own / best),
        _ => "–".to_owned(),
    }
}
