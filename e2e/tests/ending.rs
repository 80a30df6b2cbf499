//! SIGTERM ends heddle within five seconds, whatever it waits for, and nothing is lost by it.

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, Run};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// As of the signal. A machine that runs other tests beside this one needs some of it.
const SOON: Duration = Duration::from_secs(5);
const SLACK: Duration = Duration::from_secs(3);

fn ends_soon(heddle: Heddle, what: &str) -> Result<Run> {
    let since = Instant::now();
    heddle.terminate()?;
    let run = heddle.wait()?;
    ensure!(since.elapsed() < SOON + SLACK, "{what}: after {:?}: {run}", since.elapsed());
    Ok(run)
}

fn signal(server: &Server, signal: Signal) -> Result<()> {
    let pid = server.pid().and_then(Pid::from_raw).context("the server's process")?;
    Ok(kill_process(pid, signal)?)
}

/// A channel that runs, and a change that it meets `held`.
fn meets(pair: &Pair, held: impl FnOnce() -> Result<()>, what: &str) -> Result<Run> {
    let mut heddle = pair.begin(&[])?;
    let rows = pair.source.rows("SELECT COUNT(*) FROM d.t")?;
    let since = Instant::now();
    while pair.target.rows("SELECT COUNT(*) FROM d.t").ok().as_ref() != Some(&rows) {
        ensure!(!heddle.has_ended()? && since.elapsed() < Duration::from_secs(60), "{what}: the channel does not run");
        thread::sleep(Duration::from_millis(50));
    }
    held()?;
    pair.source.run_script(b"INSERT INTO d.t (v) VALUES (1), (2); UPDATE d.t SET v = v + 1")?;
    thread::sleep(Duration::from_secs(2));
    ends_soon(heddle, what)
}

fn target_that_does_not_answer(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.run_script(b"CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT); INSERT INTO d.t (v) VALUES (1)")?;
    pair.to_the_end(&[])?;
    for lock in ["FLUSH TABLES WITH READ LOCK", "LOCK TABLES d.t WRITE", "BEGIN; SELECT * FROM d.t FOR UPDATE"] {
        let mut client = pair.target.connect()?;
        let run = meets(&pair, || Ok(client.query(lock).map(drop)?), lock)?;
        ensure!(run.stderr.contains("the target had not answered when heddle was asked to end"), "{lock}: {run}");
        drop(client);
        pair.to_the_end(&[])?;
    }
    let run = meets(&pair, || signal(&pair.target, Signal::STOP), "a target that hangs");
    signal(&pair.target, Signal::CONT)?;
    run?;
    pair.to_the_end(&[])?;
    let run = meets(&pair, || pair.target.kill(), "a target that is gone");
    pair.target.restart(&[])?;
    run?;
    pair.to_the_end(&[]).map(drop)
}

#[test]
fn a_target_that_does_not_answer_mysql() -> Result<()> {
    target_that_does_not_answer(MYSQL_9_7)
}

#[test]
fn a_target_that_does_not_answer_mariadb() -> Result<()> {
    target_that_does_not_answer(MARIADB_10_11)
}

/// A source that takes connections, and what it does with them.
fn source_that(plays: fn(TcpStream)) -> Result<Run> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let from = format!("mysql://u@{}?connect-timeout=600", listener.local_addr()?);
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let heddle = Heddle::start(&[
        "replicate",
        "--from",
        &from,
        "--to",
        &format!("store:{}", path("store")),
        "--relay-dir",
        &path("relay"),
    ])?;
    let (stream, _) = listener.accept()?;
    let play = thread::spawn(move || plays(stream));
    // The queue of who listens takes the others.
    thread::sleep(Duration::from_millis(500));
    let run = ends_soon(heddle, "a source that does not answer")?;
    ensure!(play.join().is_ok() && !run.status.success(), "{run}");
    Ok(run)
}

#[test]
fn a_source_that_says_nothing() -> Result<()> {
    let run = source_that(|mut stream| {
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    })?;
    ensure!(run.stderr.contains("stopped while waiting for the server's greeting"), "{run}");
    Ok(())
}

#[test]
fn a_source_that_drips() -> Result<()> {
    source_that(|mut stream| {
        let _ = stream.write_all(&[0x80, 0, 0, 0, 10]);
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(300));
        }
    })
    .map(drop)
}

/// `inspect` and `simulate` of a pipe that nobody has opened for writing, and of one whose writer says no more.
#[test]
fn a_pipe_that_is_silent() -> Result<()> {
    let golden =
        std::fs::read(e2e::repository().join("crates/binlog/tests/golden/mariadb-10.11").join("columns.binlog"))?;
    for command in ["inspect", "simulate"] {
        let folder = tempfile::tempdir()?;
        let pipe = folder.path().join("binlog.000001");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)?;
        for written in [None, Some(&binlog::MAGIC[..]), Some(&golden)] {
            let heddle = Heddle::start(&[command, &pipe.display().to_string()])?;
            // Opening it waits until heddle has.
            let writer = written.map(|_| std::fs::OpenOptions::new().write(true).open(&pipe)).transpose()?;
            if let (Some(mut writer), Some(written)) = (writer.as_ref(), written) {
                writer.write_all(written)?;
            }
            thread::sleep(Duration::from_secs(1));
            let run = ends_soon(heddle, command)?;
            let said = format!("{}{}", run.stdout, run.stderr);
            ensure!(run.status.code().is_some_and(|code| code != 0), "{command}: {run}");
            ensure!(said.contains("stopped by a signal before the end"), "{command}: {run}");
        }
    }
    Ok(())
}

/// `inspect` of a server that does not answer, before and behind the login.
#[test]
fn an_inspected_source_that_says_nothing() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let from = format!("mysql://u@{}?connect-timeout=600", listener.local_addr()?);
    let heddle = Heddle::start(&["inspect", "--from", &from])?;
    let (stream, _) = listener.accept()?;
    thread::sleep(Duration::from_millis(500));
    let run = ends_soon(heddle, "a source that says nothing")?;
    ensure!(!run.status.success(), "{run}");
    drop(stream);
    let source = Server::start(MARIADB_10_11, &[])?;
    let heddle = Heddle::start(&["inspect", "--from", &source.url(), "--follow"])?;
    thread::sleep(Duration::from_secs(2));
    signal(&source, Signal::STOP)?;
    thread::sleep(Duration::from_secs(2));
    let run = ends_soon(heddle, "a source that hangs");
    signal(&source, Signal::CONT)?;
    let run = run?;
    ensure!(run.status.code().is_some() && !run.stderr.contains("Something did not end"), "{run}");
    Ok(())
}

#[test]
fn no_part_of_a_password_is_said() -> Result<()> {
    for arguments in [
        &["replicate", "--from", "mysql://u:se/cr@et@h/d", "--to", "store:/nowhere"][..],
        &["replicate", "--from", "mysqll://u:secret@h", "--to", "store:/nowhere"],
        &["replicate", "--from", "u:secret@h", "--to", "store:/nowhere"],
        &["replicate", "--from", "/nowhere", "--to", "mysqll://u:secret@h"],
        &["replicate", "--from", "/nowhere", "--to", "mysql://u:se/cret@h"],
        &["replicate", "mysql://u:secret@h"],
        &["status", "--to=mysql://u:secret@h", "--no-such-option=mysql://u:secret@h"],
        &["inspect", "--from", "mysql://u:47/secret@h"],
        &["rescue", "--replica", "mysql://u:se?cret@h"],
    ] {
        let run = Heddle::start(arguments)?.wait()?;
        let said = format!("{}{}", run.stdout, run.stderr);
        ensure!(
            !run.status.success() && !said.contains("se/") && !said.contains("cret") && !said.contains("47/"),
            "{arguments:?}: {said}"
        );
    }
    Ok(())
}
