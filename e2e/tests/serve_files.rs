//! The files of `heddle serve`: which ones go, what a replica is told that needs one of them, and of a file that is damaged.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::native::{position, statement};
use e2e::served::{Ask, By, Served, assert_same, attach};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, free_port};
use wire::{BinlogStream, DumpOptions, DumpRequest};

const STUCK_AFTER: Duration = Duration::from_secs(120);
/// More than the sockets' buffers take in, so that a reader that takes nothing stays in the file.
const LARGE: &str = "INSERT INTO missed.t (b) VALUES (REPEAT('x', 4000000))";
const LARGE_ROWS: usize = 8;

fn removes(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    source.execute("CREATE DATABASE missed; CREATE TABLE missed.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")?;
    let dir = tempfile::tempdir()?;
    let (dir, port) = (dir.path(), free_port()?);
    purged(&source, &start(&source, dir, port, &[])?)?;
    stays(&source, &start(&source, dir, port, &[])?)?;
    is_missed(&source, &start(&source, dir, port, &["--replicas-may-miss"])?)
}

fn start(source: &Server, dir: &Path, port: u16, more: &[&str]) -> Result<Served> {
    Served::start(source.port, dir, port, &[&["--keep-bytes", "1"], more].concat())
}

/// The shown files become such.
fn until(served: &Served, is_so: &dyn Fn(&[String]) -> bool) -> Result<()> {
    let started = Instant::now();
    loop {
        let shown = served.connected()?.rows("SHOW BINARY LOGS")?;
        let shown: Vec<String> =
            shown.iter().map(|row| Ok(row.text(0)?.unwrap_or_default().to_owned())).collect::<Result<_>>()?;
        if is_so(&shown) {
            return Ok(());
        }
        ensure!(started.elapsed() < STUCK_AFTER, "{shown:?} are shown\n{}", served.heddle.log());
        thread::sleep(Duration::from_millis(50));
    }
}

/// The error that the stream ends with.
fn error_of(mut stream: BinlogStream) -> wire::Error {
    loop {
        if let Err(error) = stream.next() {
            return error;
        }
    }
}

/// What a new replica needs was removed: the server's own error. Also what goes when a file begins: what is shown is what is there.
fn purged(source: &Server, served: &Served) -> Result<()> {
    for _ in 0..3 {
        let current = position(source)?.0;
        until(served, &|shown| shown == [current.as_str()])?;
        source.rotate()?;
        source.execute("CREATE DATABASE IF NOT EXISTS rotated")?;
    }
    let (request, want) = if source.kind.is_mariadb() {
        let request =
            DumpRequest::MariaDb { slave_gtid_state: String::new(), strict: false, annotate: true, server_id: 77 };
        (request, "Could not find GTID state requested by slave in any binlog files")
    } else {
        let gtid_set_binary = binlog::gtids::GtidSet::default().to_binary();
        (DumpRequest::MySqlGtid { gtid_set_binary, server_id: 77 }, "the source purged required binary logs")
    };
    let error = error_of(served.connect(PASSWORD)?.binlog_dump_with(&request, &DumpOptions::default())?);
    ensure!(error.code() == Some(1236) && error.to_string().contains(want), "{error} is not {want}");
    Ok(())
}

/// A reader that is in a file, has taken in a little of it, and takes no more; the next two files have come. Returns the reader, its file, and the last one.
fn behind(source: &Server, served: &Served) -> Result<(BinlogStream, String, String)> {
    source.rotate()?;
    let first = position(source)?.0;
    for _ in 0..LARGE_ROWS {
        source.execute(LARGE)?;
    }
    until(served, &|shown| shown.last() == Some(&first))?;
    let request = DumpRequest::FilePosition { file: first.clone(), position: 4, server_id: 78, flags: 0 };
    let mut slow = served.connect(PASSWORD)?.binlog_dump_with(&request, &DumpOptions::default())?;
    slow.next()?;
    for _ in 0..2 {
        source.rotate()?;
        source.execute("INSERT INTO missed.t (b) VALUES ('x')")?;
    }
    let last = position(source)?.0;
    until(served, &|shown| shown.last() == Some(&last))?;
    Ok((slow, first, last))
}

/// What an attached replica is still to be sent is not removed.
fn stays(source: &Server, served: &Served) -> Result<()> {
    let (mut slow, first, last) = behind(source, served)?;
    until(served, &|shown| shown.first() == Some(&first))?;
    // All of it comes, up to the last file: also the last row, which is small.
    let wanted = last.into_bytes();
    while !slow.next()?.bytes.windows(wanted.len()).any(|window| window == wanted) {}
    Ok(())
}

/// It may be removed: the replica is told so behind the file that it is in, and is sent nothing from behind the gap.
fn is_missed(source: &Server, served: &Served) -> Result<()> {
    let (slow, _, last) = behind(source, served)?;
    until(served, &|shown| shown == [last.as_str()])?;
    let error = error_of(slow);
    ensure!(error.code() == Some(1236) && error.to_string().contains("could not find next log"), "{error}");
    Ok(())
}

/// The end of a large event is gone from the disk: who is being sent it can only lose the connection, who asks again is told why. The next file is served as before.
fn is_cut(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    source.execute("CREATE DATABASE missed; CREATE TABLE missed.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")?;
    let (file, offset) = position(&source)?;
    source.execute(LARGE)?;
    source.rotate()?;
    let dir = tempfile::tempdir()?;
    let served = Served::start(source.port, dir.path(), free_port()?, &[])?;
    let last = position(&source)?.0;
    until(&served, &|shown| shown.last() == Some(&last))?;
    let log = std::fs::OpenOptions::new().write(true).open(dir.path().join(&file))?;
    log.set_len(log.metadata()?.len() - 1_000_000)?;
    let error = |file: &str, position: u64| -> Result<wire::Error> {
        let request =
            DumpRequest::FilePosition { file: file.to_owned(), position, server_id: 79, flags: wire::DUMP_NON_BLOCK };
        let options = DumpOptions { non_block: true, ..DumpOptions::default() };
        Ok(error_of(served.connect(PASSWORD)?.binlog_dump_with(&request, &options)?))
    };
    let first = error(&file, offset)?;
    ensure!(first.is_connection_lost(), "{first}");
    let second = error(&file, offset)?;
    ensure!(second.code() == Some(1236) && second.to_string().contains("the file ends in it"), "{second}");
    let next = error(&last, 4)?;
    ensure!(matches!(next, wire::Error::DumpEnded), "{next}");
    Ok(())
}

/// A replica that keeps up has everything, however often files go and it attaches again.
fn replica_keeps_up(kind: Kind) -> Result<()> {
    let strict: &[&str] = if kind.is_mariadb() { &["--gtid-strict-mode=ON"] } else { &[] };
    let (source, replica) = Server::start_two((kind, &[]), (kind, strict))?;
    let dir = tempfile::tempdir()?;
    let served = start(&source, dir.path(), free_port()?, &["--replicas-may-miss"])?;
    source.execute("CREATE DATABASE kept; CREATE TABLE kept.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")?;
    attach(&replica, Ask::new(served.port, By::Gtid))?;
    assert_same(&source, &replica)?;
    for round in 0..12 {
        for _ in 0..3 {
            source.execute("INSERT INTO kept.t (b) VALUES (REPEAT('x', 100000))")?;
        }
        if round % 3 == 2 {
            assert_same(&source, &replica)?;
            replica.execute(statement(&replica, "STOP"))?;
            replica.execute(statement(&replica, "START"))?;
        }
        assert_same(&source, &replica)?;
        source.rotate()?;
    }
    source.execute("INSERT INTO kept.t (b) VALUES ('x')")?;
    assert_same(&source, &replica)?;
    replica_comes_again(&source, &replica, served, dir.path())
}

/// The server restarts while a replica is away: what the replica needs stays until it has come, or does not come for too long.
fn replica_comes_again(source: &Server, replica: &Server, served: Served, dir: &Path) -> Result<()> {
    let three_files = |served: &Served| -> Result<String> {
        for _ in 0..3 {
            source.execute("INSERT INTO kept.t (b) VALUES (REPEAT('y', 100000))")?;
            source.rotate()?;
        }
        source.execute("INSERT INTO kept.t (b) VALUES ('y')")?;
        let last = position(source)?.0;
        until(served, &|shown| shown.last() == Some(&last))?;
        Ok(last)
    };
    let served = served.restarted(source, dir, &["--keep-bytes", "1"])?;
    assert_same(source, replica)?;
    // As long as it is attached: it is written down that it is.
    until_written(dir)?;
    let needed = position(source)?.0;
    replica.execute(statement(replica, "STOP"))?;
    three_files(&served)?;
    let served = served.restarted(source, dir, &["--keep-bytes", "1"])?;
    three_files(&served)?;
    until(&served, &|shown| shown.contains(&needed))?;
    replica.execute(statement(replica, "START"))?;
    assert_same(source, replica)?;
    replica.execute(statement(replica, "STOP"))?;
    let last = three_files(&served)?;
    let mut served = served.restarted(source, dir, &["--keep-bytes", "1", "--keep-for-replicas-seconds", "0"])?;
    until(&served, &|shown| shown == [last.as_str()])?;
    // It is said when they are gone.
    served.heddle.wait_for_log("has been away for")?;
    served.heddle.wait_for_log("files removed, the oldest ones: ")
}

fn until_written(dir: &Path) -> Result<()> {
    e2e::until("what the replica needs is written down", || Ok(dir.join("heddle-replicas.json").exists()))
}

e2e::tests! {
    keeps_up_mysql: replica_keeps_up(MYSQL_9_7);
    keeps_up_mariadb: replica_keeps_up(MARIADB_10_11);
    is_cut_mysql: is_cut(MYSQL_9_7);
    is_cut_mariadb: is_cut(MARIADB_10_11);
    removes_mysql: removes(MYSQL_9_7);
    removes_mariadb: removes(MARIADB_10_11);
}
