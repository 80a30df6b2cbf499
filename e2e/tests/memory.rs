//! `--memory` holds: heddle takes no more than that and 64 MiB, whatever it reads, and what cannot be held is refused with its size, its place
//! and the option.

#![allow(clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use binlog::Flavour::{MariaDb, MySql};
use binlog::{Column, ColumnKind};
use e2e::heddle::{Heddle, Run};
use e2e::hostile::{LogFile, insert, insert_compressed, insert_into, query_compressed, row, table_map, table_map_of};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// `--memory`, in MiB: small, and the default.
const SMALL: u64 = 64;
const DEFAULT: u64 = 192;
/// What may come on top.
const BESIDE: u64 = 64;

const LARGE: usize = 200 << 20;
const ROW: usize = 1 << 20;
const ROWS: i32 = 250;
/// Columns of a wide table.
const WIDTH: usize = 500;

/// How a run into the store ends.
#[derive(Clone, Copy, Debug)]
enum Ends {
    Applied,
    /// Says so, and what to give.
    Refused(&'static str),
}

struct Log {
    name: &'static str,
    /// In MiB.
    memory: u64,
    ends: Ends,
    write: fn(&Path) -> Result<()>,
}

const LOGS: [Log; 10] = [
    Log { name: "payload", memory: SMALL, ends: Ends::Applied, write: payload },
    Log {
        name: "payload_event",
        memory: SMALL,
        ends: Ends::Refused("an event in a compressed transaction"),
        write: payload_event,
    },
    Log { name: "compressed_rows", memory: SMALL, ends: Ends::Refused("compressed rows"), write: compressed_rows },
    Log {
        name: "compressed_query",
        memory: SMALL,
        ends: Ends::Refused("a compressed statement"),
        write: compressed_query,
    },
    Log { name: "compressed_transaction", memory: SMALL, ends: Ends::Applied, write: compressed_transaction },
    Log { name: "compressed_transactions", memory: SMALL, ends: Ends::Applied, write: compressed_transactions },
    Log { name: "event", memory: SMALL, ends: Ends::Refused("an event"), write: event },
    Log { name: "large_rows", memory: DEFAULT, ends: Ends::Applied, write: large_rows },
    Log { name: "table_maps", memory: SMALL, ends: Ends::Refused("table maps of one statement"), write: table_maps },
    Log { name: "wide_tables", memory: SMALL, ends: Ends::Applied, write: wide_tables },
];

fn payload(path: &Path) -> Result<()> {
    let head = binlog::encode::Head::new(1, 1, binlog::Checksum::Off);
    let rows = (0..ROWS).flat_map(|id| [table_map(&head), insert(&head, &row(id, ROW))]);
    let mut log = LogFile::create(path, MySql)?;
    log.payload(rows)?;
    log.finish()
}

fn payload_event(path: &Path) -> Result<()> {
    let head = binlog::encode::Head::new(1, 1, binlog::Checksum::Off);
    let mut log = LogFile::create(path, MySql)?;
    log.payload([table_map(&head), insert(&head, &row(1, LARGE))])?;
    log.finish()
}

fn compressed_rows(path: &Path) -> Result<()> {
    let mut log = LogFile::create(path, MariaDb)?;
    log.transaction(|log| {
        log.event(table_map)?;
        log.event(|head| insert_compressed(head, &row(1, LARGE)).unwrap_or_default())
    })?;
    log.finish()
}

fn compressed_query(path: &Path) -> Result<()> {
    let sql = format!("INSERT INTO t7 VALUES (1, '{}')", "x".repeat(LARGE));
    let mut log = LogFile::create(path, MariaDb)?;
    log.transaction(|log| log.event(|head| query_compressed(head, sql.as_bytes()).unwrap_or_default()))?;
    log.finish()
}

/// As MariaDB with `log_bin_compress` logs many rows of 1 MB that one statement inserts.
fn compressed_transaction(path: &Path) -> Result<()> {
    let mut log = LogFile::create(path, MariaDb)?;
    log.transaction(|log| {
        (0..ROWS).try_for_each(|id| {
            log.event(table_map)?;
            log.event(|head| insert_compressed(head, &row(id, ROW)).unwrap_or_default())
        })
    })?;
    log.finish()
}

/// The same in a transaction for each row.
fn compressed_transactions(path: &Path) -> Result<()> {
    let mut log = LogFile::create(path, MariaDb)?;
    for id in 0..ROWS {
        log.transaction(|log| {
            log.event(table_map)?;
            log.event(|head| insert_compressed(head, &row(id, ROW)).unwrap_or_default())
        })?;
    }
    log.finish()
}

fn event(path: &Path) -> Result<()> {
    let mut log = LogFile::create(path, MySql)?;
    log.transaction(|log| {
        log.event(table_map)?;
        log.event(|head| insert(head, &row(1, LARGE)))
    })?;
    log.finish()
}

/// Of twice MariaDB's default `max_allowed_packet`.
fn large_rows(path: &Path) -> Result<()> {
    let mut log = LogFile::create(path, MySql)?;
    for id in 0..6 {
        log.transaction(|log| {
            log.event(table_map)?;
            log.event(|head| insert(head, &row(id, 32 << 20)))
        })?;
    }
    log.finish()
}

fn table_maps(path: &Path) -> Result<()> {
    let columns = vec![Column::new(ColumnKind::LONG, 0, false); WIDTH];
    let mut log = LogFile::create(path, MySql)?;
    log.transaction(|log| {
        (0..10_000).try_for_each(|id| log.event(|head| table_map_of(head, id, &format!("t{id}"), &columns)))
    })?;
    log.finish()
}

/// A table whose number is another one in each transaction, as those of many tables are: each map takes much more memory than in the log.
fn wide_tables(path: &Path) -> Result<()> {
    let columns = vec![Column::new(ColumnKind::LONG, 0, true); WIDTH];
    let nulls = vec![0xff; WIDTH.div_ceil(8)];
    let mut log = LogFile::create(path, MySql)?;
    for id in 1..10_000 {
        log.transaction(|log| {
            log.event(|head| table_map_of(head, id, "wide", &columns))?;
            log.event(|head| insert_into(head, id, WIDTH, &nulls))
        })?;
    }
    log.finish()
}

/// How it ended, and the most memory that was resident at once.
fn measured(arguments: &[&str]) -> Result<(Run, u64)> {
    let mut heddle = Heddle::start(arguments)?;
    let mut peak = 0;
    while !heddle.has_ended()? {
        peak = heddle.resident_max().unwrap_or(0).max(peak);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    Ok((heddle.wait()?, peak))
}

fn check(what: &str, peak: u64, memory: u64, run: &Run) -> Result<()> {
    eprintln!("{what}: {} MiB of {}", peak / MIB, memory + BESIDE);
    ensure!(peak > MIB, "{what}: the memory was not read");
    ensure!(peak / MIB <= memory + BESIDE, "{what}: {} MiB: {run}", peak / MIB);
    Ok(())
}

#[test]
fn whatever_the_log_holds() -> Result<()> {
    let mut failed = Vec::new();
    for log in &LOGS {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("binlog.000001");
        (log.write)(&path).context(log.name)?;
        let (from, to) = (path.display().to_string(), format!("store:{}", folder.path().join("store").display()));
        let memory = format!("{}M", log.memory);
        let (run, peak) = measured(&["replicate", "--from", &from, "--to", &to, "--memory", &memory, "--json"])?;
        let ended = match log.ends {
            Ends::Applied => run.status.success(),
            Ends::Refused(what) => {
                !run.status.success()
                    && [what, "binlog.000001:", "--memory "].iter().all(|part| run.stderr.contains(part))
            }
        };
        if !ended {
            failed.push(format!("{}: not as {:?}: {run}", log.name, log.ends));
        }
        failed.extend(
            check(&format!("{} into the store", log.name), peak, log.memory, &run)
                .err()
                .map(|error| format!("{error:#}")),
        );
        for command in ["inspect", "simulate"] {
            let (run, peak) = measured(&[command, &from])?;
            let what = format!("{command} of {}", log.name);
            failed.extend(check(&what, peak, SMALL, &run).err().map(|error| format!("{error:#}")));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Real logs, into a server and through the relay log.
fn real(kind: Kind, options: &[&str]) -> Result<()> {
    let pair = Pair::start_with(kind, options, &["--max-allowed-packet=128M"])?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB); INSERT INTO d.t (v) VALUES (REPEAT('x', 1000000))",
    )?;
    // In one transaction, and in one for each row.
    let doubled = "INSERT INTO d.t (v) SELECT v FROM d.t;".repeat(7);
    pair.source.execute(&format!("BEGIN; {doubled} COMMIT"))?;
    pair.source.execute(&"INSERT INTO d.t (v) VALUES (REPEAT('y', 1000000));".repeat(100))?;
    pair.source.execute(&"INSERT INTO d.t (v) VALUES (REPEAT('z', 11000000));".repeat(4))?;
    into_server(&pair, kind, SMALL, &[])?;
    // As large as MySQL's default max_allowed_packet lets them be, with the default --memory.
    pair.source.execute(&"INSERT INTO d.t (v) VALUES (REPEAT('m', 67000000));".repeat(2))?;
    pair.source.execute("DELETE FROM d.t WHERE LENGTH(v) > 60000000")?;
    // An update has a row twice in its event.
    pair.source.execute("INSERT INTO d.t (v) VALUES (REPEAT('h', 33500000))")?;
    pair.source.execute("UPDATE d.t SET v = REPEAT('n', 33500000) WHERE LENGTH(v) = 33500000")?;
    into_server(&pair, kind, DEFAULT, &[])?;
    let text = "t".repeat(60_000_000);
    pair.source.execute(&format!("SET SESSION binlog_format = 'STATEMENT'; INSERT INTO d.t (v) VALUES ('{text}')"))?;
    into_server(&pair, kind, DEFAULT, &[])?;
    pair.source.execute(&"INSERT INTO d.t (v) VALUES (REPEAT('w', 3145728));".repeat(96))?;
    into_server(&pair, kind, DEFAULT, &["--workers", "32"])?;
    unwanted_rows(&pair, kind)?;
    pair.assert_equal()?;
    hostile(&pair)
}

/// A logged SELECT that answers with far more than may be held, and nobody wants it.
fn unwanted_rows(pair: &Pair, kind: Kind) -> Result<()> {
    const MANY: &[u8] =
        b"SELECT REPEAT('u', 5000) FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b";
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("binlog.000001");
    let mut log = LogFile::create(&path, if kind.is_mariadb() { MariaDb } else { MySql })?;
    log.transaction(|log| log.event(|head| binlog::encode::query(head, 1, 0, 0, "d", &[], MANY)))?;
    log.finish()?;
    let (from, to, memory) = (path.display().to_string(), pair.target.url(), format!("{SMALL}M"));
    let line = ["replicate", "--from", &from, "--to", &to, "--memory", &memory, "--json"];
    let (run, peak) = measured(&[&line[..], &["--channel", "unwanted", "--start-anyway"]].concat())?;
    ensure!(run.status.success(), "{run}");
    check("rows that nobody wants", peak, SMALL, &run)
}

/// What is refused, into the server: it gets nothing of it.
fn hostile(pair: &Pair) -> Result<()> {
    for log in LOGS.iter().filter(|log| matches!(log.ends, Ends::Refused(_))) {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("binlog.000001");
        (log.write)(&path)?;
        let (from, to, memory) = (path.display().to_string(), pair.target.url(), format!("{}M", log.memory));
        let line = [
            "replicate",
            "--from",
            &from,
            "--to",
            &to,
            "--memory",
            &memory,
            "--json",
            "--channel",
            log.name,
            "--start-anyway",
        ];
        let (run, peak) = measured(&line)?;
        ensure!(!run.status.success() && run.stderr.contains("--memory "), "{}: {run}", log.name);
        check(log.name, peak, log.memory, &run)?;
    }
    Ok(())
}

fn into_server(pair: &Pair, kind: Kind, memory: u64, more: &[&str]) -> Result<()> {
    let relay = pair.source.dir().join("relay").display().to_string();
    let (from, to) = (pair.source.url(), pair.target.url());
    let mut line = vec!["replicate", "--from", &from, "--to", &to, "--json", "--until-end"];
    let given = format!("{memory}M");
    if memory != DEFAULT {
        line.extend(["--memory", &given]);
    }
    line.extend(["--relay-dir", &relay]);
    line.extend(more);
    let (run, peak) = measured(&line)?;
    ensure!(run.status.success(), "{run}");
    check(&format!("{kind:?}"), peak, memory, &run)
}

#[test]
fn what_mariadb_compresses() -> Result<()> {
    real(MARIADB_10_11, &["--log-bin-compress=ON", "--max-allowed-packet=128M"])
}

#[test]
fn what_mysql_compresses() -> Result<()> {
    real(MYSQL_9_7, &["--binlog-transaction-compression=ON", "--max-allowed-packet=128M"])
}
