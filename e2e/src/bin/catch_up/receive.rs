//! How fast a live source's log becomes heddle's relay log: the target's tables are locked meanwhile, so that nothing is applied.

use super::arguments::Arguments;
use anyhow::{Context, Result, ensure};
use e2e::Heddle;
use e2e::bench::contender::{Contender, heddle_arguments, target};
use e2e::bench::stage::Stage;
use e2e::bench::{median, version};
use pages::picture::amount;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the relay log is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// All has come when it has not grown for so long.
const QUIET: Duration = Duration::from_millis(500);
const LIMIT: Duration = Duration::from_secs(120);
/// Keeps the log from being read far ahead.
const MEMORY: &str = "1M";

/// Bytes of the files in a directory; 0 while there is none.
fn size(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

/// Seconds from the relay log's beginning until all that comes of `bytes` is in it, and heddle's processor time.
fn receive(stage: &Stage, tables: u32, bytes: u64) -> Result<(f64, f64)> {
    let contender = Contender::Heddle(&[]);
    let target = target(stage, contender, &[])?;
    let locks: Vec<String> = (1..=tables).map(|number| format!("sbtest.sbtest{number} READ")).collect();
    let mut lock = target.connect()?;
    lock.execute(format!("LOCK TABLES {}", locks.join(", ")))?;
    let (from, to, relay) = (stage.source.plain_url(), target.plain_url(), target.dir().join("relay"));
    let shown = relay.display().to_string();
    let mut line = heddle_arguments(stage, &from, &to, &shown);
    line.extend(["--memory", MEMORY]);
    let began = Instant::now();
    let heddle = Heddle::start(&line)?;
    let (mut first, mut last, mut known) = (None, Instant::now(), 0);
    // What is not sent (MariaDB's texts of statements, a quarter of the log) does not come.
    while known < bytes / 2 || last.elapsed() < QUIET {
        ensure!(began.elapsed() < LIMIT, "{known} of {bytes} bytes were received in {LIMIT:?}");
        let now = size(&relay);
        if now != known {
            first.get_or_insert_with(Instant::now);
            (last, known) = (Instant::now(), now);
        }
        std::thread::sleep(LOOK);
    }
    let seconds = last - first.context("nothing was received")?;
    heddle.terminate()?;
    lock.execute("UNLOCK TABLES")?;
    let run = heddle.wait()?.successful()?;
    let cpu = run.summary()?.get("cpu_seconds").and_then(serde_json::Value::as_f64).context("cpu_seconds")?;
    Ok((seconds.as_secs_f64(), cpu))
}

pub fn section(arguments: &Arguments) -> Result<String> {
    let mut text = format!(
        "## Receiving\n\nFrom a source on the same machine into the relay log (`--relay-sync beside`), while the target's tables are locked: {} transactions of \
         sysbench's `oltp_update_non_index`. Bytes of the source's log, of which MariaDB's statements' texts are not sent; processor time of the whole command.\n\n\
         | | MB | MB/s | heddle's CPU, µs/transaction |\n|---|---:|---:|---:|\n",
        amount(arguments.transactions as f64)
    );
    for &kind in &arguments.kinds {
        let workload = arguments.updates(1);
        let stage = Stage::new(kind, &workload)?;
        let bytes = stage.logs.iter().map(|path| Ok(std::fs::metadata(path)?.len())).sum::<Result<u64>>()?;
        let runs: Vec<(f64, f64)> =
            (0..arguments.repeat).map(|_| receive(&stage, workload.load.tables, bytes)).collect::<Result<_>>()?;
        let rate = bytes as f64 / median(runs.iter().map(|run| run.0)) / 1e6;
        let cpu = median(runs.iter().map(|run| run.1)) / stage.transactions as f64 * 1e6;
        eprintln!("{kind}: {rate:.0} MB/s, {cpu:.1} µs/transaction");
        writeln!(text, "| {} | {:.0} | {rate:.0} | {cpu:.1} |", version(&stage.source)?, bytes as f64 / 1e6)?;
    }
    Ok(text)
}
