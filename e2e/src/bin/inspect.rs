//! How fast `heddle inspect` and `heddle simulate` are, and in how much memory: on the log of sysbench's oltp_write_only, made by a real server
//! (some minutes); beside `mysqlbinlog | awk` that works out AMIL alone. Writes its section of bench/results/benchmarks.md.
//!
//! Arguments: `--mebibytes N` of logs, in files of 64 (1024), `--repeat N` (3; the median counts),
//! `--server NAME` (mysql-9.7), `--output FILE`.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "says what it does")]

use anyhow::{Context, Result, ensure};
use e2e::bench::arguments::{each, line};
use e2e::bench::page::Page;
use e2e::bench::{machine, median, version};
use e2e::heddle::{binary, heddle};
use e2e::server::{Kind, MYSQL_9_7, Server, servers_script};
use e2e::sysbench::{self, Load};
use pages::picture::amount;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const SCRIPT: &str = "oltp_write_only";
/// For the AMIL of a file, as it is worked out by hand: intervals from the largest last_committed so far.
const AWK: &str = r"match($0, /last_committed=[0-9]+/) { last = substr($0, RSTART + 15, RLENGTH - 15) + 0
    match($0, /sequence_number=[0-9]+/); number = substr($0, RSTART + 16, RLENGTH - 16) + 0
    if (last > most) most = last; sum += number - most; n++ } END { if (n) print sum / n }";

struct Arguments {
    mebibytes: u64,
    repeat: usize,
    kind: Kind,
    output: PathBuf,
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        mebibytes: 1024,
        repeat: 3,
        kind: MYSQL_9_7,
        output: e2e::repository().join("bench/results/benchmarks.md"),
    };
    each(|name, value| {
        match name {
            "--mebibytes" => parsed.mebibytes = value.parse()?,
            "--repeat" => parsed.repeat = value.parse()?,
            "--server" => parsed.kind = value.parse()?,
            "--output" => parsed.output = value.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    ensure!(parsed.repeat > 0 && parsed.mebibytes > 0, "numbers that make no sense");
    Ok(parsed)
}

/// Lets the server write logs of so many bytes; their paths.
fn make(server: &Server, bytes: u64) -> Result<Vec<PathBuf>> {
    let load = Load { tables: 4, rows: 20_000, threads: 16, events: 2_000, seconds: 0 };
    sysbench::prepare(server, SCRIPT, load)?;
    server.rotate()?;
    let before = server.binary_logs()?.len() - 1;
    sysbench::run(server, SCRIPT, load)?;
    let first = server.binary_logs()?.into_iter().nth(before).context("no binary log")?;
    let each = std::fs::metadata(&first)?.len() / load.events;
    sysbench::run(server, SCRIPT, Load { events: bytes / each.max(1), ..load })?;
    server.rotate()?;
    let mut made = server.binary_logs()?.split_off(before);
    // The last one is being written.
    made.pop();
    Ok(made)
}

/// Wall time in seconds and the most memory in bytes.
#[expect(unsafe_code, reason = "wait4(2): std and rustix do not give a child's usage")]
fn cost(arguments: &[String]) -> Result<(f64, u64)> {
    let began = Instant::now();
    let child = Command::new(binary()?).args(arguments).stdout(Stdio::null()).spawn().context("starting heddle")?;
    let pid = i32::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: all zeros is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: wait4(2) writes to the two that it is given; nobody else waits for this child.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    ensure!(waited == pid && status == 0, "heddle {}: wait status {status}", arguments.join(" "));
    // getrusage(2): in kibibytes.
    Ok((began.elapsed().as_secs_f64(), u64::try_from(usage.ru_maxrss)? * 1024))
}

struct Bench {
    repeat: usize,
    logs: Vec<PathBuf>,
    bytes: u64,
    schema: PathBuf,
}

impl Bench {
    fn files(&self) -> Vec<String> {
        self.logs.iter().map(|path| path.display().to_string()).collect()
    }

    /// The median time and the most memory of several runs.
    fn run(&self, command: &str, more: &[&str]) -> Result<(f64, u64)> {
        let mut line = vec![command.to_owned(), "--json".to_owned()];
        line.extend(more.iter().map(|&text| text.to_owned()));
        line.extend(self.files());
        let runs: Vec<(f64, u64)> = (0..self.repeat).map(|_| cost(&line)).collect::<Result<_>>()?;
        let seconds = median(runs.iter().map(|(seconds, _)| *seconds));
        eprintln!("{command} {}: {seconds:.2} s", more.join(" "));
        Ok((seconds, runs.iter().map(|(_, memory)| *memory).max().unwrap_or(0)))
    }
}

/// Seconds of `mysqlbinlog FILE | awk`.
fn by_hand(kind: Kind, log: &Path) -> Result<f64> {
    let began = Instant::now();
    let mut reader = servers_script(&["run", kind.client_tree(), "mysqlbinlog"])
        .arg(log)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting mysqlbinlog")?;
    let text = reader.stdout.take().context("mysqlbinlog's output")?;
    let awk = Command::new("awk").arg(AWK).stdin(text).output().context("starting awk")?;
    ensure!(reader.wait()?.success() && awk.status.success(), "mysqlbinlog | awk failed");
    ensure!(!awk.stdout.is_empty(), "mysqlbinlog | awk found no tags");
    Ok(began.elapsed().as_secs_f64())
}

fn section(bench: &Bench, kind: Kind, version: &str, transactions: u64) -> Result<String> {
    let schema = bench.schema.display().to_string();
    let rate = |seconds: f64| bench.bytes as f64 / seconds / 1e6;
    let mut text = format!(
        "## Inspecting and simulating\n\n{} of binary logs in the page cache: sysbench's `{SCRIPT}` on {version}, {} transactions. AMIL by hand is \
         `mysqlbinlog FILE | awk`, on one of the {} files.\n\n| | threads | MB/s | × by hand | memory |\n|---|---:|---:|---:|---:|\n",
        format_args!("{} MB", amount(bench.bytes as f64 / 1e6)),
        amount(transactions as f64),
        bench.logs.len()
    );
    let first = bench.logs.first().context("no log")?;
    let times: Vec<f64> = (0..bench.repeat).map(|_| by_hand(kind, first)).collect::<Result<_>>()?;
    let hand = std::fs::metadata(first)?.len() as f64 / median(times) / 1e6;
    writeln!(text, "| AMIL by hand | 2 processes | {} | 1 | – |", amount(hand))?;
    let mut speedups = Vec::new();
    for (name, options) in [
        ("`inspect --quick`: tags and traffic", vec!["--quick"]),
        ("`inspect`: and write sets, dependencies, hot rows", vec!["--schema", &schema]),
    ] {
        let mut alone = f64::NAN;
        for threads in ["1", "2"] {
            let more: Vec<&str> = options.iter().copied().chain(["--threads", threads]).collect();
            let (seconds, memory) = bench.run("inspect", &more)?;
            let memory = memory as f64 / f64::from(1 << 20);
            let faster = rate(seconds) / hand;
            writeln!(text, "| {name} | {threads} | {} | {faster:.0} | {memory:.0} MiB |", amount(rate(seconds)))?;
            if threads == "1" {
                alone = seconds;
            } else {
                speedups.push(format!("{:.2}", alone / seconds));
            }
        }
    }
    writeln!(text, "\nThe second thread makes it {} times as fast.", speedups.join(" and "))?;
    let limited = transactions.min(500_000);
    let limit = limited.to_string();
    let simulate = |policy: &str, workers: &str| -> Result<f64> {
        let options = ["--schema", &schema, "--threads", "1", "--transactions", &limit];
        let options: Vec<&str> = options.into_iter().chain(["--policy", policy, "--workers", workers]).collect();
        bench.run("simulate", &options).map(|(seconds, _)| seconds)
    };
    let reading = simulate("serial", "1")?;
    let mut shown = Vec::new();
    for policy in ["mysql-logical-clock", "heddle", "heddle-grouping"] {
        // Nine configurations beyond what reading takes.
        let seconds = (simulate(policy, "1,2,4,8,16,32,64,128,256")? - reading).max(1e-3);
        shown.push(format!("{policy} {:.1} million", 9.0 * limited as f64 / seconds / 1e6));
    }
    writeln!(
        text,
        "\nSimulated transactions a second for each policy and number of workers, one thread: {}.",
        shown.join(", ")
    )?;
    Ok(text)
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let mut page = Page::open(arguments.output.clone())?;
    let options = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--max-binlog-size=64M"];
    let server = Server::start(arguments.kind, &options)?;
    let logs = make(&server, arguments.mebibytes << 20)?;
    let version = version(&server)?;
    // Of all tables, so that no server is asked while the clock runs.
    let schema = server.dir().join("schema.sql");
    let mut dump = String::from("USE `sbtest`;\n");
    for row in server.rows("SHOW TABLES FROM sbtest")? {
        let table = row.first().context("a table")?;
        let answer = server.scalar(&format!("SHOW CREATE TABLE sbtest.{table}"))?;
        let (_, definition) = answer.split_once('\t').context("a definition")?;
        writeln!(dump, "{definition};")?;
    }
    std::fs::write(&schema, dump)?;
    server.stop()?;
    let bytes = logs.iter().map(|path| Ok(std::fs::metadata(path)?.len())).sum::<Result<u64>>()?;
    let bench = Bench { repeat: arguments.repeat, logs, bytes, schema };
    let mut line_of = vec!["inspect", "--json", "--quick"];
    let files = bench.files();
    line_of.extend(files.iter().map(String::as_str));
    let transactions = heddle(&line_of)?.successful()?.number("transactions")?;
    let mut text = section(&bench, arguments.kind, &version, transactions)?;
    let command = format!("bench/inspect {}", line());
    write!(text, "\nMeasured on {}, with `{}`.\n\n", machine(), command.trim_end())?;
    page.write("inspect", &text)
}
