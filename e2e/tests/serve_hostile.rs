//! `heddle serve --listen` among clients that mean no good, broken lines and crashes: a replica beside them notices nothing, the memory is bounded, and all ends equal.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::checksum::assert_equal;
use e2e::native::{native_replica, statement, wait_caught_up};
use e2e::proxy::{Fault, Proxy};
use e2e::served::{Ask, By, Served, assert_same, attach, connect};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, free_port};
use e2e::workload::{Size, Workload};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::{BinlogStream, DumpOptions, DumpRequest};

/// A stream holds no large event whole: a hundred of them, with events of 4 MB, cost hardly more than their threads and buffers.
const MEMORY_MAX: u64 = 128 << 20;
/// `HEDDLE_WRONG_LOGINS` says how many, otherwise so many.
const WRONG_LOGINS: usize = 8000;
/// So many of one address may be logging in at a time (`crates/serve/src/sessions/registry.rs`), and more try.
const LOGINS_MAX: usize = 256;
const GUESSERS: usize = LOGINS_MAX + 64;
const PACKETS: usize = 24;
const SILENT_READERS: usize = 100;
const SIZE: Size = Size {
    tables: 4,
    sessions: 3,
    transactions: 120,
    definitions_percent: 3,
    xa: false,
    replace: false,
    temporary: false,
    same_flavour: true,
    unlogged: true,
};

#[test]
#[ignore = "long: scripts/nightly serve"]
fn hostile_clients_at_mysql() -> Result<()> {
    hostile(MYSQL_9_7)
}

#[test]
#[ignore = "long: scripts/nightly serve"]
fn hostile_clients_at_mariadb() -> Result<()> {
    hostile(MARIADB_10_11)
}

#[test]
#[ignore = "long: scripts/nightly serve"]
fn crashes_and_broken_lines_at_mysql() -> Result<()> {
    broken(MYSQL_9_7)
}

#[test]
#[ignore = "long: scripts/nightly serve"]
fn crashes_and_broken_lines_at_mariadb() -> Result<()> {
    broken(MARIADB_10_11)
}

fn hostile(kind: Kind) -> Result<()> {
    let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_hostile -- --ignored hostile");
    let (source, replica) = Server::start_two((kind, &["--max-binlog-size=1M"]), (kind, &[]))?;
    let dir = tempfile::tempdir()?;
    let served = Served::start(source.port, dir.path(), free_port()?, &[])?;
    attach(&replica, Ask::new(served.port, By::Gtid))?;
    Workload::new(seed, SIZE, kind).run(&source)?;
    // Something to send that no socket's buffer takes in.
    source.execute("CREATE DATABASE big; CREATE TABLE big.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")?;
    for _ in 0..25 {
        source.execute("INSERT INTO big.t (b) VALUES (REPEAT('x', 4000000))")?;
    }
    assert_same(&source, &replica)?;
    let port = served.port;
    let done = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let load = scope.spawn(|| -> Result<()> {
            let mut next = seed + 1;
            while !done.load(Ordering::Relaxed) {
                Workload::new(next, SIZE, kind).run(&source)?;
                next += 1;
            }
            Ok(())
        });
        let attacked = (|| -> Result<()> {
            for (what, attack) in [
                ("garbage", garbage as fn(u16, u64) -> Result<()>),
                ("16 MiB of nothing", nothing),
                ("wrong passwords", wrong_passwords),
                ("readers that take nothing in", silent_readers),
                ("commands cut short", cut_short),
            ] {
                let began = Instant::now();
                attack(port, seed).with_context(|| what)?;
                // Nobody else notices: a new client is let in, and the replica goes on.
                served.connected()?.ping()?;
                let running = e2e::served::receives(&replica)?;
                ensure!(running.is_none(), "{what}: {running:?}");
                let memory = served.heddle.resident_max().context("heddle has ended")?;
                eprintln!("{kind}: {what}: {} ms, memory {} MiB", began.elapsed().as_millis(), memory >> 20);
                ensure!(memory <= MEMORY_MAX, "{what}: {} MiB", memory >> 20);
            }
            Ok(())
        })();
        done.store(true, Ordering::Relaxed);
        load.join().expect("the load ends")?;
        attacked
    })?;
    assert_same(&source, &replica)?;
    let log = served.heddle.log();
    let said = log.lines().filter(|line| line.contains("refused")).count();
    ensure!(said < 60, "{said} lines about refused logins");
    served.kill()?;
    Ok(())
}

fn garbage(port: u16, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..300 {
        // Refused where too many are logging in.
        let Ok(mut tcp) = TcpStream::connect(("127.0.0.1", port)) else { continue };
        tcp.set_read_timeout(Some(Duration::from_secs(15)))?;
        let mut bytes = vec![0; random.random_range(0..5000)];
        random.fill(&mut bytes[..]);
        let _ = tcp.write_all(&bytes);
        let _ = tcp.shutdown(Shutdown::Write);
        let _ = tcp.read_to_end(&mut Vec::new());
    }
    Ok(())
}

/// Packets of the largest size: before the login, and as statements after it.
fn nothing(port: u16, _: u64) -> Result<()> {
    let mebibytes = vec![0; 1 << 20];
    for number in 0..PACKETS {
        let mut tcp = TcpStream::connect(("127.0.0.1", port))?;
        tcp.set_write_timeout(Some(Duration::from_secs(5)))?;
        tcp.set_read_timeout(Some(Duration::from_secs(15)))?;
        let _ = tcp.write_all(&[0xff, 0xff, 0xff, u8::try_from(number)?]);
        for _ in 0..16 {
            if tcp.write_all(&mebibytes).is_err() {
                break;
            }
        }
        let _ = tcp.shutdown(Shutdown::Both);
    }
    let text = " ".repeat(15 << 20);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    if let Ok(mut connection) = connect(port, PASSWORD) {
                        // Larger than any statement of a replica: the servers' error, or the end of the connection.
                        let error = connection.execute(&text).expect_err("it is too large");
                        assert!(error.code().is_none_or(|code| code == 1153), "{error}");
                    }
                }
            });
        }
    });
    Ok(())
}

fn wrong_passwords(port: u16, _: u64) -> Result<()> {
    let logins = std::env::var("HEDDLE_WRONG_LOGINS").map_or(Ok(WRONG_LOGINS), |text| text.parse())?;
    let (denied, turned_away) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..GUESSERS {
            scope.spawn(|| {
                while denied.load(Ordering::Relaxed) + turned_away.load(Ordering::Relaxed) < logins {
                    match connect(port, "wrong").map(drop).map_err(|error| error.code()) {
                        Err(Some(1045)) => denied.fetch_add(1, Ordering::Relaxed),
                        _ => turned_away.fetch_add(1, Ordering::Relaxed),
                    };
                }
            });
        }
    });
    let (denied, turned_away) = (denied.into_inner(), turned_away.into_inner());
    eprintln!("{denied} denied, {turned_away} turned away in {} ms", began.elapsed().as_millis());
    ensure!(denied > 0 && turned_away > 0, "{denied} denied, {turned_away} turned away");
    // A quarter of a second each.
    ensure!(
        denied as u128 <= LOGINS_MAX as u128 * (began.elapsed().as_millis() / 250 + 1),
        "{denied} guesses in {:?}",
        began.elapsed()
    );
    Ok(())
}

/// They ask for all there is and take in nothing.
fn silent_readers(port: u16, _: u64) -> Result<()> {
    let mut streams: Vec<BinlogStream> = Vec::new();
    for number in 0..SILENT_READERS {
        let server_id = 50_000 + u32::try_from(number)?;
        let request = DumpRequest::FilePosition { file: String::new(), position: 4, server_id, flags: 0 };
        streams.push(connect(port, PASSWORD)?.binlog_dump_with(&request, &DumpOptions::default())?);
    }
    thread::sleep(Duration::from_secs(3));
    drop(streams);
    Ok(())
}

/// A command that ends before its fields do, and unknown ones: answered, or the connection ends.
fn cut_short(port: u16, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..200 {
        let mut connection = connect(port, PASSWORD)?;
        let sql: String = (0..random.random_range(1..200)).map(|_| random.random_range(' '..'~')).collect();
        let _ = connection.execute(&sql);
    }
    Ok(())
}

/// Through lines that break and crawl, with kills of all three and a full disk.
fn broken(kind: Kind) -> Result<()> {
    let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_hostile -- --ignored broken");
    let safe: &[&str] = &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--max-binlog-size=1M"];
    let crash_safe: &[&str] = if kind.is_mariadb() { &[] } else { &["--relay-log-recovery=ON"] };
    let (source, replica) = Server::start_two((kind, safe), (kind, crash_safe))?;
    let direct = Server::start(kind, crash_safe)?;
    let dir = tempfile::tempdir()?;
    let port = free_port()?;
    let mirror = dir.path().join("mirror");
    let mut served = Served::start(source.port, &mirror, port, &[])?;
    native_replica(&source, &direct)?;
    attach(&replica, Ask::new(port, By::Gtid))?;
    let mut next = seed;
    let mut load = || {
        next += 1;
        Workload::new(next, SIZE, kind).run(&source)
    };
    load()?;
    assert_same(&source, &replica)?;

    // The replica's line breaks again and again.
    let proxy = Proxy::start(port, Fault::Anything, 6, seed)?;
    attach(&replica, Ask::new(proxy.port, By::Gtid))?;
    load()?;
    load()?;
    proxy.heal();
    eprintln!("{kind}: {} cuts of the replica's line", proxy.cuts());
    attach(&replica, Ask::new(port, By::Gtid))?;
    assert_same(&source, &replica)?;

    // It crawls: 64 KiB a second, for a while.
    let slow = Slow::start(port)?;
    attach(&replica, Ask::new(slow.port, By::Gtid))?;
    load()?;
    thread::sleep(Duration::from_secs(3));
    slow.hurry();
    assert_same(&source, &replica)?;
    attach(&replica, Ask::new(port, By::Gtid))?;

    for round in 0..4 {
        load()?;
        source.kill()?;
        source.restart(&[])?;
        load().with_context(|| format!("round {round}"))?;
        let again = Served::start(source.port, &dir.path().join("unused"), free_port()?, &[])?;
        std::mem::replace(&mut served, again).kill()?;
        let again = Served::start(source.port, &mirror, port, &[])?;
        std::mem::replace(&mut served, again).kill()?;
        load()?;
        replica.kill()?;
        replica.restart(&[])?;
        replica.execute(statement(&replica, "START"))?;
        assert_same(&source, &replica).with_context(|| format!("round {round}"))?;
    }
    wait_caught_up(&source, &direct)?;
    assert_equal(&direct, &replica)?;
    full_disk(&source, &replica, &mut served, &mirror)?;
    load()?;
    assert_same(&source, &replica)?;
    assert_same(&source, &direct)?;
    assert_equal(&direct, &replica)?;
    served.kill()?;
    Ok(())
}

/// What is in the mirror is served until it ends with an error that says so; the same command goes on when there is room.
fn full_disk(source: &Server, replica: &Server, served: &mut Served, mirror: &std::path::Path) -> Result<()> {
    let port = served.port;
    let elsewhere = mirror.with_file_name("elsewhere");
    let other = Served::start(source.port, &elsewhere, free_port()?, &[])?;
    std::mem::replace(served, other).kill()?;
    let small = Served::start_with_small_files(source.port, mirror, port, 1 << 20)?;
    source.execute("CREATE DATABASE full; CREATE TABLE full.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB); INSERT INTO full.t (b) VALUES (REPEAT('y', 3000000))")?;
    let run = small.heddle.wait()?;
    // A file that may not grow, as a full disk: but for its exit code.
    ensure!(!run.status.success() && run.stderr.contains("what is durable stays"), "{run}");
    let again = Served::start(source.port, mirror, port, &[])?;
    std::mem::replace(served, again).kill()?;
    wait_caught_up(source, replica)
}

/// A line that lets through little at a time.
struct Slow {
    port: u16,
    hurry: std::sync::Arc<AtomicBool>,
}

impl Slow {
    fn start(to: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let hurry = std::sync::Arc::new(AtomicBool::new(false));
        let shared = std::sync::Arc::clone(&hurry);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", to))) else { continue };
                for (one, other) in [(&client, &server), (&server, &client)] {
                    let (Ok(mut one), Ok(mut other)) = (one.try_clone(), other.try_clone()) else { continue };
                    let hurry = std::sync::Arc::clone(&shared);
                    thread::spawn(move || {
                        let mut chunk = vec![0; 4096];
                        while let Ok(length @ 1..) = one.read(&mut chunk) {
                            if other.write_all(&chunk[..length]).is_err() {
                                break;
                            }
                            if !hurry.load(Ordering::Relaxed) {
                                thread::sleep(Duration::from_millis(60));
                            }
                        }
                        let _ = one.shutdown(Shutdown::Both);
                        let _ = other.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Ok(Self { port, hurry })
    }

    fn hurry(&self) {
        self.hurry.store(true, Ordering::Relaxed);
    }
}

/// Places that are not there: the source's own errors, whoever asks how often.
#[test]
#[ignore = "long: scripts/nightly serve"]
fn places_that_are_not_there() -> Result<()> {
    for kind in [MYSQL_9_7, MARIADB_10_11] {
        let source = Server::start(kind, &[])?;
        source.execute("CREATE DATABASE a")?;
        let dir = tempfile::tempdir()?;
        let served = Served::start(source.port, dir.path(), free_port()?, &[])?;
        for _ in 0..2 {
            let request =
                DumpRequest::FilePosition { file: "binlog.000777".to_owned(), position: 4, server_id: 9, flags: 1 };
            let asked = |port: u16| -> Result<String> {
                let mut stream = connect(port, PASSWORD)?.binlog_dump_with(&request, &DumpOptions::default())?;
                loop {
                    match stream.next() {
                        Ok(_) => {}
                        Err(wire::Error::DumpEnded) => bail!("it is there"),
                        Err(error) => return Ok(error.to_string()),
                    }
                }
            };
            let (ours, theirs) = (asked(served.port)?, asked(source.port)?);
            ensure!(ours == theirs, "{ours} is not {theirs}");
        }
        served.kill()?;
    }
    Ok(())
}
