//! Heddle under load, and what a channel survives: signals, crashes of heddle and of both servers, every way to stop.
//! Random moments come from a seed; `HEDDLE_SEED=N` repeats a run.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::checksum::assert_equal;
use e2e::heddle::heddle;
use e2e::logged;
use e2e::native::{configure, configure_by, gtids, native_replica, position, start_native, wait_caught_up};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load};
use e2e::until;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::thread;
use std::time::{Duration, Instant};

const SMALL: Load = Load { tables: 4, rows: 500, threads: 4, events: 3000, seconds: 0 };

/// Kills are at random moments: this many in one test.
const ROUNDS: usize = 5;

fn seeded(name: &str) -> StdRng {
    StdRng::seed_from_u64(e2e::seed(20_161_107, &format!("live {name}")))
}

fn pause(random: &mut StdRng, from_ms: u64, to_ms: u64) {
    thread::sleep(Duration::from_millis(random.random_range(from_ms..to_ms)));
}

/// Definitions of all kinds beside the rows: none may be lost or run twice.
fn definitions(server: &Server, rounds: u32) -> Result<()> {
    server.execute("CREATE DATABASE IF NOT EXISTS defs")?;
    for i in 0..rounds {
        server.execute(&format!(
            "CREATE TABLE defs.t{i} (id INT PRIMARY KEY, a INT); INSERT INTO defs.t{i} VALUES (1, {i}); ALTER TABLE defs.t{i} ADD COLUMN b INT DEFAULT {i}; \
             INSERT INTO defs.t{i} VALUES (2, 2, 2); ALTER TABLE defs.t{i} DROP COLUMN a; UPDATE defs.t{i} SET b = b + 1; \
             CREATE TABLE defs.gone (id INT); DROP TABLE defs.gone; RENAME TABLE defs.t{i} TO defs.r{i};"
        ))?;
    }
    Ok(())
}

/// Sysbench's load and definitions, all of it in the binary logs when this returns.
fn made_load(source: &Server, load: Load) -> Result<()> {
    sysbench::prepare(source, "oltp_write_only", load)?;
    thread::scope(|scope| {
        let defining = scope.spawn(|| definitions(source, 12));
        sysbench::run(source, "oltp_write_only", load)?;
        defining.join().map_err(|_| anyhow::anyhow!("the thread with definitions ended"))?
    })
}

/// Heddle follows while the load runs.
fn under_load(kind: Kind, script: &str, options: &[&str]) -> Result<()> {
    let pair = Pair::start(kind)?;
    let mut following = pair.begin(options)?;
    sysbench::prepare(&pair.source, script, SMALL)?;
    sysbench::run(&pair.source, script, SMALL)?;
    ensure!(!following.has_ended()?, "heddle ended while it was to follow: {}", following.wait()?);
    following.terminate()?;
    following.wait()?.successful()?;
    pair.to_the_end(options).map(drop)
}

/// More tables than are asked for one by one; names that differ in case only, that need quotes, that are not ASCII.
fn many_tables(kind: Kind, schema: fn(u32) -> String) -> Result<()> {
    const TABLES: u32 = 600;
    let pair = Pair::start(kind)?;
    let name = |i: u32| {
        let table = match i % 4 {
            0 => format!("t{i}"),
            1 => format!("T{}", i - 1),
            2 => format!("o'{i}``\""),
            _ => format!("größe {i}"),
        };
        format!("`{}`.`{table}`", schema(i))
    };
    let create = |i| {
        let parent = if i == 0 { 0 } else { i - 1 };
        format!(
            "CREATE TABLE {} (id INT PRIMARY KEY, u VARCHAR(20), p INT, UNIQUE (u), CONSTRAINT f{i} FOREIGN KEY (p) REFERENCES {} (id));",
            name(i),
            name(parent)
        )
    };
    let created: String = (0..TABLES).map(create).collect();
    let schemas: BTreeSet<String> = (0..TABLES).map(schema).collect();
    let schemas: String = schemas.iter().map(|schema| format!("CREATE DATABASE `{schema}`;")).collect();
    pair.source.execute(&format!("{schemas} {created}"))?;
    // A value that moves from row to row, and a child of the table before: what is not known to conflict would fail.
    let change = |i| {
        let (table, parent) = (name(i), if i == 0 { "NULL" } else { "1" });
        format!(
            "INSERT INTO {table} VALUES (1, 'a', NULL), (2, 'b', NULL); UPDATE {table} SET p = {parent} WHERE id = 1; \
             UPDATE {table} SET u = 'c' WHERE id = 1; UPDATE {table} SET u = 'A' WHERE id = 2; UPDATE {table} SET u = 'B' WHERE id = 1;"
        )
    };
    let changes: String = (0..TABLES).map(change).collect();
    pair.source.execute(&changes)?;
    let run = pair.to_the_end(&["--grouping", "off", "--workers", "6"])?;
    ensure!(!run.stderr.contains("is ordered by table"), "definitions were read in part: {run}");
    Ok(())
}

fn one_schema(_: u32) -> String {
    "many".to_owned()
}

/// A larger one, and small ones before and behind it.
fn schemas(table: u32) -> String {
    match table {
        0..100 => format!("a'{}", table / 2),
        100..400 => "many".to_owned(),
        _ => format!("Z{}", table / 3),
    }
}

/// SIGTERM in the middle, then the same command again.
fn terminated(kind: Kind, files: bool) -> Result<()> {
    let mut random = seeded("terminated");
    let mut pair = Pair::start(kind)?;
    if files {
        pair = pair.with_files();
    }
    made_load(&pair.source, SMALL)?;
    for _ in 0..ROUNDS {
        let mut running = pair.begin(&["--until-end", "--workers", "4"])?;
        // From here on a signal stops it without gaps; before, it just ends.
        running.wait_for_log("target: ")?;
        pause(&mut random, 0, 500);
        running.terminate()?;
        running.wait()?.successful()?;
    }
    pair.to_the_end(&["--workers", "4"]).map(drop)
}

/// SIGKILL of heddle at random moments.
fn heddle_killed(kind: Kind, options: &[&str]) -> Result<()> {
    killed_and(kind, options, (seeded("heddle_killed"), 50), |_, _| Ok(()))
}

/// Several share a packet, and each commits by itself.
const RELAXED: [&str; 6] = ["--grouping", "off", "--workers", "4", "--commit-order", "relaxed"];
/// Transactions are noted by their GTIDs.
const KEEPING_GTIDS: [&str; 6] = ["--gtids", "preserve", "--commit-order", "relaxed", "--workers", "6"];

/// Kills heddle, not before so many milliseconds, and does something; again and again, then to the end.
fn killed_and(
    kind: Kind,
    options: &[&str],
    (mut random, earliest_ms): (StdRng, u64),
    mut after: impl FnMut(&Pair, &mut StdRng) -> Result<()>,
) -> Result<()> {
    let pair = Pair::start(kind)?;
    made_load(&pair.source, SMALL)?;
    let mut arguments = vec!["--until-end"];
    arguments.extend(options);
    for _ in 0..ROUNDS {
        let running = pair.begin(&arguments)?;
        pause(&mut random, earliest_ms, 900);
        running.kill()?;
        running.wait()?;
        after(&pair, &mut random)?;
    }
    pair.to_the_end(options).map(drop)
}

/// More than a segment of these tests has before its first event.
const SEGMENT_HEADER_BYTES: u64 = 4096;

/// The machine of heddle crashes: of what it had received, the end is not on the disk.
fn machine_crashed(kind: Kind, options: &[&str]) -> Result<()> {
    let mut lost = 0;
    killed_and(kind, options, (seeded("machine_crashed"), 200), |pair, random| {
        let segments = std::fs::read_dir(&pair.relay).into_iter().flatten().flatten().map(|entry| entry.path());
        let Some(last) = segments.filter(|path| path.display().to_string().contains("heddle-relay.")).max() else {
            return Ok(());
        };
        let length = std::fs::metadata(&last)?.len();
        // A segment gets its name once its header and its format are durable: a crash does not take them.
        let kept = random.random_range((length / 2).max(SEGMENT_HEADER_BYTES).min(length)..=length);
        OpenOptions::new().write(true).open(&last)?.set_len(kept)?;
        lost += length - kept;
        Ok(())
    })?;
    ensure!(lost > 0, "nothing was lost");
    Ok(())
}

/// SIGKILL of the target's process; heddle may go on by itself or end, the same command again must finish the work.
fn target_killed(kind: Kind, options: &[&str]) -> Result<()> {
    let mut random = seeded("target_killed");
    let pair = Pair::start(kind)?;
    made_load(&pair.source, SMALL)?;
    let mut arguments = vec!["--until-end"];
    arguments.extend(options);
    for _ in 0..ROUNDS {
        let running = pair.begin(&arguments)?;
        pause(&mut random, 100, 900);
        pair.target.kill()?;
        pause(&mut random, 0, 300);
        pair.target.restart(&[])?;
        pause(&mut random, 0, 500);
        running.terminate()?;
        running.wait()?;
    }
    pair.to_the_end(options).map(drop)
}

/// The source crashes while heddle follows it: it connects again and goes on.
fn source_killed(kind: Kind) -> Result<()> {
    let mut random = seeded("source_killed");
    // Only what the source's own recovery keeps may have been sent.
    let durable = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
    let pair = Pair::start_with(kind, &durable, &[])?;
    sysbench::prepare(&pair.source, "oltp_write_only", SMALL)?;
    let following = pair.begin(&[])?;
    for _ in 0..3 {
        let load = sysbench::start(&pair.source, "oltp_write_only", Load { events: 0, seconds: 60, ..SMALL })?;
        pause(&mut random, 300, 1200);
        pair.source.kill()?;
        ensure!(load.wait().is_err(), "the load did not notice that its server was gone");
        pair.source.restart(&[])?;
    }
    following.terminate()?;
    following.wait()?.successful().context("following a source that crashes")?;
    pair.to_the_end(&[]).map(drop)
}

/// Rows 1…n of d.t, one transaction each.
fn insert(server: &Server, ids: std::ops::RangeInclusive<u32>) -> Result<()> {
    let rows: String = ids.map(|id| format!("INSERT INTO d.t VALUES ({id});")).collect();
    server.execute(&rows)
}

fn source_position(server: &Server) -> Result<String> {
    let (file, offset) = position(server)?;
    Ok(format!("{file}:{offset}"))
}

/// Every way to stop at a point, from files and live, grouped and not.
fn stops_where_told(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    insert(&pair.source, 1..=100)?;
    let position = source_position(&pair.source)?;
    insert(&pair.source, 101..=200)?;
    let gtids = gtids(&pair.source)?;
    insert(&pair.source, 201..=300)?;
    thread::sleep(Duration::from_millis(2100));
    let time = pair.source.scalar("SELECT UNIX_TIMESTAMP()")?;
    thread::sleep(Duration::from_millis(1100));
    insert(&pair.source, 301..=400)?;
    let count = || pair.target.scalar("SELECT COUNT(*) FROM d.t");
    for (option, value, expected) in
        [("--until-position", &position, "100"), ("--until-gtid", &gtids, "200"), ("--until-time", &time, "300")]
    {
        // Of several ends the first counts.
        let run = pair.begin(&[option, value, "--until-end"])?.wait()?.successful()?;
        ensure!(count()? == expected, "{option} {value} stopped with {} rows instead of {expected}: {run}", count()?);
        let again =
            pair.begin(&[option, value])?.wait()?.successful().with_context(|| format!("{option} a second time"))?;
        ensure!(again.number("transactions")? == 0 && count()? == expected, "{option} {value} a second time: {again}");
    }
    let run = pair.to_the_end(&[])?;
    ensure!(run.number("transactions")? == 100, "the rest: {run}");
    Ok(())
}

/// With a gap, and the table of islands as it was before they said which worker had noted them.
fn goes_on_with_older_islands(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    insert(&pair.source, 1..=50)?;
    pair.to_the_end(&RELAXED)?;
    pair.target.execute(
        "ALTER TABLE heddle.islands DROP PRIMARY KEY, DROP COLUMN worker, ADD PRIMARY KEY (channel, first_seq); \
         INSERT INTO heddle.islands SELECT channel, seq + 2, seq + 2, lease_epoch FROM heddle.progress",
    )?;
    insert(&pair.target, 52..=52)?;
    insert(&pair.source, 51..=100)?;
    let run = pair.to_the_end(&RELAXED)?;
    ensure!(run.number("rows")? == 49, "the one beyond the gap was applied already: {run}");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM heddle.islands")? == "0", "islands are left");
    Ok(())
}

/// A new channel that starts in the middle.
fn starts_where_told(kind: Kind, by_gtid: bool) -> Result<()> {
    let pair = Pair::start(kind)?;
    let schema = "SET sql_log_bin = 0; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)";
    pair.source.execute(schema)?;
    pair.target.execute(schema)?;
    insert(&pair.source, 1..=50)?;
    let (option, value) =
        if by_gtid { ("--start-gtid", gtids(&pair.source)?) } else { ("--start", source_position(&pair.source)?) };
    insert(&pair.source, 51..=100)?;
    // No row is there, so it has to be insisted upon.
    pair.begin(&["--until-end", option, &value, "--start-anyway"])?.wait()?.successful()?;
    let rows = pair.target.scalar("SELECT CONCAT(COUNT(*), ' ', MIN(id)) FROM d.t")?;
    ensure!(rows == "50 51", "{option} {value}: {rows}");
    Ok(())
}

/// `--gtids preserve`: the target ends with the source's own GTIDs.
fn keeps_gtids(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    made_load(&pair.source, Load { events: 500, ..SMALL })?;
    pair.to_the_end(&["--gtids", "preserve", "--workers", "4"])?;
    let (wanted, got) = (gtids(&pair.source)?, gtids(&pair.target)?);
    let contained = if kind.is_mariadb() {
        got.split(',').any(|gtid| gtid == wanted)
    } else {
        pair.target.scalar(&format!("SELECT GTID_SUBSET('{wanted}', '{got}')"))? == "1"
    };
    ensure!(contained, "the source has {wanted}, the target {got}");
    Ok(())
}

/// The same in relaxed order, where many transactions share a packet: from several domains and servers in turn (MariaDB).
fn keeps_gtids_in_relaxed_order(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    let mut random = seeded("keeps_gtids_in_relaxed_order");
    let mut script = String::new();
    for id in 0..2_000 {
        if kind.is_mariadb() && random.random_range(0..3) == 0 {
            let (domain, server) = (random.random_range(0..3), random.random_range(101..103));
            let _ = write!(script, "SET SESSION gtid_domain_id={domain}, server_id={server};");
        }
        let _ = write!(script, "INSERT INTO d.t VALUES ({id});");
    }
    pair.source.execute(&script)?;
    pair.to_the_end(&KEEPING_GTIDS)?;
    let (wanted, found) = (logged::gtids(pair.source.binlogs()?)?, logged::gtids(pair.target.binlogs()?)?);
    ensure!(wanted.len() == 2_000, "the source has logged {} transactions", wanted.len());
    let differ: Vec<&String> = wanted.symmetric_difference(&found).take(5).collect();
    ensure!(differ.is_empty(), "only on one of the two: {differ:?}");
    Ok(())
}

/// `--gtids preserve` into a target that has a replica of its own, heddle killed in between: all three are the same.
fn keeps_gtids_for_replicas_below(kind: Kind, options: &[&str], order: &str) -> Result<()> {
    let pair = Pair::start_with(kind, &[], options)?;
    let below = Server::start(kind, options)?;
    configure_by(&pair.target, &below, true)?;
    start_native(&below)?;
    made_load(&pair.source, Load { events: 1500, ..SMALL })?;
    pair.source.execute(
        "CREATE TABLE defs.x (id INT PRIMARY KEY); XA START 'a'; INSERT INTO defs.x VALUES (1); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'",
    )?;
    let way = ["--gtids", "preserve", "--workers", "4", "--commit-order", order];
    let killed = pair.begin(&way)?;
    thread::sleep(Duration::from_millis(900));
    killed.kill()?;
    killed.wait()?;
    pair.to_the_end(&way)?;
    wait_caught_up(&pair.target, &below)?;
    assert_equal(&pair.source, &below)?;
    if !kind.is_mariadb() {
        let (source, below) = (gtids(&pair.source)?, gtids(&below)?);
        let own = pair.target.scalar("SELECT @@server_uuid")?;
        let beside = pair.target.scalar(&format!("SELECT GTID_SUBTRACT('{below}', '{source}')"))?;
        ensure!(beside.starts_with(&own), "the source has {source}, the replica below the target {below}");
    }
    Ok(())
}

/// Relaxed order whose only note are the source's GTIDs: after kills the gaps are filled, from them alone, and nothing is applied twice.
/// Then GTIDs of the target's own follow.
fn gaps_between_gtids(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &[], &["--sync-binlog=1"])?;
    made_load(&pair.source, SMALL)?;
    let mut random = seeded("gaps_between_gtids");
    let executed = || -> Result<String> {
        let (source, target) = (pair.source.scalar("SELECT @@server_uuid")?, gtids(&pair.target)?);
        Ok(target.split(',').find(|set| set.trim().starts_with(&source)).unwrap_or_default().trim().to_owned())
    };
    let mut with_gaps = 0;
    for _ in 0..ROUNDS {
        let running = pair.begin(&[&KEEPING_GTIDS[..], &["--until-end"]].concat())?;
        // How long it takes to begin says nothing on how it goes on.
        until("something is applied", || Ok(!executed()?.is_empty()))?;
        pause(&mut random, 100, 900);
        running.kill()?;
        running.wait()?;
        with_gaps += usize::from(executed()?.matches(':').count() > 1);
    }
    eprintln!("{with_gaps} of {ROUNDS} kills left gaps");
    let filled = pair.begin(&[&KEEPING_GTIDS[..], &["--fill-gaps"]].concat())?.wait()?.successful()?;
    let set = executed()?;
    ensure!(set.matches(':').count() == 1, "gaps are left in {set}: {filled}");
    pair.to_the_end(&["--gtids", "local"]).map(drop)
}

/// A target that takes packets of 256 KiB only, and transactions of one row and many, of which few, one or none fit into a packet.
fn small_packets(kind: Kind, options: &[&str]) -> Result<()> {
    let pair = Pair::start_with(kind, &[], &["--max-allowed-packet=256K"])?;
    let mut random = seeded("small_packets");
    let mut script =
        "CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT);\n".to_owned();
    for _ in 0..400 {
        let bytes = match random.random_range(0..10) {
            0..5 => random.random_range(0..100),
            5..9 => random.random_range(100..40_000),
            _ => random.random_range(40_000..130_000),
        };
        let rows = if random.random_range(0..10) == 0 { random.random_range(2..9) } else { 1 };
        let values: Vec<String> = (0..rows).map(|_| format!("(REPEAT('x', {bytes}))")).collect();
        script += &format!("INSERT INTO d.t (v) VALUES {};\n", values.join(","));
    }
    pair.source.run_script(script.as_bytes())?;
    pair.to_the_end(options).map(drop)
}

/// A target without a binary log of its own.
fn without_target_log(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &[], &["--skip-log-bin", "--skip-log-slave-updates"])?;
    made_load(&pair.source, Load { events: 500, ..SMALL })?;
    pair.to_the_end(&[]).map(drop)
}

/// Into the embedded store, twice: then every table holds the rows that the source holds.
/// A target that is set to refuse to its clients what it never refuses to its own applier.
fn careful_target(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let read_only = if kind.is_mariadb() { "tx_read_only" } else { "transaction_read_only" };
    pair.target.execute(&format!("SET GLOBAL sql_safe_updates = 1; SET GLOBAL {read_only} = 1"))?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT); INSERT INTO d.t VALUES (1, 1), (2, 2); UPDATE d.t SET v = v + 1;
         SET binlog_format = STATEMENT; UPDATE d.t SET v = v + 1; DELETE FROM d.t WHERE v = 3",
    )?;
    pair.to_the_end(&[]).map(drop)
}

fn into_store(kind: Kind, live: bool, options: &[&str]) -> Result<()> {
    let source = Server::start(kind, &[])?;
    sysbench::prepare(&source, "oltp_write_only", SMALL)?;
    sysbench::run(&source, "oltp_write_only", SMALL)?;
    source.rotate()?;
    let path = source.dir().join("store").display().to_string();
    let from = if live { source.url() } else { source.binlog_index().display().to_string() };
    let (to, relay) = (format!("store:{path}"), source.dir().join("relay").display().to_string());
    let mut arguments = vec!["replicate", "--from", &from, "--to", &to, "--json", "--until-end", "--relay-dir", &relay];
    arguments.extend(options);
    let run = heddle(&arguments)?.successful()?;
    // Sysbench's transactions and the statements that made its tables.
    ensure!(run.number("transactions")? >= SMALL.events, "too few transactions: {run}");
    let again = heddle(&arguments)?.successful().context("the same command again")?;
    ensure!(again.number("transactions")? == 0, "the same command again applied something: {again}");
    for table in 1..=SMALL.tables {
        let name = format!("sbtest.sbtest{table}");
        let dumped = heddle(&["store", "dump", &path, &name])?.successful()?;
        // The first line names the columns.
        let mut held: Vec<&str> = dumped.stdout.lines().skip(1).collect();
        let wanted = source.run_script(format!("SELECT * FROM {name}").as_bytes())?;
        let mut wanted: Vec<&str> = wanted.lines().collect();
        held.sort_unstable();
        wanted.sort_unstable();
        let different = wanted.iter().zip(&held).find(|(wanted, held)| wanted != held);
        ensure!(
            wanted.len() == held.len() && different.is_none(),
            "{name}: {} rows, the store {}: {different:?}",
            wanted.len(),
            held.len()
        );
    }
    heddle(&["status", "--to", &to])?.successful().map(drop)
}

/// One transaction into the embedded store, many times as large as what heddle may hold.
#[test]
#[ignore = "a minute, and 3 GB of disk; run by the nightly script"]
fn store_holds_little_of_a_large_transaction() {
    const ROWS: usize = 5_000_000;
    let test = || -> Result<()> {
        let source = Server::start(MARIADB_10_11, &["--innodb-buffer-pool-size=1G"])?;
        source.execute(&format!(
            "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(250)); \
             INSERT INTO t SELECT seq, REPEAT(MD5(seq), 6) FROM seq_1_to_{ROWS}; UPDATE t SET v = 'last' WHERE id = {ROWS}"
        ))?;
        source.rotate()?;
        let (path, from) =
            (source.dir().join("store").display().to_string(), source.binlog_index().display().to_string());
        let to = format!("store:{path}");
        let run = heddle(&["replicate", "--from", &from, "--to", &to, "--json"])?.successful()?;
        ensure!(run.number("read_bytes")? > 900 << 20, "too little: {run}");
        ensure!(run.number("memory_bytes_max")? <= 256 << 20, "too much memory: {run}");
        let sum = heddle(&["store", "checksum", &path])?.successful()?;
        ensure!(sum.stdout.contains(&ROWS.to_string()), "rows are missing: {sum}");
        Ok(())
    };
    test().unwrap_or_else(|error| panic!("{error:#}"));
}

fn status_shows_progress(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    insert(&pair.source, 1..=20)?;
    pair.to_the_end(&[])?;
    let run = heddle(&["status", "--to", &pair.target.url()])?.successful()?;
    ensure!(run.stdout.contains("binlog.0"), "no position in the status: {run}");
    pair.begin(&["--dry-run"])?.wait()?.successful().map(drop)
}

/// A worker that waits for somebody's lock is seen from outside.
fn status_shows_what_is_in_flight(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB")?;
    insert(&pair.source, 1..=20)?;
    pair.to_the_end(&[])?;
    let mut other = pair.target.connect()?;
    other.execute("BEGIN")?;
    other.execute("SELECT id FROM d.t WHERE id = 7 FOR UPDATE")?;
    pair.source.execute("UPDATE d.t SET id = 700 WHERE id = 7")?;
    let running = pair.begin(&[])?;
    let to = pair.target.url();
    let started = Instant::now();
    loop {
        let run = heddle(&["status", "--to", &to, "--json"])?.successful()?;
        let status: serde_json::Value = serde_json::from_str(&run.stdout)?;
        let in_flight = status[0]["in_flight"].as_array().with_context(|| run.to_string())?;
        if in_flight.iter().any(|one| one["waits_for_lock"] == true && one["worker"].is_u64()) {
            break;
        }
        ensure!(started.elapsed() < Duration::from_secs(60), "no worker is seen to wait: {run}");
        thread::sleep(Duration::from_millis(100));
    }
    other.execute("ROLLBACK")?;
    running.terminate()?;
    running.wait()?.successful()?;
    pair.to_the_end(&[]).map(drop)
}

/// Whatever the target waits for, the source's transactions are soon on this machine.
fn receives_while_the_target_waits(kind: Kind, held_up: &str) -> Result<()> {
    const BYTES: u64 = 2 << 20;
    let pair = Pair::start(kind)?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB; CREATE TABLE d.u (id INT PRIMARY KEY, v TEXT) ENGINE=InnoDB; \
         INSERT INTO d.t VALUES (1)",
    )?;
    pair.to_the_end(&[])?;
    let running = pair.begin(&[])?;
    // Both tables are known, and the channel is idle.
    pair.source.execute("INSERT INTO d.t VALUES (2); INSERT INTO d.u VALUES (0, '')")?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.u")?;
    let mut other = pair.target.connect()?;
    other.execute("BEGIN")?;
    other.execute("SELECT id FROM d.t WHERE id = 1 FOR UPDATE")?;
    pair.source.execute(held_up)?;
    for row in 1..=BYTES / 8192 {
        pair.source.execute(&format!("INSERT INTO d.u VALUES ({row}, REPEAT('v', 8192))"))?;
    }
    let relay = pair.target.dir().join("relay");
    let started = Instant::now();
    loop {
        let sizes = std::fs::read_dir(&relay)?.map(|entry| entry?.metadata().map(|file| file.len()));
        let received = sizes.sum::<std::io::Result<u64>>()?;
        if received > BYTES {
            break;
        }
        ensure!(started.elapsed() < Duration::from_secs(60), "only {received} bytes are received");
        thread::sleep(Duration::from_millis(100));
    }
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.u")? == "1", "the target does not wait");
    other.execute("ROLLBACK")?;
    pair.target.wait_until(&format!("SELECT COUNT(*) FROM d.u WHERE id = {}", BYTES / 8192))?;
    running.terminate()?;
    running.wait()?.successful()?;
    pair.to_the_end(&[]).map(drop)
}

fn wrong_password_is_said(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("SET sql_log_bin = 0; CREATE USER 'nobody'@'%' IDENTIFIED BY 'other'; CREATE USER 'nobody'@'localhost' IDENTIFIED BY 'other'")?;
    let from = pair.from.replace("heddle@", "nobody@");
    let run =
        heddle(&["replicate", "--from", &from, "--to", &pair.target.url(), "--until-end", "--relay-dir", &pair.relay])?;
    run.failed_with("denied")
}

/// Nobody reads the log lines any more: a closed terminal, a pipe whose end has gone.
fn goes_on_without_stderr(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    made_load(&pair.source, SMALL)?;
    let mut child = std::process::Command::new(e2e::heddle::binary()?)
        .args(["replicate", "--from", &pair.from, "--to", &pair.target.url(), "--relay-dir", &pair.relay])
        .args(["--until-end", "--log", "debug"])
        .env("HEDDLE_SOURCE_PASSWORD", e2e::server::PASSWORD)
        .env("HEDDLE_TARGET_PASSWORD", e2e::server::PASSWORD)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    drop(child.stderr.take());
    let status = child.wait()?;
    ensure!(status.success(), "without a reader of its log heddle ended with {status}");
    pair.to_the_end(&[]).map(drop)
}

/// What a scheduled event does on the source is in its log; a target that ran it, too, would do it twice.
fn events_run_on_the_source_only(kind: Kind) -> Result<()> {
    let on = ["--event-scheduler=ON"];
    let pair = Pair::start_with(kind, &on, &on)?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT); \
         CREATE EVENT d.e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO d.t (v) VALUES (1); \
         CREATE EVENT d.f ON SCHEDULE EVERY 1 SECOND DISABLE DO INSERT INTO d.t (v) VALUES (2); ALTER EVENT d.f ENABLE",
    )?;
    pair.run_to_the_end(&[])?;
    thread::sleep(Duration::from_millis(3500));
    pair.source.execute("DROP EVENT d.e; DROP EVENT d.f")?;
    pair.to_the_end(&[])?;
    let rows: u64 = pair.target.scalar("SELECT COUNT(*) FROM d.t")?.parse()?;
    ensure!(rows >= 4, "only {rows} rows: the source's events have not run");
    Ok(())
}

/// Its own log applied to a server would be logged again, without an end.
fn same_server_is_refused(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    let relay = source.dir().join("relay").display().to_string();
    let run = heddle(&["replicate", "--from", &source.url(), "--to", &source.url(), "--relay-dir", &relay])?;
    run.failed_with("are the same server")
}

/// One test per line: name, what it does.
/// The source fails over to a replica of its, and later back again: the channel follows by GTID, with the relay log's directory that it has.
fn fails_over_and_back(kind: Kind) -> Result<()> {
    let mut pair = Pair::start(kind)?;
    let other = Server::start(kind, &[])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO d.t (v) VALUES (1)")?;
    native_replica(&pair.source, &other)?;
    wait_caught_up(&pair.source, &other)?;
    pair.to_the_end(&[])?;

    let promote = |from: &Server, to: &Server| -> Result<()> {
        wait_caught_up(from, to)?;
        let is_mariadb = kind.is_mariadb();
        to.execute(if is_mariadb { "STOP SLAVE; RESET SLAVE ALL" } else { "STOP REPLICA; RESET REPLICA ALL" })?;
        configure(to, from)?;
        if is_mariadb {
            from.execute("SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos")?;
        }
        start_native(from)
    };
    promote(&pair.source, &other)?;
    let to_source = std::mem::replace(&mut pair.from, other.url());
    // Its positions are beyond the other's.
    for _ in 0..3 {
        other.execute("FLUSH BINARY LOGS; INSERT INTO d.t (v) SELECT v + 1 FROM d.t")?;
        let run = pair.run_to_the_end(&[])?;
        ensure!(run.number("transactions")? == 1, "{run}");
    }
    let fed_by = pair.target.scalar("SELECT source FROM heddle.progress")?;
    let identity = other.scalar(if kind.is_mariadb() { "SELECT @@server_id" } else { "SELECT @@server_uuid" })?;
    ensure!(fed_by.contains(&identity), "{fed_by}, not {identity}");

    promote(&other, &pair.source)?;
    pair.from = to_source;
    pair.source.execute("INSERT INTO d.t (v) SELECT v + 1 FROM d.t")?;
    let run = pair.to_the_end(&[])?;
    ensure!(run.number("transactions")? == 1, "{run}");
    if kind.is_mariadb() { Ok(()) } else { goes_on_past_errant(pair, &other) }
}

/// The other server has a transaction of its own that was applied while it was the source: back on the first, the channel goes on as a native replica does.
fn goes_on_past_errant(mut pair: Pair, other: &Server) -> Result<()> {
    let native = Server::start(pair.source.kind, &[])?;
    wait_caught_up(&pair.source, other)?;
    other.execute("CREATE DATABASE errant")?;
    native_replica(other, &native)?;
    wait_caught_up(other, &native)?;
    let to_source = std::mem::replace(&mut pair.from, other.url());
    let run = pair.run_to_the_end(&[])?;
    ensure!(run.number("transactions")? == 1, "{run}");
    pair.from = to_source;
    pair.source.execute("INSERT INTO d.t (v) VALUES (99)")?;
    let run = pair.run_to_the_end(&[])?;
    ensure!(run.number("transactions")? == 1 && run.stderr.contains("which this source does not have"), "{run}");
    native.execute("STOP REPLICA")?;
    configure(&pair.source, &native)?;
    start_native(&native)?;
    wait_caught_up(&pair.source, &native)?;
    let rows = "SELECT COUNT(*) FROM d.t WHERE v = 99";
    ensure!([pair.target.scalar(rows)?, native.scalar(rows)?] == ["1", "1"], "the two differ");
    Ok(())
}

e2e::tests! {
    mariadb_fails_over_and_back: fails_over_and_back(MARIADB_10_11);
    mysql_fails_over_and_back: fails_over_and_back(MYSQL_9_7);
    mariadb_write_only: under_load(MARIADB_10_11, "oltp_write_only", &[]);
    mariadb_write_only_ungrouped: under_load(MARIADB_10_11, "oltp_write_only", &["--grouping", "off", "--workers", "4"]);
    mariadb_update_non_index: under_load(MARIADB_10_11, "oltp_update_non_index", &["--workers", "4"]);
    mysql_write_only: under_load(MYSQL_9_7, "oltp_write_only", &[]);
    mysql_write_only_ungrouped: under_load(MYSQL_9_7, "oltp_write_only", &["--grouping", "off", "--workers", "4"]);
    mysql_update_non_index: under_load(MYSQL_9_7, "oltp_update_non_index", &["--workers", "4"]);
    mariadb_write_only_relaxed: under_load(MARIADB_10_11, "oltp_write_only", &["--commit-order", "relaxed", "--workers", "4"]);
    mysql_write_only_relaxed: under_load(MYSQL_9_7, "oltp_write_only", &["--commit-order", "relaxed", "--grouping", "off", "--workers", "8"]);
    mariadb_many_tables: many_tables(MARIADB_10_11, one_schema);
    mysql_many_tables: many_tables(MYSQL_9_7, one_schema);
    mariadb_many_schemas: many_tables(MARIADB_10_11, schemas);
    mysql_many_schemas: many_tables(MYSQL_9_7, schemas);
    mariadb_terminated: terminated(MARIADB_10_11, false);
    mariadb_terminated_files: terminated(MARIADB_10_11, true);
    mysql_terminated: terminated(MYSQL_9_7, false);
    mysql_terminated_files: terminated(MYSQL_9_7, true);
    mariadb_heddle_killed: heddle_killed(MARIADB_10_11, &[]);
    mariadb_heddle_killed_ungrouped: heddle_killed(MARIADB_10_11, &["--grouping", "off", "--workers", "4"]);
    mysql_heddle_killed: heddle_killed(MYSQL_9_7, &[]);
    mysql_heddle_killed_relaxed: heddle_killed(MYSQL_9_7, &RELAXED);
    mariadb_heddle_killed_relay_synced_first: heddle_killed(MARIADB_10_11, &["--relay-sync", "always"]);
    mariadb_heddle_killed_preserving: heddle_killed(MARIADB_10_11, &["--gtids", "preserve", "--workers", "4"]);
    mariadb_target_killed_preserving: target_killed(MARIADB_10_11, &["--gtids", "preserve", "--workers", "4"]);
    mysql_heddle_killed_preserving: heddle_killed(MYSQL_9_7, &["--gtids", "preserve", "--replicas-below", "--workers", "4"]);
    mariadb_heddle_machine_crashed: machine_crashed(MARIADB_10_11, &[]);
    mysql_heddle_machine_crashed: machine_crashed(MYSQL_9_7, &RELAXED);
    mariadb_target_killed: target_killed(MARIADB_10_11, &[]);
    mysql_heddle_killed_keeping_gtids: heddle_killed(MYSQL_9_7, &KEEPING_GTIDS);
    mysql_target_killed_keeping_gtids: target_killed(MYSQL_9_7, &KEEPING_GTIDS);
    mariadb_small_packets: small_packets(MARIADB_10_11, &RELAXED);
    mysql_small_packets: small_packets(MYSQL_9_7, &RELAXED);
    mysql_small_packets_in_order: small_packets(MYSQL_9_7, &["--gtids", "preserve", "--replicas-below"]);
    mysql_small_packets_keeping_gtids: small_packets(MYSQL_9_7, &KEEPING_GTIDS);
    mysql_small_packets_grouped: small_packets(MYSQL_9_7, &[]);
    mariadb_goes_on_with_older_islands: goes_on_with_older_islands(MARIADB_10_11);
    mysql_goes_on_with_older_islands: goes_on_with_older_islands(MYSQL_9_7);
    mysql_gaps_between_gtids: gaps_between_gtids(MYSQL_9_7);
    mariadb_target_killed_relaxed: target_killed(MARIADB_10_11, &RELAXED);
    mysql_target_killed: target_killed(MYSQL_9_7, &[]);
    mysql_target_killed_ungrouped: target_killed(MYSQL_9_7, &["--grouping", "off", "--workers", "4"]);
    mariadb_source_killed: source_killed(MARIADB_10_11);
    mysql_source_killed: source_killed(MYSQL_9_7);
    mariadb_stops_where_told: stops_where_told(MARIADB_10_11);
    mysql_stops_where_told: stops_where_told(MYSQL_9_7);
    mariadb_starts_at_position: starts_where_told(MARIADB_10_11, false);
    mariadb_starts_at_gtid: starts_where_told(MARIADB_10_11, true);
    mysql_starts_at_position: starts_where_told(MYSQL_9_7, false);
    mysql_starts_at_gtid: starts_where_told(MYSQL_9_7, true);
    mariadb_keeps_gtids: keeps_gtids(MARIADB_10_11);
    mysql_keeps_gtids: keeps_gtids(MYSQL_9_7);
    mariadb_keeps_gtids_in_relaxed_order: keeps_gtids_in_relaxed_order(MARIADB_10_11);
    mysql_keeps_gtids_in_relaxed_order: keeps_gtids_in_relaxed_order(MYSQL_9_7);
    mariadb_heddle_killed_keeping_gtids: heddle_killed(MARIADB_10_11, &KEEPING_GTIDS);
    mysql_keeps_gtids_for_replicas_below: keeps_gtids_for_replicas_below(MYSQL_9_7, &[], "preserve");
    mysql_keeps_gtids_for_replicas_below_in_relaxed_order: keeps_gtids_for_replicas_below(MYSQL_9_7, &[], "relaxed");
    mariadb_keeps_gtids_for_replicas_below: keeps_gtids_for_replicas_below(MARIADB_10_11, &[], "preserve");
    mariadb_strict_keeps_gtids_for_replicas_below: keeps_gtids_for_replicas_below(MARIADB_10_11, &["--gtid-strict-mode=ON"], "preserve");
    mariadb_careful_target: careful_target(MARIADB_10_11);
    mysql_careful_target: careful_target(MYSQL_9_7);
    mariadb_without_target_log: without_target_log(MARIADB_10_11);
    mysql_without_target_log: without_target_log(MYSQL_9_7);
    mariadb_into_store: into_store(MARIADB_10_11, false, &[]);
    mariadb_into_store_live: into_store(MARIADB_10_11, true, &["--grouping", "off", "--workers", "4"]);
    mysql_into_store: into_store(MYSQL_9_7, false, &[]);
    mysql_into_store_live: into_store(MYSQL_9_7, true, &["--grouping", "off", "--workers", "4"]);
    mariadb_status: status_shows_progress(MARIADB_10_11);
    mysql_status: status_shows_progress(MYSQL_9_7);
    mariadb_status_in_flight: status_shows_what_is_in_flight(MARIADB_10_11);
    mysql_status_in_flight: status_shows_what_is_in_flight(MYSQL_9_7);
    mariadb_receives_while_a_statement_waits: receives_while_the_target_waits(MARIADB_10_11, "ALTER TABLE d.t ADD c INT");
    mysql_receives_while_a_statement_waits: receives_while_the_target_waits(MYSQL_9_7, "ALTER TABLE d.t ADD c INT");
    mariadb_receives_while_a_row_waits: receives_while_the_target_waits(MARIADB_10_11, "UPDATE d.t SET id = 3 WHERE id = 1");
    mysql_receives_while_a_row_waits: receives_while_the_target_waits(MYSQL_9_7, "UPDATE d.t SET id = 3 WHERE id = 1");
    mariadb_wrong_password: wrong_password_is_said(MARIADB_10_11);
    mysql_wrong_password: wrong_password_is_said(MYSQL_9_7);
    mariadb_without_stderr: goes_on_without_stderr(MARIADB_10_11);
    mariadb_events: events_run_on_the_source_only(MARIADB_10_11);
    mysql_events: events_run_on_the_source_only(MYSQL_9_7);
    mariadb_same_server: same_server_is_refused(MARIADB_10_11);
    mysql_same_server: same_server_is_refused(MYSQL_9_7);
}
