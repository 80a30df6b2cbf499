//! What the dashboard costs: a channel catches up with and without `--http` and a page that is open, in turns.
//!
//! dashboard-bench [SERVER [TRANSACTIONS [ROUNDS]]]     default: mysql-9.7 400000 5
//!
//! Prints rows for bench/results/benchmarks.md: transactions a second, and the most memory that was resident. Every run begins with an empty target, durable as servers are by default.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a benchmark")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::bench::median;
use e2e::pair::Pair;
use e2e::server::{Kind, MYSQL_9_7, free_port};

const ROWS: u32 = 1000;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One session, a row each.
fn load(pair: &Pair, transactions: u32) -> Result<()> {
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT, s VARCHAR(200))")?;
    let mut client = pair.source.connect()?;
    client.execute(format!(
        "CREATE PROCEDURE d.p() BEGIN DECLARE i INT DEFAULT 0; \
         WHILE i < {ROWS} DO INSERT INTO d.t VALUES (i, 0, REPEAT('x', 100)); SET i = i + 1; END WHILE; SET i = 0; \
         WHILE i < {transactions} DO UPDATE d.t SET n = n + 1 WHERE id = i * 7919 % {ROWS}; SET i = i + 1; END WHILE; END"
    ))?;
    client.execute("CALL d.p()")?;
    Ok(())
}

/// Reads the events as a page does, until the process ends.
fn page(port: u16) -> u64 {
    let mut bytes = 0;
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    };
    if write!(stream, "GET /events HTTP/1.0\r\nHost: localhost\r\n\r\n").is_ok() {
        let mut piece = vec![0; 1 << 16];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            bytes += count as u64;
        }
    }
    bytes
}

struct Measured {
    /// Transactions a second.
    rate: f64,
    memory: u64,
}

fn run(pair: &Pair, with_page: bool) -> Result<Measured> {
    pair.target.execute("DROP DATABASE IF EXISTS d; DROP DATABASE IF EXISTS heddle")?;
    let _ = std::fs::remove_dir_all(&pair.relay);
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let http: &[&str] = if with_page { &["--http", &address] } else { &[] };
    let mut running = pair.begin(&[&["--until-end"], http].concat())?;
    let reader = with_page.then(|| thread::spawn(move || page(port)));
    let mut memory = 0;
    while !running.has_ended()? {
        memory = memory.max(running.resident_max().unwrap_or(0));
        thread::sleep(LOOK_EVERY);
    }
    let run = running.wait()?.successful()?;
    if let Some(reader) = reader {
        ensure!(reader.join().expect("the page") > 0, "no events came: {run}");
    }
    let summary = run.summary()?;
    let number =
        |name: &str| summary.get(name).and_then(serde_json::Value::as_f64).with_context(|| format!("no {name}: {run}"));
    Ok(Measured { rate: number("transactions")? / number("seconds")?, memory })
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind: Kind = arguments.next().map_or(Ok(MYSQL_9_7), |text| text.parse())?;
    let transactions: u32 = arguments.next().map_or(Ok(400_000), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let fast = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"];
    let safe = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
    let pair = Pair::start_with(kind, &fast, &safe)?;
    load(&pair, transactions)?;
    run(&pair, true)?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Who goes first changes.
        for with_page in [round % 2 == 0, round % 2 != 0] {
            (if with_page { &mut with } else { &mut without }).push(run(&pair, with_page)?);
        }
    }
    pair.assert_equal()?;
    let rate = |all: &[Measured]| median(all.iter().map(|one| one.rate));
    let memory = |all: &[Measured]| median(all.iter().map(|one| one.memory as f64 / 1024.0 / 1024.0));
    println!("| {kind} | transactions/s | most memory, MiB |");
    println!("|---|---:|---:|");
    println!("| without | {:.0} | {:.1} |", rate(&without), memory(&without));
    println!("| with `--http` and an open page | {:.0} | {:.1} |", rate(&with), memory(&with));
    println!("| ratio, difference | {:.3} | {:+.1} |", rate(&with) / rate(&without), memory(&with) - memory(&without));
    Ok(())
}
