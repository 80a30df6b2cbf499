//! How far behind a replica is that keeps up: from the answer to a commit on the source until the change is seen on the target.

use super::arguments::Arguments;
use super::contenders::Named;
use super::loads;
use anyhow::Result;
use e2e::Heddle;
use e2e::bench::contender::{Contender, heddle_arguments, start_native, target};
use e2e::bench::latency::{TABLE, probe};
use e2e::bench::stage::{Stage, Workload};
use e2e::bench::{percentile, version};
use e2e::server::Kind;
use e2e::sysbench::{self, Load};
use std::fmt::Write;
use std::time::Duration;

const TIME: Duration = Duration::from_secs(15);
/// Until the load and the replica have settled.
const SETTLE: Duration = Duration::from_secs(3);

fn contenders(kind: Kind) -> Vec<Named> {
    let native: &[&str] = if kind.is_mariadb() {
        &["--slave-parallel-threads=8", "--slave-parallel-mode=optimistic"]
    } else {
        &["--replica-parallel-workers=8"]
    };
    vec![("native, 8 workers", Contender::Native(native)), ("heddle, as it comes", Contender::Heddle(&[]))]
}

/// `options`: for a run of Heddle.
fn latencies(
    stage: &Stage,
    contender: Contender<'_>,
    options: &[String],
    workload: &Workload,
    rate: u32,
) -> Result<Vec<f64>> {
    let target = target(stage, contender, &[])?;
    let (from, to, relay) =
        (stage.source.plain_url(), target.plain_url(), target.dir().join("relay").display().to_string());
    let heddle = match contender {
        Contender::Heddle(more) => {
            let mut line = heddle_arguments(stage, &from, &to, &relay);
            line.extend(more);
            line.extend(options.iter().map(String::as_str));
            Some(Heddle::start(&line)?)
        }
        _ => {
            start_native(stage, &target)?;
            None
        }
    };
    let goal = stage.source.scalar("SELECT n FROM probe.beat")?;
    while target.scalar("SELECT n FROM probe.beat").ok().as_ref() != Some(&goal) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let seconds = (TIME + 2 * SETTLE).as_secs() as u32;
    let load = Load { events: 0, seconds, ..workload.load };
    let load = sysbench::start_at(&stage.source, workload.script, load, rate)?;
    std::thread::sleep(SETTLE);
    let found = probe(&stage.source, &target, TIME)?;
    load.wait()?;
    if let Some(heddle) = heddle {
        heddle.terminate()?;
        heddle.wait()?.successful()?;
    }
    Ok(found)
}

pub fn section(arguments: &Arguments) -> Result<String> {
    let mut text = format!(
        "## Keeping up\n\nA source that makes so many transactions a second, and a replica of it that is not behind: milliseconds from the answer to a commit \
         on the source until the change is seen on the target, by one row that is updated every 20 ms, however late the target is, and looked at every 0.2 ms ({} s).\n\n\
         | | | transactions/s | | p50 | p99 |\n|---|---|---:|---|---:|---:|\n",
        TIME.as_secs()
    );
    for workload in loads::steady(arguments).iter().filter(|workload| arguments.has(workload)) {
        for &kind in &arguments.kinds {
            measure(arguments, kind, workload, &mut text)?;
        }
    }
    Ok(text)
}

fn measure(arguments: &Arguments, kind: Kind, workload: &Workload, text: &mut String) -> Result<()> {
    let stage = Stage::new(kind, workload)?;
    stage.source.execute(TABLE)?;
    let (version, title) = (version(&stage.source)?, workload.title);
    for &rate in &arguments.rates {
        let mut contenders: Vec<(Named, Vec<(f64, f64)>)> =
            arguments.of(contenders(kind)).into_iter().map(|named| (named, Vec::new())).collect();
        // In turn, so that a slow moment of the machine is not one contender's alone.
        for _ in 0..arguments.repeat {
            for ((_, contender), runs) in &mut contenders {
                let found = latencies(&stage, *contender, &arguments.more.heddle, workload, rate)?;
                runs.push((percentile(found.iter().copied(), 50), percentile(found, 99)));
            }
        }
        for ((name, _), mut runs) in contenders {
            // The middle one of several runs, by its median.
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (p50, p99) = runs.get(runs.len() / 2).copied().unwrap_or((f64::NAN, f64::NAN));
            let medians = runs.iter().map(|(p50, _)| format!("{:.2}", 1e3 * p50)).collect::<Vec<_>>().join(", ");
            eprintln!(
                "{kind}: {title}, {rate}/s: {name}: p50 {:.2} ms ({medians}), p99 {:.2} ms",
                1e3 * p50,
                1e3 * p99
            );
            writeln!(text, "| {version} | {title} | {rate} | {name} | {:.2} ms | {:.2} ms |", 1e3 * p50, 1e3 * p99)?;
        }
    }
    Ok(())
}
