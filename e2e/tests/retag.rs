//! `heddle retag` on real logs: what an unmodified replica applies from the copies, with many workers, is what the source has.

#![allow(clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use binlog::{HEADER_LEN, Header, Kind as EventKind};
use e2e::checksum::assert_equal;
use e2e::heddle::heddle;
use e2e::invariants::{self, Order, Reader, order_of};
use e2e::native::{applier_time, statement, wait_caught_up};
use e2e::retagged;
use e2e::server::{Kind, MYSQL_9_7, Server, servers_script};
use e2e::workload::{Size, Workload};

const SIZE: Size = Size { transactions: 150, unlogged: true, ..retagged::SIZE };

/// A folder with the source's files, and one with copies.
struct Logs {
    folder: tempfile::TempDir,
}

impl Logs {
    fn of(source: &Server) -> Result<Self> {
        let logs = Self { folder: tempfile::tempdir()? };
        std::fs::create_dir(logs.original())?;
        for log in source.binary_logs()? {
            let name = log.file_name().context("a name")?;
            std::fs::copy(&log, logs.original().join(name))?;
        }
        Ok(logs)
    }

    fn original(&self) -> PathBuf {
        self.folder.path().join("original")
    }

    fn copies(&self) -> PathBuf {
        self.folder.path().join("copies")
    }

    fn retag(&self, more: &[&str]) -> Result<serde_json::Value> {
        let (from, to) = (self.original().display().to_string(), self.copies().display().to_string());
        let mut line = vec!["retag", &from, "--out", &to, "--json"];
        line.extend(more);
        let run = heddle(&line)?.successful()?;
        serde_json::from_str(&run.stdout).with_context(|| run.to_string())
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    Ok(files)
}

/// A replica whose relay log these files are, ready to apply them.
fn with_relay_log(kind: Kind, logs: &Path, options: &[&str]) -> Result<Server> {
    let mut all = vec!["--relay-log=relay", "--relay-log-index=relay.index", "--relay-log-purge=OFF"];
    all.extend(options);
    let replica = Server::start(kind, &all)?;
    replica.stop()?;
    let mut index = String::new();
    for (number, file) in (1..).zip(files(logs)?) {
        let name = format!("relay.{number:06}");
        std::fs::copy(&file, replica.data().join(&name))?;
        index.push_str(&format!("./{name}\n"));
    }
    std::fs::write(replica.data().join("relay.index"), index)?;
    replica.restart(&["--skip-replica-start"])?;
    replica.execute(
        "CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE='relay.000001', RELAY_LOG_POS=4, SOURCE_HOST='nowhere', SOURCE_AUTO_POSITION=0",
    )?;
    Ok(replica)
}

fn runs() -> u64 {
    std::env::var("HEDDLE_E2E_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1)
}

/// Random workloads; the replica with many workers, with and without the source's commit order.
#[test]
fn a_native_replica_applies_the_copies() -> Result<()> {
    let first = e2e::seed(rand::random_range(0..1 << 31), "retag");
    for seed in first..first + runs() {
        eprintln!("repeat with: HEDDLE_SEED={seed} HEDDLE_E2E_RUNS=1");
        let source = Server::start(MYSQL_9_7, &[])?;
        let mut workload = Workload::new(seed, SIZE, source.kind);
        invariants::add(&mut workload, SIZE.transactions);
        workload.run(&source)?;
        let logs = Logs::of(&source)?;
        let said = logs.retag(&[])?;
        eprintln!("{said}");
        let (before, after) = (&said["source"]["amil"], &said["retagged"]["amil"]);
        ensure!(after.as_f64() >= before.as_f64(), "less parallel than before: {said}");
        for (original, copy) in files(&logs.original())?.iter().zip(&files(&logs.copies())?) {
            ensure!(original.file_name() == copy.file_name(), "{} {}", original.display(), copy.display());
            ensure!(original.metadata()?.len() == copy.metadata()?.len(), "{}", copy.display());
            let mut check = servers_script(&["run", "mysql-9.7", "mysqlbinlog"]);
            let output = check.args(["--no-defaults", "--verify-binlog-checksum"]).arg(copy).output()?;
            ensure!(output.status.success(), "mysqlbinlog: {}", String::from_utf8_lossy(&output.stderr));
        }
        let order =
            if seed % 2 == 0 { "--replica-preserve-commit-order=ON" } else { "--replica-preserve-commit-order=OFF" };
        let replica = with_relay_log(MYSQL_9_7, &logs.copies(), &["--replica-parallel-workers=16", order])?;
        let reader = Reader::start(&replica, &workload.schema, order_of(&replica)?);
        let time = applier_time(&source, &replica).with_context(|| format!("seed {seed}: {}", replica.error_log()))?;
        let snapshots = reader.end().with_context(|| format!("seed {seed}"))?;
        eprintln!("{order}: {time:?}, {snapshots} snapshots");
        assert_equal(&source, &replica).with_context(|| format!("seed {seed}"))?;
        replica.execute(statement(&replica, "STOP"))?;
    }
    Ok(())
}

/// A tagger that lets everything behind the last definition run at once: by the comparison, the reader or the replica itself it is seen.
#[test]
#[ignore = "scripts/nightly retag"]
fn wrong_tags_are_seen() -> Result<()> {
    let seed = e2e::seed(rand::random_range(0..1 << 31), "retag wrong_tags -- --include-ignored");
    let source = Server::start(MYSQL_9_7, &["--binlog-checksum=NONE"])?;
    let mut workload = Workload::new(seed, Size { tables: 0, sessions: 0, ..SIZE }, source.kind);
    invariants::add(&mut workload, 500);
    workload.run(&source)?;
    let logs = Logs::of(&source)?;
    logs.retag(&[])?;
    let planted = plant_wrong_tags(&logs.copies(), &format!("CREATE TABLE {}.ready", workload.schema))?;
    ensure!(planted > 1_000, "{planted} tags are wrong ones");
    let options = ["--replica-parallel-workers=16", "--replica-preserve-commit-order=OFF"];
    let replica = with_relay_log(MYSQL_9_7, &logs.copies(), &options)?;
    let reader = Reader::start(&replica, &workload.schema, Order::Any);
    replica.execute(statement(&replica, "START APPLIER"))?;
    let applied = wait_caught_up(&source, &replica);
    let seen = [
        ("the replica stops", applied.is_err()),
        ("another state than the source's", assert_equal(&source, &replica).is_err()),
        ("the reader saw it", reader.end().is_err()),
    ];
    eprintln!("{seen:?}");
    ensure!(seen.iter().any(|(_, is_so)| *is_so), "{planted} wrong tags, and nobody saw it");
    Ok(())
}

/// Each GTID behind the one that says so gets that one's number for its tag. How many. The files have no checksums.
fn plant_wrong_tags(copies: &Path, behind: &str) -> Result<usize> {
    let mut planted = 0;
    for path in files(copies)? {
        let mut bytes = std::fs::read(&path)?;
        let (mut at, mut gtid, mut barrier) = (4, None, None);
        while let Some(header) = bytes.get(at..).and_then(Header::parse) {
            let event = at..at + header.event_len as usize;
            if header.kind == EventKind::GTID {
                let numbers = at + HEADER_LEN + 26..at + HEADER_LEN + 42;
                let (tag, number) = bytes.get(numbers.clone()).context("a GTID event")?.split_at(8);
                let (tag, number) = (i64::from_le_bytes(tag.try_into()?), i64::from_le_bytes(number.try_into()?));
                gtid = Some(number);
                if let Some(barrier) = barrier.filter(|barrier| *barrier < tag) {
                    let place = bytes.get_mut(numbers.start..numbers.start + 8).context("a tag")?;
                    place.copy_from_slice(&i64::to_le_bytes(barrier));
                    planted += 1;
                }
            } else if bytes
                .get(event.clone())
                .is_some_and(|event| event.windows(behind.len()).any(|part| part == behind.as_bytes()))
            {
                barrier = gtid;
            }
            at = event.end;
        }
        std::fs::write(&path, bytes)?;
    }
    Ok(planted)
}

#[test]
fn what_is_there_stays() -> Result<()> {
    let source = Server::start(MYSQL_9_7, &[])?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    let logs = Logs::of(&source)?;
    let (from, to) = (logs.original().display().to_string(), logs.copies().display().to_string());
    std::fs::create_dir_all(logs.copies())?;
    std::fs::write(logs.copies().join("mine"), "")?;
    heddle(&["retag", &from, "--out", &to])?.failed_with("give a new or an empty folder")
}
