//! Heddle's own choice of workers and group sizes, beside fixed ones, with each of the workloads.

use super::arguments::Arguments;
use super::tables::{Behind, Case, Line, Table, of_cases};
use super::{contenders, loads};
use anyhow::Result;
use e2e::bench::slow_disk;
use e2e::bench::stage::Workload;

const BESIDE_FIXED: Behind = Behind { titles: "× best fixed | × 1 worker", cells: beside_fixed };

pub fn section(arguments: &Arguments) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let (fsyncs, reads) = (slow_disk::option(dir.path())?, slow_disk::reads(dir.path())?);
    let cases = cases(arguments, &fsyncs, &reads);
    Ok(format!(
        "## Its own choice of workers and groups\n\nWith `--workers auto --grouping auto` (as it comes), and with fixed settings.\n{}",
        of_cases(arguments, cases, contenders::fixed, &BESIDE_FIXED)?
    ))
}

fn beside_fixed(table: &Table) -> String {
    let best = beside(&table.lines, |line| line.name != contenders::AS_IT_COMES);
    format!("**{best}** | {}", beside(&table.lines, |line| line.name == contenders::SERIAL))
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
