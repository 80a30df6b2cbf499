//! What a channel survives beside kills: answers that are lost after the work was done, connections that end anywhere, statements
//! that outlive the heddle which sent them. Random moments come from a seed; `HEDDLE_SEED=N` repeats a run.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::crash::{Crashes, Victim};
use e2e::heddle::{Heddle, heddle};
use e2e::pair::Pair;
use e2e::proxy::{Fault, Proxy};
use e2e::random;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server};
use e2e::store_crash::StoreCrashes;
use e2e::sysbench::{self, Load};
use e2e::until;
use e2e::workload::{Size, Workload};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn seed(name: &str) -> u64 {
    e2e::seed(20_161_107, &format!("faults {name}"))
}

const SMALL: Size = Size {
    tables: 5,
    sessions: 3,
    transactions: 80,
    definitions_percent: 5,
    xa: false,
    replace: true,
    temporary: false,
    same_flavour: true,
    unlogged: true,
};

/// The target is reached through a proxy that loses connections; heddle gets over all of it by itself.
fn target_lost(kind: Kind, fault: Fault, one_in: u32, options: &[&str]) -> Result<()> {
    let seed = seed("target_lost");
    let pair = Pair::start(kind)?;
    Workload::new(seed, SMALL, kind).run(&pair.source)?;
    let proxy = Proxy::start(pair.target.port, fault, one_in, seed)?;
    let to = format!("mysql://heddle@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", proxy.port);
    // The login itself may be what is lost: a person, or a supervisor, starts the command again.
    let mut runs = 0;
    loop {
        runs += 1;
        let mut arguments = vec!["--until-end"];
        arguments.extend(options);
        let run = pair.begin_into(&to, &arguments)?.wait()?;
        if run.status.success() {
            break;
        }
        ensure!(
            matches!(fault, Fault::Anything | Fault::AnswerOfRows) && proxy.cuts() > 0 && runs < 50,
            "{} cuts: {run}",
            proxy.cuts()
        );
        ensure!(run.stderr.contains("server closed the connection") || run.stderr.contains("lost"), "{run}");
    }
    ensure!(proxy.cuts() > 0, "no connection was cut");
    pair.assert_equal().with_context(|| format!("after {} cuts and {runs} runs", proxy.cuts()))?;
    pair.to_the_end(options).map(drop)
}

/// Many transactions in a packet, each of which commits by itself.
const APART: [&str; 6] = ["--grouping", "off", "--workers", "2", "--commit-order", "relaxed"];
/// The same in the source's order.
const APART_IN_ORDER: [&str; 4] = ["--grouping", "off", "--workers", "3"];

/// A channel that has begun, and so many transactions that it has not applied.
fn behind(kind: Kind, transactions: u64, options: &[&str]) -> Result<Pair> {
    let load = Load { tables: 4, rows: 200, threads: 4, events: transactions, seconds: 0 };
    let pair = Pair::start(kind)?;
    sysbench::prepare(&pair.source, "oltp_write_only", load)?;
    pair.to_the_end(options)?;
    sysbench::run(&pair.source, "oltp_write_only", load)?;
    Ok(pair)
}

/// A heddle that hangs loses the connection that holds the channel, another one takes over with fewer workers, and the first wakes up:
/// what its many connections were about to do must not come in between.
fn cut_off(kind: Kind, options: &[&str]) -> Result<()> {
    let pair = behind(kind, 6000, options)?;
    let mut random = StdRng::seed_from_u64(seed("cut_off"));
    // Somebody holds rows, so the first has many commits to come when it is stopped.
    let blocker = pair.target.hold("SELECT * FROM sbtest.sbtest1 FOR UPDATE")?;
    let hung = pair.begin(&[options, &["--workers", "12"]].concat())?;
    pair.target.wait_until("SELECT COUNT(IS_USED_LOCK('heddle.default/11'))")?;
    thread::sleep(Duration::from_millis(random.random_range(300..1500)));
    hung.signal(Signal::STOP)?;
    let second = take_over(&pair, options)?;
    thread::sleep(Duration::from_millis(random.random_range(0..600)));
    hung.signal(Signal::CONT)?;
    drop(blocker);
    let hung = hung.wait()?;
    ensure!(!hung.status.success() && hung.stderr.contains("channel"), "the first went on: {hung}");
    second.terminate()?;
    second.wait()?.successful()?;
    pair.to_the_end(options).map(drop)
}

/// One that has nothing to apply when it loses the channel notices as well.
fn cut_off_idle(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.to_the_end(&[])?;
    // The source would end the dump of one whose number comes again.
    let hung = pair.begin(&["--server-id", "77"])?;
    // One that is still beginning would only say that its connections are gone.
    pair.source.execute("CREATE DATABASE begun")?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME='begun'")?;
    hung.signal(Signal::STOP)?;
    let second = take_over(&pair, &[])?;
    hung.signal(Signal::CONT)?;
    let hung = hung.wait()?;
    ensure!(!hung.status.success() && hung.stderr.contains("has been taken over"), "{hung}");
    second.terminate()?;
    second.wait()?.successful().map(drop)
}

/// Another heddle, with fewer workers, once the connection that holds the channel is gone; it has the channel when this returns.
fn take_over(pair: &Pair, options: &[&str]) -> Result<Heddle> {
    let holder = pair.target.scalar("SELECT IS_USED_LOCK('heddle.default')")?;
    pair.target.execute(&format!("KILL {holder}"))?;
    let relay = pair.target.dir().join("second-relay").display().to_string();
    let to = pair.target.url();
    let begin = ["replicate", "--json", "--from", &pair.from, "--to", &to, "--relay-dir", &relay, "--workers", "2"];
    let second = Heddle::start(&[&begin[..], options].concat())?;
    another_holds_the_channel(&pair.target, &holder)?;
    Ok(second)
}

/// Until another connection than this one holds the channel.
fn another_holds_the_channel(target: &Server, than: &str) -> Result<()> {
    target.wait_until(&format!("SELECT COALESCE(IS_USED_LOCK('heddle.default'), {than}) <> {than}"))
}

/// Tables that are defined, and defined anew before their next rows: their definitions are read each time.
fn define_again_and_again(source: &Server) -> Result<()> {
    let mut sql = "CREATE DATABASE d; USE d; CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1);".to_owned();
    for number in 0..25 {
        let references = if number % 5 == 0 { ", FOREIGN KEY (v) REFERENCES p (id)" } else { "" };
        sql += &format!(
            "CREATE TABLE t{number} (id INT PRIMARY KEY, u INT UNIQUE, v INT{references}); INSERT INTO t{number} VALUES (1, NULL, 1);
             ALTER TABLE t{number} ADD COLUMN w INT; INSERT INTO t{number} VALUES (2, NULL, 1, 2);"
        );
    }
    source.execute(&sql)
}

/// Sessions of heddle's that ask for something, and those that will: MariaDB keeps a `KILL QUERY` for the next statement. But for who executes definitions:
/// one that takes longer than the next `KILL` comes would never end.
const ASKING: &str = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'heddle' AND ID <> CONNECTION_ID() AND \
    (INFO LIKE 'SELECT%' OR INFO LIKE 'SHOW%' OR COMMAND = 'Sleep' AND ID <> COALESCE(IS_USED_LOCK('heddle.default/4096'), 0))";

/// Somebody ends what heddle's sessions execute, again and again: also between two statements of one packet, of which the server
/// says nothing, and what is asked of the target.
fn interrupted(kind: Kind, options: &[&str]) -> Result<()> {
    let pair = behind(kind, 2500, options)?;
    define_again_and_again(&pair.source)?;
    let mut random = StdRng::seed_from_u64(seed("interrupted"));
    let before = pair.target.scalar("SELECT seq FROM heddle.progress")?;
    let mut running = pair.begin(&[options, &["--until-end", "--workers", "4"]].concat())?;
    // One that can not begin says so and ends.
    pair.target.wait_until(&format!("SELECT COUNT(*) FROM heddle.progress WHERE seq>{before}"))?;
    let mut admin = pair.target.connect()?;
    let mut kills = 0;
    while !running.has_ended()? {
        let holders = (0..4).map(|worker| format!("IS_USED_LOCK('heddle.default/{worker}')")).collect::<Vec<_>>();
        let ids = admin.row(format!("SELECT {}", holders.join(",")))?.context("no row")?;
        for worker in 0..4 {
            let Some(id) = ids.parse::<u64>(worker)? else { continue };
            // It may be gone.
            kills += u32::from(admin.execute(format!("KILL QUERY {id}")).is_ok());
            thread::sleep(Duration::from_micros(random.random_range(0..15_000)));
            for row in admin.rows(ASKING)? {
                let id: u64 = row.required(0)?;
                kills += u32::from(admin.execute(format!("KILL QUERY {id}")).is_ok());
            }
        }
    }
    let run = running.wait()?.successful()?;
    ensure!(kills > 0, "nothing was interrupted: {run}");
    pair.assert_equal().with_context(|| format!("after {kills} interruptions: {run}"))
}

/// A checkpoint whose connection is lost while it waits is executed later than the one that comes after it, or before: neither is a sign
/// of another heddle.
fn checkpoint_outlives_its_connection(kind: Kind) -> Result<()> {
    const LOAD: Load = Load { tables: 2, rows: 200, threads: 2, events: 0, seconds: 3 };
    let pair = Pair::start(kind)?;
    sysbench::prepare(&pair.source, "oltp_update_non_index", LOAD)?;
    pair.to_the_end(&APART)?;
    // Only checkpoints have a COMMIT of their own here.
    let proxy = Proxy::start(pair.target.port, Fault::AnswerOfCommit, 2, seed("checkpoint"))?;
    let to = format!("mysql://heddle@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", proxy.port);
    let running = pair.begin_into(&to, &APART)?;
    pair.target.wait_until("SELECT COUNT(IS_USED_LOCK('heddle.default/1'))")?;
    for _ in 0..3 {
        let blocker = pair.target.hold("SELECT seq FROM heddle.progress FOR UPDATE")?;
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_secs(2));
                drop(blocker);
            });
            sysbench::run(&pair.source, "oltp_update_non_index", LOAD)
        })?;
    }
    ensure!(proxy.cuts() > 0, "no connection was cut");
    proxy.heal();
    running.terminate()?;
    let run = running.wait()?.successful()?;
    pair.to_the_end(&APART).with_context(|| format!("after {} cuts: {run}", proxy.cuts())).map(drop)
}

/// A query that is ended between two of its statements is ended by the server without a word: the call returns all the same, and the
/// connection goes on.
fn ended_between_statements(kind: Kind) -> Result<()> {
    const STATEMENTS: usize = 40;
    let server = Server::start(kind, &[])?;
    let (mut victim, mut admin) = (server.connect()?, server.connect()?);
    let kill = format!("KILL QUERY {}", victim.server().connection_id);
    let sql = ["DO 1"; STATEMENTS].join(";");
    let done = AtomicBool::new(false);
    let unannounced = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && admin.execute(&kill).is_ok() {
                thread::sleep(Duration::from_micros(300));
            }
        });
        let mut unannounced = 0;
        for _ in 0..200_000 {
            match victim.query_statements(&sql, STATEMENTS) {
                Ok(results) => assert_eq!(results.len(), STATEMENTS),
                Err(error) => {
                    assert_eq!(error.code(), Some(1317), "{error}");
                    unannounced += u32::from(error.to_string().contains("unannounced"));
                }
            }
            if unannounced == 3 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        unannounced
    });
    ensure!(unannounced > 0, "the server has named each interruption");
    // One that came late may still meet this.
    let answer = (0..3).find_map(|_| victim.scalar("SELECT 42").ok());
    ensure!(answer == Some(Some("42".to_owned())), "out of step: {answer:?}");
    asked_again(&server)
}

/// A question that somebody ends is asked again, and a statement is not.
fn asked_again(server: &Server) -> Result<()> {
    server.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (7)")?;
    let mut victim = server.connect()?;
    let id = victim.server().connection_id;
    let blocker = server.hold("SELECT * FROM d.t FOR UPDATE")?;
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let deleted = victim.execute("DELETE FROM d.t");
            (deleted, victim.scalar("SELECT id FROM d.t FOR UPDATE"))
        });
        for _ in 0..4 {
            server.wait_until(&format!(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO LIKE '% d.t%'"
            ))?;
            thread::sleep(Duration::from_millis(100));
            server.execute(&format!("KILL QUERY {id}"))?;
        }
        drop(blocker);
        let (deleted, answer) = asking.join().map_err(|_| anyhow::anyhow!("a thread has panicked"))?;
        ensure!(deleted.as_ref().is_err_and(|error| error.code() == Some(1317)), "{deleted:?}");
        ensure!(answer?.as_deref() == Some("7"), "another answer");
        Ok(())
    })
}

/// The stream from the source breaks off anywhere.
fn source_lost(kind: Kind) -> Result<()> {
    let seed = seed("source_lost");
    let mut pair = Pair::start(kind)?;
    let proxy = Proxy::start(pair.source.port, Fault::Anything, 25, seed)?;
    let direct = std::mem::replace(
        &mut pair.from,
        format!("mysql://heddle@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", proxy.port),
    );
    Workload::new(seed, SMALL, kind).run(&pair.source)?;
    let mut runs = 0;
    loop {
        runs += 1;
        let run = pair.begin(&["--until-end"])?.wait()?;
        if run.status.success() {
            break;
        }
        ensure!(proxy.cuts() > 0 && runs < 50, "{run}");
    }
    ensure!(proxy.cuts() > 0, "no connection was cut");
    pair.from = direct;
    pair.assert_equal().with_context(|| format!("after {} cuts and {runs} runs", proxy.cuts()))?;
    pair.to_the_end(&[]).map(drop)
}

/// The source, or what is before it, is silent after a login: heddle ends when it is told to.
fn source_frozen(kind: Kind) -> Result<()> {
    let mut pair = Pair::start(kind)?;
    let proxy = Proxy::start(pair.source.port, Fault::Frozen, 1, 0)?;
    pair.from = format!("mysql://heddle@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", proxy.port);
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    let mut running = pair.begin(&[])?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'")?;
    proxy.freeze();
    end_dumps(&pair.source)?;
    running.wait_for_log("the source can not be reached")?;
    thread::sleep(Duration::from_secs(2));
    ensure!(!running.has_ended()?, "nobody has told it to end");
    running.terminate()?;
    ensure!(running.wait_up_to(Duration::from_secs(30))?.was_stopped()?, "it was not stopped");
    Ok(())
}

/// Until `heddle status` says whether the source is reached.
fn wait_for_status(pair: &Pair, reached: bool) -> Result<()> {
    until(if reached { "a source that is reached" } else { "a source that is lost" }, || {
        let run = heddle(&["status", "--to", &pair.target.url(), "--json"])?.successful()?;
        let status: serde_json::Value = serde_json::from_str(&run.stdout)?;
        let is_so = status[0]["source_reached"] == reached;
        ensure!(!is_so || status[0]["source_lost_seconds"].is_u64() != reached, "{run}");
        Ok(is_so)
    })
}

/// The source does not take heddle's login for a while: heddle waits, as for a source that can not be reached.
fn source_refuses_login(kind: Kind) -> Result<()> {
    let mut pair = Pair::start(kind)?;
    pair.source.execute(&format!(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY);
         SET sql_log_bin=0; CREATE USER other IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO other"
    ))?;
    pair.from = pair.from.replace("//heddle@", "//other@");
    let mut running = pair.begin(&[])?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'")?;
    let set_password = |password: &str| {
        pair.source.execute(&format!("SET sql_log_bin=0; ALTER USER other IDENTIFIED BY '{password}'"))
    };
    set_password("another")?;
    end_dumps(&pair.source)?;
    running.wait_for_log("login refused")?;
    wait_for_status(&pair, false)?;
    pair.source.execute("INSERT INTO d.t VALUES (1)")?;
    set_password(PASSWORD)?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.t")?;
    wait_for_status(&pair, true)?;
    running.terminate()?;
    ensure!(running.wait()?.was_stopped()?, "it was not stopped");
    Ok(())
}

/// The target takes smaller packets from its next connections on.
fn packet_limit_lowered(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB); INSERT INTO d.t VALUES (0, '')",
    )?;
    let running = pair.begin(&[])?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'")?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.t")?;
    pair.target.execute("SET GLOBAL max_allowed_packet = 1048576")?;
    let others = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'heddle' AND ID <> CONNECTION_ID()";
    for row in pair.target.rows(others)? {
        pair.target.execute(&format!("KILL {}", row[0]))?;
    }
    let rows: Vec<String> = (1..40).map(|id| format!("({id}, REPEAT('x', 100000))")).collect();
    pair.source.execute(&format!("INSERT INTO d.t VALUES {}", rows.join(",")))?;
    pair.target.wait_until("SELECT COUNT(*) = 40 FROM d.t")?;
    running.terminate()?;
    ensure!(running.wait()?.was_stopped()?, "it was not stopped");
    Ok(())
}

/// GTIDs are switched on at the target, as the manual says, while the channel runs.
fn gtids_switched_on_at_the_target() -> Result<()> {
    let off: &[&str] = &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"];
    let pair = Pair::start_two((MYSQL_9_7, off), (MYSQL_9_7, off))?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    let running = pair.begin(&[])?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'")?;
    let steps = ["enforce_gtid_consistency=ON", "gtid_mode=OFF_PERMISSIVE", "gtid_mode=ON_PERMISSIVE", "gtid_mode=ON"];
    for (id, step) in steps.iter().enumerate() {
        pair.target.execute(&format!("SET GLOBAL {step}"))?;
        pair.source.execute(&format!("INSERT INTO d.t VALUES ({id}); CREATE TABLE d.t{id} (id INT PRIMARY KEY)"))?;
        pair.target.wait_until(&format!("SELECT COUNT(*) = {} FROM d.t", id + 1))?;
        pair.target
            .wait_until(&format!("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 't{id}'"))?;
    }
    running.terminate()?;
    ensure!(running.wait()?.was_stopped()?, "it was not stopped");
    pair.assert_equal()
}

fn end_dumps(source: &Server) -> Result<()> {
    for row in source.rows("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")? {
        source.execute(&format!("KILL {}", row[0]))?;
    }
    Ok(())
}

/// Heddle is killed while a definition of its is under way on the target, which goes on with it: the next heddle must not take it
/// for one that was never begun.
fn definition_outlives_heddle(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")?;
    pair.to_the_end(&[])?;
    // A session of somebody else holds the table, so the definition waits for it.
    let blocker = pair.target.hold("SELECT * FROM d.t")?;
    // Executed twice it makes two indexes.
    pair.source.execute("ALTER TABLE d.t ADD INDEX (v)")?;
    let running = pair.begin(&["--until-end"])?;
    wait_for(&pair.target, "ALTER TABLE%ADD INDEX%")?;
    let first = pair.target.scalar("SELECT IS_USED_LOCK('heddle.default')")?;
    running.kill()?;
    running.wait()?;
    let next = pair.begin(&["--until-end"])?;
    another_holds_the_channel(&pair.target, &first)?;
    drop(blocker);
    let run = next.wait()?.successful()?;
    pair.assert_equal()?;
    ensure!(run.number("transactions")? <= 1, "{run}");
    Ok(())
}

/// A target crashes after it has made the table of a CREATE … SELECT, and before its rows are there (MySQL before 8.0.21, MariaDB before 10.6). Made by
/// hand: such servers do it once in many crashes.
fn created_without_its_rows(kind: Kind, options: &[&str]) -> Result<()> {
    let statements: &[&str] = &["--binlog-format=STATEMENT"];
    let pair = Pair::start_two((kind, statements), (kind, &[]))?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.b (id INT PRIMARY KEY, v INT); INSERT INTO d.b VALUES (1, 1), (2, 2)",
    )?;
    pair.to_the_end(options)?;
    let blocker = pair.target.hold("LOCK TABLES d.b WRITE")?;
    pair.source.execute("CREATE TABLE d.copy (PRIMARY KEY (id)) SELECT * FROM d.b")?;
    let running = pair.begin(&[options, &["--until-end"]].concat())?;
    wait_for(&pair.target, "CREATE TABLE d.copy%")?;
    running.kill()?;
    running.wait()?;
    for row in
        pair.target.rows("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'CREATE TABLE d.copy%'")?
    {
        pair.target.execute(&format!("KILL {}", row[0]))?;
    }
    drop(blocker);
    pair.target.execute("CREATE TABLE d.copy (id INT PRIMARY KEY, v INT)")?;
    pair.source.execute("INSERT INTO d.copy VALUES (3, 3)")?;
    pair.to_the_end(options).map(drop)
}

/// All are killed when a definition has been executed, and its note has not been written: executed again it would be undone.
fn swap_before_its_note(kind: Kind, schema: &str) -> Result<()> {
    let pair = Pair::start_with(kind, &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"], &[])?;
    pair.source.execute(&format!(
        "CREATE DATABASE `{schema}`; USE `{schema}`; CREATE TABLE a (id INT PRIMARY KEY); CREATE TABLE b LIKE a; INSERT INTO a VALUES (1)"
    ))?;
    pair.to_the_end(&[])?;
    // The definition waits for the table, its note for the row of the progress.
    let on_the_table = pair.target.hold(&format!("SELECT * FROM `{schema}`.a"))?;
    pair.source.execute(&format!("USE `{schema}`; RENAME TABLE a TO t, b TO a, t TO b"))?;
    let running = pair.begin(&["--until-end"])?;
    wait_for(&pair.target, "RENAME TABLE%")?;
    let on_the_note = pair.target.hold("SELECT seq FROM heddle.progress FOR UPDATE")?;
    drop(on_the_table);
    pair.target.wait_until(&format!("SELECT COUNT(*) FROM `{schema}`.b"))?;
    pair.target.kill()?;
    running.kill()?;
    running.wait()?;
    drop(on_the_note);
    pair.target.restart(&[])?;
    pair.to_the_end(&[]).map(drop)
}

/// Somebody ends the note that definitions were executed: they are not executed again by the same process.
fn note_is_ended(kind: Kind, definitions: &[&str], options: &[&str]) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    pair.to_the_end(options)?;
    let on_the_table = pair.target.hold("SELECT * FROM d.t")?;
    for definition in definitions {
        pair.source.execute(definition)?;
    }
    pair.source.execute("INSERT INTO d.t VALUES (2, 2)")?;
    let running = pair.begin(&[options, &["--until-end"]].concat())?;
    wait_for(&pair.target, "ALTER TABLE%")?;
    let on_the_note = pair.target.hold("SELECT seq FROM heddle.progress FOR UPDATE")?;
    drop(on_the_table);
    wait_for(&pair.target, "%UPDATE heddle.progress%")?;
    for row in pair.target.rows("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%UPDATE heddle.progress%' AND INFO NOT LIKE '%PROCESSLIST%'")? {
        pair.target.execute(&format!("KILL QUERY {}", row[0]))?;
    }
    thread::sleep(Duration::from_millis(300));
    drop(on_the_note);
    running.wait()?.successful()?;
    pair.to_the_end(options).map(drop)
}

fn notes_are_ended(kind: Kind) -> Result<()> {
    const ONE: [&str; 1] = ["ALTER TABLE d.t ADD COLUMN v INT"];
    const SEVERAL: [&str; 3] =
        ["ALTER TABLE d.t ADD COLUMN v INT", "CREATE TABLE d.u (id INT PRIMARY KEY)", "DROP TABLE d.u"];
    note_is_ended(kind, &ONE, &[]).context("one")?;
    note_is_ended(kind, &SEVERAL, &[]).context("several")?;
    note_is_ended(kind, &ONE, &["--gtids", "preserve"]).context("one, the source's GTID")
}

/// Heddle and the target are killed while large XA transactions and definitions with many rows are applied.
fn large_ones_survive_kills(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let sql = include_str!("../cases/xa_huge/source.sql");
    pair.source.run_script(sql.as_bytes())?;
    pair.source.run_script(include_str!("../cases/ctas_huge/source.sql").replace("d;", "e;").as_bytes())?;
    let seed = seed("large_ones_survive_kills");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..8 {
        let running = pair.begin(&["--until-end"])?;
        thread::sleep(Duration::from_millis(random.random_range(300..2000)));
        match round % 2 {
            0 => running.kill()?,
            _ => {
                pair.target.kill()?;
                pair.target.restart(&[])?;
                running.kill()?;
            }
        }
        running.wait()?;
    }
    pair.to_the_end(&[]).map(drop)
}

#[test]
fn mariadb_note_is_ended() {
    notes_are_ended(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn mysql_note_is_ended() {
    notes_are_ended(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
#[ignore = "a minute; run by the nightly script"]
fn mariadb_large_ones_survive_kills() {
    large_ones_survive_kills(MARIADB_10_11).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
#[ignore = "a minute; run by the nightly script"]
fn mysql_large_ones_survive_kills() {
    large_ones_survive_kills(MYSQL_9_7).unwrap_or_else(|error| panic!("{error:#}"));
}

/// Until a session executes a statement like this.
fn wait_for(server: &Server, pattern: &str) -> Result<()> {
    server.wait_until(
        &format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '{pattern}' AND INFO NOT LIKE '%PROCESSLIST%'"
        ),
    )
}

fn crashes(kind: Kind, victim: Victim, kills: usize, options: &[&str]) -> Result<()> {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    Crashes { kind, victim, kills, seed: seed("crashes") % 100_000, options }.run()
}

/// Ten kills of heddle with the embedded store as its target.
fn store_crashes(kind: Kind, options: &[&str]) -> Result<()> {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    StoreCrashes { kind, kills: 10, seed: seed("store_crashes") % 100_000, options }.run()
}

fn random_workloads(kind: Kind, name: &str) -> Result<()> {
    let unsound = random::run(kind, kind, 2, seed(name))?;
    ensure!(unsound == 0, "{unsound} workloads that no replica can repeat");
    Ok(())
}

e2e::tests! {
    mariadb_answer_of_commit_lost: target_lost(MARIADB_10_11, Fault::AnswerOfCommit, 4, &[]);
    mysql_answer_of_commit_lost: target_lost(MYSQL_9_7, Fault::AnswerOfCommit, 4, &["--grouping", "off", "--workers", "4"]);
    mariadb_cut_off: cut_off(MARIADB_10_11, &["--commit-order", "relaxed", "--grouping", "off"]);
    mysql_cut_off: cut_off(MYSQL_9_7, &["--commit-order", "relaxed", "--grouping", "off"]);
    mysql_cut_off_grouped: cut_off(MYSQL_9_7, &[]);
    mariadb_cut_off_in_order: cut_off(MARIADB_10_11, &["--grouping", "5"]);
    mysql_cut_off_in_order: cut_off(MYSQL_9_7, &["--grouping", "5"]);
    mariadb_cut_off_idle: cut_off_idle(MARIADB_10_11);
    mysql_cut_off_idle: cut_off_idle(MYSQL_9_7);
    mariadb_answers_of_packets_lost: target_lost(MARIADB_10_11, Fault::AnswerOfRows, 20, &APART);
    mysql_answers_of_packets_lost: target_lost(MYSQL_9_7, Fault::AnswerOfRows, 20, &APART);
    mariadb_answers_of_packets_in_order_lost: target_lost(MARIADB_10_11, Fault::AnswerOfRows, 20, &APART_IN_ORDER);
    mysql_answers_of_packets_in_order_lost: target_lost(MYSQL_9_7, Fault::AnswerOfRows, 20, &APART_IN_ORDER);
    mysql_answers_of_packets_in_order_lost_keeping_gtids: target_lost(MYSQL_9_7, Fault::AnswerOfRows, 20, &["--gtids", "preserve", "--replicas-below"]);
    mariadb_answers_in_order_lost: target_lost(MARIADB_10_11, Fault::AnswerOfRows, 20, &["--grouping", "5", "--workers", "4"]);
    mysql_answers_in_order_lost: target_lost(MYSQL_9_7, Fault::AnswerOfRows, 20, &["--grouping", "5", "--workers", "4"]);
    mysql_answer_of_commit_lost_relaxed: target_lost(MYSQL_9_7, Fault::AnswerOfCommit, 4, &["--grouping", "5", "--workers", "4", "--commit-order", "relaxed"]);
    mariadb_commit_lost: target_lost(MARIADB_10_11, Fault::Commit, 4, &["--grouping", "off", "--workers", "4"]);
    mysql_commit_lost: target_lost(MYSQL_9_7, Fault::Commit, 4, &[]);
    mariadb_anything_lost: target_lost(MARIADB_10_11, Fault::Anything, 150, &[]);
    mysql_anything_lost: target_lost(MYSQL_9_7, Fault::Anything, 150, &["--grouping", "off", "--workers", "4"]);
    mariadb_interrupted: interrupted(MARIADB_10_11, &["--grouping", "5"]);
    mysql_interrupted: interrupted(MYSQL_9_7, &["--grouping", "off"]);
    mariadb_checkpoint_outlives_its_connection: checkpoint_outlives_its_connection(MARIADB_10_11);
    mysql_checkpoint_outlives_its_connection: checkpoint_outlives_its_connection(MYSQL_9_7);
    mariadb_ended_between_statements: ended_between_statements(MARIADB_10_11);
    mysql_ended_between_statements: ended_between_statements(MYSQL_9_7);
    mysql_interrupted_keeping_gtids: interrupted(MYSQL_9_7, &["--gtids", "preserve", "--grouping", "20"]);
    mysql_interrupted_relaxed: interrupted(MYSQL_9_7, &["--commit-order", "relaxed", "--grouping", "off"]);
    mariadb_source_frozen: source_frozen(MARIADB_10_11);
    mysql_source_frozen: source_frozen(MYSQL_9_7);
    mariadb_source_refuses_login: source_refuses_login(MARIADB_10_11);
    mysql_source_refuses_login: source_refuses_login(MYSQL_9_7);
    mariadb_packet_limit_lowered: packet_limit_lowered(MARIADB_10_11);
    mysql_packet_limit_lowered: packet_limit_lowered(MYSQL_9_7);
    mysql_gtids_switched_on_at_the_target: gtids_switched_on_at_the_target();
    mariadb_source_lost: source_lost(MARIADB_10_11);
    mysql_source_lost: source_lost(MYSQL_9_7);
    mariadb_definition_outlives_heddle: definition_outlives_heddle(MARIADB_10_11);
    mysql_definition_outlives_heddle: definition_outlives_heddle(MYSQL_9_7);
    mariadb_crashes_of_all: crashes(MARIADB_10_11, Victim::All, 10, &[]);
    mysql_crashes_of_all: crashes(MYSQL_9_7, Victim::All, 10, &["--grouping", "off", "--workers", "4"]);
    mariadb_store_crashes: store_crashes(MARIADB_10_11, &[]);
    mysql_store_crashes: store_crashes(MYSQL_9_7, &["--grouping", "5", "--workers", "4", "--commit-order", "relaxed"]);
    mariadb_swap_before_its_note: swap_before_its_note(MARIADB_10_11, "my-db é");
    mysql_swap_before_its_note: swap_before_its_note(MYSQL_9_7, "my-db é");
    mariadb_created_without_its_rows: created_without_its_rows(MARIADB_10_11, &[]);
    mariadb_created_without_its_rows_preserve: created_without_its_rows(MARIADB_10_11, &["--gtids", "preserve"]);
    mysql_created_without_its_rows: created_without_its_rows(MYSQL_9_7, &[]);
    mysql_created_without_its_rows_preserve: created_without_its_rows(MYSQL_9_7, &["--gtids", "preserve"]);
    mariadb_random: random_workloads(MARIADB_10_11, "mariadb_random");
    mysql_random: random_workloads(MYSQL_9_7, "mysql_random");
}
