//! A copy of a running source, beside other tools, in one run: seconds and rows a second of each, and what the source's own updates take meanwhile.
//!
//! copy-bench [SERVER [TABLES [ROWS [WORKERS [ROUNDS]]]]]     default: mysql-9.7 8 500000 4 1
//!
//! Contenders: the server's dump piped into its client; mydumper and myloader, where they are installed, as they come (the target's
//! binary log has nothing of it) and with `--enable-binlog`; `heddle replicate --copy --until-end`, which is logged. Each copies into a new server while one session of the source updates 500 rows a second. `HEDDLE_BENCH_DIR` chooses the disk.

#![allow(clippy::print_stdout, reason = "a benchmark")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::bench::{percentile, version};
use e2e::heddle::Heddle;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER};
use e2e::sysbench::{self, Load};
use rand::Rng;

const SCRIPT: &str = "oltp_update_non_index";
const UPDATE_EVERY: Duration = Duration::from_millis(2);
const ALONE: Duration = Duration::from_secs(20);
const DURABLE: [&str; 3] = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=1G"];

struct Bench {
    kind: Kind,
    source: Server,
    tables: u32,
    rows: u32,
    workers: u32,
}

#[derive(Clone, Copy, Debug)]
enum Contender {
    Dump,
    MyDumper,
    MyDumperLogged,
    Heddle,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind = match arguments.next().as_deref() {
        None | Some("mysql-9.7") => MYSQL_9_7,
        Some("mariadb-10.11") => MARIADB_10_11,
        Some(other) => anyhow::bail!("{other}: mysql-9.7 or mariadb-10.11"),
    };
    let mut number = |default: u32| arguments.next().map_or(Ok(default), |text| text.parse());
    let (tables, rows, workers, rounds) = (number(8)?, number(500_000)?, number(4)?, number(1)?);
    let source = Server::start(kind, &DURABLE)?;
    sysbench::prepare(&source, SCRIPT, Load { tables, rows, threads: 2, events: 0, seconds: 0 })?;
    let bench = Bench { kind, source, tables, rows, workers };
    println!("{}, {tables} tables of {rows} rows, {workers} workers", version(&bench.source)?);
    let has_mydumper = Command::new("mydumper").arg("--version").output().is_ok();
    for _ in 0..rounds {
        let (_, alone) = bench.beside_updates(|| {
            thread::sleep(ALONE);
            Ok(())
        })?;
        println!("| nothing | | | {alone:.2} |");
        for contender in [Contender::Dump, Contender::MyDumper, Contender::MyDumperLogged, Contender::Heddle] {
            if matches!(contender, Contender::MyDumper | Contender::MyDumperLogged) && !has_mydumper {
                println!("| {contender:?} | not installed | | |");
                continue;
            }
            bench.measure(contender)?;
        }
    }
    Ok(())
}

impl Bench {
    fn measure(&self, contender: Contender) -> Result<()> {
        let target = Server::start(self.kind, &DURABLE)?;
        let (seconds, p99) = self.beside_updates(|| match contender {
            Contender::Dump => self.dump(&target),
            Contender::MyDumper => self.mydumper(&target, &["--overwrite-tables"]),
            Contender::MyDumperLogged => self.mydumper(&target, &["--overwrite-tables", "--enable-binlog"]),
            Contender::Heddle => self.heddle(&target),
        })?;
        let counts = (1..=self.tables).map(|table| format!("(SELECT COUNT(*) FROM sbtest.sbtest{table})"));
        let rows: u64 = target.scalar(&format!("SELECT {}", counts.collect::<Vec<_>>().join("+")))?.parse()?;
        ensure!(rows == u64::from(self.tables) * u64::from(self.rows), "{rows} rows");
        println!("| {contender:?} | {seconds:.1} | {:.0} | {p99:.2} |", rows as f64 / seconds);
        Ok(())
    }

    /// Seconds that it took, and the 99th percentile of the updates' times in milliseconds.
    fn beside_updates(&self, work: impl FnOnce() -> Result<()>) -> Result<(f64, f64)> {
        let done = AtomicBool::new(false);
        let mut connection = self.source.connect()?;
        thread::scope(|scope| {
            let updates = scope.spawn(|| -> Result<Vec<f64>> {
                let (begun, mut times) = (Instant::now(), Vec::new());
                for turn in 1.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    thread::sleep((UPDATE_EVERY * turn).saturating_sub(begun.elapsed()));
                    let (table, row) =
                        (rand::rng().random_range(1..=self.tables), rand::rng().random_range(1..=self.rows));
                    let asked = Instant::now();
                    connection.execute(format!("UPDATE sbtest.sbtest{table} SET k = k + 1 WHERE id = {row}"))?;
                    times.push(asked.elapsed().as_secs_f64() * 1e3);
                }
                Ok(times)
            });
            let begun = Instant::now();
            let worked = work();
            let seconds = begun.elapsed().as_secs_f64();
            done.store(true, Ordering::Relaxed);
            let times = updates.join().map_err(|_| anyhow::anyhow!("the thread that updates has panicked"))??;
            worked?;
            Ok((seconds, percentile(times, 99)))
        })
    }

    fn dump(&self, target: &Server) -> Result<()> {
        let program = if self.kind.is_mariadb() { "mariadb-dump" } else { "mysqldump" };
        let position = if self.kind.is_mariadb() { "--master-data=2" } else { "--source-data=2" };
        let mut dump = self
            .source
            .program(program)
            .arg(format!("--socket={}", self.source.socket().display()))
            .args(["--single-transaction", position, "--databases", "sbtest"])
            .args((!self.kind.is_mariadb()).then_some("--set-gtid-purged=COMMENTED"))
            .stdout(Stdio::piped())
            .spawn()?;
        let output = dump.stdout.take().context("the dump's output")?;
        let loaded = target.client(&[]).stdin(output).output()?;
        ensure!(dump.wait()?.success() && loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        Ok(())
    }

    fn mydumper(&self, target: &Server, loader: &[&str]) -> Result<()> {
        let folder = tempfile::tempdir_in(target.dir())?;
        let workers = self.workers.to_string();
        for (program, server, more) in [
            ("mydumper", &self.source, &["--database=sbtest", "--trx-consistency-only", "--rows=100000"][..]),
            ("myloader", target, loader),
        ] {
            let folder_option = if program == "mydumper" { "--outputdir" } else { "--directory" };
            let run = Command::new(program)
                .args(["--user", USER, "--password", PASSWORD, "--socket"])
                .arg(server.socket())
                .args(["--threads", &workers, folder_option])
                .arg(folder.path())
                .args(more)
                .output()?;
            ensure!(run.status.success(), "{program}: {}", String::from_utf8_lossy(&run.stderr));
        }
        Ok(())
    }

    fn heddle(&self, target: &Server) -> Result<()> {
        let (from, to, workers) = (self.source.url(), target.url(), self.workers.to_string());
        let relay = target.dir().join("relay").display().to_string();
        let arguments = [
            "replicate",
            "--copy",
            "--until-end",
            "--from",
            &from,
            "--to",
            &to,
            "--workers",
            &workers,
            "--relay-dir",
            &relay,
            "--json",
        ];
        Heddle::start(&arguments)?.wait_up_to(Duration::from_secs(7200))?.successful().map(drop)
    }
}
