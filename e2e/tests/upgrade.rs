//! An upgrade without a gap: two builds of different versions for one channel (`replicate --standby`), handed over to and fro under load. `scripts/nightly standby` builds the
//! older one, which `HEDDLE_OLDER_BIN` names.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, binary};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server};
use e2e::takeovers::{Duo, Ending, end_turn};
use e2e::until;

/// Transactions a second, of all writers together.
const RATE: u64 = 1000;
const WRITERS: u64 = 4;
/// From one version to the other, and back.
const ROUNDS: usize = 5;
/// How often the target is looked at.
const LOOK: Duration = Duration::from_millis(10);
const COUNT: &str = "SELECT COUNT(*) FROM a.t";

fn version(program: &Path) -> Result<String> {
    Ok(Heddle::start_program(program, &["--version"])?.wait()?.successful()?.stdout.trim().to_owned())
}

/// One writer's transactions, evenly, until `stop`.
fn write(source: &Server, stop: &AtomicBool, written: &AtomicU64) -> Result<()> {
    let mut connection = e2e::served::connect(source.port, PASSWORD)?;
    let (began, mut count) = (Instant::now(), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        let due = began.elapsed().as_micros() as u64 * RATE / WRITERS / 1_000_000;
        while count < due {
            connection.execute("INSERT INTO a.t (text) VALUES (UUID())")?;
            count += 1;
            written.fetch_add(1, Ordering::Relaxed);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The longest time in which nothing came to the target, until `stop`, since it was asked last.
fn watch(target: &Server, stop: &AtomicBool, gap_us: &AtomicU64) -> Result<()> {
    let mut connection = e2e::served::connect(target.port, PASSWORD)?;
    let (mut last, mut changed) = (None, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let now = connection.scalar("SELECT MAX(id) FROM a.t")?;
        if now != last {
            (last, changed) = (now, Instant::now());
        }
        gap_us.fetch_max(changed.elapsed().as_micros() as u64, Ordering::Relaxed);
        thread::sleep(LOOK);
    }
    Ok(())
}

fn to_and_fro(kind: Kind) -> Result<()> {
    let older = PathBuf::from(std::env::var_os("HEDDLE_OLDER_BIN").context("HEDDLE_OLDER_BIN")?);
    let programs = [older, binary()?];
    let versions = [version(&programs[0])?, version(&programs[1])?];
    ensure!(versions[0] != versions[1], "both builds are {}", versions[0]);
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(40))")?;
    let (stop, written, gap_us) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut duo = Duo::new(&pair, &[]).of_programs(programs);
    let mut gaps: Vec<(usize, Ending, Duration)> = Vec::new();
    let began = Instant::now();
    thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(|| write(&pair.source, &stop, &written))).collect();
        let done = (|| {
            duo.start_both()?;
            until("rows arrive", || Ok(pair.target.scalar(COUNT).is_ok_and(|count| count != "0")))?;
            let watching = scope.spawn(|| watch(&pair.target, &stop, &gap_us));
            for number in 0..2 * ROUNDS {
                let has = number % 2;
                thread::sleep(Duration::from_secs(2));
                gap_us.store(0, Ordering::Relaxed);
                // As an upgrade goes: asked for; and the old one ended by its service.
                let ending = if number % 4 < 2 { Ending::Ask } else { Ending::Terminate };
                end_turn(&mut duo, has, ending)?;
                duo.until_waits(has)?;
                thread::sleep(Duration::from_secs(1));
                gaps.push((has, ending, Duration::from_micros(gap_us.load(Ordering::Relaxed))));
            }
            stop.store(true, Ordering::Relaxed);
            watching.join().expect("the watcher")
        })();
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("a writer")?;
        }
        done
    })?;
    let rate = written.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    for (from, ending, gap) in &gaps {
        eprintln!("{kind}: {} to {} by {ending:?}: nothing came for {gap:.2?}", versions[*from], versions[1 - from]);
    }
    let most = gaps.iter().map(|(.., gap)| *gap).max().unwrap_or_default();
    eprintln!("{kind}: {rate:.0} transactions/s, {} handovers, the longest gap {most:.2?}", gaps.len());
    // No measure: a machine that does nothing else has less than two seconds.
    ensure!(most < Duration::from_secs(60), "{most:?}");
    let wanted = pair.source.scalar(COUNT)?;
    until(format!("{wanted} rows"), || Ok(pair.target.scalar(COUNT)? == wanted))?;
    for run in duo.end()? {
        ensure!(!run.stderr.contains("the channel stopped"), "{run}");
    }
    pair.assert_equal()
}

e2e::tests! {
    #[ignore = "needs an older build: scripts/nightly standby"]
    mariadb_to_and_fro: to_and_fro(MARIADB_10_11);
    #[ignore = "needs an older build: scripts/nightly standby"]
    mysql_to_and_fro: to_and_fro(MYSQL_9_7);
}
