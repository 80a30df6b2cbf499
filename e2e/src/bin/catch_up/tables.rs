//! Sections that are tables of transactions per second.

use super::arguments::Arguments;
use super::contenders::{self, Named, is_ours};
use super::loads;
use anyhow::{Context, Result, ensure};
use e2e::bench::contender::{Contender, Measured, measure};
use e2e::bench::page::Page;
use e2e::bench::slow_disk;
use e2e::bench::stage::{Stage, Workload};
use e2e::bench::{median, version};
use e2e::server::Kind;
use pages::picture::{Bar, amount, bars};
use std::fmt::Write;

pub struct Line {
    pub name: &'static str,
    /// Transactions per second.
    pub rate: f64,
    runs: Vec<Measured>,
}

pub struct Table {
    version: String,
    transactions: u64,
    pub lines: Vec<Line>,
}

impl Table {
    /// `options`: of the targets.
    fn measure(arguments: &Arguments, stage: &Stage, list: &[Named], options: &[&str]) -> Result<Self> {
        let options: Vec<&str> =
            options.iter().copied().chain(arguments.more.target.iter().map(String::as_str)).collect();
        let mut runs: Vec<Vec<Measured>> = list.iter().map(|_| Vec::new()).collect();
        // In turn: a slow minute of the machine is one for all of them. Who comes first finds the machine busy with what the source has just done: each round begins with
        // another.
        for round in 0..arguments.repeat {
            for turn in 0..list.len() {
                let at = (round + turn) % list.len();
                let (Some(&(name, contender)), Some(runs)) = (list.get(at), runs.get_mut(at)) else { continue };
                let with_ours: Vec<&str>;
                let contender = match contender {
                    Contender::Heddle(own) => {
                        let ours = arguments.more.heddle.iter().map(String::as_str);
                        with_ours = own.iter().copied().chain(ours).collect();
                        Contender::Heddle(&with_ours)
                    }
                    other => other,
                };
                runs.push(measure(stage, contender, &options).with_context(|| name.to_owned())?);
            }
        }
        let line = |(&(name, _), runs): (&Named, Vec<Measured>)| {
            let rate = stage.transactions as f64 / median(runs.iter().map(|run| run.seconds));
            let each: Vec<String> = runs.iter().map(|run| amount(stage.transactions as f64 / run.seconds)).collect();
            eprintln!("{}: {name}: {} trx/s ({})", stage.source.kind, amount(rate), each.join(" "));
            Line { name, rate, runs }
        };
        let lines = list.iter().zip(runs).map(line).collect();
        Ok(Self { version: version(&stage.source)?, transactions: stage.transactions, lines })
    }

    /// How many times as fast as the best native replica, if there was one.
    fn times_native(&self, rate: f64, digits: usize) -> String {
        let natives = self.lines.iter().filter(|line| line.name.starts_with("native"));
        let best = natives.map(|line| line.rate).max_by(f64::total_cmp);
        best.map_or("–".to_owned(), |best| format!("{:.digits$}", rate / best))
    }

    fn text(&self) -> Result<String> {
        let first = self.lines.first().map_or(f64::NAN, |line| line.rate);
        let mut text = "| | transactions/s | × the first | × best native | target's CPU, µs/transaction | heddle's CPU, share of the \
             target's | heddle's memory |\n|---|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
        for line in &self.lines {
            let cpu = median(line.runs.iter().map(|run| run.server_cpu));
            let ours = line.runs.iter().filter_map(|run| run.heddle);
            let (share, memory) = if line.runs.iter().any(|run| run.heddle.is_some()) {
                (
                    format!("{:.0} %", 100.0 * median(ours.clone().map(|(cpu, _)| cpu)) / cpu),
                    format!("{:.0} MiB", median(ours.map(|(_, memory)| memory as f64)) / f64::from(1 << 20)),
                )
            } else {
                ("–".to_owned(), "–".to_owned())
            };
            writeln!(
                text,
                "| {} | {} | {:.2} | {} | {:.0} | {share} | {memory} |",
                line.name,
                amount(line.rate),
                line.rate / first,
                self.times_native(line.rate, 2),
                1e6 * cpu / self.transactions as f64
            )?;
        }
        Ok(text)
    }

    fn plot(&self) -> String {
        let bar = |line: &Line| Bar { label: line.name.replace('\\', ""), value: line.rate, ours: is_ours(line.name) };
        bars(&self.version, "transactions/s", &self.lines.iter().map(bar).collect::<Vec<_>>())
    }
}

/// The best of the native settings over a long distance.
pub fn catch_up(arguments: &Arguments, page: &Page) -> Result<String> {
    Ok(format!("## Catching up\n{}", on_updates(arguments, page, "catch-up", contenders::best)?))
}

/// With the source's GTIDs and with the target's own.
pub fn gtids(arguments: &Arguments) -> Result<String> {
    let mut text =
        "## GTIDs kept\n\nThe same workload with `--gtids preserve`: groups under the source's GTIDs.\n".to_owned();
    let workload = arguments.updates(1);
    for &kind in &arguments.kinds {
        let stage = Stage::new(kind, &workload)?;
        let table = Table::measure(arguments, &stage, &arguments.of(contenders::kept(kind)), &[])?;
        write!(text, "\n### {}, GTIDs kept\n\n{}", table.version, table.text()?)?;
    }
    Ok(text)
}

/// Every setting.
pub fn settings(arguments: &Arguments, page: &Page) -> Result<String> {
    Ok(format!(
        "## Settings\n\nA short distance: connecting is a part of it. With grouping off, and with the source's GTIDs kept one by one, every transaction of the source is one on the \
         target, with a commit that comes after the one before it (in relaxed order commits may share an fsync).\n{}",
        on_updates(arguments, page, "settings", contenders::all)?
    ))
}

fn on_updates(arguments: &Arguments, page: &Page, name: &str, list: fn(Kind) -> Vec<Named>) -> Result<String> {
    let workload = arguments.updates(1);
    let mut text = format!(
        "\n{} transactions of sysbench's `{}` on {} × {} rows, from {} sessions.\n",
        amount(workload.load.events as f64),
        workload.title,
        workload.load.tables,
        amount(f64::from(workload.load.rows)),
        workload.load.threads
    );
    for &kind in &arguments.kinds {
        let stage = Stage::new(kind, &workload)?;
        let table = Table::measure(arguments, &stage, &arguments.of(list(kind)), &[])?;
        let picture = page.picture(&format!("{name}-{kind}"), &table.version, &table.plot())?;
        write!(text, "\n### {}\n\n{picture}\n{}", table.version, table.text()?)?;
    }
    Ok(text)
}

/// A workload, and options of the targets.
pub type Case<'a> = (Workload, Vec<&'a str>);

/// What stands behind the rates of a workload: titles of columns, and their cells.
pub struct Behind {
    pub titles: &'static str,
    pub cells: fn(&Table) -> String,
}

const BESIDE_NATIVE: Behind = Behind { titles: "heddle × best native | heddle's memory", cells: beside_native };

fn beside_native(table: &Table) -> String {
    let ours = table.lines.iter().rfind(|line| is_ours(line.name));
    let times = ours.map_or("–".to_owned(), |line| table.times_native(line.rate, 1));
    let memory = ours.and_then(|line| line.runs.iter().filter_map(|run| run.heddle).map(|(_, memory)| memory).max());
    format!("**{times}** | {} MiB", memory.unwrap_or(0) >> 20)
}

/// Several workloads, each with a few native settings and heddle as it comes.
fn several(
    arguments: &Arguments,
    workloads: &[Workload],
    contenders: fn(Kind) -> Vec<Named>,
    options: &[&str],
) -> Result<String> {
    let cases = workloads.iter().map(|&workload| (workload, options.to_vec())).collect();
    of_cases(arguments, cases, contenders, &BESIDE_NATIVE)
}

/// A table for each server, with a row for each workload that takes part.
pub fn of_cases(
    arguments: &Arguments,
    mut cases: Vec<Case<'_>>,
    contenders: fn(Kind) -> Vec<Named>,
    behind: &Behind,
) -> Result<String> {
    cases.retain(|(workload, _)| arguments.has(workload));
    ensure!(!cases.is_empty(), "no workload of this section is named so");
    let mut text = String::new();
    for &kind in &arguments.kinds {
        let list = arguments.of(contenders(kind));
        let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
        let (mut rows, mut version) = (String::new(), String::new());
        for (workload, options) in &cases {
            eprintln!("{kind}: {}", workload.title);
            let stage = Stage::new(kind, workload)?;
            let table = Table::measure(arguments, &stage, &list, options).with_context(|| workload.title)?;
            let rates: Vec<String> = table.lines.iter().map(|line| amount(line.rate)).collect();
            writeln!(rows, "| {} | {} | {} |", workload.title, rates.join(" | "), (behind.cells)(&table))?;
            version = table.version;
        }
        write!(
            text,
            "\n### {version}\n\n| transactions/s | {} | {} |\n|---|{}---:|---:|\n{rows}",
            names.join(" | "),
            behind.titles,
            "---:|".repeat(names.len())
        )?;
    }
    Ok(text)
}

pub fn workloads(arguments: &Arguments) -> Result<String> {
    let list = loads::several(arguments);
    Ok(format!("## Other workloads\n{}", several(arguments, &list, contenders::few, &[])?))
}

pub fn slow_disk(arguments: &Arguments) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let option = slow_disk::option(dir.path())?;
    Ok(format!(
        "## A slow disk\n\nEach fsync of the targets takes {} ms longer (a preloaded library, `bench/workloads/slow_disk.c`): it stands for a network disk. {} transactions.\n{}",
        slow_disk::FSYNC_MS,
        amount(arguments.transactions as f64),
        several(arguments, &[arguments.updates(1)], contenders::best, &[&option])?
    ))
}

/// Rows that are mostly not in memory.
pub fn cold(arguments: &Arguments) -> Result<String> {
    let [here, slow] = loads::cold(arguments);
    let dir = tempfile::tempdir()?;
    let reads = slow_disk::reads(dir.path())?;
    let mut tables = String::new();
    for (workload, options) in [(here, &[loads::COLD_POOL][..]), (slow, &[loads::COLD_POOL, &reads])] {
        if arguments.has(&workload) {
            tables += &several(arguments, &[workload], contenders::cold, options)?;
        }
    }
    Ok(format!(
        "## Data larger than the buffer pool\n\nA table of {} rows (0.9 GB) that are updated one by one, evenly, on targets with 64 MiB for them: almost every row is read from the disk. \
         {} transactions. A preloaded library (`bench/workloads/slow_disk.c`) makes reads {} ms longer: it stands for a network disk.\n{tables}",
        amount(f64::from(loads::COLD_ROWS)),
        amount(arguments.transactions as f64),
        slow_disk::READ_MS,
    ))
}

pub fn shapes(arguments: &Arguments) -> Result<String> {
    let list = loads::shapes(arguments);
    Ok(format!(
        "## Workloads that are hard on replicas\n\nEvery transaction updates one row. Without any key the server has to read the table for each row that is \
         changed, whoever applies it: give the table a primary key, or on MariaDB and MySQL at least an index.\n{}",
        several(arguments, &list, contenders::few, &[])?
    ))
}

/// Both of heddle's ways to write rows.
pub fn writers(arguments: &Arguments) -> Result<String> {
    let list = loads::changes(arguments);
    Ok(format!(
        "## Rows as SQL\n\nThe same workloads with `--rows binlog` (row events in a `BINLOG` statement), `--rows sql` (plain `INSERT`, `UPDATE`, `DELETE`), and the way \
         that heddle chooses by itself.\n{}",
        several(arguments, &list, contenders::writers, &[])?
    ))
}

pub fn many_tables(arguments: &Arguments) -> Result<String> {
    let list = loads::tables(arguments);
    Ok(format!(
        "## Many tables\n\nEvery transaction updates one of ten rows of one of the tables.\n{}",
        several(arguments, &list, contenders::few, &[])?
    ))
}

/// How often as many transactions there are in the longer distance.
const LONGER: u64 = 10;

/// Heddle alone, over two distances.
pub fn growth(arguments: &Arguments) -> Result<String> {
    let mut text = format!(
        "## Ten times as much\n\nSeconds for so many transactions, and for {LONGER} times as many. Connecting, reading definitions and beginning the relay log are a part of \
         both.\n\n| | transactions | seconds | transactions | seconds | times as long | heddle's memory |\n|---|---:|---:|---:|---:|---:|---:|\n"
    );
    for &kind in &arguments.kinds {
        let distance = |factor| -> Result<(Table, f64)> {
            let mut workload = arguments.updates(1);
            workload.load.events *= factor;
            let stage = Stage::new(kind, &workload)?;
            let table = Table::measure(arguments, &stage, &contenders::heddle(), &[])?;
            let seconds = table.transactions as f64 / table.lines.first().map_or(f64::NAN, |line| line.rate);
            Ok((table, seconds))
        };
        let ((short, short_s), (long, long_s)) = (distance(1)?, distance(LONGER)?);
        let runs = long.lines.iter().flat_map(|line| &line.runs);
        let memory = runs.filter_map(|run| run.heddle).map(|(_, bytes)| bytes).max().unwrap_or(0) >> 20;
        writeln!(
            text,
            "| {} | {} | {short_s:.2} | {} | {long_s:.2} | **{:.1}** | {memory} MiB |",
            long.version,
            amount(short.transactions as f64),
            amount(long.transactions as f64),
            long_s / short_s
        )?;
    }
    Ok(text)
}
