//! `heddle rescue` on real servers: a replica that lags behind a source which is being written, its own replication before and after.
//!
//! Every test ends in the same way: native replication goes on by itself, then both servers hold the same and name the same GTIDs.
//! Random moments come from a seed; `HEDDLE_SEED=N` repeats a run, `HEDDLE_RESCUE_INTERRUPTIONS=N` sets how many there are in one test.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, bail, ensure};
use e2e::heddle::{Heddle, Run, heddle};
use e2e::lagging::{BEHIND, By, Lagging, MEANWHILE, NO_GTIDS, Role, gtids, outcome, same};
use e2e::native::{configure_by, start_native, statement, stop_applier, wait_caught_up, wait_position};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load};
use e2e::until;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::thread;
use std::time::Duration;

fn seeded(name: &str) -> StdRng {
    StdRng::seed_from_u64(e2e::seed(20_161_107, &format!("rescue {name}")))
}

fn interruptions() -> usize {
    std::env::var("HEDDLE_RESCUE_INTERRUPTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// Why it lags, what to set (`set`: for its one worker), and how long it takes, or why that is not known.
fn says_why(look: &Run, set: Option<&str>) -> Result<()> {
    let summary = look.summary()?;
    let field = |name: &str| summary.get(name).cloned().unwrap_or_default();
    let reasons: Vec<String> = field("reasons")
        .as_array()
        .into_iter()
        .flatten()
        .map(|reason| reason["reason"].as_str().unwrap_or_default().to_owned())
        .collect();
    ensure!(reasons.first().is_some_and(|reason| reason == "applier_stopped"), "{reasons:?}: {look}");
    ensure!(reasons.iter().any(|reason| reason == "one_worker") == set.is_some(), "{reasons:?}: {look}");
    let verdict = field("verdict").as_str().unwrap_or_default().to_owned();
    eprintln!("  {verdict}");
    ensure!(verdict.contains("applier is stopped") && verdict.ends_with('.'), "{verdict:?}");
    ensure!(set.is_none_or(|set| verdict.contains(set)), "{verdict:?}");
    let backlog = field("backlog");
    let [rate, missing] = ["heddle_bytes_per_second", "heddle_estimate_missing"].map(|name| backlog[name].is_null());
    ensure!(rate != missing, "an estimate, or why there is none: {backlog}");
    Ok(())
}

/// Looks, then rescues under load, with native replication running when it begins.
fn rescued(kind: Kind, by: By, options: &[&str]) -> Result<()> {
    let lagging = Lagging::start(kind, by, options)?;
    let settings = lagging.settings()?;
    lagging.fall_behind(6)?;
    let before = gtids(&lagging.replica, Role::Replica)?;
    let look = lagging.rescue(&["--dry-run"])?.successful()?;
    ensure!(
        outcome(&look)? == "looked" && gtids(&lagging.replica, Role::Replica)? == before,
        "--dry-run did something: {look}"
    );
    // MariaDB, and MySQL before 8.0.27, have one worker unless somebody sets more.
    let one_worker = !kind.is_mysql_since(&[8, 0, 27]) && !options.iter().any(|option| option.contains("parallel"));
    says_why(&look, one_worker.then_some("SET GLOBAL slave_parallel_"))?;
    start_native(&lagging.replica)?;
    let load = sysbench::start(&lagging.source, "oltp_write_only", MEANWHILE)?;
    // It may have caught up by itself while heddle looks.
    let run = lagging.rescue(&["--anyway"])?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    let changed = run.summary()?.get("changed_settings").and_then(|list| list.as_array().map(Vec::len));
    ensure!(changed == Some(0), "settings have changed: {run}");
    load.wait()?;
    lagging.as_before(&settings).with_context(|| run.to_string())?;
    // Once more: there is nothing to catch up with, the log has only just begun, and the hand-back is at the same place.
    lagging.source.rotate()?;
    let healthy = lagging.rescue(&[])?.successful()?;
    let verdict = healthy.summary()?.get("verdict").cloned().unwrap_or_default();
    ensure!(outcome(&healthy)? == "looked" && verdict.to_string().contains("is not behind"), "{healthy}");
    let again = lagging.rescue(&["--anyway"])?.successful()?;
    ensure!(outcome(&again)? == "handed_back", "{again}");
    lagging.as_before(&settings).with_context(|| again.to_string())?;
    let nothing = lagging.rescue(&["--abort"])?.successful()?;
    ensure!(outcome(&nothing)? == "looked", "{nothing}");
    Ok(())
}

/// One way to interrupt a rescue, at a random moment.
fn interrupt(lagging: &Lagging, running: Heddle, is_new: bool, random: &mut StdRng) -> Result<()> {
    // It looks for three seconds before it does something.
    let moments = if is_new { 2900..6500 } else { 0..2500 };
    thread::sleep(Duration::from_millis(random.random_range(moments)));
    // MariaDB by file and position does not survive the replica's crash while its own applier runs: the position is in a file.
    let survives = !(lagging.replica.kind.is_mariadb() && lagging.by != By::Gtid);
    let what = random.random_range(0..if survives { 6 } else { 4 });
    let names = ["kill heddle", "kill heddle", "SIGTERM", "kill source", "kill replica and heddle", "kill replica"];
    let phase = lagging.replica.scalar("SELECT phase FROM heddle.rescue").unwrap_or_else(|_| "none".to_owned());
    eprintln!("  phase {phase}: {}", names.get(what).unwrap_or(&"?"));
    match what {
        0 | 1 => running.kill()?,
        2 => running.terminate()?,
        5 => {
            lagging.replica.kill()?;
            lagging.replica.restart(&[])?;
        }
        3 => {
            lagging.source.kill()?;
            lagging.source.restart(&[])?;
        }
        4 => {
            running.kill()?;
            lagging.replica.kill()?;
            lagging.replica.restart(&[])?;
        }
        _ => bail!("there is no way {what}"),
    }
    let run = running.wait()?;
    eprintln!("  heddle: {} {}", run.status, outcome(&run).unwrap_or_else(|_| "(no summary)".to_owned()));
    ensure!(run.status.code() != Some(101), "a panic: {run}");
    Ok(())
}

/// Interrupted again and again, natively started in the middle, aborted and begun anew.
fn interrupted(kind: Kind, by: By, name: &str) -> Result<()> {
    let mut random = seeded(name);
    let lagging = Lagging::start(kind, by, &[])?;
    let settings = lagging.settings()?;
    for round in 0..interruptions() {
        eprintln!("interruption {round}");
        let under_way = lagging.rescue(&["--dry-run"])?;
        let under_way = under_way.summary()?.get("continued").is_some_and(|phase| !phase.is_null());
        if !under_way {
            start_native(&lagging.replica)?;
            lagging.caught_up().with_context(|| format!("before interruption {round}"))?;
            lagging.fall_behind(4)?;
            if random.random_bool(0.5) {
                start_native(&lagging.replica)?;
            }
        }
        let more: &[&str] = if under_way && random.random_bool(0.25) { &["--abort"] } else { &[] };
        eprintln!("  begins {more:?}, {}", if under_way { "under way" } else { "new" });
        let load = sysbench::start(
            &lagging.source,
            "oltp_write_only",
            Load { seconds: if under_way { 3 } else { 6 }, ..MEANWHILE },
        )?;
        interrupt(&lagging, lagging.begin(more)?, !under_way, &mut random)?;
        // The load's own end does not matter: its server may have been killed.
        let _ = load.wait();
        if random.random_bool(0.3) {
            // By accident: must not apply anything while heddle has the replica.
            start_native(&lagging.replica)?;
            thread::sleep(Duration::from_millis(300));
        }
    }
    let more: &[&str] = if random.random_bool(0.3) { &["--abort"] } else { &[] };
    let run = lagging.rescue(more)?.successful()?;
    start_native(&lagging.replica)?;
    lagging.as_before(&settings).with_context(|| run.to_string())
}

/// `heddle watch` names the rescue, whether the threads were started or not.
fn unfinished(lagging: &Lagging) -> Result<()> {
    let url = lagging.replica.url();
    let watch = heddle(&["watch", &url, "--once", "--json", "--interval", "1"])?;
    let json = watch.summary()?;
    let rules: Vec<&str> =
        json["findings"].as_array().into_iter().flatten().filter_map(|finding| finding["rule"].as_str()).collect();
    ensure!(rules == ["rescue_unfinished"] && watch.status.code() == Some(2), "{watch}");
    ensure!(json["verdict"].as_str().is_some_and(|verdict| verdict.contains("--abort")), "{watch}");
    Ok(())
}

/// Killed in the middle, heddle leaves the replica in its hands, a start by accident applies nothing, --abort hands back.
fn aborted(kind: Kind, by: By) -> Result<()> {
    let lagging = Lagging::start(kind, by, &[])?;
    let settings = lagging.settings()?;
    lagging.fall_behind(3)?;
    let mut running = lagging.begin(&["--workers", "1"])?;
    until("the phase applying", || {
        let phase = lagging.replica.scalar("SELECT phase FROM heddle.rescue");
        Ok(running.has_ended()? || phase.is_ok_and(|phase| phase == "applying"))
    })?;
    running.kill()?;
    running.wait()?;
    let look = lagging.rescue(&["--dry-run"])?;
    let phase = look.summary()?.get("continued").cloned().unwrap_or_default();
    if phase == "applying" {
        unfinished(&lagging)?;
        let before = gtids(&lagging.replica, Role::Replica)?;
        lagging.replica.kill()?;
        lagging.replica.restart(&[])?;
        start_native(&lagging.replica)?;
        thread::sleep(Duration::from_millis(1500));
        ensure!(
            gtids(&lagging.replica, Role::Replica)? == before,
            "the native applier has applied something while it was held"
        );
        unfinished(&lagging)?;
    }
    let run = lagging.rescue(&["--abort"])?.successful()?;
    let outcome = outcome(&run)?;
    ensure!(phase.is_null() || outcome == "handed_back", "{run}");
    start_native(&lagging.replica)?;
    lagging.as_before(&settings).with_context(|| run.to_string())
}

/// The replica has a replica of its own, which gets everything from its binary log, and goes on after a new connection.
fn with_replica_below(kind: Kind, by: By) -> Result<()> {
    let options: &[&str] = if by == By::FileOnly { &NO_GTIDS } else { &[] };
    let lagging = Lagging::empty(kind, by, &[])?;
    let (source, replica) = (&lagging.source, &lagging.replica);
    let below = Server::start(kind, options)?;
    let caught_up = || match by {
        By::FileOnly => wait_position(replica, &below),
        By::Gtid | By::File => wait_caught_up(replica, &below),
    };
    configure_by(replica, &below, by == By::Gtid)?;
    start_native(&below)?;
    lagging.fill()?;
    lagging.fall_behind(4)?;
    let refused = lagging.rescue(&["--log-bin", "off"])?;
    ensure!(refused.status.code() == Some(1) && refused.stdout.contains("replicas of its own"), "{refused}");
    let killed = lagging.begin(&["--workers", "1"])?;
    thread::sleep(Duration::from_millis(3600));
    killed.kill()?;
    killed.wait()?;
    let load = sysbench::start(source, "oltp_write_only", MEANWHILE)?;
    let run = lagging.rescue(&[])?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    load.wait()?;
    for again in [false, true] {
        if again {
            below.execute(statement(&below, "STOP"))?;
            sysbench::run(source, "oltp_write_only", Load { events: 300, ..BEHIND })?;
            start_native(&below)?;
        }
        lagging.caught_up().context("native replication after the hand-back")?;
        caught_up().context("the replica's replica")?;
        for server in [replica, &below] {
            same(source, server).with_context(|| run.to_string())?;
            let left = server.scalar("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name='heddle'")?;
            ensure!(left == "0", "heddle's bookkeeping is still there");
        }
        if !kind.is_mariadb() && by != By::FileOnly {
            let wanted = gtids(source, Role::Source)?;
            ensure!(below.scalar(&format!("SELECT GTID_SUBSET('{wanted}', @@gtid_executed)"))? == "1", "{wanted}");
        }
    }
    let ends = if kind.is_mariadb() || by == By::FileOnly { Ends::Equal } else { Ends::Stopped };
    away(&lagging, &below, Away::Stopped, &[])?.is(Some(ends))
}

/// Where the replica's replica is while its source is rescued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Away {
    /// Somebody has stopped it.
    Stopped,
    /// It comes back within a second: before heddle looks, while it does, or after.
    Restarted,
    /// It waits for half a minute before it connects again.
    Waiting,
    /// It is attached, and its applier stands still.
    Slow,
}

/// What becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    Equal,
    Stopped,
}

impl Ends {
    /// `None`: either.
    fn is(self, expected: Option<Ends>) -> Result<()> {
        ensure!(
            expected.is_none_or(|expected| self == expected),
            "the replica's replica: {self:?}, expected {expected:?}"
        );
        Ok(())
    }
}

/// A rescue that does not see the replica's replica, which was restarted or is away: that one must never go on without what heddle applied.
fn away(lagging: &Lagging, below: &Server, away: Away, more: &[&str]) -> Result<Ends> {
    let (source, replica) = (&lagging.source, &lagging.replica);
    match away {
        Away::Stopped => below.execute(statement(below, "STOP"))?,
        Away::Slow => stop_applier(below)?,
        Away::Restarted => {}
        Away::Waiting => {
            let mariadb = below.kind.is_mariadb();
            let change = if mariadb { "CHANGE MASTER TO master" } else { "CHANGE REPLICATION SOURCE TO source" };
            let others = if mariadb { ", master_heartbeat_period=3.5" } else { "" };
            below.execute(&format!(
                "{}; {change}_connect_retry=30{others}; {}",
                statement(below, "STOP"),
                statement(below, "START")
            ))?;
        }
    }
    lagging.fall_behind(2)?;
    if away != Away::Slow {
        // A server that was restarted does not know who replicates from it.
        replica.kill()?;
        replica.restart(&[if replica.kind.has_new_words() { "--skip-replica-start" } else { "--skip-slave-start" }])?;
        let noun = if replica.kind.has_new_words() { "REPLICA" } else { "SLAVE" };
        replica.execute(&format!("START {noun} IO_THREAD"))?;
        until("the receiver", || {
            let output = replica.client(&["--vertical", "-e", statement(replica, "STATUS")]).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).contains("_IO_Running: Yes"))
        })?;
    }
    let run = lagging.rescue(more)?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    sysbench::run(source, "oltp_write_only", Load { events: 300, ..BEHIND })?;
    lagging.caught_up()?;
    same(source, replica)?;
    start_native(below)?;
    let waited = match lagging.by {
        By::FileOnly => wait_position(replica, below),
        By::Gtid | By::File => wait_caught_up(replica, below),
    };
    match waited {
        Ok(()) => same(source, below).map(|()| Ends::Equal).with_context(|| run.to_string()),
        Err(error) if error.to_string().contains("as native replica stopped") => {
            eprintln!("{away:?}: {error}");
            Ok(Ends::Stopped)
        }
        Err(error) => Err(error),
    }
}

/// A chain of three servers of its own for each case. `below_by_gtid`: how the last follows.
fn with_replica_away(kind: Kind, by: By, below_by_gtid: bool, cases: &[(Away, &[&str], Option<Ends>)]) -> Result<()> {
    for &(where_it_is, more, expected) in cases {
        let options: &[&str] = if by == By::FileOnly { &NO_GTIDS } else { &[] };
        let lagging = Lagging::empty(kind, by, &[])?;
        let below = Server::start(kind, options)?;
        configure_by(&lagging.replica, &below, below_by_gtid)?;
        start_native(&below)?;
        lagging.fill()?;
        match by {
            By::FileOnly => wait_position(&lagging.replica, &below)?,
            By::Gtid | By::File => wait_caught_up(&lagging.replica, &below)?,
        }
        let ends = away(&lagging, &below, where_it_is, more);
        ends.and_then(|ends| ends.is(expected)).with_context(|| format!("{kind} {by:?} {where_it_is:?} {more:?}"))?;
    }
    Ok(())
}

const OFF: &[&str] = &["--log-bin", "off"];
const ON: &[&str] = &["--log-bin", "on"];
const EQUAL: Option<Ends> = Some(Ends::Equal);
const STOPPED: Option<Ends> = Some(Ends::Stopped);

/// A channel (MariaDB: connection) with a name; on MariaDB several domains, which the replica applies out of order.
fn named(kind: Kind) -> Result<()> {
    let lagging = Lagging::start(kind, By::Gtid, &[])?;
    let (source, replica) = (&lagging.source, &lagging.replica);
    let port = source.port;
    let (reset, change, start, stop) = if kind.is_mariadb() {
        let change = format!(
            "CHANGE MASTER 'east' TO master_host='127.0.0.1', master_port={port}, master_user='heddle', master_password='heddle', \
             master_use_gtid=slave_pos, master_heartbeat_period=2.5"
        );
        ("STOP SLAVE; RESET SLAVE ALL", change, "START SLAVE 'east'", "STOP SLAVE 'east' SQL_THREAD")
    } else {
        let change = format!(
            "CHANGE REPLICATION SOURCE TO source_host='127.0.0.1', source_port={port}, source_user='heddle', source_password='heddle', \
             source_auto_position=1, get_source_public_key=1 FOR CHANNEL 'east'"
        );
        let start = "START REPLICA FOR CHANNEL 'east'";
        ("STOP REPLICA; RESET REPLICA ALL", change, start, "STOP REPLICA SQL_THREAD FOR CHANNEL 'east'")
    };
    for statement in [reset, &change, start] {
        replica.execute(statement)?;
    }
    lagging.caught_up()?;
    if kind.is_mariadb() {
        replica.execute("STOP SLAVE 'east'; SET GLOBAL slave_parallel_threads=6, slave_domain_parallel_threads=2; START SLAVE 'east'")?;
        for domain in 1..4 {
            source.execute(&format!(
                "SET gtid_domain_id={domain}; CREATE DATABASE d{domain}; CREATE TABLE d{domain}.t (id INT PRIMARY KEY)"
            ))?;
        }
        lagging.caught_up()?;
    }
    let settings = lagging.settings()?;
    replica.execute(stop)?;
    if kind.is_mariadb() {
        for id in 0..200 {
            let domain = id % 3 + 1;
            source.execute(&format!("SET gtid_domain_id={domain}; INSERT INTO d{domain}.t VALUES ({id})"))?;
        }
    }
    sysbench::run(source, "oltp_write_only", BEHIND)?;
    replica.execute(start)?;
    let run = lagging.rescue(&["--channel", "east", "--until-lag", "3s", "--anyway"])?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    lagging.as_before(&settings).with_context(|| run.to_string())
}

/// The source by an address of one's own; on MySQL by the account that the replica itself uses, with its password.
fn other_accounts(kind: Kind) -> Result<()> {
    let lagging = Lagging::start(kind, By::Gtid, &[])?;
    let (source, replica) = (&lagging.source, &lagging.replica);
    let privileges =
        if kind.is_mariadb() { "REPLICATION SLAVE, BINLOG MONITOR" } else { "REPLICATION SLAVE, REPLICATION CLIENT" };
    source.execute(&format!("CREATE USER repl IDENTIFIED BY 'another'; GRANT {privileges} ON *.* TO repl"))?;
    lagging.caught_up()?;
    replica.execute(statement(replica, "STOP"))?;
    replica.execute(if kind.is_mariadb() {
        "CHANGE MASTER TO MASTER_USER='repl', MASTER_PASSWORD='another', MASTER_HEARTBEAT_PERIOD=3.5"
    } else {
        "CHANGE REPLICATION SOURCE TO SOURCE_USER='repl', SOURCE_PASSWORD='another'"
    })?;
    start_native(replica)?;
    let settings = lagging.settings()?;
    let by_url = source.url();
    let ways: &[&[&str]] = if kind.is_mariadb() {
        &[&["--source", &by_url]]
    } else {
        &[&["--source", &by_url], &["--replication-account"]]
    };
    for way in ways {
        lagging.fall_behind(0)?;
        let run = lagging.rescue(way)?.successful()?;
        ensure!(outcome(&run)? == "handed_back", "{run}");
        lagging.as_before(&settings).with_context(|| run.to_string())?;
    }
    let refused = lagging.rescue(&["--source-user", "nobody"])?;
    ensure!(refused.status.code() == Some(1), "{refused}");
    if kind.is_mariadb() {
        lagging.rescue(&["--replication-account"])?.failed_with("--source-user")?;
    }
    Ok(())
}

/// Handed back by hand, as docs/rescue.md says, and native replication has gone on: heddle, run again, must not set anything back. The same
/// place in which a heddle leaves the replica that is killed right after it has released the applier.
fn by_hand(kind: Kind, by: By) -> Result<()> {
    let lagging = Lagging::start(kind, by, &[])?;
    let replica = &lagging.replica;
    let settings = lagging.settings()?;
    lagging.fall_behind(0)?;
    let running = lagging.begin(&["--workers", "1"])?;
    let mut applied = Vec::new();
    until("the first progress", || {
        let sql = "SELECT source_file, source_position, gtids FROM heddle.progress WHERE source_file <> '' AND source_position > 4";
        applied = replica.rows(sql).unwrap_or_default();
        Ok(!applied.is_empty())
    })?;
    running.kill()?;
    running.wait()?;
    let Ok(phase) = replica.scalar("SELECT phase FROM heddle.rescue") else {
        eprintln!("heddle was done before it was killed");
        return lagging.as_before(&settings);
    };
    eprintln!("killed while {phase}");
    if phase != "released" {
        replica.execute(statement(replica, "STOP"))?;
        let rows =
            replica.rows("SELECT source_file, source_position, gtids FROM heddle.progress WHERE channel='rescue'")?;
        let Some([file, offset, gtids]) = rows.first().map(Vec::as_slice) else { bail!("no progress: {rows:?}") };
        let release = match (kind.is_mariadb(), by) {
            (true, By::Gtid) => {
                replica.execute(&format!("SET GLOBAL gtid_slave_pos='{gtids}'"))?;
                "CHANGE MASTER TO MASTER_DELAY=0, MASTER_HEARTBEAT_PERIOD=3.5".to_owned()
            }
            (false, By::Gtid) => {
                let missing =
                    replica.scalar(&format!("SELECT REPLACE(GTID_SUBTRACT('{gtids}', @@gtid_executed), '\n', '')"))?;
                replica.execute(&format!("SET GLOBAL gtid_purged='+{missing}'"))?;
                "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=0".to_owned()
            }
            (false, _) => format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={offset}, SOURCE_DELAY=0"
            ),
            (true, _) => format!(
                "CHANGE MASTER TO MASTER_LOG_FILE='{file}', MASTER_LOG_POS={offset}, MASTER_DELAY=0, MASTER_HEARTBEAT_PERIOD=3.5"
            ),
        };
        replica.execute(&release)?;
        replica.execute("SET sql_log_bin=0; UPDATE heddle.rescue SET phase='handing back'")?;
    }
    start_native(replica)?;
    sysbench::run(&lagging.source, "oltp_write_only", Load { events: 300, ..BEHIND })?;
    lagging.caught_up()?;
    let run = lagging.rescue(&[])?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    lagging.as_before(&settings).with_context(|| run.to_string())
}

/// What can not be rescued is refused before anything is changed.
fn refused(kind: Kind) -> Result<()> {
    let lagging = Lagging::start(kind, By::Gtid, &[])?;
    let change = if kind.is_mariadb() {
        "CHANGE MASTER TO MASTER_DELAY=3600"
    } else {
        "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=3600"
    };
    let (stop, start) = (statement(&lagging.replica, "STOP"), statement(&lagging.replica, "START"));
    lagging.replica.execute(&format!("{stop}; {change}; {start}"))?;
    let settings = lagging.settings()?;
    lagging.rescue(&[])?.failed_with("")?;
    let run = lagging.rescue(&[])?;
    ensure!(run.status.code() == Some(1) && run.stdout.contains("is to stay 3600 s behind"), "{run}");
    lagging.rescue(&["--channel", "west"])?.failed_with("no channel")?;
    let source = lagging.source.url();
    let not_a_replica = heddle(&["rescue", &source, "--relay-dir", &lagging.relay])?;
    not_a_replica.failed_with("not a replica")?;
    lagging.as_before(&settings)
}

/// Two servers that replicate from each other.
fn ring(kind: Kind) -> Result<()> {
    let lagging = Lagging::start(kind, By::Gtid, &[])?;
    configure_by(&lagging.replica, &lagging.source, true)?;
    start_native(&lagging.source)?;
    lagging.replica.execute("CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY)")?;
    wait_caught_up(&lagging.replica, &lagging.source)?;
    let run = lagging.rescue(&[])?;
    ensure!(run.status.code() == Some(1) && run.stdout.contains("replicate from each other"), "{run}");
    Ok(())
}

/// Everything that was received is purged at the source: only the replica's relay logs have it.
fn purge_received(lagging: &Lagging) -> Result<()> {
    let (source, replica) = (&lagging.source, &lagging.replica);
    source.rotate()?;
    let logs = source.rows("SHOW BINARY LOGS")?;
    let Some(last) = logs.last().and_then(|row| row.first()) else { bail!("no binary logs") };
    until(format!("the replica reads {last}"), || {
        let output = replica.client(&["--vertical", "-e", statement(replica, "STATUS")]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).contains(&format!("Log_File: {last}")))
    })?;
    source.purge_all_but_last()
}

/// In small relay logs, so that transactions begin in one and end in the next.
const SMALL: &str = "--max-relay-log-size=40960";

/// The source has purged what comes next: the replica's relay logs have it. Refused where they can not be read.
fn purged(kind: Kind, by: By) -> Result<()> {
    let lagging = Lagging::start(kind, by, &[SMALL, "--sync-relay-log=0"])?;
    let settings = lagging.settings()?;
    lagging.fall_behind(5)?;
    purge_received(&lagging)?;
    let empty = lagging.replica.dir().display().to_string();
    let run = lagging.rescue(&["--replica-relay-logs", &empty])?;
    ensure!(run.status.code() == Some(1) && outcome(&run)? == "refused", "{run}");
    ensure!(run.stdout.contains("run heddle there"), "{run}");
    let load = sysbench::start(&lagging.source, "oltp_write_only", MEANWHILE)?;
    let run = lagging.rescue(&[])?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    load.wait()?;
    lagging.as_before(&settings).with_context(|| run.to_string())
}

/// A relay log in the middle ends inside an event: what it lacks is in none of those behind it. Nothing is applied; with the
/// file as it was the same command finishes the work.
fn torn(kind: Kind) -> Result<()> {
    let lagging = Lagging::start(kind, By::Gtid, &[SMALL])?;
    let settings = lagging.settings()?;
    lagging.fall_behind(0)?;
    purge_received(&lagging)?;
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(lagging.replica.data())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains("relay-bin.0") {
            logs.push(path);
        }
    }
    logs.sort();
    ensure!(logs.len() > 5, "only {} relay logs", logs.len());
    let log = &logs[logs.len() - 3];
    let whole = std::fs::read(log)?;
    std::fs::write(log, &whole[..whole.len() - 10])?;
    let applied = gtids(&lagging.replica, Role::Replica)?;
    let run = lagging.rescue(&[])?;
    ensure!(run.status.code() == Some(3) && outcome(&run)? == "unfinished", "{run}");
    let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ensure!(run.stderr.contains(&format!("{name} ends in the middle of an event")), "{name} is not named: {run}");
    ensure!(gtids(&lagging.replica, Role::Replica)? == applied, "something was applied: {run}");
    std::fs::write(log, &whole)?;
    let run = lagging.rescue(&[])?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    lagging.as_before(&settings).with_context(|| run.to_string())
}

/// The same, killed at random moments and gone on with, aborted in the end.
fn purged_and_interrupted(kind: Kind, by: By, name: &str) -> Result<()> {
    let mut random = seeded(name);
    let lagging = Lagging::start(kind, by, &[SMALL])?;
    let settings = lagging.settings()?;
    lagging.fall_behind(5)?;
    purge_received(&lagging)?;
    for moments in [2900..4500, 0..800, 0..800] {
        let running = lagging.begin(&["--workers", "1"])?;
        thread::sleep(Duration::from_millis(random.random_range(moments)));
        let phase = lagging.replica.scalar("SELECT phase FROM heddle.rescue").unwrap_or_else(|_| "none".to_owned());
        eprintln!("  killed in phase {phase}");
        running.kill()?;
        running.wait()?;
        // Before that a server that is killed may lose its relay logs by itself, and nobody has them.
        if phase == "applying" {
            lagging.replica.kill()?;
            lagging.replica.restart(&[])?;
            start_native(&lagging.replica)?;
        }
    }
    let run = lagging.rescue(&["--abort"])?.successful()?;
    start_native(&lagging.replica)?;
    lagging.as_before(&settings).with_context(|| run.to_string())
}

/// Neither the source nor the replica has what comes next: said before the replica is touched.
fn lost(kind: Kind) -> Result<()> {
    let lagging = Lagging::start(kind, By::Gtid, &[])?;
    stop_applier(&lagging.replica)?;
    lagging.replica.execute(statement(&lagging.replica, "STOP"))?;
    lagging.source.execute("CREATE TABLE sbtest.later (id INT PRIMARY KEY)")?;
    lagging.source.rotate()?;
    lagging.source.execute("INSERT INTO sbtest.later VALUES (1)")?;
    lagging.source.rotate()?;
    lagging.source.purge_all_but_last()?;
    let run = lagging.rescue(&[])?;
    ensure!(run.status.code() == Some(1) && outcome(&run)? == "refused", "{run}");
    ensure!(run.stdout.contains("has not received it"), "{run}");
    Ok(())
}

/// A server that has no delay can not hold its applier.
fn too_old(kind: Kind) -> Result<()> {
    let lagging = Lagging::start(kind, By::Gtid, &[])?;
    let run = lagging.rescue(&[])?;
    ensure!(run.status.code() == Some(1) && run.stdout.contains("10.2.3"), "{run}");
    lagging.as_before(&lagging.settings()?)
}

fn kind(name: &str) -> Kind {
    name.parse().unwrap_or_else(|error| panic!("{error:#}"))
}

// On servers that `scripts/nightly` fetches.
e2e::tests! {
    #[ignore = "scripts/nightly"] mysql_5_7_rescued: rescued(kind("mysql-5.7.22"), By::Gtid, &[]);
    #[ignore = "scripts/nightly"] mysql_5_7_rescued_without_gtids: rescued(kind("mysql-5.7.22"), By::FileOnly, &["--slave-parallel-workers=4", "--slave-parallel-type=LOGICAL_CLOCK"]);
    #[ignore = "scripts/nightly"] mysql_5_7_interrupted: interrupted(kind("mysql-5.7.22"), By::Gtid, "mysql_5_7_interrupted");
    #[ignore = "scripts/nightly"] mysql_8_0_rescued: rescued(kind("mysql-8.0.15"), By::Gtid, &[]);
    #[ignore = "scripts/nightly"] mysql_8_0_rescued_without_gtids: rescued(kind("mysql-8.0.15"), By::FileOnly, &[]);
    #[ignore = "scripts/nightly"] mysql_8_0_interrupted: interrupted(kind("mysql-8.0.15"), By::Gtid, "mysql_8_0_interrupted");
    #[ignore = "scripts/nightly"] mysql_5_7_purged: purged(kind("mysql-5.7.22"), By::Gtid);
    #[ignore = "scripts/nightly"] mysql_5_7_with_replica_below: with_replica_below(kind("mysql-5.7.22"), By::Gtid);
    #[ignore = "scripts/nightly"] mysql_with_replica_away: with_replica_away(MYSQL_9_7, By::Gtid, true, &[(Away::Stopped, &[], STOPPED), (Away::Restarted, &[], None), (Away::Waiting, &[], STOPPED), (Away::Waiting, ON, EQUAL), (Away::Slow, &[], EQUAL)]);
    #[ignore = "scripts/nightly"] mysql_with_replica_away_by_file: with_replica_away(MYSQL_9_7, By::Gtid, false, &[(Away::Stopped, &[], STOPPED), (Away::Restarted, &[], None), (Away::Waiting, OFF, STOPPED)]);
    #[ignore = "scripts/nightly"] mysql_with_replica_away_without_gtids: with_replica_away(MYSQL_9_7, By::FileOnly, false, &[(Away::Stopped, &[], EQUAL), (Away::Waiting, OFF, STOPPED)]);
    #[ignore = "scripts/nightly"] mysql_5_7_with_replica_away: with_replica_away(kind("mysql-5.7.22"), By::Gtid, true, &[(Away::Stopped, &[], STOPPED)]);
    #[ignore = "scripts/nightly"] mariadb_with_replica_away: with_replica_away(MARIADB_10_11, By::Gtid, true, &[(Away::Stopped, &[], EQUAL), (Away::Waiting, &[], EQUAL), (Away::Stopped, OFF, STOPPED), (Away::Slow, &[], EQUAL)]);
    #[ignore = "scripts/nightly"] mariadb_with_replica_away_by_file: with_replica_away(MARIADB_10_11, By::Gtid, false, &[(Away::Waiting, &[], EQUAL), (Away::Waiting, OFF, STOPPED)]);
    #[ignore = "scripts/nightly"] mysql_8_0_46_rescued: rescued(kind("mysql-8.0.46"), By::Gtid, &[]);
    #[ignore = "scripts/nightly"] mysql_8_0_46_rescued_without_gtids: rescued(kind("mysql-8.0.46"), By::FileOnly, &[]);
    #[ignore = "scripts/nightly"] mysql_8_4_rescued: rescued(kind("mysql-8.4"), By::Gtid, &[]);
    #[ignore = "scripts/nightly"] mysql_8_4_interrupted: interrupted(kind("mysql-8.4"), By::Gtid, "mysql_8_4_interrupted");
    #[ignore = "scripts/nightly"] mariadb_10_6_rescued: rescued(kind("mariadb-10.6"), By::Gtid, &[]);
    #[ignore = "scripts/nightly"] mysql_8_0_purged: purged(kind("mysql-8.0.15"), By::FileOnly);
    #[ignore = "scripts/nightly"] mariadb_10_2_purged: purged(kind("mariadb-10.2"), By::Gtid);
    #[ignore = "scripts/nightly"] mariadb_11_8_purged: purged(kind("mariadb-11.8"), By::Gtid);
    #[ignore = "scripts/nightly"] mariadb_11_8_with_replica_below: with_replica_below(kind("mariadb-11.8"), By::Gtid);
    #[ignore = "scripts/nightly"] mariadb_10_1_refused: too_old(kind("mariadb-10.1"));
    #[ignore = "scripts/nightly"] mariadb_10_2_rescued: rescued(kind("mariadb-10.2"), By::Gtid, &[]);
    #[ignore = "scripts/nightly"] mariadb_10_2_interrupted: interrupted(kind("mariadb-10.2"), By::Gtid, "mariadb_10_2_interrupted");
    #[ignore = "scripts/nightly"] mariadb_11_8_rescued: rescued(kind("mariadb-11.8"), By::Gtid, &[]);
    #[ignore = "scripts/nightly"] mariadb_11_8_interrupted: interrupted(kind("mariadb-11.8"), By::Gtid, "mariadb_11_8_interrupted");
}

e2e::tests! {
    mysql_rescued: rescued(MYSQL_9_7, By::Gtid, &["--super-read-only=ON"]);
    mysql_rescued_by_file: rescued(MYSQL_9_7, By::File, &[]);
    mysql_rescued_without_gtids: rescued(MYSQL_9_7, By::FileOnly, &["--replica-preserve-commit-order=OFF"]);
    mariadb_rescued: rescued(MARIADB_10_11, By::Gtid, &["--slave-parallel-threads=4"]);
    mariadb_rescued_by_file: rescued(MARIADB_10_11, By::File, &[]);
    mysql_interrupted: interrupted(MYSQL_9_7, By::Gtid, "mysql_interrupted");
    mysql_interrupted_by_file: interrupted(MYSQL_9_7, By::FileOnly, "mysql_interrupted_by_file");
    mariadb_interrupted: interrupted(MARIADB_10_11, By::Gtid, "mariadb_interrupted");
    mariadb_interrupted_by_file: interrupted(MARIADB_10_11, By::File, "mariadb_interrupted_by_file");
    mysql_aborted: aborted(MYSQL_9_7, By::Gtid);
    mariadb_aborted: aborted(MARIADB_10_11, By::Gtid);
    mysql_aborted_by_file: aborted(MYSQL_9_7, By::FileOnly);
    mariadb_aborted_by_file: aborted(MARIADB_10_11, By::File);
    mysql_by_hand: by_hand(MYSQL_9_7, By::Gtid);
    mysql_by_hand_by_file: by_hand(MYSQL_9_7, By::FileOnly);
    mariadb_by_hand: by_hand(MARIADB_10_11, By::Gtid);
    mysql_with_replica_below: with_replica_below(MYSQL_9_7, By::Gtid);
    mysql_with_replica_below_by_file: with_replica_below(MYSQL_9_7, By::FileOnly);
    mariadb_with_replica_below: with_replica_below(MARIADB_10_11, By::Gtid);
    mysql_other_accounts: other_accounts(MYSQL_9_7);
    mariadb_other_accounts: other_accounts(MARIADB_10_11);
    mysql_named: named(MYSQL_9_7);
    mariadb_named: named(MARIADB_10_11);
    mysql_refused: refused(MYSQL_9_7);
    mariadb_refused: refused(MARIADB_10_11);
    mysql_ring: ring(MYSQL_9_7);
    mariadb_ring: ring(MARIADB_10_11);
    mysql_purged: purged(MYSQL_9_7, By::Gtid);
    mysql_purged_by_file: purged(MYSQL_9_7, By::FileOnly);
    mariadb_purged: purged(MARIADB_10_11, By::Gtid);
    mariadb_purged_by_file: purged(MARIADB_10_11, By::File);
    mysql_purged_and_interrupted: purged_and_interrupted(MYSQL_9_7, By::Gtid, "mysql_purged_and_interrupted");
    mariadb_purged_and_interrupted: purged_and_interrupted(MARIADB_10_11, By::Gtid, "mariadb_purged_and_interrupted");
    mysql_torn: torn(MYSQL_9_7);
    mariadb_torn: torn(MARIADB_10_11);
    mysql_lost: lost(MYSQL_9_7);
    mariadb_lost: lost(MARIADB_10_11);
}
