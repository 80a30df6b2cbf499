//! `--gtids preserve` with grouping: the target's GTIDs are the source's, through kills, also between a group's commit and the addition of its other
//! GTIDs; servers go on from there by GTID, forth and back.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::checksum::assert_equal;
use e2e::heddle::{Heddle, Run, heddle};
use e2e::native::{
    configure_at, gtids, native_replica, position, start_native, statement, wait_caught_up, wait_stopped,
};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const KEPT: [&str; 2] = ["--gtids", "preserve"];
const SMALL: Load = Load { tables: 4, rows: 500, threads: 4, events: 2_000, seconds: 0 };
const PATIENCE: Duration = Duration::from_secs(60);

fn seeded(name: &str) -> StdRng {
    StdRng::seed_from_u64(e2e::seed(20_161_107, &format!("grouped_gtids {name}")))
}

/// Without TLS: MySQL 8.0.15 has none that is new enough.
fn pair(kind: Kind, source: &[&str], target: &[&str]) -> Result<Pair> {
    let mut pair = Pair::start_with(kind, source, target)?;
    pair.from = pair.source.plain_url();
    Ok(pair)
}

fn begin(pair: &Pair) -> Result<Heddle> {
    pair.begin_into(&pair.target.plain_url(), &KEPT)
}

fn to_the_end(pair: &Pair) -> Result<Run> {
    let run =
        pair.begin_into(&pair.target.plain_url(), &[&KEPT[..], &["--until-end"]].concat())?.wait()?.successful()?;
    pair.assert_equal()?;
    Ok(run)
}

fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(begun.elapsed() < PATIENCE, "{what} takes too long");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Neither has a GTID that the other has not.
fn assert_same_gtids(one: &Server, other: &Server) -> Result<()> {
    let (wanted, got) = (gtids(one)?, gtids(other)?);
    ensure!(wanted == got, "one has executed {wanted}, the other {got}");
    Ok(())
}

/// The GTIDs that the target has applied, and that it does not say it has executed.
fn missing(pair: &Pair) -> Result<String> {
    pair.target.scalar("SELECT GTID_SUBTRACT((SELECT gtids FROM heddle.progress), @@global.gtid_executed)")
}

fn was_grouped(log: &str) -> Result<()> {
    ensure!(!log.contains("one target transaction for each"), "nothing was grouped: {log}");
    Ok(())
}

/// Heddle applies all that the source has, and is killed before it can add the GTIDs of the groups: a session owns one of them.
fn killed_in_the_window(pair: &Pair) -> Result<()> {
    let source = pair.source.scalar("SELECT @@server_uuid")?;
    let last: u64 = pair.source.scalar("SELECT SUBSTRING_INDEX(@@gtid_executed, '-', -1)")?.parse()?;
    let has = pair.target.scalar("SELECT COALESCE(MAX(seq), 0) FROM heddle.progress").unwrap_or_default();
    let first: u64 = has.parse().unwrap_or(0) + 2;
    // It ends with its input. Rarely it is a group's last: that group would wait for it.
    let mut owner = pair.target.client(&[]).stdin(Stdio::piped()).spawn()?;
    let mut input = owner.stdin.take().context("the client's input")?;
    writeln!(input, "SET gtid_next='{source}:{}'; BEGIN;", first + (last - first) / 3)?;
    until("owning a GTID", || Ok(!pair.target.scalar("SELECT @@global.gtid_owned")?.is_empty()))?;
    let running = begin(pair)?;
    let all = gtids(&pair.source)?;
    until("applying all", || {
        let rest = pair.target.scalar(&format!("SELECT GTID_SUBTRACT('{all}', (SELECT gtids FROM heddle.progress))"));
        Ok(rest.is_ok_and(|rest| rest.is_empty()))
    })
    .inspect_err(|_| {
        let applied = pair.target.scalar("SELECT gtids FROM heddle.progress");
        eprintln!("the source has {all}, applied is {applied:?}");
    })
    .with_context(|| running.log())?;
    was_grouped(&running.log())?;
    running.kill()?;
    running.wait()?;
    drop(input);
    owner.wait()?;
    let left = missing(pair)?;
    ensure!(!left.is_empty(), "the kill came too late: all GTIDs were added");
    Ok(())
}

/// The window, closed by hand and by the next run; then the source is the target's replica and comes back, by GTID.
fn window_settle_and_fail_over(kind: Kind) -> Result<()> {
    let pair = pair(kind, &[], &[])?;
    sysbench::prepare(&pair.source, "oltp_write_only", SMALL)?;
    sysbench::run(&pair.source, "oltp_write_only", SMALL)?;
    killed_in_the_window(&pair)?;
    let settled = heddle(&["settle", &pair.target.plain_url(), "--json"])?.successful()?;
    ensure!(settled.stdout.contains("\"added\": \"") && missing(&pair)?.is_empty(), "{settled}");
    assert_same_gtids(&pair.source, &pair.target)?;
    let settled = heddle(&["settle", &pair.target.plain_url()])?.successful()?;
    ensure!(settled.stdout.contains("no GTID is missing"), "{settled}");
    sysbench::run(&pair.source, "oltp_write_only", SMALL)?;
    killed_in_the_window(&pair)?;
    let run = to_the_end(&pair)?;
    ensure!(run.stderr.contains("added to the target's gtid_purged"), "{run}");
    assert_same_gtids(&pair.source, &pair.target)?;
    fails_over_and_back(&pair)
}

/// The target becomes the source's source, then its replica, with load on each; all by GTID.
fn fails_over_and_back(pair: &Pair) -> Result<()> {
    let Pair { source, target, .. } = pair;
    for (from, to) in [(target, source), (source, target)] {
        from.execute(
            "CREATE DATABASE IF NOT EXISTS moved; CREATE TABLE IF NOT EXISTS moved.t (id INT AUTO_INCREMENT PRIMARY KEY, at VARCHAR(40)); \
             INSERT INTO moved.t (at) VALUES (@@server_uuid); UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id < 50",
        )?;
        let load = sysbench::start(from, "oltp_write_only", Load { events: 500, ..SMALL })?;
        native_replica(from, to)?;
        load.wait()?;
        wait_caught_up(from, to)?;
        assert_equal(from, to)?;
        assert_same_gtids(from, to)?;
        to.execute(statement(to, "STOP"))?;
    }
    Ok(())
}

fn kills() -> usize {
    std::env::var("HEDDLE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// MariaDB, several domains and servers: the target's position is the source's, through kills; a replica below has it by GTID, too. Then the source
/// is the target's replica and comes back.
fn domains(kind: Kind, options: &[&str], rounds: usize) -> Result<()> {
    let mut random = seeded("domains");
    let pair = Pair::start_with(kind, options, options)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")?;
    let mut last = 0;
    for round in 0..=rounds {
        let mut script = String::new();
        for _ in 0..40 {
            let (domain, server) = (random.random_range(0..3), random.random_range(101..103));
            let _ = write!(script, "SET SESSION gtid_domain_id={domain}, server_id={server};");
            for _ in 0..random.random_range(1..60) {
                last += 1;
                let _ = write!(script, "INSERT INTO d.t VALUES ({last}, 0);");
            }
        }
        pair.source.run_script(script.as_bytes())?;
        if round < rounds {
            let mut running = pair.begin(&KEPT)?;
            thread::sleep(Duration::from_millis(random.random_range(100..400)));
            ensure!(!running.has_ended()?, "it stopped by itself: {}", running.log());
            if random.random_range(0..3) == 0 {
                pair.target.kill()?;
                pair.target.restart(&[])?;
            }
            running.kill()?;
            running.wait()?;
        }
    }
    let run = pair.to_the_end(&KEPT)?;
    was_grouped(&run.stderr)?;
    let groups = run.number("groups")?;
    ensure!(groups < run.number("transactions")?, "nothing was grouped: {run}");
    assert_same_positions(&pair)?;
    let below = Server::start(kind, options)?;
    native_replica(&pair.target, &below)?;
    wait_caught_up(&pair.target, &below)?;
    assert_equal(&pair.source, &below)?;
    below.execute(statement(&below, "STOP"))?;
    for (from, to) in [(&pair.target, &pair.source), (&pair.source, &pair.target)] {
        from.execute("UPDATE d.t SET v = v + 1 WHERE id < 50")?;
        // As an operator does it: all that it has logged is applied.
        let has = to.scalar("SELECT @@gtid_binlog_pos")?;
        let (file, offset) = position(from)?;
        configure_at(from, to, &file, offset)?;
        to.execute(&format!(
            "SET GLOBAL gtid_slave_pos='{has}'; CHANGE MASTER TO master_use_gtid=slave_pos; START SLAVE"
        ))?;
        wait_caught_up(from, to)?;
        assert_equal(from, to)?;
        to.execute("STOP SLAVE")?;
    }
    Ok(())
}

/// The source's position, and none but heddle's own tables' domain beside it.
fn assert_same_positions(pair: &Pair) -> Result<()> {
    let of = |server: &Server, variable: &str| -> Result<Vec<String>> {
        let text = server.scalar(&format!("SELECT @@{variable}"))?;
        let mut gtids: Vec<String> = text.split(',').map(str::to_owned).collect();
        gtids.sort();
        Ok(gtids)
    };
    for variable in ["gtid_binlog_pos", "gtid_binlog_state"] {
        let (wanted, got) = (of(&pair.source, variable)?, of(&pair.target, variable)?);
        let missing: Vec<&String> = wanted.iter().filter(|gtid| !got.contains(gtid)).collect();
        ensure!(missing.is_empty(), "{variable}: the source has {wanted:?}, the target {got:?}");
    }
    Ok(())
}

/// Heddle and the target are killed again and again while clients change the source; a native replica stands beside.
fn kills_under_load(kind: Kind) -> Result<()> {
    let mut random = seeded("kills_under_load");
    let pair = pair(kind, &[], &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"])?;
    let native = Server::start(kind, &[])?;
    native_replica(&pair.source, &native)?;
    sysbench::prepare(&pair.source, "oltp_write_only", SMALL)?;
    let (mut in_window, mut running) = (0, begin(&pair)?);
    until("the channel's tables", || Ok(missing(&pair).is_ok()))?;
    for round in 0..kills() {
        pair.source.execute(&format!(
            "CREATE DATABASE d{round}; CREATE TABLE d{round}.t (id INT PRIMARY KEY); INSERT INTO d{round}.t VALUES (1); \
             ALTER TABLE d{round}.t ADD v INT; XA START 'x{round}'; INSERT INTO d{round}.t VALUES (2, 2); XA END 'x{round}'; \
             XA PREPARE 'x{round}'; XA COMMIT 'x{round}'"
        ))?;
        let load = sysbench::start(&pair.source, "oltp_write_only", Load { events: 2_000, ..SMALL })?;
        thread::sleep(Duration::from_millis(random.random_range(50..500)));
        let kills_target = random.random_range(0..3) == 0;
        if kills_target {
            pair.target.kill()?;
            pair.target.restart(&[])?;
        }
        if !kills_target || random.random_range(0..2) == 0 {
            running.kill()?;
            running.wait()?;
            in_window += usize::from(!missing(&pair)?.is_empty());
            running = begin(&pair)?;
        }
        if running.has_ended()? {
            let ended = std::mem::replace(&mut running, begin(&pair)?).wait()?;
            ensure!(ended.stderr.contains("away") || ended.stderr.contains("connect"), "it stopped by itself: {ended}");
        }
        load.wait()?;
    }
    eprintln!("{in_window} of {} kills left GTIDs to be added", kills());
    running.terminate()?;
    running.wait()?;
    to_the_end(&pair)?;
    wait_caught_up(&pair.source, &native)?;
    assert_equal(&native, &pair.target)?;
    for server in [&native, &pair.target] {
        assert_same_gtids(&pair.source, server)?;
    }
    native.execute(statement(&native, "STOP"))?;
    fails_over_and_back(&pair)
}

/// What stands in the way of grouping, each with what is said of it; then every GTID is in the target's log.
fn one_by_one(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    sysbench::prepare(&pair.source, "oltp_write_only", SMALL)?;
    sysbench::run(&pair.source, "oltp_write_only", Load { events: 300, ..SMALL })?;
    let run = pair.to_the_end(&["--gtids", "preserve", "--replicas-below"])?;
    ensure!(run.stderr.contains("(--replicas-below)"), "{run}");
    pair.target.execute(
        "CREATE USER few IDENTIFIED BY 'few'; GRANT ALL ON *.* TO few; REVOKE SUPER, SYSTEM_VARIABLES_ADMIN ON *.* FROM few",
    )?;
    let limited = format!("mysql://few:few@127.0.0.1:{}", pair.target.port);
    sysbench::run(&pair.source, "oltp_write_only", Load { events: 300, ..SMALL })?;
    let run = pair.begin_into(&limited, &["--gtids", "preserve", "--until-end"])?.wait()?.successful()?;
    ensure!(run.stderr.contains("GRANT SYSTEM_VARIABLES_ADMIN"), "{run}");
    pair.target.execute("DROP USER few")?;
    pair.assert_equal()
}

/// MySQL before 8.0 says why it is slow.
fn old_server(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    sysbench::prepare(&pair.source, "oltp_write_only", SMALL)?;
    let run = pair.to_the_end(&KEPT)?;
    ensure!(run.stderr.contains("MySQL 8.0 can"), "{run}");
    Ok(())
}

fn of(name: &str) -> Kind {
    name.parse().expect("a known server")
}

/// A target without a binary log; the copy's place is given, and its GTIDs are not the channel's to add.
fn without_target_log(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &[], &["--skip-log-bin", "--skip-log-replica-updates"])?;
    let tables = "SET sql_log_bin=0; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); SET sql_log_bin=1";
    pair.target.execute(tables)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    let before = gtids(&pair.source)?;
    pair.source.execute(&(1..=500).map(|id| format!("INSERT INTO d.t VALUES ({id});")).collect::<String>())?;
    let run = pair.to_the_end(&[&KEPT[..], &["--start-gtid", &before, "--start-anyway"]].concat())?;
    was_grouped(&run.stderr)?;
    ensure!(run.stderr.contains("gtid_executed does not have"), "{run}");
    ensure!(missing(&pair)?.replace('\n', "") == before, "it has added what it had not applied");
    pair.target.execute(&format!("SET GLOBAL gtid_purged='+{before}'"))?;
    assert_same_gtids(&pair.source, &pair.target)
}

/// A replica below a target whose transactions are grouped. By position it follows; by GTID only after it was settled, too. One that lacks GTIDs
/// which were added is refused.
fn replica_below(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    sysbench::prepare(&pair.source, "oltp_write_only", SMALL)?;
    pair.to_the_end(&KEPT)?;
    pair.target.stop()?;
    let below = Server::start_from(kind, &[], Some(&pair.target.data()))?;
    pair.target.restart(&[])?;
    let empty = Server::start(kind, &[])?;
    native_replica(&pair.target, &empty)?;
    until("the refusal of an empty replica", || Ok(said(&empty)?.contains("purged")))?;
    empty.execute(statement(&empty, "STOP"))?;
    // Heddle begins before the replica attaches.
    let (file, offset) = position(&pair.target)?;
    let running = pair.begin(&KEPT)?;
    until("the channel's start", || Ok(running.log().contains("workers, policy")))?;
    configure_at(&pair.target, &below, &file, offset)?;
    start_native(&below)?;
    sysbench::run(&pair.source, "oltp_write_only", SMALL)?;
    sysbench::run(&pair.source, "oltp_write_only", SMALL)?;
    let applied = "SELECT seq FROM heddle.progress";
    until("catching up", || {
        Ok(gtids(&pair.source)? == gtids(&pair.target)? && pair.target.scalar(applied)? == below.scalar(applied)?)
    })?;
    was_grouped(&running.log())?;
    assert_equal(&pair.target, &below)?;
    running.terminate()?;
    running.wait()?.successful()?;
    let lacks = pair.target.scalar(&format!("SELECT GTID_SUBTRACT(@@gtid_executed, '{}')", gtids(&below)?))?;
    ensure!(!lacks.is_empty(), "nothing was grouped");
    below.execute(statement(&below, "STOP"))?;
    heddle(&["settle", &below.url()])?.successful()?;
    assert_same_gtids(&pair.target, &below)?;
    below.execute("CHANGE REPLICATION SOURCE TO source_auto_position=1")?;
    start_native(&below)?;
    pair.target.execute("UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id < 50")?;
    wait_caught_up(&pair.target, &below)?;
    assert_equal(&pair.target, &below)
}

fn said(replica: &Server) -> Result<String> {
    replica.scalar("SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_connection_status LIMIT 1")
}

/// Another replica of the source that stands within a group: it stops, and changes nothing.
fn within_a_group(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let other = Server::start(kind, &[])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    pair.to_the_end(&KEPT)?;
    pair.source.execute(&(1..=9).map(|id| format!("INSERT INTO d.t VALUES ({id});")).collect::<String>())?;
    native_replica(&pair.source, &other)?;
    wait_caught_up(&pair.source, &other)?;
    other.execute(statement(&other, "STOP"))?;
    pair.source.execute("INSERT INTO d.t VALUES (10)")?;
    pair.to_the_end(&KEPT)?;
    if kind.is_mariadb() {
        other.execute(&format!("CHANGE MASTER TO master_port={}; START SLAVE", pair.target.port))?;
    } else {
        native_replica(&pair.target, &other)?;
    }
    wait_stopped(&other)?;
    ensure!(other.scalar("SELECT COUNT(*) FROM d.t")? == "9", "it has changed something");
    Ok(())
}

e2e::tests! {
    mysql_window_settle_and_fail_over: window_settle_and_fail_over(MYSQL_9_7);
    mariadb_domains: domains(MARIADB_10_11, &[], 2);
    #[ignore = "run by the nightly script"]
    mariadb_domains_killed: domains(MARIADB_10_11, &["--gtid-strict-mode=ON"], kills() / 2);
    #[ignore = "minutes; run by the nightly script"]
    mysql_kills_under_load: kills_under_load(MYSQL_9_7);
    #[ignore = "another server; run by the nightly script"]
    mysql_8_0_window_settle_and_fail_over: window_settle_and_fail_over(of("mysql-8.0.15"));
    #[ignore = "another server; run by the nightly script"]
    mysql_8_0_46_window_settle_and_fail_over: window_settle_and_fail_over(of("mysql-8.0.46"));
    #[ignore = "another server; run by the nightly script"]
    mysql_8_4_window_settle_and_fail_over: window_settle_and_fail_over(of("mysql-8.4"));
    #[ignore = "another server; run by the nightly script"]
    mysql_8_4_kills_under_load: kills_under_load(of("mysql-8.4"));
    #[ignore = "another server; run by the nightly script"]
    mariadb_10_6_domains: domains(of("mariadb-10.6"), &[], 2);
    #[ignore = "another server; run by the nightly script"]
    mysql_8_0_kills_under_load: kills_under_load(of("mysql-8.0.15"));
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_one_by_one: old_server(of("mysql-5.7.22"));
    #[ignore = "run by the nightly script"]
    mysql_one_by_one: one_by_one(MYSQL_9_7);
    #[ignore = "run by the nightly script"]
    mysql_without_target_log: without_target_log(MYSQL_9_7);
    #[ignore = "run by the nightly script"]
    mysql_replica_below: replica_below(MYSQL_9_7);
    #[ignore = "run by the nightly script"]
    mysql_within_a_group: within_a_group(MYSQL_9_7);
    #[ignore = "run by the nightly script"]
    mariadb_within_a_group: within_a_group(MARIADB_10_11);
}
