//! Commits of a source that waits for one semi-synchronous replica: Heddle, or a native one with and without an fsync for each transaction. Side by side, in turns, on the same disk.
//!
//! semisync-bench [SERVER [COMMITS [ROUNDS]]]     default: mysql-9.7 500 5
//!
//! Prints rows for bench/results/benchmarks.md: median and 99th percentile of a commit, of an fsync of the same disk, and of Heddle's acknowledgement: from the moment that an event which
//! is to be acknowledged has come, until the acknowledgement is sent, both seen by a proxy between the two. `HEDDLE_BENCH_DIR` chooses the disk.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::native::{native_replica, statement, wait_caught_up};
use e2e::semisync::{Acknowledger, Words};
use e2e::server::{Kind, MYSQL_9_7, Server};

#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    fn line(&self, name: &str) {
        println!("| {name} | {:.2} | {:.2} | {} |", self.percentile(50), self.percentile(99), self.0.len());
    }
}

/// As much as a small transaction is in the log.
fn fsyncs(dir: &Path, count: usize, times: &mut Times) -> Result<()> {
    let mut file = File::create(dir.join("fsync"))?;
    for _ in 0..count {
        file.write_all(&[7; 300])?;
        let begun = Instant::now();
        file.sync_data()?;
        times.0.push(begun.elapsed());
    }
    Ok(())
}

fn commits(source: &Server, count: usize, next: &mut u64, times: &mut Times) -> Result<()> {
    let mut connection = source.connect()?;
    for _ in 0..count {
        *next += 1;
        let sql = format!("INSERT INTO d.t VALUES ({next}, 'a row of some length, as rows are')");
        let begun = Instant::now();
        connection.execute(sql)?;
        times.0.push(begun.elapsed());
    }
    Ok(())
}

/// Packets of one direction: each one's payload's first bytes, as soon as it is through.
fn relay(mut from: TcpStream, mut to: TcpStream, mut seen: impl FnMut(&[u8]) + Send + 'static) {
    thread::spawn(move || {
        let (mut chunk, mut waiting) = (vec![0; 1 << 16], Vec::new());
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            if to.write_all(&chunk[..length]).is_err() {
                break;
            }
            waiting.extend_from_slice(&chunk[..length]);
            while let [a, b, c, _, rest @ ..] = &waiting[..] {
                let bytes = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
                let Some(payload) = rest.get(..bytes) else { break };
                seen(payload);
                waiting.drain(..4 + bytes);
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

/// Between Heddle and the source: what lies between an event and its acknowledgement.
fn proxy(port: u16, times: Arc<Mutex<Times>>) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let own = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { continue };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let came = Arc::new(Mutex::new(None));
            let (asked, times) = (Arc::clone(&came), Arc::clone(&times));
            relay(server, to_client, move |payload| {
                if payload.starts_with(&[0, 0xef, 1]) {
                    asked.lock().expect("no panics").get_or_insert_with(Instant::now);
                }
            });
            relay(client, to_server, move |payload| {
                if payload.first() == Some(&0xef)
                    && let Some(came) = came.lock().expect("no panics").take()
                {
                    times.lock().expect("no panics").0.push(came.elapsed());
                }
            });
        }
    });
    Ok(own)
}

fn enable(source: &Server, words: Words, on: bool) -> Result<()> {
    if on {
        return words.enable(source);
    }
    source.execute(&format!("SET GLOBAL rpl_semi_sync_{}_enabled = 0", words.source))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind: Kind = arguments.next().map_or(Ok(MYSQL_9_7), |name| name.parse())?;
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (count, rounds) = (number(500)?, number(5)?);
    let words = Words::of(kind);
    let mut options = words.options();
    options.extend(["--sync-binlog=1".to_owned(), "--innodb-flush-log-at-trx-commit=1".to_owned()]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (source, replica) = Server::start_two((kind, &options), (kind, &options))?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(50))")?;
    replica.execute(&format!("SET GLOBAL rpl_semi_sync_{}_enabled = 1", words.replica))?;
    native_replica(&source, &replica)?;
    wait_caught_up(&source, &replica)?;
    let dir = tempfile::tempdir_in(std::env::var("HEDDLE_E2E_DIR").context("HEDDLE_E2E_DIR")?)?;
    let [mut alone, mut heddle, mut native, mut synced, mut fsync] = [(); 5].map(|()| Times::default());
    let acks = Arc::new(Mutex::new(Times::default()));
    let through = proxy(source.port, Arc::clone(&acks))?;
    let mut next = 0;
    let attached = |is_attached: bool| {
        words.wait_status(&source, "clients", |clients| (clients == "1") == is_attached && clients.len() == 1)
    };
    for round in 0..rounds {
        replica.execute(statement(&replica, "STOP"))?;
        // It notices when it sends.
        commits(&source, 5, &mut next, &mut Times::default())?;
        attached(false)?;
        fsyncs(dir.path(), count, &mut fsync)?;
        commits(&source, count, &mut next, &mut alone)?;

        // Through the proxy for the acknowledgements, without it for the commits.
        for port in [source.port, through] {
            let mut mirror = Acknowledger::start(port, &dir.path().join("mirror"), &["--ack", "local"])?;
            attached(true)?;
            enable(&source, words, true)?;
            let mut through_proxy = Times::default();
            let times = if port == through { &mut through_proxy } else { &mut heddle };
            commits(&source, count, &mut next, times)?;
            enable(&source, words, false)?;
            mirror.kill()?;
            commits(&source, 5, &mut next, &mut Times::default())?;
            attached(false)?;
        }
        for (sync, times) in [(10_000, &mut native), (1, &mut synced)] {
            replica.execute(&format!("SET GLOBAL sync_relay_log = {sync}"))?;
            replica.execute(statement(&replica, "START"))?;
            wait_caught_up(&source, &replica)?;
            attached(true)?;
            enable(&source, words, true)?;
            commits(&source, count, &mut next, times)?;
            enable(&source, words, false)?;
            replica.execute(statement(&replica, "STOP"))?;
            commits(&source, 5, &mut next, &mut Times::default())?;
            attached(false)?;
        }
        ensure!(words.status(&source, "no_tx")? == "0", "the source has given up waiting in round {round}");
    }
    println!("{kind}, {count} commits {rounds} times\n\n| ms | median | 99 % | of |\n|---|---|---|---|");
    alone.line("commit, nobody is waited for");
    heddle.line("commit, `heddle serve --ack local`");
    native.line("commit, native replica, its relay log is not synced (the servers' default)");
    synced.line("commit, native replica, `sync_relay_log=1`");
    fsync.line("an fsync of 300 bytes");
    acks.lock().expect("no panics").line("heddle's acknowledgement");
    Ok(())
}
