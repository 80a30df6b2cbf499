//! What `heddle simulate` predicts beside what is measured: on each server, for each workload, the costs are measured on a copy of the replica
//! (`--calibrate`), the log is simulated, and then native replicas and heddle apply that log in turn, each on a fresh copy of the same start, all
//! fully durable; contents are compared at the end. Writes the section of docs/simulation.md.
//!
//! Groups are fast: they get a log of their own that is longer, so that a run lasts long enough to be measured.
//!
//! Arguments: `--transactions N` (default 3000; heavier workloads make a share of it), `--grouped N` (times as many for groups, 10), `--sessions N` (16), `--workers N,…` (4,16),
//! `--servers NAME,…`, `--workloads TEXT` (those whose title holds it), `--disk slow` (each fsync of the replicas takes 2 ms longer, the same on any machine), `--keep DIR` (logs and figures of each stage, to look into), `--output FILE`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "says what it does")]

mod page;
mod stages;

use anyhow::{Result, ensure};
use e2e::bench::arguments::{each, list};
use e2e::bench::slow_disk;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};
use std::path::{Path, PathBuf};

pub struct Arguments {
    transactions: u64,
    grouped: u64,
    sessions: u32,
    workers: Vec<u16>,
    kinds: Vec<Kind>,
    workloads: String,
    /// Options of the replicas.
    options: Vec<String>,
    keep: Option<PathBuf>,
    output: PathBuf,
}

/// `dir`: for what a slow disk needs.
fn arguments(dir: &Path) -> Result<Arguments> {
    let mut parsed = Arguments {
        transactions: 3_000,
        grouped: 10,
        sessions: 16,
        workers: vec![4, 16],
        kinds: vec![MYSQL_9_7, MARIADB_10_11],
        workloads: String::new(),
        options: Vec::new(),
        keep: None,
        output: e2e::repository().join("docs/simulation.md"),
    };
    each(|name, value| {
        match name {
            "--transactions" => parsed.transactions = value.parse()?,
            "--grouped" => parsed.grouped = value.parse()?,
            "--sessions" => parsed.sessions = value.parse()?,
            "--workers" => parsed.workers = list(value)?,
            "--servers" => parsed.kinds = list(value)?,
            "--workloads" => value.clone_into(&mut parsed.workloads),
            "--disk" => {
                ensure!(value == "slow", "known is slow");
                parsed.options.push(slow_disk::option(dir)?);
            }
            "--keep" => parsed.keep = Some(value.into()),
            "--output" => parsed.output = value.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    ensure!(!parsed.workers.is_empty(), "--workers needs a number");
    Ok(parsed)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let arguments = arguments(dir.path())?;
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
