//! `heddle serve --archive`: a source's logs go into an object store and come back from it, byte for byte, whatever is killed and however the store fails. In the default run
//! the store is a folder; `scripts/nightly archive` has S3 servers and a proxy before them.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::checksum::assert_equal as assert_same_rows;
use e2e::heddle::{Heddle, Run};
use e2e::http_proxy::{HttpProxy, Mood};
use e2e::mirror::{assert_equal, insert, wait_until_reached};
use e2e::native::{configure_at, configure_port, position, statement, wait_position};
use e2e::refusal::{TABLE, refused};
use e2e::retagged::RETAG;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, USER, free_port};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const STUCK_AFTER: Duration = Duration::from_secs(240);

/// A store, and how a heddle reaches it.
struct Place<'a> {
    url: &'a str,
    environment: Vec<(String, String)>,
}

impl Place<'_> {
    fn heddle(&self, arguments: &[&str]) -> Result<Heddle> {
        Heddle::start_with(arguments, &self.environment)
    }

    fn run(&self, arguments: &[&str]) -> Result<Run> {
        self.heddle(arguments)?.wait()
    }

    /// A mirror that is archived; its files are not what is read here.
    fn begin(&self, source: &Server, dir: &Path, more: &[&str]) -> Result<Heddle> {
        let (from, dir) = (source.plain_url(), dir.display().to_string());
        let all = ["serve", "--from", &from, "--dir", &dir, "--archive", self.url, "--archive-every", "0"];
        self.heddle(&[&all, more].concat())
    }

    fn to_the_end(&self, source: &Server, dir: &Path) -> Result<Run> {
        self.begin(source, dir, &["--until-end"])?.wait()
    }

    /// A new folder from the archive alone, equal to the source's files.
    fn come_back(&self, source: &Server) -> Result<()> {
        self.run(&["archive", "verify", self.url])?.successful()?;
        let dir = tempfile::tempdir()?;
        let filled = ["serve", "--from", self.url, "--dir", &dir.path().display().to_string(), "--until-end"];
        self.run(&filled)?.successful()?;
        assert_equal(source, dir.path())?;
        // Again: nothing comes, nothing is changed.
        let again = self.run(&filled)?.successful()?;
        ensure!(again.stdout.contains("; 0 bytes came"), "{again}");
        Ok(())
    }
}

fn folder(url: &str) -> Place<'_> {
    Place { url, environment: Vec::new() }
}

/// Killed again and again while the source writes: the archive is whole at every moment, and has everything at the end.
fn kills(source: &Server, dir: &Path, place: &Place<'_>, kills: u32, seed: u64) -> Result<()> {
    let done = AtomicBool::new(false);
    let mut random = StdRng::seed_from_u64(seed);
    thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            let mut connection = source.connect()?;
            let mut random = StdRng::seed_from_u64(seed + 1);
            for id in 1000.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let length = random.random_range(1..60_000);
                connection.execute(format!("INSERT INTO d.big VALUES ({id}, REPEAT('y', {length}))"))?;
                if id % 40 == 0 {
                    connection.execute("FLUSH BINARY LOGS")?;
                }
            }
            Ok(())
        });
        let killed = (0..kills).try_for_each(|_| -> Result<()> {
            let heddle = place.begin(source, dir, &[])?;
            thread::sleep(Duration::from_millis(random.random_range(100..900)));
            heddle.kill()?;
            heddle.wait()?;
            let seen = place.run(&["archive", "verify", place.url])?;
            // Before the first object was put there is none.
            ensure!(seen.status.success() || seen.stderr.contains("there is no archive"), "seed {seed}: {seen}");
            Ok(())
        });
        done.store(true, Ordering::Relaxed);
        let written = writer.join().map_err(|_| anyhow::anyhow!("the writer has ended"))?;
        killed.and(written)
    })
}

/// The second half of the log reaches a replica from the archive alone; the first half was restored from it.
fn restored_and_attached(source: &Server, replica: &Server, place: &Place<'_>, half: &(String, u64)) -> Result<()> {
    let to = replica.url();
    let until = format!("{}:{}", half.0, half.1);
    let restore = ["replicate", "--from", place.url, "--to", &to, "--until-position", &until];
    place.run(&[&restore[..], &["--dry-run"]].concat())?.successful()?;
    place.run(&restore)?.successful()?;
    ensure!(replica.scalar("SELECT COUNT(*) FROM d.t")? == "5", "not the first half");
    let (dir, port) = (tempfile::tempdir()?, free_port()?);
    let (path, listen) = (dir.path().join("served").display().to_string(), format!("127.0.0.1:{port}"));
    let arguments = ["serve", "--from", place.url, "--dir", &path, "--listen", &listen, "--replica-user", USER];
    // Nobody says what the tables are: the log itself makes them.
    let served = place.heddle(&[&arguments[..], RETAG].concat())?;
    configure_at(source, replica, &half.0, half.1)?;
    configure_port(replica, port)?;
    replica.execute(statement(replica, "START"))?;
    // Not its position: MariaDB notes a checkpoint in the log after the archive has ended.
    let rows = || -> Result<bool> {
        let count = "SELECT (SELECT COUNT(*) FROM d.t) + (SELECT COUNT(*) FROM d.big)";
        Ok(source.scalar(count)? == replica.scalar(count)?)
    };
    let started = Instant::now();
    while !rows()? {
        ensure!(started.elapsed() < STUCK_AFTER, "the replica does not catch up: {}", served.log());
        thread::sleep(Duration::from_millis(50));
    }
    assert_same_rows(source, replica)?;
    replica.execute(statement(replica, "STOP"))?;
    served.terminate()?;
    served.wait()?.successful()?;
    let tags = std::fs::read_dir(&path)?.filter_map(|entry| entry.ok().map(|entry| entry.file_name()));
    ensure!(tags.into_iter().any(|name| name.to_string_lossy().ends_with(".tags")), "no new tags");
    Ok(())
}

fn there_and_back(kind: Kind, place: &Place<'_>, killed: u32) -> Result<()> {
    let seed: u64 = rand::random_range(0..1 << 31);
    eprintln!("seed {seed}");
    let (source, replica) = Server::start_two((kind, &["--max-binlog-size=1048576"]), (kind, &[]))?;
    let dir = tempfile::tempdir()?;
    source.execute(&format!("{TABLE}; CREATE TABLE d.big (id INT PRIMARY KEY, v LONGBLOB)"))?;
    insert(&source, 0..5)?;
    let half = position(&source)?;
    insert(&source, 5..8)?;
    kills(&source, &dir.path().join("mirror"), place, killed, seed)?;
    source.rotate()?;
    let run = place.to_the_end(&source, &dir.path().join("mirror"))?.successful()?;
    ensure!(run.stdout.contains("archived up to binlog."), "{run}");
    place.come_back(&source)?;
    listed(place, &source)?;
    restored_and_attached(&source, &replica, place, &half)?;
    // The source and the mirror lose what is old; the mirror goes on, and the archive with it.
    let current = source.current_log()?;
    let current = current.file_name().context("a name")?.to_string_lossy().into_owned();
    source.execute(&format!("PURGE BINARY LOGS TO '{current}'"))?;
    insert(&source, 20..23)?;
    place.begin(&source, &dir.path().join("mirror"), &["--until-end", "--keep-bytes", "1"])?.wait()?.successful()?;
    place.run(&["archive", "verify", place.url, "--quick"])?.successful()?;
    pruned(place, &current)?;
    refusals(place, &source, dir.path())
}

/// What is listed is what is there; `inspect` reads it.
fn listed(place: &Place<'_>, source: &Server) -> Result<()> {
    let names = |more: &[&str]| -> Result<Vec<String>> {
        let run = place.run(&[&["archive", "ls", place.url, "--json"], more].concat())?.successful()?;
        let files: serde_json::Value = serde_json::from_str(&run.stdout)?;
        let name = |file: &serde_json::Value| file["file"].as_str().unwrap_or_default().to_owned();
        Ok(files.as_array().context("a list")?.iter().map(name).collect())
    };
    let all = names(&[])?;
    ensure!(all.len() == source.binary_logs()?.len() && all.len() > 3, "{all:?}");
    ensure!(names(&["--since", "2020-01-01 00:00:00"])? == all);
    ensure!(names(&["--until", "2020-01-01 00:00:00"])?.is_empty());
    let gtid = if source.kind.is_mariadb() {
        let last = source.scalar("SELECT @@gtid_binlog_pos")?;
        last.replace(last.rsplit('-').next().unwrap_or_default(), "2")
    } else {
        format!("{}:2", source.scalar("SELECT @@server_uuid")?)
    };
    ensure!(names(&["--gtid", &gtid])? == all[..1], "{gtid}: {:?}", names(&["--gtid", &gtid])?);
    let text = place.run(&["archive", "ls", place.url])?.successful()?;
    ensure!(text.stdout.contains(&all[1]), "{text}");
    let seen = place.run(&["inspect", place.url, "--json"])?.successful()?;
    let report: serde_json::Value = serde_json::from_str(&seen.stdout)?;
    ensure!(report["files"].as_array().is_some_and(|files| files.len() == all.len()), "{seen}");
    let find = ["inspect", place.url, "--json", "--find", "insert d.big", "--where", "id=1001"];
    let found = place.run(&find)?.successful()?;
    let report: serde_json::Value = serde_json::from_str(&found.stdout)?;
    let hits = report["hits"].as_array().context("hits")?;
    ensure!(
        hits.len() == 1 && hits[0]["file"].as_str().is_some_and(|file| all.iter().any(|name| name == file)),
        "{found}"
    );
    Ok(())
}

/// Nothing goes unless asked, and never the last file.
fn pruned(place: &Place<'_>, last: &str) -> Result<()> {
    let count = || -> Result<u64> {
        let run = place.run(&["archive", "verify", place.url, "--json"])?.successful()?;
        let found: serde_json::Value = serde_json::from_str(&run.stdout)?;
        found["files"].as_u64().context("a number of files")
    };
    let planned = place.run(&["archive", "prune", place.url, "--keep-bytes", "1"])?.successful()?;
    ensure!(planned.stdout.contains("nothing was changed"), "{planned}");
    ensure!(count()? > 3);
    let done = place.run(&["archive", "prune", place.url, "--keep-bytes", "1", "--yes"])?.successful()?;
    ensure!(done.stdout.contains(&format!("the oldest file is {last}")), "{done}");
    ensure!(count()? == 1);
    Ok(())
}

fn refusals(place: &Place<'_>, source: &Server, dir: &Path) -> Result<()> {
    let other = format!("{}-none", place.url);
    let run = place.run(&["inspect", &other])?;
    refused(&run, &["there is no archive"])?;
    let to = format!("store:{}", dir.join("store").display());
    refused(&place.run(&["replicate", "--from", &other, "--to", &to])?, &["there is no archive"])?;
    let never = dir.join("never").display().to_string();
    let with_key =
        place.run(&["serve", "--from", &source.plain_url(), "--dir", &never, "--archive", "s3://key:secret@b"])?;
    refused(&with_key, &["no credentials"])?;
    ensure!(!with_key.stderr.contains("secret"), "{with_key}");
    for arguments in [["archive", "ls", "s3://key:secret@b"], ["inspect", "--json", "s3://key:secret@b"]] {
        let run = place.run(&arguments)?;
        refused(&run, &["no credentials"])?;
        ensure!(!run.stderr.contains("secret"), "{run}");
    }
    refused(&place.run(&["archive", "ls", "/srv/x"])?, &["is not an archive"])
}

#[test]
fn a_folder_mysql() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let url = format!("file://{}/archive", dir.path().display());
    there_and_back(MYSQL_9_7, &folder(&url), 4)
}

#[test]
#[ignore = "long: scripts/nightly"]
fn a_folder_mariadb() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let url = format!("file://{}/archive", dir.path().display());
    there_and_back(MARIADB_10_11, &folder(&url), kill_count())
}

fn kill_count() -> u32 {
    std::env::var("HEDDLE_ARCHIVE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

/// A real distributed S3 server: `HEDDLE_WEED` is the program of SeaweedFS.
struct Weed {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Weed {
    fn start() -> Result<Option<Weed>> {
        let Some(program) = std::env::var_os("HEDDLE_WEED") else { return Ok(None) };
        let dir = tempfile::tempdir()?;
        let mut command = Command::new(program);
        // For its logs.
        command.env("TMPDIR", dir.path());
        command.arg("server").arg(format!("-dir={}", dir.path().display())).args([
            "-ip=127.0.0.1",
            "-filer",
            "-s3",
            "-volume.max=40",
        ]);
        command.arg("-master.volumeSizeLimitMB=64");
        let port = free_port()?;
        for name in [
            "master.port",
            "master.port.grpc",
            "volume.port",
            "volume.port.grpc",
            "filer.port",
            "filer.port.grpc",
            "s3.port.grpc",
        ] {
            command.arg(format!("-{name}={}", free_port()?));
        }
        command.arg(format!("-s3.port={port}")).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("HEDDLE_WEED")?;
        let weed = Weed { child, port, _dir: dir };
        let started = Instant::now();
        while !weed.has_bucket()? {
            ensure!(started.elapsed() < STUCK_AFTER, "SeaweedFS does not start");
            thread::sleep(Duration::from_millis(200));
        }
        Ok(Some(weed))
    }

    fn has_bucket(&self) -> Result<bool> {
        let url = format!("http://127.0.0.1:{}/{BUCKET}", self.port);
        let made = Command::new("curl").args(["-s", "-o", "/dev/null", "-f", "-X", "PUT", &url]).status()?;
        Ok(made.success())
    }
}

impl Drop for Weed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BUCKET: &str = "logs-of-heddle";

/// Reached through the proxy.
fn s3<'a>(url: &'a str, proxy: &HttpProxy) -> Place<'a> {
    let pairs = [
        ("AWS_ACCESS_KEY_ID", "any".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", proxy.url()),
    ];
    Place { url, environment: pairs.map(|(name, value)| (name.to_owned(), value)).to_vec() }
}

#[test]
#[ignore = "long, needs SeaweedFS: scripts/nightly"]
fn seaweedfs_that_works() -> Result<()> {
    let Some(weed) = Weed::start()? else { bail!("HEDDLE_WEED is not set") };
    let proxy = HttpProxy::start(weed.port, 1)?;
    let url = format!("s3://{BUCKET}/mysql/one");
    there_and_back(MYSQL_9_7, &s3(&url, &proxy), kill_count() / 2)?;
    let url = format!("s3://{BUCKET}/mariadb");
    there_and_back(MARIADB_10_11, &s3(&url, &proxy), kill_count() / 2)
}

#[test]
#[ignore = "long, needs SeaweedFS: scripts/nightly"]
fn seaweedfs_with_faults() -> Result<()> {
    let Some(weed) = Weed::start()? else { bail!("HEDDLE_WEED is not set") };
    let seed = rand::random_range(0..1 << 31);
    eprintln!("seed of the proxy {seed}");
    let proxy = HttpProxy::start(weed.port, seed)?;
    proxy.set(Mood::Faults);
    let url = format!("s3://{BUCKET}/faults");
    there_and_back(MARIADB_10_11, &s3(&url, &proxy), kill_count() / 2)?;
    ensure!(proxy.faults() > 20, "{} faults of {} requests", proxy.faults(), proxy.requests());
    Ok(())
}

/// The mirror receives, and serves, whatever the store does; afterwards the archive catches up by itself. What is put is hardly more than the log.
#[test]
#[ignore = "long, needs SeaweedFS: scripts/nightly"]
fn a_store_never_stands_in_the_way() -> Result<()> {
    let Some(weed) = Weed::start()? else { bail!("HEDDLE_WEED is not set") };
    let proxy = HttpProxy::start(weed.port, 7)?;
    let url = format!("s3://{BUCKET}/moods");
    let place = s3(&url, &proxy);
    let (source, replica) = Server::start_two((MARIADB_10_11, &["--max-binlog-size=4194304"]), (MARIADB_10_11, &[]))?;
    source.execute(&format!("{TABLE}; CREATE TABLE d.big (id INT PRIMARY KEY, v LONGBLOB)"))?;
    let (dir, port) = (tempfile::tempdir()?, free_port()?);
    let (mirror, listen) = (dir.path().join("mirror"), format!("127.0.0.1:{port}"));
    let from = source.plain_url();
    let path = mirror.display().to_string();
    // Two files at most are kept, unless they are not archived.
    let arguments = [
        "serve",
        "--from",
        &from,
        "--dir",
        &path,
        "--archive",
        &url,
        "--archive-every",
        "1",
        "--keep-bytes",
        "8M",
        "--listen",
        &listen,
        "--replica-user",
        USER,
    ];
    let heddle = place.heddle(&arguments)?;
    let (file, offset) = ("binlog.000001".to_owned(), 4);
    configure_at(&source, &replica, &file, offset)?;
    configure_port(&replica, port)?;
    replica.execute(statement(&replica, "START"))?;
    let mut id = 0;
    for mood in [Mood::Gone, Mood::Full, Mood::Hangs, Mood::Faults, Mood::Well, Mood::Hangs] {
        proxy.set(mood);
        for _ in 0..12 {
            id += 1;
            // Not compressible.
            source.execute(&format!("INSERT INTO d.big SELECT {id}, GROUP_CONCAT(SHA2(CONCAT({id}, seq), 512) SEPARATOR '') FROM d.seq_1_to_8000"))?;
        }
        wait_until_reached(&source, &mirror)?;
        wait_position(&source, &replica)?;
        eprintln!("{mood:?}: received and served, {} requests, {} bytes put", proxy.requests(), proxy.put());
    }
    // Nothing that is not archived has gone.
    let files = std::fs::read_to_string(mirror.join("binlog.index"))?;
    proxy.set(Mood::Well);
    source.rotate()?;
    let started = Instant::now();
    let end = position(&source)?;
    loop {
        let run = place.run(&["archive", "ls", &url, "--json"])?;
        if run.stdout.contains(&format!("\"{}\"", end.0)) {
            break;
        }
        ensure!(started.elapsed() < STUCK_AFTER, "the archive does not catch up: {run}\n{}", heddle.log());
        thread::sleep(Duration::from_millis(500));
    }
    assert_same_rows(&source, &replica)?;
    let log = heddle.log();
    heddle.terminate()?;
    heddle.wait()?.successful()?;
    // One line for each change.
    let lines = log.lines().filter(|line| line.contains("archive s3://")).count();
    ensure!((2..=12).contains(&lines), "{lines} lines\n{log}\n{files}");
    ensure!(!log.contains("secret"), "{log}");
    place.to_the_end(&source, &mirror)?.successful()?;
    place.come_back(&source)
}

/// All uploads are hardly more than the log, also where it does not compress: counted by the proxy.
#[test]
#[ignore = "long, needs SeaweedFS: scripts/nightly"]
fn uploads_are_hardly_more_than_the_log() -> Result<()> {
    let Some(weed) = Weed::start()? else { bail!("HEDDLE_WEED is not set") };
    let proxy = HttpProxy::start(weed.port, 7)?;
    let url = format!("s3://{BUCKET}/uploads");
    let place = s3(&url, &proxy);
    let source = Server::start(MYSQL_9_7, &["--max-binlog-size=16777216"])?;
    source.execute(&format!("{TABLE}; CREATE TABLE d.big (id INT PRIMARY KEY, v LONGBLOB)"))?;
    let dir = tempfile::tempdir()?;
    let (from, path) = (source.plain_url(), dir.path().display().to_string());
    let heddle =
        place.heddle(&["serve", "--from", &from, "--dir", &path, "--archive", &url, "--archive-every", "1"])?;
    for id in 0..400 {
        source.execute(&format!("INSERT INTO d.big VALUES ({id}, REPEAT(RANDOM_BYTES(1000), 1)), ({id} + 100000, CONCAT(RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(1024)))"))?;
        let more: Vec<String> = (0..20)
            .map(|part| {
                format!(
                    "({}, CONCAT(RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(1024)))",
                    1_000_000 + id * 100 + part
                )
            })
            .collect();
        source.execute(&format!("INSERT INTO d.big VALUES {}", more.join(",")))?;
    }
    wait_until_reached(&source, dir.path())?;
    heddle.terminate()?;
    heddle.wait()?.successful()?;
    place.to_the_end(&source, dir.path())?.successful()?;
    let bytes: u64 =
        source.binary_logs()?.iter().map(|path| std::fs::metadata(path).map_or(0, |found| found.len())).sum();
    let put = proxy.put();
    eprintln!("{put} bytes put for {bytes} of the log: {:.3}", put as f64 / bytes as f64);
    ensure!(put * 100 <= bytes * 105, "{put} bytes for {bytes}");
    place.come_back(&source)
}
