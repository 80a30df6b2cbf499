//! `heddle serve --retag` of a MariaDB source: replicas by GTID get wide commit groups, others the source's positions, and all end up as the source is.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use binlog::{Header, Kind as EventKind};
use e2e::heddle::heddle;
use e2e::invariants::{self, Order, Reader};
use e2e::mirror;
use e2e::native::{position, statement};
use e2e::retagged::{self, Files, RETAG, count_differing, inspected, log_files, one_session, same};
use e2e::served::{Ask, By, Served, attach};
use e2e::server::{Kind, MARIADB_10_11, PASSWORD, Server, USER, free_port, servers_script};
use e2e::workload::{Size, Workload};

// A native replica of MariaDB may wait for locks of a prepared branch that the source did not wait for, until it stops.
const SIZE: Size = Size { xa: false, ..retagged::SIZE };
const SMALL_FILES: &str = "--max-binlog-size=262144";

/// What a client by position is sent.
fn sent(served: &Served, kind: Kind, dir: &Path) -> Result<Files> {
    let raw = tempfile::tempdir_in(dir)?;
    let logs = served.connected()?.rows("SHOW BINARY LOGS")?;
    let first = logs.first().context("a file")?.required_text(0)?.to_owned();
    // It takes no source that is newer than itself.
    let of = if kind.to_string().starts_with("mariadb-11") { "mariadb-11.8" } else { "mariadb-10.11" };
    let mut command = servers_script(&["run", of, "mariadb-binlog"]);
    command
        .args([
            "--no-defaults",
            "--read-from-remote-server",
            "--host=127.0.0.1",
            "--raw",
            "--to-last-log",
            "--skip-ssl",
        ])
        .args([format!("--port={}", served.port), format!("--user={USER}"), format!("--password={PASSWORD}")])
        .args([format!("--result-file={}/", raw.path().display()), first]);
    let output = command.output()?;
    ensure!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), served.heddle.log());
    log_files(raw.path(), "binlog")
}

const GROUP_SIZE: &str = "mariadb_group_size";

struct Way<'a> {
    source: Kind,
    replica: Kind,
    mode: &'a str,
    threads: u32,
    kills: u64,
}

fn replica_gets_groups(way: &Way<'_>) -> Result<()> {
    eprintln!("{} → {} {}", way.source, way.replica, way.mode);
    let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_retag_mariadb -- --include-ignored");
    let (threads, mode) =
        (format!("--slave-parallel-threads={}", way.threads), format!("--slave-parallel-mode={}", way.mode));
    let options = [threads.as_str(), &mode, "--relay-log=relay", "--relay-log-purge=0"];
    let (source, replica) = Server::start_two((way.source, &[SMALL_FILES]), (way.replica, &options))?;
    let dir = tempfile::tempdir()?;
    let (folder, port) = (dir.path().join("mirror"), free_port()?);
    let served = Served::start(source.port, &folder, port, RETAG)?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    let mut workload = Workload::new(seed, SIZE, source.kind);
    invariants::add(&mut workload, SIZE.transactions);
    let reader = Reader::start(&replica, &workload.schema, Order::OfTheSource);
    let mut served = std::thread::scope(|scope| -> Result<Served> {
        let mut served = served;
        let load = scope.spawn(|| workload.run(&source));
        for kill in 0..way.kills {
            std::thread::sleep(Duration::from_millis(100 + (seed >> kill) % 400));
            served = served.restarted(&source, &folder, RETAG)?;
        }
        load.join().expect("no panic").map(|()| served)
    })?;
    // A connection that was lost is no error of now.
    replica.execute(statement(&replica, "STOP"))?;
    replica.execute(statement(&replica, "START"))?;
    // A table that is made while definitions are read is not known by them.
    served.heddle.wait_for_log("retag: the source has")?;
    one_session(&source, 600).with_context(|| source.error_log())?;
    same(&source, &replica).with_context(|| served.heddle.log())?;
    // Longer than its heartbeats are apart: a position that does not fit ends the stream.
    std::thread::sleep(Duration::from_millis(2_500));
    source.execute("INSERT INTO one.t VALUES (5000000, 5000000)")?;
    same(&source, &replica).with_context(|| served.heddle.log())?;
    eprintln!("{} snapshots beside", reader.end()?);
    let (before, now) = (log_files(&folder, "binlog")?, log_files(&replica.data(), "relay")?);
    let (before, now) = (inspected(&before, GROUP_SIZE, dir.path())?, inspected(&now, GROUP_SIZE, dir.path())?);
    eprintln!("commit groups of {before} → {now}");
    ensure!(now > before * 1.5, "commit groups of {before} → {now}\n{}", served.heddle.log());
    // By position the sizes stay; also later, from another process.
    let first = sent(&served, way.source, dir.path())?;
    count_differing(&log_files(&folder, "binlog")?, &first, |event| {
        ensure!(event.header.kind == EventKind::MARIADB_GTID, "{} is not the source's", event.place);
        Ok(())
    })?;
    served = served.restarted(&source, &folder, RETAG)?;
    ensure!(sent(&served, way.source, dir.path())? == first, "other bytes after a restart");
    mirror::assert_equal(&source, &folder)?;
    served.kill().map(drop)
}

#[test]
fn a_replica_gets_commit_groups() -> Result<()> {
    let kind = MARIADB_10_11;
    replica_gets_groups(&Way { source: kind, replica: kind, mode: "conservative", threads: 8, kills: 0 })
}

/// Replicas and sources of every version, every mode, with kills of Heddle.
#[test]
#[ignore = "long: scripts/nightly retag"]
fn every_version_and_mode() -> Result<()> {
    let all = "mariadb-10.1,mariadb-10.2,mariadb-10.11,mariadb-11.4,mariadb-11.8";
    for name in std::env::var("HEDDLE_E2E_SERVERS").as_deref().unwrap_or(all).split(',') {
        let kind: Kind = name.parse()?;
        for (mode, threads) in [("conservative", 64), ("optimistic", 16), ("aggressive", 8), ("minimal", 4)] {
            replica_gets_groups(&Way { source: kind, replica: kind, mode, threads, kills: 3 })
                .with_context(|| format!("{name} {mode}"))?;
        }
    }
    Ok(())
}

/// A replica by position gets events of the same sizes, moves to the source and back, and then goes on by GTID.
#[test]
#[ignore = "long: scripts/nightly retag"]
fn replicas_move() -> Result<()> {
    let options: &[&str] = &["--slave-parallel-threads=8", "--slave-parallel-mode=conservative"];
    let (source, replica) = Server::start_two((MARIADB_10_11, &[SMALL_FILES]), (MARIADB_10_11, options))?;
    let dir = tempfile::tempdir()?;
    let (folder, port) = (dir.path().join("mirror"), free_port()?);
    let served = Served::start(source.port, &folder, port, RETAG)?;
    attach(&replica, Ask::new(port, By::Position("binlog.000001", 4)))?;
    one_session(&source, 2_000)?;
    same(&source, &replica).with_context(|| served.heddle.log())?;
    for round in 0..20 {
        let port = if round % 2 == 0 { source.port } else { served.port };
        let (file, offset) = position(&source)?;
        let by = if round % 4 < 2 { By::Position(&file, offset) } else { By::Gtid };
        attach(&replica, Ask::new(port, by))?;
        let sql: String = (0..200)
            .map(|id| format!("INSERT INTO one.t VALUES ({0}, {0});", 1_000_000 + round * 1_000 + id))
            .collect();
        source.execute(&sql)?;
        same(&source, &replica).with_context(|| format!("round {round}: {}", served.heddle.log()))?;
    }
    served.kill().map(drop)
}

/// Copies of files: they grow, their positions fit, and a server can have them as its own for replicas.
#[test]
fn copies_have_commit_groups() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[SMALL_FILES])?;
    let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_retag_mariadb");
    Workload::new(seed, SIZE, source.kind).run(&source)?;
    one_session(&source, 600)?;
    let dir = tempfile::tempdir()?;
    let (original, copies) = (dir.path().join("original"), dir.path().join("copies"));
    std::fs::create_dir(&original)?;
    for log in source.binary_logs()? {
        std::fs::copy(&log, original.join(log.file_name().context("a name")?))?;
    }
    let (from, to) = (original.display().to_string(), copies.display().to_string());
    let run = heddle(&["retag", &from, "--out", &to, "--json"])?.successful()?;
    let said: serde_json::Value = serde_json::from_str(&run.stdout)?;
    eprintln!("{said}");
    let size = |what: &str| said[what]["group_size"].as_f64().with_context(|| said.to_string());
    ensure!(size("retagged")? > size("source")? * 1.5, "{said}");
    let retagged = log_files(&copies, "binlog")?;
    ensure!(inspected(&retagged, GROUP_SIZE, dir.path())? > size("source")? * 1.5);
    for (name, bytes) in &retagged {
        let mut at = 4;
        while let Some(header) = Header::parse(&bytes[at..]) {
            at += header.event_len as usize;
            ensure!(header.log_pos == 0 || header.log_pos as usize == at, "{name}:{at} {header:?}");
        }
        ensure!(at == bytes.len(), "{name}");
        let mut check = servers_script(&["run", "mariadb-10.11", "mariadb-binlog"]);
        let output = check.args(["--no-defaults", "--verify-binlog-checksum"]).arg(copies.join(name)).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let served = with_binary_logs(&retagged)?;
    let replica = Server::start(MARIADB_10_11, &["--slave-parallel-threads=16", "--slave-parallel-mode=conservative"])?;
    attach(&replica, Ask::new(served.port, By::Gtid))?;
    same(&source, &replica).with_context(|| format!("seed {seed}: {}", replica.error_log()))
}

/// A server that has these files as its binary logs.
fn with_binary_logs(files: &Files) -> Result<Server> {
    let server = Server::start(MARIADB_10_11, &[])?;
    server.stop()?;
    for name in log_files(&server.data(), "binlog")?.keys() {
        std::fs::remove_file(server.data().join(name))?;
    }
    let mut index = String::new();
    for (name, bytes) in files {
        std::fs::write(server.data().join(name), bytes)?;
        index.push_str(&format!("./{name}\n"));
    }
    std::fs::write(server.data().join("binlog.index"), index)?;
    server.restart(&[])?;
    Ok(server)
}
