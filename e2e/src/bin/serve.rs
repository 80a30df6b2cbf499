//! The figures of `heddle serve`: what it sends, receives, takes of memory, how long attaching takes, and how much later the last of many replicas has a commit. Beside the source itself.
//!
//! Without an argument all parts; else the named ones: stream, mirror (beside `mysqlbinlog --raw`), attach, fan-out.
//! HEDDLE_BENCH_BYTES (of `mirror` a quarter), HEDDLE_BENCH_REPLICAS, HEDDLE_BENCH_FILES and HEDDLE_BENCH_COMMITS make it smaller or larger.
//! On a machine that does other work only what is counted in processor time means something; the rest is given as it was.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use binlog::gtids::GtidSet;
use e2e::bench::median;
use e2e::heddle::Heddle;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port};
use wire::{BinlogStream, ConnectOptions, Connection, DUMP_NON_BLOCK, DumpOptions, DumpRequest, Error, SslMode};

const MARK: &[u8] = b"beat-";
const RUNS: usize = 5;

struct Wanted {
    bytes: u64,
    replicas: usize,
    files: usize,
    commits: usize,
}

fn main() -> Result<()> {
    let number = |name: &str, default: u64| -> Result<u64> {
        std::env::var(name).ok().map_or(Ok(default), |text| text.parse().context(name.to_owned()))
    };
    let wanted = Wanted {
        bytes: number("HEDDLE_BENCH_BYTES", 1 << 30)?,
        replicas: usize::try_from(number("HEDDLE_BENCH_REPLICAS", 200)?)?,
        files: usize::try_from(number("HEDDLE_BENCH_FILES", 1000)?)?,
        commits: usize::try_from(number("HEDDLE_BENCH_COMMITS", 300)?)?,
    };
    let top = tempfile::tempdir_in(std::env::var_os("HEDDLE_E2E_DIR").unwrap_or_else(|| "/tmp".into()))?;
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let parts = ["stream", "mirror", "attach", "fan-out"];
    ensure!(asked.iter().all(|part| parts.contains(&part.as_str())), "parts: {}", parts.join(", "));
    for part in parts.into_iter().filter(|part| asked.is_empty() || asked.iter().any(|asked| asked == part)) {
        let dir = top.path().join(part);
        match part {
            "stream" => {
                for length in [200, 8000] {
                    stream(&wanted, length, &dir.join(length.to_string()))?;
                }
            }
            "mirror" => {
                for kind in [MYSQL_9_7, MARIADB_10_11] {
                    mirror(&wanted, kind, &dir.join(kind.to_string()))?;
                }
            }
            "attach" => attach(&wanted, &dir)?,
            _ => fan_out(&wanted, &dir)?,
        }
    }
    Ok(())
}

fn say(line: &str) {
    // A figure that nobody reads is no error.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("{line}\n").as_bytes());
}

fn options(port: u16) -> ConnectOptions {
    let password = Some(PASSWORD.into());
    let mut options = ConnectOptions { port, user: USER.to_owned(), password, ..ConnectOptions::default() };
    options.tls.mode = SslMode::Disabled;
    options.password_options.get_server_public_key = true;
    options
}

fn serve(from: u16, dir: &Path, more: &[&str]) -> Result<Heddle> {
    let from = format!("mysql://{USER}@127.0.0.1:{from}?ssl-mode=disabled&get-server-public-key=true");
    let dir = dir.display().to_string();
    Heddle::start(&[&["serve", "--from", &from, "--dir", &dir][..], more].concat())
}

fn listening(from: u16, dir: &Path, port: u16) -> Result<Heddle> {
    let listen = format!("127.0.0.1:{port}");
    let mut heddle = serve(from, dir, &["--listen", &listen, "--replica-user", USER])?;
    heddle.wait_for_log("mirroring")?;
    Ok(heddle)
}

/// Processor seconds that a process has had.
fn cpu(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit_once(')').context("stat")?.1.split_whitespace().collect();
    let ticks: u64 =
        fields.get(11).context("utime")?.parse::<u64>()? + fields.get(12).context("stime")?.parse::<u64>()?;
    Ok(ticks as f64 / 100.0)
}

fn at(sorted: &[f64], share: f64) -> f64 {
    let index = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default() * 1e3
}

/// All files from the first on, to their end; how many bytes.
fn read_all(port: u16) -> Result<u64> {
    let request =
        DumpRequest::FilePosition { file: String::new(), position: 4, server_id: 4242, flags: DUMP_NON_BLOCK };
    let dump = DumpOptions { non_block: true, ..DumpOptions::default() };
    let mut stream = Connection::connect(&options(port))?.binlog_dump_with(&request, &dump)?;
    let mut bytes = 0;
    loop {
        match stream.next() {
            Ok(packet) => bytes += packet.bytes.len() as u64,
            Err(Error::DumpEnded) => return Ok(bytes),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sealed files to one local reader, and receiving.
fn stream(wanted: &Wanted, length: usize, dir: &Path) -> Result<()> {
    let source = Server::start(
        MYSQL_9_7,
        &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--max-binlog-size=268435456"],
    )?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")?;
    source
        .execute(&format!("INSERT INTO d.t (v) VALUES {}", vec![format!("(REPEAT('x', {length}))"); 100].join(",")))?;
    // Single rows: each event is a row; ten to a transaction.
    let pid = u32::try_from(source.pid().context("no source")?)?;
    let mut connection = source.connect()?;
    let size = |connection: &mut Connection| -> Result<u64> {
        Ok(wire::source::binary_logs(connection)?.iter().map(|log| log.offset).sum())
    };
    let statement = "INSERT INTO d.t (v) SELECT v FROM d.t LIMIT 1;".repeat(10);
    let transaction = format!("BEGIN; {statement} COMMIT;");
    while size(&mut connection)? < wanted.bytes {
        for _ in 0..200 {
            connection.execute(&transaction)?;
        }
    }
    connection.execute("FLUSH BINARY LOGS")?;
    let mut received = Vec::new();
    for run in 0..RUNS {
        let target = dir.join(format!("mirror-{run}"));
        let began = Instant::now();
        let heddle = serve(source.port, &target, &["--until-end"])?;
        let run = heddle.wait()?.successful()?;
        let bytes: u64 =
            run.stdout.split("; ").nth(1).and_then(|text| text.split(' ').next()).context("bytes")?.parse()?;
        received.push(bytes as f64 / 1e6 / began.elapsed().as_secs_f64());
    }
    let best = received.iter().copied().fold(0.0, f64::max);
    say(&format!(
        "| {length} | receiving, from mysqld, start and end included | median {:.0}, best {best:.0} MB/s |",
        median(received)
    ));
    let port = free_port()?;
    let mirror = dir.join("mirror-0");
    let heddle = listening(source.port, &mirror, port)?;
    let mut rates = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (which, (port, pid)) in [(source.port, pid), (port, heddle.pid())].into_iter().enumerate() {
            let (before, began) = (cpu(pid)?, Instant::now());
            let bytes = read_all(port)? as f64 / 1e6;
            let (seconds, used) = (began.elapsed().as_secs_f64(), cpu(pid)? - before);
            for (to, rate) in [(which * 2, bytes / seconds), (which * 2 + 1, bytes / used.max(0.01))] {
                if let Some(rates) = rates.get_mut(to) {
                    rates.push(rate);
                }
            }
        }
    }
    let shown = rates.map(|rates| {
        format!("median {:.0}, best {:.0}", median(rates.clone()), rates.iter().copied().fold(0.0, f64::max))
    });
    let [direct, direct_cpu, through, through_cpu] = shown;
    say(&format!(
        "| {length} | sending, mysqld, MB/s; MB for each second of its processor time | {direct}; {direct_cpu} |"
    ));
    say(&format!(
        "| {length} | sending, heddle, MB/s; MB for each second of its processor time | {through}; {through_cpu} |"
    ));
    heddle.terminate()?;
    heddle.wait()?.successful()?;
    Ok(())
}

/// All that a source has, beside `mysqlbinlog --raw`, in turns: single rows of 200 bytes, each a transaction. Start and end are included, and Heddle's checks and fsyncs.
fn mirror(wanted: &Wanted, kind: Kind, dir: &Path) -> Result<()> {
    let source =
        Server::start(kind, &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--max-binlog-size=268435456"])?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")?;
    let mut connection = source.connect()?;
    let statement = "INSERT INTO d.t (v) VALUES (REPEAT('x', 200));".repeat(100);
    let size = |connection: &mut Connection| -> Result<u64> {
        Ok(wire::source::binary_logs(connection)?.iter().map(|log| log.offset).sum())
    };
    while size(&mut connection)? < wanted.bytes / 4 {
        for _ in 0..20 {
            connection.execute(&statement)?;
        }
    }
    let logs = wire::source::binary_logs(&mut connection)?;
    let first = logs.first().context("a log")?.file.to_string();
    let megabytes = size(&mut connection)? as f64 / 1e6;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let began = Instant::now();
        serve(source.port, &dir.join(format!("heddle-{run}")), &["--until-end"])?.wait()?.successful()?;
        ours.push(began.elapsed().as_secs_f64());
        let folder = dir.join(format!("raw-{run}"));
        std::fs::create_dir_all(&folder)?;
        let mut raw = source.program("mysqlbinlog");
        raw.args(["--read-from-remote-server", "--raw", "--to-last-log", "--host=127.0.0.1"])
            .args([format!("--port={}", source.port), format!("--result-file={}/", folder.display()), first.clone()])
            .args([if kind.is_mariadb() { "--skip-ssl" } else { "--ssl-mode=DISABLED" }])
            .args((!kind.is_mariadb()).then_some("--get-server-public-key"));
        let began = Instant::now();
        ensure!(raw.status()?.success(), "mysqlbinlog failed");
        theirs.push(began.elapsed().as_secs_f64());
        std::fs::remove_dir_all(&folder)?;
    }
    let shown = |seconds: &[f64]| {
        let all: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:.2}")).collect();
        format!("median {:.2} s ({})", median(seconds.to_vec()), all.join(", "))
    };
    say(&format!(
        "| {kind}, {megabytes:.0} MB of small transactions | heddle serve {}; mysqlbinlog --raw {}; {:.2} × |",
        shown(&ours),
        shown(&theirs),
        median(theirs.clone()) / median(ours.clone())
    ));
    Ok(())
}

/// By GTID, in a mirror of many files.
fn attach(wanted: &Wanted, dir: &Path) -> Result<()> {
    let source = Server::start(MYSQL_9_7, &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"])?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")?;
    let mut connection = source.connect()?;
    for _ in 0..wanted.files {
        connection.execute("INSERT INTO d.t (v) VALUES ('x')")?;
        connection.execute("FLUSH BINARY LOGS")?;
    }
    let all: GtidSet = connection.scalar("SELECT @@gtid_executed")?.context("GTIDs")?.parse()?;
    let uuid = connection.scalar("SELECT @@server_uuid")?.context("uuid")?;
    serve(source.port, dir, &["--until-end"])?.wait()?.successful()?;
    serve(source.port, &dir.with_extension("packed"), &["--until-end", "--compress-sealed"])?.wait()?.successful()?;
    let time = |port: u16, has: &GtidSet| -> Result<f64> {
        let mut options = options(port);
        options.limits.read_timeout = Some(Duration::from_secs(60));
        let connection = Connection::connect(&options)?;
        let began = Instant::now();
        let request = DumpRequest::MySqlGtid { gtid_set_binary: has.to_binary(), server_id: 4243 };
        let mut stream = connection.binlog_dump_with(&request, &DumpOptions::default())?;
        // A rotate and a format description are sent at once; the first event of a transaction comes when the place is found.
        for _ in 0..4 {
            stream.next()?;
        }
        Ok(began.elapsed().as_secs_f64() * 1e3)
    };
    let early: GtidSet = format!("{uuid}:1-{}", wanted.files / 10).parse()?;
    let late: GtidSet = format!("{uuid}:1-{}", wanted.files - 2).parse()?;
    ensure!(all.contains_set(&late), "{all}");
    for (name, folder) in [("", dir.to_owned()), (", compressed", dir.with_extension("packed"))] {
        for (which, has) in [("the first tenth", &early), ("all but the last", &late)] {
            let port = free_port()?;
            let heddle = listening(source.port, &folder, port)?;
            let first = time(port, has)?;
            let again = median((0..20).map(|_| time(port, has)).collect::<Result<Vec<f64>>>()?);
            let direct = median((0..20).map(|_| time(source.port, has)).collect::<Result<Vec<f64>>>()?);
            say(&format!(
                "| attach by GTID, {} files{name}, has {which} | first {first:.1} ms, then {again:.1} ms; mysqld {direct:.1} ms |",
                wanted.files
            ));
            heddle.terminate()?;
            heddle.wait()?.successful()?;
        }
    }
    Ok(())
}

/// From the answer to a commit until the last of so many readers has it.
fn last_receives(wanted: &Wanted, source: &Server, port: u16, readers: usize) -> Result<Vec<f64>> {
    let (done, ready) = (AtomicBool::new(false), AtomicU64::new(0));
    let (tell, told) = channel();
    let mut connection = source.connect()?;
    let place = wire::source::log_end(&mut connection)?;
    thread::scope(|scope| {
        for number in 0..readers {
            let (tell, place, done, ready) = (tell.clone(), place.clone(), &done, &ready);
            let reader = move || -> Result<()> {
                let request = DumpRequest::FilePosition {
                    file: place.file.to_string(),
                    position: place.offset,
                    server_id: 10_000 + number as u32,
                    flags: 0,
                };
                let dump = DumpOptions { heartbeat_period: Duration::from_secs(1), ..DumpOptions::default() };
                let stream = Connection::connect(&options(port))?.binlog_dump_with(&request, &dump)?;
                ready.fetch_add(1, Ordering::Relaxed);
                receive(stream, &tell, done)
            };
            scope.spawn(move || {
                if let Err(error) = reader() {
                    say(&format!("reader {number}: {error:#}"));
                }
            });
        }
        drop(tell);
        let began = Instant::now();
        while ready.load(Ordering::Relaxed) < readers as u64 {
            ensure!(began.elapsed() < Duration::from_secs(60), "not all readers came");
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_secs(1));
        let mut answered = Vec::new();
        for number in 0..wanted.commits {
            connection.execute(format!("INSERT INTO d.t (v) VALUES ('beat-{number:06}')"))?;
            answered.push(Instant::now());
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_secs(1));
        done.store(true, Ordering::Relaxed);
        let mut last = vec![(0_usize, None::<Instant>); wanted.commits];
        for (number, when) in told {
            if let Some((count, at)) = last.get_mut(number) {
                *count += 1;
                *at = (*at).max(Some(when));
            }
        }
        ensure!(last.iter().all(|(count, _)| *count == readers), "a reader lacks something");
        let late = |((_, at), answered): (&(usize, Option<Instant>), &Instant)| {
            at.map_or(0.0, |at| at.saturating_duration_since(*answered).as_secs_f64())
        };
        let mut all: Vec<f64> = last.iter().zip(&answered).map(late).collect();
        all.sort_by(f64::total_cmp);
        Ok(all)
    })
}

fn receive(mut stream: BinlogStream, tell: &Sender<(usize, Instant)>, done: &AtomicBool) -> Result<()> {
    loop {
        let packet = stream.next()?;
        if let Some(from) = packet.bytes.windows(MARK.len()).position(|found| found == MARK) {
            let digits = packet.bytes.get(from + MARK.len()..from + MARK.len() + 6).unwrap_or_default();
            if let Some(number) = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()) {
                let _ = tell.send((number, Instant::now()));
            }
        }
        if done.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

/// Many replicas at the head.
fn fan_out(wanted: &Wanted, dir: &Path) -> Result<()> {
    let source = Server::start(MYSQL_9_7, &["--max-connections=1000"])?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)")?;
    let port = free_port()?;
    let heddle = listening(source.port, dir, port)?;
    let many = wanted.replicas;
    for (name, port, readers) in [
        ("one at the source", source.port, 1),
        ("one at heddle", port, 1),
        ("many at the source", source.port, many),
        ("many at heddle", port, many),
        ("one at the source, again", source.port, 1),
        ("many at heddle, again", port, many),
    ] {
        let all = last_receives(wanted, &source, port, readers)?;
        say(&format!(
            "| {name} ({readers}) | commit to last receive: p50 {:.2} ms, p99 {:.2} ms |",
            at(&all, 0.5),
            at(&all, 0.99)
        ));
    }
    let memory = heddle.resident_max().unwrap_or_default();
    say(&format!(
        "| heddle with {many} replicas | most memory {:.1} MiB, processor time {:.1} s |",
        memory as f64 / 1048576.0,
        cpu(heddle.pid())?
    ));
    heddle.terminate()?;
    heddle.wait()?.successful()?;
    Ok(())
}
