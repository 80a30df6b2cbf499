//! What `heddle simulate` predicts beside what is measured: on each server, for each workload, the costs are measured on a copy of the replica
//! (`--calibrate`), the log is simulated, and then native replicas and heddle apply that log in turn, each on a fresh copy of the same start, all
//! fully durable; contents are compared at the end. Writes the section of bench/results/simulation.md.
//!
//! Groups are fast: they get a log of their own that is longer, so that a run lasts long enough to be measured.
//!
//! Arguments: `--transactions N` (default 3000; heavier workloads make a share of it), `--grouped N` (times as many for groups, 10), `--sessions N` (16), `--workers N,…` (4,16),
//! `--servers NAME,…`, `--workloads TEXT` (those whose title holds it), `--disk slow` (each fsync of the replicas takes 2 ms longer, the same on any machine), `--keep DIR` (logs and figures of each stage, to look into), `--output FILE`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "says what it does")]

mod arguments;
mod page;
mod stages;

use anyhow::{Result, ensure};

fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let arguments = arguments::arguments(dir.path())?;
    let (mut tables, mut failed) = (Vec::new(), 0);
    for &kind in &arguments.kinds {
        for workload in stages::workloads(&arguments) {
            match stages::compare(kind, &workload, &arguments) {
                Ok(table) => {
                    failed += table.failed;
                    tables.push(table);
                }
                Err(error) => {
                    eprintln!("{kind}, {}: {error:#}", workload.title);
                    failed += 1;
                }
            }
        }
    }
    ensure!(!tables.is_empty(), "nothing was measured");
    page::write(&arguments.output, &tables)?;
    // What could be measured is in the page, and what could not is not taken for measured.
    ensure!(failed == 0, "{failed} measurements failed");
    Ok(())
}
