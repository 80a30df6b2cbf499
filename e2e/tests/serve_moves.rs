//! Replicas that move between the source, a Heddle and a second Heddle behind the first, hundreds of times under load, with and without GTIDs: no gap and no repeat; and what a
//! replica at the end of the chain receives has the source's own tags.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::heddle::heddle;
use e2e::logged;
use e2e::native::{position, statement};
use e2e::served::{Ask, By, Served, assert_same, attach, receives, status_of};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, free_port};
use e2e::workload::{Size, Workload};
use engine::transaction::Tags;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const STUCK_AFTER: Duration = Duration::from_secs(180);
const SIZE: Size = Size {
    tables: 4,
    sessions: 3,
    transactions: 60,
    definitions_percent: 3,
    xa: false,
    replace: false,
    temporary: false,
    same_flavour: true,
    unlogged: true,
};

#[test]
#[ignore = "long: scripts/nightly serve"]
fn mysql_replicas_move() -> Result<()> {
    moves(MYSQL_9_7)
}

#[test]
#[ignore = "long: scripts/nightly serve"]
fn mariadb_replicas_move() -> Result<()> {
    moves(MARIADB_10_11)
}

fn moves(kind: Kind) -> Result<()> {
    let count: usize = std::env::var("HEDDLE_MOVES").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_moves -- --ignored");
    let mut random = StdRng::seed_from_u64(seed);
    let (parallel, receiver): (&[&str], &[&str]) = if kind.is_mariadb() {
        (&["--slave-parallel-threads=4", "--gtid-strict-mode=ON"], &["--relay-log-purge=0"])
    } else {
        (&["--replica-parallel-workers=4"], &["--relay-log-purge=0", "--relay-log=relay"])
    };
    let (source, replica) = Server::start_two((kind, &["--max-binlog-size=1M"]), (kind, parallel))?;
    let dir = tempfile::tempdir()?;
    let first = Served::start(source.port, &dir.path().join("one"), free_port()?, &[])?;
    let second = Served::start(first.port, &dir.path().join("two"), free_port()?, &[])?;
    attach(&replica, Ask::new(source.port, By::Gtid))?;
    let done = AtomicBool::new(false);
    let (mut by_position, started) = (0, Instant::now());
    thread::scope(|scope| -> Result<()> {
        let load = scope.spawn(|| -> Result<()> {
            let mut next = seed + 1;
            while !done.load(Ordering::Relaxed) {
                Workload::new(next, SIZE, kind).run(&source)?;
                next += 1;
            }
            Ok(())
        });
        let moved = (|| -> Result<()> {
            let ports = [source.port, first.port, second.port];
            let mut at = 0;
            for step in 0..count {
                at = (at + random.random_range(1..3)) % 3;
                thread::sleep(Duration::from_millis(random.random_range(0..150)));
                let context = || format!("move {step} to {}", ["the source", "heddle", "the second heddle"][at]);
                if random.random_bool(0.5) {
                    attach(&replica, Ask::new(ports[at], By::Gtid)).with_context(context)?;
                } else {
                    replica.execute(statement(&replica, "STOP"))?;
                    let file = status_of(&replica, "Relay_Master_Log_File")?;
                    let offset: u64 = status_of(&replica, "Exec_Master_Log_Pos")?.parse()?;
                    if file.is_empty() {
                        continue;
                    }
                    attach(&replica, Ask::new(ports[at], By::Position(&file, offset))).with_context(context)?;
                    by_position += 1;
                }
                if let Some(error) = receives(&replica)? {
                    bail!("{}: {error}", context());
                }
                // An applier that has stopped says so by now or later.
                let error = status_of(&replica, "Last_SQL_Error")?;
                ensure!(error.is_empty(), "{}: {error}", context());
            }
            Ok(())
        })();
        done.store(true, Ordering::Relaxed);
        load.join().expect("the load ends")?;
        moved
    })?;
    eprintln!("{kind}: {count} moves, {by_position} of them by position, in {} s", started.elapsed().as_secs());
    attach(&replica, Ask::new(second.port, By::Gtid))?;
    assert_same(&source, &replica)?;
    same_tags(&source, &second, kind, receiver, dir.path())?;
    second.kill()?;
    first.kill()?;
    Ok(())
}

/// A new replica at the end of the chain only receives: its relay logs have the source's transactions, tags and parallelism.
fn same_tags(source: &Server, second: &Served, kind: Kind, options: &[&str], dir: &Path) -> Result<()> {
    let far = Server::start(kind, options)?;
    far.execute(&e2e::served::change(&far, Ask::new(second.port, By::Gtid)))?;
    far.execute(statement(&far, "START RECEIVER"))?;
    let (file, offset) = position(source)?;
    let started = Instant::now();
    loop {
        let (has, at) = (status_of(&far, "Master_Log_File")?, status_of(&far, "Read_Master_Log_Pos")?);
        if has == file && at.parse::<u64>().is_ok_and(|at| at >= offset) {
            break;
        }
        ensure!(started.elapsed() < STUCK_AFTER, "the far replica is at {has}:{at}, the source at {file}:{offset}");
        thread::sleep(Duration::from_millis(50));
    }
    far.execute(statement(&far, "STOP"))?;
    let relay = relay_logs(&far)?;
    let (there, here) = (tags(source.binlogs()?)?, tags(relay.clone())?);
    ensure!(there.len() > 100 && there == here, "{} transactions of {} have other tags", here.len(), there.len());
    // One after the other in one folder each, as an operator would look at them.
    let amil = |name: &str, logs: &[PathBuf]| -> Result<serde_json::Value> {
        let folder = dir.join(name);
        std::fs::create_dir(&folder)?;
        let mut paths = Vec::new();
        for log in logs {
            let path = folder.join(log.file_name().context("a name")?);
            std::fs::copy(log, &path)?;
            paths.push(path.display().to_string());
        }
        let mut arguments = vec!["inspect", "--json"];
        arguments.extend(paths.iter().map(String::as_str));
        // A relay log also has the ends of the source's files, which are no ends of its own: inspect says so, with another exit code.
        let summary = heddle(&arguments)?.summary()?;
        let fields = ["transactions", "rows", "amil_unmodified", "mariadb_group_size", "mariadb_group_size_max"];
        Ok(fields.iter().map(|field| summary.get(*field).cloned().unwrap_or_default()).collect())
    };
    let (there, here) = (amil("at-the-source", &source.binlogs()?)?, amil("at-the-far-end", &relay)?);
    eprintln!("{kind}: transactions, rows, AMIL, group sizes: {there} at the source, {here} at the end of the chain");
    ensure!(there == here, "{there} at the source, {here} at the end of the chain");
    Ok(())
}

fn relay_logs(server: &Server) -> Result<Vec<PathBuf>> {
    let index = std::fs::read_dir(server.data())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().contains("relay") && path.extension().is_some_and(|end| end == "index"))
        .context("a relay log index")?;
    let text = std::fs::read_to_string(index)?;
    Ok(text.lines().map(|line| server.data().join(line.trim_start_matches("./"))).collect())
}

/// By GTID.
fn tags(files: Vec<PathBuf>) -> Result<BTreeMap<String, Tags>> {
    let mut found = BTreeMap::new();
    logged::transactions(files, |transaction| {
        if let Some(gtid) = &transaction.gtid {
            found.insert(gtid.to_string(), transaction.tags);
        }
        Ok(())
    })?;
    Ok(found)
}
