//! `heddle serve --retag` of a MariaDB source: replicas by GTID get wide commit groups, others the source's positions, and all end up as the source is.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use binlog::{Header, Kind as EventKind};
use e2e::checksum::{contents, differences};
use e2e::heddle::heddle;
use e2e::mirror;
use e2e::native::{gtids, position, statement, wait_caught_up};
use e2e::served::{Ask, By, Served, attach};
use e2e::server::{Kind, MARIADB_10_11, PASSWORD, Server, USER, free_port, servers_script};
use e2e::workload::{Size, Workload};

const SIZE: Size = Size {
    tables: 8,
    sessions: 4,
    transactions: 60,
    definitions_percent: 1,
    // A native replica of MariaDB may wait for locks of a prepared branch that the source did not wait for, until it stops.
    xa: false,
    replace: true,
    temporary: true,
    same_flavour: true,
    unlogged: false,
};
const RETAG: &[&str] = &["--retag", "writeset"];
const SMALL_FILES: &str = "--max-binlog-size=262144";

type Files = BTreeMap<String, Vec<u8>>;

fn files(dir: &Path, base: &str) -> Result<Files> {
    let mut found = Files::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.rsplit_once('.').filter(|(before, _)| before.ends_with(base)).map(|(_, number)| number);
        if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            found.insert(name, std::fs::read(entry.path())?);
        }
    }
    Ok(found)
}

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
    files(raw.path(), "")
}

/// Sizes and positions are the source's; only GTID events differ.
fn differs_in_gtids(mirror: &Files, sent: &Files) -> Result<usize> {
    ensure!(mirror.keys().eq(sent.keys()), "{:?} and {:?}", mirror.keys(), sent.keys());
    let mut changed = 0;
    for (name, ours) in sent {
        let theirs = &mirror[name];
        ensure!(ours.len() == theirs.len(), "{name}: {} and {} bytes", ours.len(), theirs.len());
        let mut at = 4;
        while let Some(header) = Header::parse(&theirs[at..]) {
            let place = at..at + header.event_len as usize;
            at = place.end;
            if theirs[place.clone()] != ours[place.clone()] {
                ensure!(header.kind == EventKind::MARIADB_GTID, "{name}:{} {}", place.start, header.kind);
                changed += 1;
            }
        }
    }
    Ok(changed)
}

/// The average number of transactions in a commit group of these files.
fn group_size(files: &Files, dir: &Path) -> Result<f64> {
    let copies = tempfile::tempdir_in(dir)?;
    for (name, bytes) in files {
        std::fs::write(copies.path().join(name), bytes)?;
    }
    let run = heddle(&["inspect", &copies.path().display().to_string(), "--json"])?.successful()?;
    let said: serde_json::Value = serde_json::from_str(&run.stdout)?;
    let found = find(&said, "mariadb_group_size").with_context(|| said.to_string())?;
    found.as_f64().with_context(|| found.to_string())
}

fn find<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(fields) => {
            fields.get(key).or_else(|| fields.values().find_map(|value| find(value, key)))
        }
        serde_json::Value::Array(values) => values.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

/// One session, and rows that are changed again and again.
fn one_session(source: &Server, transactions: usize) -> Result<()> {
    source.execute("CREATE DATABASE one; CREATE TABLE one.t (id INT PRIMARY KEY, v INT, UNIQUE (v)) ENGINE=InnoDB")?;
    let sql: String = (0..transactions)
        .map(|number| match number % 10 {
            9 => format!("UPDATE one.t SET v = v + 100000 WHERE id = {};", number / 2),
            _ => format!("INSERT INTO one.t VALUES ({number}, {number});"),
        })
        .collect();
    source.execute(&sql)
}

fn same(source: &Server, replica: &Server) -> Result<()> {
    wait_caught_up(source, replica)?;
    let differences = differences(&contents(source)?, &contents(replica)?);
    ensure!(differences.is_empty(), "{differences:?}");
    let (theirs, ours) = (gtids(source)?, gtids(replica)?);
    ensure!(theirs == ours, "{theirs} and {ours}");
    Ok(())
}

fn restarted(served: Served, source: &Server, folder: &Path) -> Result<Served> {
    let port = served.port;
    served.kill()?;
    Served::start(source.port, folder, port, RETAG)
}

struct Way<'a> {
    source: Kind,
    replica: Kind,
    mode: &'a str,
    threads: u32,
    kills: u64,
}

fn replica_gets_groups(way: &Way<'_>) -> Result<()> {
    let given = std::env::var("HEDDLE_E2E_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| rand::random_range(0..1 << 31));
    eprintln!("{} → {} {}, repeat with: HEDDLE_E2E_SEED={seed}", way.source, way.replica, way.mode);
    let (threads, mode) =
        (format!("--slave-parallel-threads={}", way.threads), format!("--slave-parallel-mode={}", way.mode));
    let options = [threads.as_str(), &mode, "--relay-log=relay", "--relay-log-purge=0"];
    let (source, replica) = Server::start_two((way.source, &[SMALL_FILES]), (way.replica, &options))?;
    let dir = tempfile::tempdir()?;
    let (folder, port) = (dir.path().join("mirror"), free_port()?);
    let served = Served::start(source.port, &folder, port, RETAG)?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    let workload = Workload::new(seed, SIZE, source.kind);
    let mut served = std::thread::scope(|scope| -> Result<Served> {
        let mut served = served;
        let load = scope.spawn(|| workload.run(&source));
        for kill in 0..way.kills {
            std::thread::sleep(Duration::from_millis(100 + (seed >> kill) % 400));
            served = restarted(served, &source, &folder)?;
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
    let (before, now) = (files(&folder, "")?, files(&replica.data(), "relay")?);
    let (before, now) = (group_size(&before, dir.path())?, group_size(&now, dir.path())?);
    eprintln!("commit groups of {before} → {now}");
    ensure!(now > before * 1.5, "commit groups of {before} → {now}\n{}", served.heddle.log());
    // By position the sizes stay; also later, from another process.
    let first = sent(&served, way.source, dir.path())?;
    differs_in_gtids(&files(&folder, "")?, &first)?;
    served = restarted(served, &source, &folder)?;
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
    let given = std::env::var("HEDDLE_E2E_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| rand::random_range(0..1 << 31));
    eprintln!("repeat with: HEDDLE_E2E_SEED={seed}");
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
    let retagged = files(&copies, "")?;
    ensure!(group_size(&retagged, dir.path())? > size("source")? * 1.5);
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
    for name in self::files(&server.data(), "binlog")?.keys() {
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
