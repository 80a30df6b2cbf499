//! `heddle serve --group`: a replica that is behind gets consecutive transactions as one, and ends up as the source is, with the source's GTIDs.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::invariants::{self, Reader, order_of};
use e2e::native::{gtids, position, statement, wait_caught_up, wait_stopped};
use e2e::retagged::{self, one_session, same};
use e2e::served::{Ask, By, Served, attach, change, status_of_mirror};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, free_port};
use e2e::until;
use e2e::workload::{Size, Workload};

const SIZE: Size = Size { transactions: 150, ..retagged::SIZE };
const GROUP: &[&str] = &["--group", "auto"];
const GROUP_RETAGGED: &[&str] = &["--group", "400", "--retag", "writeset"];

/// Transactions in a server's binary logs.
fn transactions(server: &Server) -> Result<usize> {
    let mut count = 0;
    for path in server.binlogs()? {
        let bytes = std::fs::read(path)?;
        let mut at = 4;
        while let Some(header) = bytes.get(at..).and_then(binlog::Header::parse) {
            count += usize::from(binlog::boundary::is_gtid(header.kind));
            at += header.event_len as usize;
        }
    }
    Ok(count)
}

/// A backlog, and a replica that gets it in groups while it and Heddle are killed.
fn groups_reach_a_replica(source: (Kind, &[&str]), replica: (Kind, &[&str]), more: &[&str], kills: u64) -> Result<()> {
    eprintln!("{} → {} {:?}", source.0, replica.0, replica.1);
    let seed = e2e::seed(rand::random_range(0..1 << 31), "serve_group -- --include-ignored");
    let (source, replica) = Server::start_two(source, replica)?;
    let dir = tempfile::tempdir()?;
    let (folder, port) = (dir.path().join("mirror"), free_port()?);
    let mut workload = Workload::new(seed, SIZE, source.kind);
    invariants::add(&mut workload, SIZE.transactions);
    workload.run(&source)?;
    one_session(&source, 3_000)?;
    if source.kind == MYSQL_9_7 {
        let sql: String =
            (0..300).map(|number| format!("INSERT INTO one.t VALUES ({}, {0});", 1_000_000 + number)).collect();
        source.execute(&format!("SET gtid_next = 'AUTOMATIC:tagged'; {sql}"))?;
    }
    // What is made up at the end of the log is counted in a file that has nothing else.
    source.execute("FLUSH BINARY LOGS")?;
    let mut served = Served::start(source.port, &folder, port, more)?;
    let reader = Reader::start(&replica, &workload.schema, order_of(&replica)?);
    attach(&replica, Ask::new(port, By::Gtid))?;
    for kill in 0..kills {
        std::thread::sleep(Duration::from_millis(100 + (seed >> kill) % 600));
        if kill % 2 == 0 {
            // Now and then without groups, in the middle of them.
            served = served.restarted(&source, &folder, if kill % 4 == 2 { &[] } else { more })?;
        } else {
            replica.kill()?;
            replica.restart(&[])?;
            replica.execute(statement(&replica, "START"))?;
        }
    }
    same(&source, &replica).with_context(|| served.heddle.log())?;
    let snapshots = reader.end()?;
    let (all, here) = (transactions(&source)?, transactions(&replica)?);
    eprintln!("{all} transactions became {here}, {snapshots} snapshots beside");
    // Where Heddle ran without groups meanwhile, the replica got as much as it took in.
    let most = if kills > 2 { all - all / 10 } else { all / 2 };
    ensure!(here < most, "{all} transactions became {here}\n{}", served.heddle.log());
    if kills <= 2 {
        groups_are_counted(&source, &replica, &folder)?;
    }
    // One that has caught up gets each by itself.
    let before = transactions(&replica)?;
    for number in 0..20 {
        source.execute(&format!("INSERT INTO one.t VALUES ({}, {0})", 2_000_000 + number))?;
    }
    wait_caught_up(&source, &replica)?;
    ensure!(transactions(&replica)? == before + 20, "{before} and then {}", transactions(&replica)?);
    // The way back to the source: nothing is sent twice, and nothing is missing.
    attach(&replica, Ask::new(source.port, By::Gtid))?;
    source.execute("UPDATE one.t SET v = v + 1000 WHERE id = 2000000")?;
    same(&source, &replica)?;
    served.kill().map(drop)
}

/// What the replica is sent in groups when it comes again, as `heddle status` says it.
fn groups_are_counted(source: &Server, replica: &Server, folder: &Path) -> Result<()> {
    replica.execute(statement(replica, "STOP"))?;
    let sql: String =
        (0..300).map(|number| format!("INSERT INTO one.t VALUES ({}, {0});", 3_000_000 + number)).collect();
    source.execute(&sql)?;
    // What comes after the replica has attached it is sent one by one.
    let (file, offset) = position(source)?;
    until("the mirror has all", || Ok(status_of_mirror(folder)?["mirror"]["durable"] == format!("{file}:{offset}")))?;
    replica.execute(statement(replica, "START"))?;
    wait_caught_up(source, replica)?;
    let seen = status_of_mirror(folder)?;
    let sent = &seen["replicas"][0]["groups"];
    let (groups, transactions) = (sent["groups"].as_u64(), sent["transactions"].as_u64());
    ensure!(transactions >= Some(250) && groups >= Some(1) && groups < Some(100), "{seen}");
    Ok(())
}

#[test]
fn mysql_in_groups() -> Result<()> {
    groups_reach_a_replica((MYSQL_9_7, &[]), (MYSQL_9_7, &["--replica-parallel-workers=8"]), GROUP, 2)
}

#[test]
fn mariadb_in_groups() -> Result<()> {
    groups_reach_a_replica((MARIADB_10_11, &[]), (MARIADB_10_11, &["--slave-parallel-threads=4"]), GROUP, 2)
}

/// A MySQL replica that checks what its source sends, with a channel from another source beside: groups need one privilege more than the plain log.
#[test]
fn mysql_replica_that_checks_privileges() -> Result<()> {
    let (source, replica) = Server::start_two((MYSQL_9_7, &[]), (MYSQL_9_7, &["--replica-parallel-workers=8"]))?;
    let other = Server::start(MYSQL_9_7, &[])?;
    let dir = tempfile::tempdir()?;
    one_session(&source, 3_000)?;
    other.execute("CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY)")?;
    source.execute("FLUSH BINARY LOGS")?;
    let served = Served::start(source.port, &dir.path().join("mirror"), free_port()?, GROUP)?;
    replica.execute(
        "SET sql_log_bin = 0; CREATE USER applier@localhost; GRANT REPLICATION_APPLIER ON *.* TO applier@localhost; \
         GRANT CREATE, INSERT, UPDATE, DELETE ON *.* TO applier@localhost",
    )?;
    let rules = ", PRIVILEGE_CHECKS_USER = 'applier'@'localhost', REQUIRE_ROW_FORMAT = 1";
    replica.execute(&format!("{}{rules}", change(&replica, Ask::new(served.port, By::Gtid))))?;
    replica.execute(&format!("{} FOR CHANNEL 'other'", change(&replica, Ask::new(other.port, By::Gtid))))?;
    replica.execute("START REPLICA")?;
    // The applier has to say so, not to go on without the GTIDs.
    wait_stopped(&replica)?;
    let error = replica.scalar(
        "SELECT GROUP_CONCAT(LAST_ERROR_MESSAGE) FROM performance_schema.replication_applier_status_by_worker",
    )?;
    ensure!(error.contains("SYSTEM_VARIABLES_ADMIN"), "{error}");
    replica.execute("SET sql_log_bin = 0; GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO applier@localhost")?;
    replica.execute("START REPLICA FOR CHANNEL ''")?;
    for number in 0..200 {
        other.execute(&format!("INSERT INTO other.t VALUES ({number})"))?;
    }
    wait_caught_up(&source, &replica)?;
    wait_caught_up(&other, &replica)?;
    let [of_source, of_other] = [gtids(&source)?, gtids(&other)?];
    let lacking =
        "SELECT CONCAT(GTID_SUBTRACT(@@global.gtid_executed, 'ALL'), GTID_SUBTRACT('ALL', @@global.gtid_executed))";
    ensure!(replica.scalar(&lacking.replace("ALL", &format!("{of_source},{of_other}")))?.is_empty());
    let sum = "SELECT CONCAT(COUNT(*), ' ', SUM(v)) FROM one.t";
    ensure!(source.scalar(sum)? == replica.scalar(sum)?);
    ensure!(replica.scalar("SELECT COUNT(*) FROM other.t")? == "200");
    let (all, here) = (transactions(&source)?, transactions(&replica)?);
    ensure!(here < all / 2, "{all} transactions became {here}\n{}", served.heddle.log());
    served.kill().map(drop)
}

/// Every version that groups are for, in each of its parallel modes.
#[test]
#[ignore = "long: scripts/nightly group"]
fn versions_and_modes_in_groups() -> Result<()> {
    let eight: Kind = "mysql-8.0.15".parse()?;
    for (source, replica) in [(eight, eight), (eight, MYSQL_9_7), (MYSQL_9_7, MYSQL_9_7)] {
        let [name, workers] = if replica == eight {
            ["slave", "--slave-parallel-workers"]
        } else {
            ["replica", "--replica-parallel-workers"]
        };
        for (number, order, more) in
            [("0", "OFF", GROUP), ("4", "ON", GROUP_RETAGGED), ("64", "ON", GROUP), ("8", "OFF", GROUP_RETAGGED)]
        {
            let kind = format!("--{name}-parallel-type=LOGICAL_CLOCK");
            // Transactions that committed out of order leave gaps, behind which a killed replica only starts by GTID.
            let recovery = "--relay-log-recovery=1".to_owned();
            let mut options =
                vec![recovery, format!("{workers}={number}"), format!("--{name}-preserve-commit-order={order}")];
            options.extend((replica == eight).then_some(kind));
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            groups_reach_a_replica((source, &["--max-binlog-size=262144"]), (replica, &options), more, 6)?;
        }
    }
    let newest: Kind = "mariadb-11.4".parse()?;
    for (source, replica) in [(MARIADB_10_11, MARIADB_10_11), (MARIADB_10_11, newest), (newest, newest)] {
        for mode in ["none", "minimal", "conservative", "optimistic", "aggressive"] {
            let mode = format!("--slave-parallel-mode={mode}");
            let options = ["--slave-parallel-threads=8", &mode, "--gtid-strict-mode=1"];
            groups_reach_a_replica((source, &["--max-binlog-size=262144"]), (replica, &options), GROUP, 6)?;
        }
    }
    Ok(())
}

/// Domains that touch the same rows: these transactions stay single, those of a table that only one domain touches become groups.
#[test]
fn mariadb_domains_in_groups() -> Result<()> {
    // With `minimal` the order is kept whatever comes, so that what is compared depends on no worker's speed.
    let replica = (MARIADB_10_11, &["--slave-parallel-threads=4", "--slave-parallel-mode=minimal"][..]);
    let (source, replica) = Server::start_two((MARIADB_10_11, &[]), replica)?;
    source.execute("CREATE DATABASE domains; CREATE TABLE domains.shared (id INT PRIMARY KEY, v INT); CREATE TABLE domains.own (id INT PRIMARY KEY, t TEXT)")?;
    let mut sql = String::new();
    for round in 0..6 {
        sql.push_str(&format!("SET gtid_domain_id = {};", round % 2 + 1));
        for number in 0..100 {
            let id = round * 100 + number;
            sql.push_str(&format!("INSERT INTO domains.shared VALUES ({id}, 0);"));
            if round > 0 {
                sql.push_str(&format!("UPDATE domains.shared SET v = v + 1 WHERE id = {};", id - 100));
            }
        }
    }
    sql.push_str("SET gtid_domain_id = 3;");
    for number in 0..1500 {
        sql.push_str(&format!("INSERT INTO domains.own VALUES ({number}, REPEAT('x', 2000));"));
    }
    source.execute(&sql)?;
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join("mirror");
    let served = Served::start(source.port, &folder, free_port()?, GROUP)?;
    let (file, offset) = position(&source)?;
    until("the mirror has all", || Ok(status_of_mirror(&folder)?["mirror"]["durable"] == format!("{file}:{offset}")))?;
    attach(&replica, Ask::new(served.port, By::Gtid))?;
    same(&source, &replica)?;
    // 1,100 shared ones, each by itself; of the 1,500 others those that have enough of the log behind them are in groups.
    let here = transactions(&replica)?;
    ensure!((1_100..2_300).contains(&here), "{here} transactions\n{}", served.heddle.log());
    served.kill().map(drop)
}
