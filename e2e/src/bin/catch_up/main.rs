//! The benchmarks of bench/results/benchmarks.md: a source makes a workload, then native replicas and heddle apply it in turn, each on a fresh copy of the
//! same start, all fully durable; contents are compared at the end. Sections that are not measured stay in the page as they are.
//!
//! Arguments: `--sections NAME,…` (catch-up, gtids, settings, workloads, slow-disk, cold, keep-up, shapes, writers, tables, growth, receive, tuning; default
//! all),
//! `--transactions N` (default 20000, a short look), `--repeat N` (1; in turn, the median counts), `--sessions N` (16), `--servers NAME,…`,
//! `--rates N,…` (keep-up: transactions per second; 1000,3000), `--only TEXT[|TEXT…]` (contenders whose name holds one of these),
//! `--workloads TEXT[|TEXT…]` (likewise), `--target-options 'OPTION…'` (for all targets), `--heddle-options 'OPTION…'` (for all runs of Heddle), `--output FILE`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "says what it does")]

mod arguments;
mod contenders;
mod keep_up;
mod loads;
mod receive;
mod tables;
mod tuning;

use anyhow::Result;
use e2e::bench::machine;
use e2e::bench::page::Page;

fn main() -> Result<()> {
    let arguments = arguments::arguments()?;
    let mut page = Page::open(arguments.output.clone())?;
    for section in &arguments.sections {
        eprintln!("== {section}");
        let text = match section.as_str() {
            "catch-up" => tables::catch_up(&arguments, &page)?,
            "gtids" => tables::gtids(&arguments)?,
            "settings" => tables::settings(&arguments, &page)?,
            "workloads" => tables::workloads(&arguments)?,
            "slow-disk" => tables::slow_disk(&arguments)?,
            "cold" => tables::cold(&arguments)?,
            "keep-up" => keep_up::section(&arguments)?,
            "receive" => receive::section(&arguments)?,
            "tables" => tables::many_tables(&arguments)?,
            "tuning" => tuning::section(&arguments)?,
            "writers" => tables::writers(&arguments)?,
            "growth" => tables::growth(&arguments)?,
            _ => tables::shapes(&arguments)?,
        };
        let footer = format!("\nMeasured on {}, with `{}`.\n\n", machine(), arguments.command(section));
        page.write(section, &(text + &footer))?;
    }
    Ok(())
}
