//! `heddle serve` with several sources: another server takes the source's place when it has all that the mirror has, and only then.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::checksum::assert_equal;
use e2e::heddle::{Heddle, heddle};
use e2e::http::get;
use e2e::mirror::{assert_files, begin, contents, insert, mirror, stays, wait_until_reached};
use e2e::native::{configure, configure_port, gtids, native_replica, statement, wait_caught_up};
use e2e::refusal::TABLE;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port};
use serde_json::Value;
use wire::{ConnectOptions, Connection, DumpOptions, DumpRequest, SslMode};

const IDENTITY: [&str; 2] = ["SELECT @@server_uuid", "SELECT CONCAT('mariadb-server-', @@server_id)"];

/// Where the mirror keeps the files of its `number`th source.
fn folder(dir: &Path, number: usize, source: &Server) -> Result<PathBuf> {
    let identity = source.scalar(IDENTITY[usize::from(source.kind.is_mariadb())])?;
    Ok(dir.join(format!("source-{number}-{identity}")))
}

/// From the first file that is there, they are the source's.
fn assert_later_files(source: &Server, dir: &Path) -> Result<()> {
    let index = std::fs::read_to_string(dir.join("binlog.index"))?;
    let first = index.lines().next().context("no file")?.trim_start_matches("./").to_owned();
    let logs: Vec<PathBuf> = source.binary_logs()?.into_iter().skip_while(|log| !log.ends_with(&first)).collect();
    ensure!(assert_files(source, &logs, dir)? >= 1, "{index}");
    Ok(())
}

fn fails_over(kind: Kind) -> Result<()> {
    let options: &[&str] = if kind.is_mariadb() { &["--log-slave-updates"] } else { &[] };
    let (one, two) = Server::start_two((kind, options), (kind, options))?;
    let three = Server::start(kind, options)?;
    let mirrored = tempfile::tempdir()?;
    let dir = mirrored.path();
    native_replica(&one, &two)?;
    one.execute(TABLE)?;
    insert(&one, 0..3)?;
    one.rotate()?;
    insert(&one, 10..13)?;
    wait_caught_up(&one, &two)?;
    // So that not all of its files are needed.
    two.rotate()?;
    let second = two.url();
    let port = free_port()?;
    let listen = format!("127.0.0.1:{port}");
    let serving = ["--from", &second, "--failover-seconds", "1", "--listen", &listen, "--replica-user", USER];
    let mut attached = begin(&one, dir, &serving)?;
    // A replica of the mirror goes through all of it.
    attach(&one, &three, port)?;
    insert(&one, 20..23)?;
    wait_until_reached(&one, dir)?;
    wait_caught_up(&one, &two)?;
    wait_caught_up(&one, &three)?;
    let had = gtids(&one)?;
    let seen =
        until(dir, "all was sent", |seen| seen["replicas"][0]["behind"]["bytes"] == 0 && seen["lag"]["bytes"] == 0)?;
    ensure!(seen["source"]["state"] == "connected" && seen["replicas"][0]["account"] == USER, "{seen}");
    ensure!(seen["mirror"]["durable"] == seen["source"]["end"], "{seen}");
    let id: u64 = three.scalar("SELECT @@server_id")?.parse()?;
    ensure!(seen["replicas"][0]["server_id"] == id, "{seen}");

    // The source dies, and the other server is promoted.
    one.kill()?;
    two.execute(statement(&two, "STOP"))?;
    insert(&two, 30..33)?;
    attached.wait_for_log(" replaces ")?;
    let later = folder(dir, 2, &two)?;
    two.rotate()?;
    insert(&two, 40..43)?;
    wait_until_reached(&two, &later)?;
    ensure!(!attached.has_ended()?);
    wait_caught_up(&two, &three).context("through the fail-over")?;
    assert_equal(&two, &three)?;
    three.execute(statement(&three, "STOP"))?;
    // Positions of a former source are no positions of this one.
    refused_position(port)?;
    attached.terminate()?;
    attached.wait()?.successful()?;
    ensure!(status(dir)?["source"]["state"] == "not_running");
    two.rotate()?;
    mirror(&two, dir)?.successful()?;
    assert_later_files(&two, &later)?;
    let owner: Value = serde_json::from_slice(&std::fs::read(later.join("heddle-mirror.json"))?)?;
    ensure!(
        owner["after"]["gtids"].as_str().is_some_and(|gtids| !gtids.is_empty() && had.contains(gtids)),
        "{owner} {had}"
    );
    // The files before it stay, and are whole.
    let first = contents(dir)?;
    ensure!(first.keys().any(|path| path.ends_with("binlog.000002")), "{:?}", first.keys());

    // The old source comes back with a transaction that nobody else has. Neither mirror takes the other's.
    one.restart(&[])?;
    insert(&one, 50..51)?;
    stays(&one, dir, "it lacks the transactions")?;
    let of_old = tempfile::tempdir()?;
    mirror(&one, of_old.path())?.successful()?;
    stays(&two, of_old.path(), "it lacks the transactions")?;
    ensure!(contents(dir)? == first, "the first source's files have changed");

    repoints(&one, &two, &three)
}

/// A replica of whoever listens at the port.
fn attach(like: &Server, replica: &Server, port: u16) -> Result<()> {
    configure(like, replica)?;
    configure_port(replica, port)?;
    replica.execute(statement(replica, "START"))
}

fn status(dir: &Path) -> Result<Value> {
    heddle(&["status", "--json", "--dir", &dir.display().to_string()])?.successful()?.summary()
}

/// Until the status of the mirror says so.
fn until(dir: &Path, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let since = Instant::now();
    loop {
        let seen = status(dir)?;
        if is_so(&seen) {
            return Ok(seen);
        }
        ensure!(since.elapsed() < Duration::from_secs(60), "{what}: {seen}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn connect(port: u16) -> Result<Connection> {
    let password = Some(PASSWORD.into());
    let mut options = ConnectOptions { port, user: USER.to_owned(), password, ..ConnectOptions::default() };
    options.tls.mode = SslMode::Disabled;
    Ok(Connection::connect(&options)?)
}

fn refused_position(port: u16) -> Result<()> {
    let request = DumpRequest::FilePosition { file: "binlog.000001".to_owned(), position: 4, server_id: 99, flags: 0 };
    let mut stream = connect(port)?.binlog_dump_with(&request, &DumpOptions::default())?;
    let error = loop {
        if let Err(error) = stream.next() {
            break error;
        }
    };
    ensure!(error.code() == Some(1236) && error.to_string().contains("replaced by another server"), "{error}");
    Ok(())
}

/// One command points a running server to another source. Two servers run by one configuration file.
fn repoints(one: &Server, two: &Server, three: &Server) -> Result<()> {
    let top = tempfile::tempdir()?;
    let (moved, other) = (top.path().join("moved"), top.path().join("other"));
    let (port, http) = (free_port()?, free_port()?);
    let file = top.path().join("mirrors.toml");
    let (from, to) = (two.plain_url(), three.plain_url());
    std::fs::write(
        &file,
        format!(
            "[serve.moved]\nfrom = '{from}'\ndir = '{}'\nlisten = '127.0.0.1:{port}'\nreplica-user = '{USER}'\nhttp = '127.0.0.1:{http}'\n\
             [serve.other]\nfrom = '{from}'\ndir = '{}'\n",
            moved.display(),
            other.display()
        ),
    )?;
    let mut running = Heddle::start(&["run", &file.display().to_string()])?;
    wait_until_reached(two, &moved)?;
    wait_until_reached(two, &other)?;
    let dir = moved.display().to_string();
    // One that lacks something is not followed, and all goes on.
    let refused = heddle(&["repoint", "--dir", &dir, "--from", &one.plain_url()])?;
    refused.failed_with("it lacks the transactions")?;
    insert(two, 70..72)?;
    wait_until_reached(two, &moved)?;
    configure_port_and_start(three, two)?;
    wait_caught_up(two, three).context("a replica of the second source")?;
    three.execute(statement(three, "STOP"))?;
    three.rotate()?;
    insert(three, 80..82)?;
    heddle(&["repoint", "--dir", &dir, "--from", &to])?.successful()?;
    let later = folder(&moved, 2, three)?;
    wait_until_reached(three, &later)?;
    refused_position(port)?;

    // A replica that has nothing yet needs what only the former source's files have.
    let four = Server::start(one.kind, &[])?;
    attach(three, &four, port)?;
    wait_caught_up(three, &four).context("a new replica")?;
    assert_equal(three, &four)?;
    let seen = until(&moved, "all was sent", |seen| seen["replicas"][0]["behind"]["bytes"] == 0)?;
    ensure!(later == Path::new(seen["mirror"]["folder"].as_str().unwrap_or_default()), "{seen}");
    let shown = heddle(&["status", "--http", &format!("http://127.0.0.1:{http}")])?.successful()?.stdout;
    ensure!(shown.contains("connected to the source") && shown.contains("server_id "), "{shown}");
    let metrics = get(http, "/metrics")?;
    let label = format!("mirror=\"{dir}\"");
    ensure!(metrics.contains(&format!("heddle_mirror_connected{{{label}}} 1")), "{metrics}");
    ensure!(metrics.contains(&format!("heddle_mirror_behind_bytes{{{label}}} 0")), "{metrics}");
    let replica: u64 = four.scalar("SELECT @@server_id")?.parse()?;
    ensure!(metrics.contains(&format!("heddle_replica_behind_bytes{{{label},server_id=\"{replica}\"")), "{metrics}");

    // The source is away, and comes back.
    three.kill()?;
    let lost = until(&moved, "the source is gone", |seen| seen["source"]["state"] == "reconnecting")?;
    ensure!(lost["source"]["why"].as_str().is_some_and(|why| !why.is_empty()) && lost["lag"].is_null(), "{lost}");
    three.restart(&[])?;
    running.wait_for_log("the source is reachable again")?;
    ensure!(status(&other)?["source"]["state"] == "connected");
    running.terminate()?;
    running.wait()?.successful()?;
    // The operator says whose positions they are.
    let named = ["--listen", &format!("127.0.0.1:{port}"), "--replica-user", USER, "--positions-of"];
    let identity = three.scalar(IDENTITY[usize::from(three.kind.is_mariadb())])?;
    let mut named = begin(three, &moved, &[&named[..], &[&identity]].concat())?;
    named.wait_for_log("mirroring")?;
    let request = DumpRequest::FilePosition {
        file: three.current_log()?.file_name().context("a name")?.to_string_lossy().into_owned(),
        position: 4,
        server_id: 99,
        flags: 0,
    };
    connect(port)?.binlog_dump_with(&request, &DumpOptions::default())?.next()?;
    named.terminate()?;
    named.wait()?.successful()?;
    assert_later_files(three, &later)
}

/// It replicates from another server, where it is.
fn configure_port_and_start(replica: &Server, source: &Server) -> Result<()> {
    replica.execute(statement(replica, "STOP"))?;
    configure_port(replica, source.port)?;
    replica.execute(statement(replica, "START"))
}

#[test]
fn fails_over_mysql() {
    fails_over(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn fails_over_mariadb() {
    fails_over(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}
