//! The rescue's benchmark: two replicas of one source, equally far behind, the source being written all the while. One is rescued, then the other
//! catches up by itself with its best setting; each until its lag is below a second. Everything durable.
//!
//! Arguments: `--transactions N` behind (default 100000), `--rate N` transactions a second meanwhile (500), `--sessions N` (16),
//! `--tables N` (8), `--rows N` (50000), `--servers NAME,…`, `--output FILE` (a section of bench/results/benchmarks.md). `--via serve`: the rescued replica applies by itself, from a stream
//! of groups, with the settings that its version has by default.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "says what it does")]

use anyhow::{Context, Result, ensure};
use e2e::bench::arguments::{each, list, load};
use e2e::bench::page::Page;
use e2e::bench::{machine, version};
use e2e::checksum::{contents, differences};
use e2e::heddle::heddle;
use e2e::native::{configure_by, start_native, stop_applier};
use e2e::served::certificate;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, USER, free_port};
use e2e::sysbench::{self, Load};
use e2e::wait_caught_up;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const DURABLE: [&str; 3] = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=1G"];
const LAG: Duration = Duration::from_secs(1);

/// The native applier's best setting in `bench/catch-up`.
fn best_native(kind: Kind) -> &'static [&'static str] {
    if kind.is_mariadb() {
        &["--slave-parallel-threads=32", "--slave-parallel-mode=aggressive"]
    } else {
        &["--replica-parallel-workers=32"]
    }
}

struct Arguments {
    load: Load,
    rate: u32,
    kinds: Vec<Kind>,
    via_serve: bool,
    output: PathBuf,
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        load: Load { tables: 8, rows: 50_000, threads: 16, events: 100_000, seconds: 0 },
        rate: 500,
        kinds: vec![MYSQL_9_7, MARIADB_10_11],
        via_serve: false,
        output: e2e::repository().join("bench/results/benchmarks.md"),
    };
    each(|name, value| {
        match name {
            "--rate" => parsed.rate = value.parse()?,
            "--servers" => parsed.kinds = list(value)?,
            "--via" => {
                ensure!(value == "serve", "--via serve");
                parsed.via_serve = true;
            }
            "--output" => parsed.output = value.into(),
            _ => return load(&mut parsed.load, name, value),
        }
        Ok(true)
    })?;
    Ok(parsed)
}

fn gtids(server: &Server) -> Result<String> {
    let variable = if server.kind.is_mariadb() { "@@gtid_binlog_pos" } else { "@@gtid_executed" };
    Ok(server.scalar(&format!("SELECT {variable}"))?.replace("\\n", "").replace('\n', ""))
}

/// Transactions that the replica lacks.
fn behind(source: &Server, replica: &Server) -> Result<u64> {
    let last = |text: &str| -> Result<u64> {
        let number = text.rsplit(['-', ':']).next().unwrap_or_default();
        number.parse().with_context(|| format!("GTIDs {text:?}"))
    };
    let applied = if replica.kind.is_mariadb() { replica.scalar("SELECT @@gtid_slave_pos")? } else { gtids(replica)? };
    Ok(last(&gtids(source)?)?.saturating_sub(last(&applied)?))
}

/// Seconds until all that the source had at most a second ago is applied natively.
fn native_seconds(source: &Server, replica: &Server) -> Result<f64> {
    let began = Instant::now();
    start_native(replica)?;
    loop {
        let (asked, goal) = (Instant::now(), gtids(source)?);
        let wait = if replica.kind.is_mariadb() {
            format!("SELECT MASTER_GTID_WAIT('{goal}', 900)")
        } else {
            format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{goal}', 900)")
        };
        ensure!(replica.scalar(&wait)? == "0", "native replication does not catch up");
        if asked.elapsed() < LAG {
            return Ok(began.elapsed().as_secs_f64());
        }
    }
}

struct Measured {
    version: String,
    rescue_behind: u64,
    rescue: f64,
    applying: f64,
    /// Seconds, by the command's own estimate.
    expected: Option<f64>,
    native_behind: u64,
    native: f64,
}

fn measure(kind: Kind, arguments: &Arguments) -> Result<Measured> {
    let load = arguments.load;
    let options: Vec<&str> = DURABLE.iter().chain(best_native(kind)).copied().collect();
    let source = Server::start(kind, &DURABLE)?;
    let of_rescued: &[&str] = if arguments.via_serve { &DURABLE } else { &options };
    let (rescued, native) = Server::start_two((kind, of_rescued), (kind, &options))?;
    for replica in [&rescued, &native] {
        configure_by(&source, replica, true)?;
        start_native(replica)?;
    }
    sysbench::prepare(&source, "oltp_write_only", load)?;
    for replica in [&rescued, &native] {
        wait_caught_up(&source, replica)?;
        stop_applier(replica)?;
    }
    eprintln!("{kind}: {} transactions", load.events);
    for script in ["oltp_update_non_index", "oltp_write_only"] {
        sysbench::run(&source, script, Load { events: load.events / 2, ..load })?;
    }
    let forever = Load { threads: 4, events: 0, seconds: 3600, ..load };
    let meanwhile = sysbench::start_at(&source, "oltp_write_only", forever, arguments.rate)?;
    let rescue_behind = behind(&source, &rescued)?;
    let relay = rescued.dir().join("heddle-relay").display().to_string();
    let listen = format!("127.0.0.1:{}", free_port()?);
    let (cert, key) = (rescued.dir().join("cert.pem"), rescued.dir().join("key.pem"));
    let (cert, key) = (cert.display().to_string(), key.display().to_string());
    let url = rescued.url();
    let mut command = vec!["rescue", &url, "--json", "--relay-dir", &relay];
    if arguments.via_serve {
        certificate(rescued.dir())?;
        command.extend([
            "--source-user",
            USER,
            "--via",
            "serve",
            "--listen",
            &listen,
            "--tls-cert",
            &cert,
            "--tls-key",
            &key,
        ]);
        // Its speed is what the command estimates by.
        start_native(&rescued)?;
    }
    let began = Instant::now();
    let run = heddle(&command)?.successful()?;
    let rescue = began.elapsed().as_secs_f64();
    let summary = run.summary()?;
    eprintln!("{kind}: {summary}");
    let applying = summary.pointer("/applied/seconds").and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
    let backlog = |name: &str| summary.pointer(&format!("/backlog/{name}")).and_then(serde_json::Value::as_f64);
    let gain =
        backlog("heddle_bytes_per_second").zip(backlog("source_bytes_per_second")).map(|(ours, theirs)| ours - theirs);
    let ours = if arguments.via_serve { backlog("native_bytes_per_second") } else { gain };
    let expected = backlog("behind_bytes").zip(ours).map(|(bytes, speed)| bytes / speed);
    let native_behind = behind(&source, &native)?;
    let native_took = native_seconds(&source, &native)?;
    meanwhile.stop()?;
    for replica in [&rescued, &native] {
        wait_caught_up(&source, replica)?;
        let different = differences(&contents(&source)?, &contents(replica)?);
        ensure!(different.is_empty(), "not equal at the end: {different:?}");
    }
    let version = version(&source)?;
    Ok(Measured { version, rescue_behind, rescue, applying, expected, native_behind, native: native_took })
}

/// Beside what the command expects of the native applier, and beside the other replica with its best setting.
fn via_serve(arguments: &Arguments) -> Result<()> {
    for &kind in &arguments.kinds {
        let measured = measure(kind, arguments)?;
        let native = measured.expected.unwrap_or(f64::NAN);
        println!(
            "| {} | {} | {:.1} s | {native:.0} s | {:.1} × | {} | {:.1} s |",
            measured.version,
            measured.rescue_behind,
            measured.rescue,
            native / measured.rescue,
            measured.native_behind,
            measured.native
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let load = arguments.load;
    if arguments.via_serve {
        return via_serve(&arguments);
    }
    let mut text = format!(
        "## Rescue: time until the lag is below a second\n\n\
         A source with {} transactions that its replicas lack (sysbench, half `oltp_update_non_index`, half `oltp_write_only`, {} × {} rows, {} sessions) \
         and {} more a second all the while. The whole command is `heddle rescue`, three seconds of looking before and three of watching after it \
         included. Native has its best setting. Expected: what the command estimated at its beginning.\n\n\
         | | rescue: behind | expected | applying | whole command | native: behind | native | native ÷ rescue |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
        load.events, load.tables, load.rows, load.threads, arguments.rate,
    );
    for &kind in &arguments.kinds {
        let measured = measure(kind, &arguments)?;
        let line = format!(
            "| {} | {} | {} | {:.1} s | {:.1} s | {} | {:.1} s | **{:.1}** |",
            measured.version,
            measured.rescue_behind,
            measured.expected.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds:.0} s")),
            measured.applying,
            measured.rescue,
            measured.native_behind,
            measured.native,
            measured.native / measured.rescue
        );
        eprintln!("{line}");
        writeln!(text, "{line}")?;
    }
    let command = format!("bench/rescue --transactions {} --rate {}", load.events, arguments.rate);
    writeln!(text, "\nMeasured on {}, with `{command}`.\n", machine())?;
    Page::open(arguments.output)?.write("rescue", &text)
}
