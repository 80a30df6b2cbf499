//! Heddles below heddles: the source fails over above all of them, also while the middle one is killed, and a replica at the lowest one gets everything once.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::checksum::assert_equal;
use e2e::mirror::{assert_files, insert, wait_until_reached};
use e2e::native::{native_replica, statement, wait_caught_up};
use e2e::refusal::TABLE;
use e2e::served::{Ask, By, Served, assert_same, attach};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, free_port};

const DEPTH: usize = 3;
const IDENTITY: [&str; 2] = ["SELECT @@server_uuid", "SELECT CONCAT('mariadb-server-', @@server_id)"];

fn chain(kind: Kind) -> Result<()> {
    let options: &[&str] = if kind.is_mariadb() { &["--log-slave-updates"] } else { &[] };
    let (one, two) = Server::start_two((kind, options), (kind, options))?;
    let replica = Server::start(kind, options)?;
    native_replica(&one, &two)?;
    one.execute(TABLE)?;
    insert(&one, 0..3)?;
    one.rotate()?;
    insert(&one, 10..13)?;
    wait_caught_up(&one, &two)?;
    two.rotate()?;

    let top = tempfile::tempdir()?;
    let dirs: Vec<_> = (0..DEPTH).map(|level| top.path().join(level.to_string())).collect();
    let ports = (0..DEPTH).map(|_| free_port()).collect::<Result<Vec<_>>>()?;
    let second = two.url();
    let fail_over = ["--from", &second, "--failover-seconds", "1"];
    let start = |level: usize| match level.checked_sub(1) {
        None => Served::start(one.port, &dirs[0], ports[0], &fail_over),
        Some(above) => Served::start(ports[above], &dirs[level], ports[level], &[]),
    };
    let first = start(0)?;
    let middle = start(1)?;
    let last = start(2)?;
    attach(&replica, Ask::new(ports[2], By::Gtid))?;
    insert(&one, 20..23)?;
    wait_caught_up(&one, &two)?;
    assert_same(&one, &replica).context("through three heddles")?;
    for dir in &dirs {
        one.rotate()?;
        wait_until_reached(&one, dir)?;
        ensure!(assert_files(&one, &one.binary_logs()?, dir)? >= 2);
    }
    wait_caught_up(&one, &two)?;

    // The middle one is away while it happens: it comes back with the end of the first source's files, and must not take the second's for their continuation.
    middle.kill()?;
    one.kill()?;
    two.execute(statement(&two, "STOP"))?;
    insert(&two, 30..33)?;
    two.rotate()?;
    let identity = two.scalar(IDENTITY[usize::from(kind.is_mariadb())])?;
    let later: Vec<_> = dirs.iter().map(|dir| dir.join(format!("source-2-{identity}"))).collect();
    wait_until_reached(&two, &later[0]).context("the first heddle follows")?;
    let middle = start(1)?;
    insert(&two, 40..43)?;
    two.rotate()?;
    for (level, dir) in later.iter().enumerate() {
        wait_until_reached(&two, dir).with_context(|| format!("level {level} follows"))?;
        let first = std::fs::read_to_string(dir.join("binlog.index"))?;
        let first = first.lines().next().context("a file")?.trim_start_matches("./").to_owned();
        let logs: Vec<_> = two.binary_logs()?.into_iter().skip_while(|log| !log.ends_with(&first)).collect();
        ensure!(assert_files(&two, &logs, dir)? >= 1, "level {level}");
    }
    wait_caught_up(&two, &replica).context("through the fail-over")?;
    assert_equal(&two, &replica)?;

    // From level to level and to the source itself, without a gap or a repeat.
    for (round, port) in [ports[0], two.port, ports[1], ports[2]].into_iter().enumerate() {
        attach(&replica, Ask::new(port, By::Gtid))?;
        let id = 50 + 10 * u32::try_from(round)?;
        insert(&two, id..id + 3)?;
        wait_caught_up(&two, &replica).with_context(|| format!("round {round}"))?;
    }
    assert_equal(&two, &replica)?;
    for served in [first, middle, last] {
        served.heddle.terminate()?;
        served.heddle.wait()?.successful()?;
    }
    Ok(())
}

#[test]
#[ignore = "as on MariaDB: scripts/nightly mirror"]
fn chain_mysql() {
    chain(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn chain_mariadb() {
    chain(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}
