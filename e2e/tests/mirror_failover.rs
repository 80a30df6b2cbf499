//! `heddle serve` with several sources: another server takes the source's place when it has all that the mirror has, and only then.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::mirror::{assert_files, begin, contents, insert, mirror, stays, wait_until_reached};
use e2e::native::{gtids, native_replica, statement, wait_caught_up};
use e2e::refusal::{TABLE, refused_with_remedy};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};

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
    let mut attached = begin(&one, dir, &["--from", &second, "--failover-seconds", "1"])?;
    insert(&one, 20..23)?;
    wait_until_reached(&one, dir)?;
    wait_caught_up(&one, &two)?;
    let had = gtids(&one)?;

    // The source dies, and the other server is promoted.
    one.kill()?;
    two.execute(statement(&two, "STOP"))?;
    insert(&two, 30..33)?;
    attached.wait_for_log("takes the place of")?;
    let later = folder(dir, 2, &two)?;
    two.rotate()?;
    insert(&two, 40..43)?;
    wait_until_reached(&two, &later)?;
    ensure!(!attached.has_ended()?);
    attached.terminate()?;
    attached.wait()?.successful()?;
    two.rotate()?;
    mirror(&two, dir)?.successful()?;
    assert_later_files(&two, &later)?;
    let owner: serde_json::Value = serde_json::from_slice(&std::fs::read(later.join("heddle-mirror.json"))?)?;
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

    // One command, without a list, points a mirror at another server.
    let moved = tempfile::tempdir()?;
    let three = mirror_of_replica(&two, kind, options, moved.path())?;
    // Not while replicas are served: they are sent the other server's positions.
    let serving = ["--listen", "127.0.0.1:0", "--replica-user", "repl", "--until-end"];
    refused_with_remedy(&begin(&three, moved.path(), &serving)?.wait()?, &["could take the place of"])?;
    mirror(&three, moved.path())?.successful()?;
    begin(&three, moved.path(), &serving)?.wait()?.successful()?;
    assert_later_files(&three, &folder(moved.path(), 2, &three)?)
}

/// A mirror of `two`, and a replica of it that has more.
fn mirror_of_replica(two: &Server, kind: Kind, options: &[&str], dir: &Path) -> Result<Server> {
    let three = Server::start(kind, options)?;
    native_replica(two, &three)?;
    mirror(two, dir)?.successful()?;
    wait_caught_up(two, &three)?;
    three.execute(statement(&three, "STOP"))?;
    insert(&three, 60..62)?;
    three.rotate()?;
    Ok(three)
}

#[test]
fn fails_over_mysql() {
    fails_over(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn fails_over_mariadb() {
    fails_over(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}
