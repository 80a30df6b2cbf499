//! One transaction of more than 4 GiB, and small ones behind it in the same binary log file, where the headers' 32 bits no longer hold a
//! position: read from the file, live, and by `inspect`, from the beginning and from a place behind 4 GiB.
//!
//! The large rows are in tables that keep nothing (BLACKHOLE); the small ones are compared. `heddle serve` mirrors the files. Takes 18 GB where `HEDDLE_E2E_DIR` is, and minutes.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use binlog::Kind;
use e2e::heddle::{Run, heddle};
use e2e::pair::Pair;
use e2e::server::{Kind as ServerKind, MARIADB_10_11, MYSQL_9_7, Server};
use relay::{FileSource, FilesReader, LogReader, Read, Start};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const LIMIT: u64 = 1 << 32;
const ROW_BYTES: u64 = 8 << 20;
/// A little more than 4 GiB of rows.
const ROWS: u64 = LIMIT / ROW_BYTES + 10;

/// The transaction is larger by far than what heddle holds of it.
const MEMORY_MAX: u64 = 300 << 20;
const PATIENCE: Duration = Duration::from_secs(3600);

/// Where Debian's package with the plugins is unpacked.
fn plugins() -> Result<PathBuf> {
    let cache = match std::env::var_os("HEDDLE_CACHE") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(std::env::var_os("HOME").context("no HOME")?).join(".cache/heddle"),
    };
    Ok(cache.join("servers/mariadb-10.11-plugins/usr/lib/mysql/plugin"))
}

fn start(kind: ServerKind) -> Result<Pair> {
    let mut options = vec!["--max-binlog-size=1G".to_owned(), "--max-connections=50".to_owned()];
    if kind.is_mariadb() {
        options.push(format!("--plugin-dir={}", plugins()?.display()));
        options.push("--plugin-load-add=ha_blackhole".to_owned());
    }
    let source: Vec<&str> = options.iter().map(String::as_str).collect();
    // What the target logs is of no interest, and would be as large again.
    let target: Vec<&str> = source.iter().copied().chain(["--skip-log-bin"]).collect();
    Pair::start_with(kind, &source, &target)
}

/// The large transaction, and small ones in a group with it, or right behind: a file does not end in between.
fn write(source: &Server) -> Result<()> {
    source.execute(
        "CREATE DATABASE d; CREATE TABLE d.big (id INT, v LONGBLOB) ENGINE=BLACKHOLE; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT); \
         CREATE TABLE d.n (id INT PRIMARY KEY); INSERT INTO d.t (v) VALUES (0)",
    )?;
    let numbers: Vec<String> = (0..ROWS).map(|number| format!("({number})")).collect();
    source.execute(&format!("INSERT INTO d.n VALUES {}", numbers.join(",")))?;
    let large = format!("INSERT INTO d.big SELECT id, REPEAT('x', {ROW_BYTES}) FROM d.n");
    let small = "INSERT INTO d.t (v) VALUES (1)";
    if source.kind.is_mariadb() {
        // A group is committed once it has four members; the large one is its first.
        source.execute("SET GLOBAL binlog_commit_wait_count=4, GLOBAL binlog_commit_wait_usec=200000000")?;
        let mut first = source.connect()?;
        first.query(format!("BEGIN; INSERT INTO d.t (v) VALUES (2); {large}"))?;
        thread::scope(|scope| {
            let commits = scope.spawn(move || first.query("COMMIT").map(drop));
            wait_for(source, "COMMIT")?;
            thread::sleep(Duration::from_secs(2));
            let others: Vec<_> = (0..3).map(|_| scope.spawn(|| source.execute(small))).collect();
            for other in others {
                other.join().map_err(|_| anyhow::anyhow!("a small transaction"))??;
            }
            commits.join().map_err(|_| anyhow::anyhow!("the large transaction"))?.context("the large transaction")
        })?;
        return source.execute("SET GLOBAL binlog_commit_wait_count=0");
    }
    // Who comes while the large one is written to the log waits, and is written before the file is changed: that comes at the end of a commit,
    // which this delays.
    source.execute("SET GLOBAL binlog_group_commit_sync_delay=1000000")?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let others: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        source.execute(small)?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        let written = source.execute(&large);
        done.store(true, Ordering::Relaxed);
        for other in others {
            other.join().map_err(|_| anyhow::anyhow!("a small transaction"))??;
        }
        written
    })?;
    source.execute("SET GLOBAL binlog_group_commit_sync_delay=0")
}

fn wait_for(source: &Server, statement: &str) -> Result<()> {
    source.wait_until(&format!("SELECT COUNT(*) FROM information_schema.processlist WHERE UPPER(info) = '{statement}'"))
}

/// Where the commits behind 4 GiB end, as `FILE:OFFSET`.
fn behind(source: &Server) -> Result<Vec<String>> {
    let mut reader = FilesReader::open(FileSource::discover(&[source.binlog_index()])?, Start::Beginning)?;
    let mut ends = Vec::new();
    while let Read::Event(located) = reader.next()? {
        let end = located.position.offset + located.event.bytes().len() as u64;
        if located.event.kind() == Kind::XID && end > LIMIT {
            ensure!(located.event.header().log_pos == end as u32, "the header of the event that ends at {end}");
            ends.push(format!("{}:{end}", located.position.file));
        }
    }
    Ok(ends)
}

fn run(pair: &Pair, options: &[&str]) -> Result<Run> {
    let options: Vec<&str> = options.iter().copied().chain(["--until-end"]).collect();
    pair.begin(&options)?.wait_up_to(PATIENCE)?.successful()
}

/// A mirror of the source is equal to its files, and goes on behind 4 GiB when the end of the large file is torn.
fn mirrored(source: &Server, ends: &[String]) -> Result<()> {
    let large = ends[0].split(':').next().unwrap_or_default();
    let base = source.dir().parent().context("a folder")?;
    let dir = tempfile::tempdir_in(base)?;
    for torn in [false, true] {
        if torn {
            for log in
                source.binary_logs()?.iter().rev().filter_map(|log| log.file_name()).take_while(|name| *name != large)
            {
                std::fs::remove_file(dir.path().join(log))?;
            }
            let file = std::fs::OpenOptions::new().write(true).open(dir.path().join(large))?;
            file.set_len(file.metadata()?.len() - 100)?;
        }
        let run = e2e::mirror::begin(source, dir.path(), &["--until-end"])?.wait_up_to(PATIENCE)?.successful()?;
        eprintln!("{run}");
        let there = source.data().join(large);
        let same = Command::new("cmp").arg(there).arg(dir.path().join(large)).status()?;
        ensure!(same.success(), "the mirror's {large} differs");
    }
    Ok(())
}

fn check(kind: ServerKind) -> Result<()> {
    let mut pair = start(kind)?;
    write(&pair.source)?;
    // What comes in the next file.
    pair.source.execute("INSERT INTO d.t (v) VALUES (3)")?;
    pair.source.rotate()?;
    let ends = behind(&pair.source)?;
    eprintln!("{kind}: commits behind 4 GiB end at {ends:?}");
    ensure!(ends.len() >= 2, "the source has written {} transactions behind 4 GiB", ends.len());
    mirrored(&pair.source, &ends).context("mirrored")?;
    let place = ends[0].clone();
    let live = pair.from.clone();
    for (from, channel) in [(pair.source.binlog_index().display().to_string(), "files"), (live, "live")] {
        pair.from = from;
        pair.target.execute("DROP DATABASE IF EXISTS d")?;
        let begun = run(&pair, &["--channel", channel, "--until-position", &place])?;
        eprintln!("{channel}: {begun}");
        ensure!(begun.number("memory_bytes_max")? < MEMORY_MAX, "{begun}");
        let reached = begun.summary()?["source_position"].as_str().unwrap_or_default().to_owned();
        ensure!(reached == place, "ended at {reached} instead of {place}");
        // A live source is asked again for what comes next.
        let _ = std::fs::remove_dir_all(&pair.relay);
        let rest = run(&pair, &["--channel", channel]).with_context(|| format!("{channel} from {place}"))?;
        eprintln!("{channel}: {rest}");
        pair.assert_equal().with_context(|| rest.to_string())?;
        ensure!(rest.number("transactions")? >= ends.len() as u64, "{rest}");
        let _ = std::fs::remove_dir_all(&pair.relay);
    }
    let (index, url) = (pair.source.binlog_index().display().to_string(), pair.source.url());
    for from in [vec!["inspect", &index, "--json"], vec!["inspect", "--from", &url, "--json"]] {
        let run = heddle(&from)?.successful()?;
        let found = run.number("transactions")?;
        eprintln!("{from:?}: {found} transactions");
        ensure!(found >= ends.len() as u64 + 6, "{run}");
    }
    Ok(())
}

#[test]
#[ignore = "18 GB and minutes: scripts/nightly runs it"]
fn mysql() {
    check(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
#[ignore = "18 GB and minutes: scripts/nightly runs it"]
fn mariadb() {
    check(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}
