//! What a channel gains that takes one table of a hundred: the same log, applied once whole and once with `--only`, in turns.
//!
//! filters-bench [SERVER [TRANSACTIONS [ROUNDS]]]     default: mysql-9.7 100000 3
//!
//! Prints rows for bench/results/benchmarks.md: seconds of each run, and how many times as fast the part is. `HEDDLE_BENCH_DIR` chooses the disk.

#![allow(clippy::print_stdout, reason = "a benchmark")]

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::bench::median;
use e2e::heddle::Heddle;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load};

const TABLES: u32 = 100;
const ROWS: u32 = 1000;
const SCRIPT: &str = "oltp_update_non_index";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind = match arguments.next().as_deref() {
        None | Some("mysql-9.7") => MYSQL_9_7,
        Some("mariadb-10.11") => MARIADB_10_11,
        Some(other) => anyhow::bail!("{other}: mysql-9.7 or mariadb-10.11"),
    };
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (transactions, rounds) = (number(100_000)?, number(3)?);
    let durable = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
    let source = Server::start(kind, &[])?;
    let load = Load { tables: TABLES, rows: ROWS, threads: 8, events: transactions, seconds: 0 };
    sysbench::prepare(&source, SCRIPT, load)?;
    sysbench::run(&source, SCRIPT, load)?;
    let (mut whole, mut part) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        whole.push(run(&source, kind, &durable, &["--only", "sbtest"])?);
        part.push(run(&source, kind, &durable, &["--only", "sbtest.sbtest1"])?);
    }
    let (whole, part) = (median(whole), median(part));
    println!("| {} | {transactions} | {whole:.2} | {part:.2} | {:.1} × |", e2e::bench::version(&source)?, whole / part);
    Ok(())
}

/// Seconds from the process's begin to its end, into a new target.
fn run(source: &Server, kind: Kind, durable: &[&str], part: &[&str]) -> Result<f64> {
    let target = Server::start(kind, durable)?;
    let (from, to) = (source.binlog_index().display().to_string(), target.url());
    let begun = Instant::now();
    let mut arguments = vec!["replicate", "--from", &from, "--to", &to, "--json"];
    arguments.extend(part);
    let run = Heddle::start(&arguments)?.wait()?.successful()?;
    let seconds = begun.elapsed().as_secs_f64();
    let rows = target.scalar("SELECT COUNT(*) FROM sbtest.sbtest1").context("the table that is taken")?;
    ensure!(rows == ROWS.to_string(), "{rows} rows: {run}");
    Ok(seconds)
}
