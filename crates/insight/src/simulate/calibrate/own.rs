//! What Heddle takes: it replicates short logs that are made for it, with the settings that the models tell apart, under channels of their own
//! that go again.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use engine::policy::CommitOrder;
use engine::schedule::Grouping;
use wire::{ConnectOptions, Connection};

use super::calibration::{Calibration, in_turns};
use super::rows::{Choice, Shape, Stream};
use apply::mysql::progress::{SCHEMA, TABLES};
use apply::mysql::{BinlogChoice, MySqlTarget};
use channel::monitor::Monitor;
use channel::outcome::RunEnd;
use channel::source::Source;
use channel::spec::{ApplySettings, Spec};

/// Begins the names of the channels.
const CHANNEL: &str = "heddle-calibration";

/// One way to replicate.
#[derive(Clone, Copy)]
struct Way {
    workers: usize,
    order: CommitOrder,
    grouping: Grouping,
    transactions: u32,
    rows_each: u32,
    choice: Choice,
}

const fn single(workers: usize, order: CommitOrder, transactions: u32) -> Way {
    let grouping = match order {
        // Groups of one: nothing shares a packet, which the models know in relaxed order only.
        CommitOrder::Preserve => Grouping::UpTo(1),
        CommitOrder::PerLane | CommitOrder::Relaxed => Grouping::Off,
    };
    Way { workers, order, grouping, transactions, rows_each: 1, choice: Choice::Own }
}

const fn grouped(workers: usize, transactions: u32, rows_each: u32, choice: Choice) -> Way {
    Way { workers, order: CommitOrder::Preserve, grouping: Grouping::Auto, transactions, rows_each, choice }
}

/// A run that has nothing to do, then what is measured, in the order of [`take`].
const WAYS: [Way; 9] = [
    single(1, CommitOrder::Preserve, 1),
    single(1, CommitOrder::Preserve, 600),
    single(4, CommitOrder::Preserve, 600),
    single(4, CommitOrder::Relaxed, 1000),
    single(16, CommitOrder::Relaxed, 1500),
    grouped(1, 20_000, 1, Choice::Own),
    grouped(4, 20_000, 1, Choice::Own),
    grouped(1, 2_000, super::server::ROWS_EACH, Choice::Own),
    grouped(1, 20_000, 1, Choice::Ten),
];

/// Seconds of each way → microseconds of a transaction.
fn take(seconds: &[f64], measured: &mut Calibration) -> Result<()> {
    let [nothing, rest @ ..] = seconds else { bail!("nothing was measured") };
    let each: Vec<f64> = WAYS
        .iter()
        .skip(1)
        .zip(rest)
        .map(|(way, seconds)| (seconds - nothing).max(seconds / 10.0) * 1e6 / f64::from(way.transactions))
        .collect();
    let [one, four, relaxed, relaxed_sixteen, group, group_four, group_rows, group_merged] = each.as_slice() else {
        bail!("eight measurements")
    };
    measured.heddle_us = *one;
    measured.heddle_four_us = *four;
    measured.heddle_relaxed_four_us = *relaxed;
    measured.heddle_relaxed_sixteen_us = *relaxed_sixteen;
    measured.grouped_us = *group;
    measured.grouped_four_us = *group_four;
    measured.grouped_twenty_rows_us = *group_rows;
    measured.grouped_merged_us = *group_merged;
    Ok(())
}

/// Measures all ways in turns. The table `u` is there.
pub fn measure(options: &ConnectOptions, shape: Shape, logged: bool, measured: &mut Calibration) -> Result<()> {
    let mut control = Connection::connect(options)?;
    if !logged {
        control.execute("SET SESSION sql_log_bin = 0")?;
    }
    let was_there = !control.rows(format!("SHOW DATABASES LIKE '{SCHEMA}'"))?.is_empty();
    let dir = tempfile::tempdir().context("a folder for logs")?;
    let mut stream = Stream::new(shape, 0, 1);
    let mut runs = 0;
    let found = in_turns(WAYS.len(), |which| {
        let Some(way) = WAYS.get(which) else { bail!("a way that is none") };
        runs += 1;
        replicate(options, way, &mut stream, runs, dir.path(), logged)
    });
    let gone = forget(&mut control, was_there);
    take(&found?, measured)?;
    gone.context("removing the channels that it made")
}

fn forget(control: &mut Connection, was_there: bool) -> Result<()> {
    if !was_there {
        control.execute(format!("DROP DATABASE IF EXISTS {SCHEMA}"))?;
        return Ok(());
    }
    for table in TABLES {
        control.execute(format!("DELETE FROM {SCHEMA}.{table} WHERE channel LIKE '{CHANNEL}-%'"))?;
    }
    Ok(())
}

/// Seconds of one run.
fn replicate(
    options: &ConnectOptions,
    way: &Way,
    stream: &mut Stream,
    number: u32,
    dir: &std::path::Path,
    logged: bool,
) -> Result<f64> {
    let log = dir.join(format!("calibration.{number:06}"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    std::fs::write(&log, stream.log("u", way.transactions, way.rows_each, way.choice, now as u32))?;
    let logged = if logged { BinlogChoice::Yes } else { BinlogChoice::No };
    let target = MySqlTarget::connect_as_replica(options.clone(), &format!("{CHANNEL}-{number}"), logged);
    let target = Arc::new(target.map_err(anyhow::Error::new)?);
    let spec = Spec {
        applying: ApplySettings { order: way.order, grouping: way.grouping, ..ApplySettings::new(way.workers) },
        ..Spec::new(Source::Files(vec![log.clone()]), target, way.workers)
    };
    let monitor = Monitor::default();
    let RunEnd { first_seq, time, outcome } = channel::run::run(&spec, &monitor, &Arc::new(AtomicBool::new(false)))?;
    std::fs::remove_file(&log)?;
    if let Some(failure) = outcome.failure {
        bail!("heddle itself: {} {}", failure.message, failure.place);
    }
    let seen = monitor.snapshot();
    let transactions = seen.scheduled.counters.transactions.max(seen.committed.seq - first_seq);
    if transactions != u64::from(way.transactions) {
        bail!("heddle itself applied {transactions} of {} transactions", way.transactions);
    }
    Ok(time.as_secs_f64())
}
