//! XA transactions that are prepared and ended apart: each is ended once, whoever ends it, in whatever order, through kills.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::fmt::Write;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use e2e::heddle::{Heddle, heddle};
use e2e::managed::{COMMON, create_administrator};
use e2e::native::{configure, gtids, start_native, statement, wait_caught_up};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const PRESERVE: &[&str] = &["--gtids", "preserve"];
const GTIDS: &[&str] = &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];

/// Nothing is prepared there, and InnoDB has no transaction that nobody can end.
fn nothing_is_left(server: &Server) -> Result<()> {
    let prepared = server.rows("XA RECOVER")?;
    ensure!(prepared.is_empty(), "prepared: {prepared:?}");
    server.wait_until("SELECT COUNT(*) = 0 FROM information_schema.innodb_trx")
}

/// Thousands of branches, each ended right after it was prepared: MySQL 5.7 and MariaDB show a branch to other connections before InnoDB has
/// let go of it.
fn adjacent(server: &str, count: usize, options: &[&str]) -> Result<()> {
    let kind: Kind = server.parse()?;
    let more = if kind.is_mariadb() { &[] } else { GTIDS };
    let pair = Pair::start_with(kind, more, more)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")?;
    let mut sql = String::new();
    for number in 0..count {
        let end = if number % 3 == 0 { "ROLLBACK" } else { "COMMIT" };
        // Writing to a String does not fail.
        let _ = writeln!(
            sql,
            "XA START 'x{number}'; INSERT INTO d.t (v) VALUES ({number}); XA END 'x{number}'; XA PREPARE 'x{number}';
             XA {end} 'x{number}'; INSERT INTO d.t (v) VALUES (-1);"
        );
    }
    pair.source.run_script(sql.as_bytes())?;
    pair.to_the_end(options)?;
    nothing_is_left(&pair.target)
}

/// More branches at once than connections are kept for, ended in any order, by others than prepared them; heddle is killed again and again.
fn interleaved(server: &str, options: &[&str]) -> Result<()> {
    let kind: Kind = server.parse()?;
    let seed = e2e::seed(20_261_124, "prepared interleaved");
    let mut random = StdRng::seed_from_u64(seed);
    let more = if kind.is_mariadb() { &[] } else { GTIDS };
    let pair = Pair::start_with(kind, more, more)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")?;
    let mut arguments = vec!["--until-end"];
    arguments.extend(options);
    let (mut open, mut number) = (Vec::new(), 0);
    for round in 0..6 {
        for _ in 0..random.random_range(6..14) {
            number += 1;
            let sql = format!(
                "XA START 'x{number}'; INSERT INTO d.t VALUES ({number}, {round}); XA END 'x{number}'; XA PREPARE 'x{number}';"
            );
            // In a session that ends with it.
            pair.source.run_script(sql.as_bytes())?;
            open.push(number);
        }
        open.shuffle(&mut random);
        let mut sql = String::new();
        let ends = random.random_range(4..16).min(open.len());
        for ended in open.drain(..ends) {
            let end = if random.random_bool(0.3) { "ROLLBACK" } else { "COMMIT" };
            let _ = writeln!(sql, "XA {end} 'x{ended}'; INSERT INTO d.t VALUES ({}, 0);", 1000 + ended);
        }
        pair.source.run_script(sql.as_bytes())?;
        for _ in 0..random.random_range(0..3) {
            let running = pair.begin(&arguments)?;
            thread::sleep(Duration::from_millis(random.random_range(100..400)));
            running.kill()?;
            running.wait()?;
        }
        if random.random_bool(0.5) {
            pair.to_the_end(options)?;
        }
    }
    let rest: String = open.iter().map(|number| format!("XA COMMIT 'x{number}';")).collect();
    pair.source.run_script(rest.as_bytes())?;
    pair.to_the_end(options)?;
    nothing_is_left(&pair.target)
}

/// Heddle is killed again and again while it ends branches that changed nothing, of which the target has no trace but heddle's own.
fn empty_branches_survive_kills(options: &[&str]) -> Result<()> {
    let pair = Pair::start(MARIADB_10_11)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    let mut sql = String::new();
    for number in 0..3000 {
        let end = if number % 2 == 0 { "ROLLBACK" } else { "COMMIT" };
        sql += &format!(
            "XA START 'x{number}'; INSERT IGNORE INTO d.t VALUES (1); XA END 'x{number}'; XA PREPARE 'x{number}'; XA {end} 'x{number}';"
        );
    }
    pair.source.run_script(sql.as_bytes())?;
    pair.source.execute("INSERT INTO d.t VALUES (2)")?;
    let mut line = vec!["--until-end"];
    line.extend(options);
    for wait in (0..30).map(|round| 100 + round * 37 % 150) {
        let running = pair.begin(&line)?;
        thread::sleep(Duration::from_millis(wait));
        running.kill()?;
        running.wait()?;
    }
    pair.to_the_end(options).map(drop)
}

/// Prepared XA transactions outlive restarts of heddle, the target and the source; some are too large to be held in memory.
fn prepared_outlives_all(kind: Kind) -> Result<()> {
    let durable = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
    let pair = Pair::start_with(kind, &durable, &[])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)")?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")?;
    let prepare = |name: &str, sql: &str| {
        // Each in a session that ends with it.
        pair.source.run_script(format!("XA START '{name}'; {sql}; XA END '{name}'; XA PREPARE '{name}';").as_bytes())
    };
    prepare("commit", "UPDATE d.t SET v = 'changed' WHERE id = 1; INSERT INTO d.t VALUES (10, 'new')")?;
    prepare("back", "DELETE FROM d.t WHERE id = 2")?;
    prepare("large", "INSERT INTO d.t VALUES (11, REPEAT('x', 9000000)), (12, REPEAT('y', 9000000))")?;
    prepare("large back", "UPDATE d.t SET v = REPEAT('z', 18000000) WHERE id = 3")?;
    pair.source.execute("INSERT INTO d.t VALUES (20, 'beside')")?;
    let prepared = |server: &Server| -> Result<usize> { Ok(server.rows("XA RECOVER")?.len()) };
    pair.to_the_end(&[])?;
    ensure!(prepared(&pair.target)? == 4, "{:?}", pair.target.rows("XA RECOVER")?);
    pair.target.kill()?;
    pair.target.restart(&[])?;
    pair.source.kill()?;
    pair.source.restart(&[])?;
    ensure!(prepared(&pair.target)? == 4 && prepared(&pair.source)? == 4, "lost by a restart");
    pair.source.execute("INSERT INTO d.t VALUES (21, 'beside')")?;
    pair.source.execute(
        "XA COMMIT 'commit'; XA ROLLBACK 'large back'; XA ROLLBACK 'back'; XA COMMIT 'large'; UPDATE d.t SET v = 'last' WHERE id < 12",
    )?;
    pair.to_the_end(&[])?;
    ensure!(prepared(&pair.target)? == 0 && prepared(&pair.source)? == 0, "{:?}", pair.target.rows("XA RECOVER")?);
    Ok(())
}

const SESSIONS: u64 = 8;
const BRANCHES: u64 = 500;

fn begin(pair: &Pair, options: &[&str]) -> Result<Heddle> {
    pair.begin_into(&pair.target.plain_url(), &[&["--until-end"], options].concat())
}

fn to_the_end(pair: &Pair, options: &[&str]) -> Result<()> {
    begin(pair, options)?.wait()?.successful()?;
    pair.assert_equal()
}

/// A source and a target, and branches of several sessions, between each other, which the target has not applied.
fn backlog(server: &str, target: &[&str], options: &[&str], seed: u64) -> Result<Pair> {
    let mut pair = Pair::start_with(server.parse()?, &[], target)?;
    // Without TLS: MySQL 8.0.15 has none that is new enough.
    pair.from = pair.source.plain_url();
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")?;
    let rows: Vec<String> = (0..300).map(|id| format!("({id}, 0)")).collect();
    pair.source.execute(&format!("INSERT INTO d.t VALUES {}", rows.join(",")))?;
    to_the_end(&pair, options)?;
    let session = |number: u64| {
        let mut random = StdRng::seed_from_u64(seed + number);
        let mut sql = String::new();
        for branch in 0..BRANCHES {
            // A name that has ended is used again.
            let xid = format!("'{number} {}'", branch % 20);
            let end = if random.random_bool(0.1) { "ROLLBACK" } else { "COMMIT" };
            let (id, new) = (random.random_range(0..300), 1000 * number + 1000 + branch);
            let _ = writeln!(
                sql,
                "XA START {xid}; UPDATE d.t SET v = v + 1 WHERE id = {id}; INSERT INTO d.t VALUES ({new}, {branch}); XA END {xid};
                 XA PREPARE {xid}; XA {end} {xid}; UPDATE d.t SET v = 2 * v WHERE id = {};",
                random.random_range(0..300)
            );
            if branch % 100 == number {
                let _ = writeln!(sql, "CREATE TABLE d.t{number}_{branch} (id INT PRIMARY KEY);");
            }
        }
        pair.source.run_script(sql.as_bytes()).map(drop)
    };
    thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS).map(|number| scope.spawn(move || session(number))).collect();
        sessions.into_iter().try_for_each(|session| session.join().expect("a session"))
    })?;
    for left in 0..3 {
        let sql = format!(
            "XA START 'left {left}'; INSERT INTO d.t VALUES (-{left} - 1, 1); XA END 'left {left}'; XA PREPARE 'left {left}';"
        );
        pair.source.run_script(sql.as_bytes())?;
    }
    Ok(pair)
}

/// Branches that are neither prepared on the target nor ended there, although their transactions are recorded; and what the target has
/// applied and does not say it has executed.
fn unsettled(pair: &Pair) -> Result<(usize, String)> {
    let mut open = pair.target.rows("SELECT xid FROM heddle.kept_branches")?.len();
    let is_there =
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA='heddle' AND TABLE_NAME='open_branches'";
    if pair.target.scalar(is_there)? == "1" {
        let rows = "SELECT xid FROM heddle.open_branches b JOIN heddle.progress p ON p.channel=b.channel \
                    WHERE b.seq<=p.seq AND b.ends_at>p.seq AND b.ends_at<18446744073709551615";
        open += pair.target.rows(rows)?.len();
    }
    if pair.target.kind.is_mariadb() || open == 0 && pair.target.scalar("SELECT COUNT(*) FROM heddle.progress")? == "0"
    {
        return Ok((open, String::new()));
    }
    let missing = "SELECT GTID_SUBTRACT((SELECT gtids FROM heddle.progress), @@global.gtid_executed)";
    Ok((open, pair.target.scalar(missing)?))
}

/// Branches need not be prepared on the target while their ends are in sight; heddle is killed, or stopped, again and again.
fn behind(server: &str, target: &[&str], options: &[&str]) -> Result<()> {
    let seed = e2e::seed(20_261_125, "prepared behind");
    let pair = backlog(server, target, options, seed)?;
    let mut random = StdRng::seed_from_u64(seed);
    let keeps_gtids = options.contains(&"preserve");
    for round in 0..12 {
        let running = begin(&pair, options)?;
        thread::sleep(Duration::from_millis(random.random_range(150..600)));
        if round % 2 == 0 {
            running.kill()?;
            running.wait()?;
            if keeps_gtids && round % 4 == 0 {
                heddle(&["settle", &pair.target.plain_url()])?.successful()?;
                let left = unsettled(&pair)?;
                ensure!(left == (0, String::new()), "after settle: {left:?}");
            }
        } else {
            running.terminate()?;
            running.wait()?;
            let (open, missing) = unsettled(&pair)?;
            ensure!(open == 0 && (missing.is_empty() || !keeps_gtids), "after a stop: {open} open, {missing}");
        }
    }
    to_the_end(&pair, options)?;
    let (here, there) = (pair.target.rows("XA RECOVER")?, pair.source.rows("XA RECOVER")?);
    ensure!(here.len() == 3 && there.len() == 3, "{here:?}, {there:?}");
    let prepared = pair.target.rows("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")?;
    let count: u64 = prepared.first().and_then(|row| row.last()?.parse().ok()).unwrap_or(u64::MAX);
    ensure!(count < SESSIONS * BRANCHES / 2, "{count} branches were prepared on the target");
    pair.source.run_script(b"XA COMMIT 'left 1'; XA ROLLBACK 'left 0'; XA COMMIT 'left 2';")?;
    to_the_end(&pair, options)?;
    nothing_is_left(&pair.target)?;
    if keeps_gtids && !pair.target.kind.is_mariadb() {
        let (wanted, got) = (gtids(&pair.source)?, gtids(&pair.target)?);
        ensure!(wanted == got, "the source has executed {wanted}, the target {got}");
    }
    Ok(())
}

/// The target crashes again and again, and Heddle with it or not.
fn target_crashes(server: &str, options: &[&str]) -> Result<()> {
    let seed = e2e::seed(20_261_129, "prepared target crashes");
    let pair = backlog(server, &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"], options, seed)?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut running = begin(&pair, options)?;
    let mut crashes = 0;
    for _ in 0..8 {
        thread::sleep(Duration::from_millis(random.random_range(50..400)));
        if running.has_ended()? {
            break;
        }
        let is_killed = random.random_bool(0.5);
        if is_killed {
            running.kill()?;
        }
        pair.target.kill()?;
        pair.target.restart(&[])?;
        crashes += 1;
        if is_killed {
            running.wait()?;
            running = begin(&pair, options)?;
        }
    }
    eprintln!("{crashes} crashes");
    let run = running.wait()?;
    // A crash while it starts may end it with "run the same command again".
    if run.status.code() == Some(75) {
        to_the_end(&pair, options)?;
    } else {
        run.successful()?;
    }
    pair.assert_equal()?;
    let (here, there) = (pair.target.rows("XA RECOVER")?, pair.source.rows("XA RECOVER")?);
    ensure!(here.len() == 3 && there.len() == 3, "{here:?}, {there:?}");
    let left = unsettled(&pair)?;
    ensure!(left.0 == 0 && (left.1.is_empty() || !options.contains(&"preserve")), "{left:?}");
    pair.source.run_script(b"XA COMMIT 'left 1'; XA ROLLBACK 'left 0'; XA COMMIT 'left 2';")?;
    to_the_end(&pair, options)?;
    nothing_is_left(&pair.target)
}

/// A running channel waits a moment for the end of a branch, and then prepares it: what comes behind is applied, and whoever looks sees it prepared.
fn prepared_when_its_end_does_not_come(server: &str, options: &[&str]) -> Result<()> {
    let pair = Pair::start(server.parse()?)?;
    let Pair { source, target, .. } = &pair;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    pair.to_the_end(options)?;
    let running = pair.begin(options)?;
    source.run_script(b"XA START 'x'; INSERT INTO d.t VALUES (2); XA END 'x'; XA PREPARE 'x';")?;
    source.execute("INSERT INTO d.t VALUES (3)")?;
    target.wait_until("SELECT COUNT(*) = 1 FROM d.t WHERE id = 3")?;
    ensure!(target.rows("XA RECOVER")?.len() == 1, "the branch is not prepared: {}", running.log());
    source.run_script(b"XA COMMIT 'x';")?;
    target.wait_until("SELECT COUNT(*) = 3 FROM d.t")?;
    running.terminate()?;
    running.wait()?.successful()?;
    pair.assert_equal()?;
    nothing_is_left(target)
}

/// Rows as SQL: the rows of a branch that is open where a group ends are the first of their table behind a definition of another.
fn stored_behind_a_definition(server: &str, options: &[&str]) -> Result<()> {
    let options = &[&["--rows", "sql", "--grouping", "2"], options].concat();
    let pair = Pair::start(server.parse()?)?;
    pair.source.execute(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT); CREATE TABLE d.u (id INT PRIMARY KEY)",
    )?;
    to_the_end(&pair, options)?;
    pair.source.execute("INSERT INTO d.t VALUES (0, 0)")?;
    for number in 1..4 {
        // MariaDB: a session that has prepared a branch can do nothing else.
        let prepare = format!(
            "CREATE TABLE d.n{number} (id INT PRIMARY KEY);
             XA START 'x'; UPDATE d.t SET v = v + 1; INSERT INTO d.t VALUES ({number}, 0); XA END 'x'; XA PREPARE 'x';"
        );
        pair.source.run_script(prepare.as_bytes())?;
        let rows = format!(
            "INSERT INTO d.u VALUES ({number}0); INSERT INTO d.u VALUES ({number}1); INSERT INTO d.u VALUES ({number}2)"
        );
        pair.source.execute(&format!("{rows}; XA COMMIT 'x'"))?;
    }
    to_the_end(&pair, options)?;
    nothing_is_left(&pair.target)
}

/// Ends Heddle in the middle of branches. False: it has applied all before that.
fn ends_within_branches(pair: &Pair, to: &str, options: &[&str], is_killed: bool, random: &mut StdRng) -> Result<bool> {
    let applied = || pair.target.scalar("SELECT seq FROM heddle.progress");
    loop {
        let before = applied()?;
        let mut running = pair.begin_into(to, &[&["--until-end"], options].concat())?;
        while applied()? == before {
            if running.has_ended()? {
                running.wait()?.successful()?;
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(random.random_range(0..100)));
        if is_killed {
            running.kill()?;
            running.wait()?;
            if unsettled(pair)?.0 > 0 {
                return Ok(true);
            }
        } else {
            running.terminate()?;
            if running.wait()?.stderr.contains("whose end was not reached are prepared") {
                return Ok(true);
            }
        }
    }
}

/// Heddle ends in the middle of branches, and does not come back: the target goes on as a native replica of the source, by GTID. Then it is the
/// source's source, and ends what is still prepared on both.
fn taken_over(server: &str, is_killed: bool) -> Result<()> {
    let seed = e2e::seed(20_261_128, "prepared taken over");
    let mut random = StdRng::seed_from_u64(seed);
    for attempt in 0..10 {
        let pair = backlog(server, &[], PRESERVE, seed + 100 * attempt)?;
        if ends_within_branches(&pair, &pair.target.plain_url(), PRESERVE, is_killed, &mut random)? {
            return goes_on(&pair, is_killed);
        }
    }
    bail!("it never ended between the two transactions of a branch")
}

/// An account that may not execute BINLOG settles what its own channel has left, and the channel goes on. Branches that a run with row events has left
/// it refuses by name.
fn settled_without_binlog(server: &str, more: &str, options: &[&str]) -> Result<()> {
    let privileges = &format!("{COMMON}{more}");
    let keeps_gtids = options.contains(&"preserve");
    let seed = e2e::seed(20_261_130, "prepared settled_without_binlog");
    let mut random = StdRng::seed_from_u64(seed);
    let (mut by_itself, mut by_another) = (false, false);
    for attempt in 0..20 {
        let pair = backlog(server, &[], options, seed + 100 * attempt)?;
        create_administrator(&pair.target, "admin", privileges)?;
        let to = pair.target.plain_url();
        let admin = to.replace("heddle@", "admin@");
        let is_own = !by_itself;
        if !ends_within_branches(&pair, if is_own { &admin } else { &to }, options, true, &mut random)? {
            continue;
        }
        let left = unsettled(&pair)?;
        let settled = heddle(&["settle", &admin])?;
        if settled.stdout.contains("run the channel once more") {
            // The kill has hit a definition, too.
            continue;
        }
        if is_own {
            let settled = settled.successful()?;
            ensure!(settled.stdout.contains("prepared XA branches"), "{settled}");
            let (open, missing) = unsettled(&pair)?;
            ensure!(open == 0 && (missing.is_empty() || !keeps_gtids), "{open} open, {missing}");
            ensure!(!pair.target.rows("XA RECOVER")?.is_empty(), "nothing is prepared");
            by_itself = true;
        } else {
            ensure!(settled.status.code() == Some(1), "{settled}");
            ensure!(settled.stdout.contains("kept by a run with --rows binlog"), "{settled}");
            ensure!(unsettled(&pair)?.0 == left.0, "{settled}");
            heddle(&["settle", &to])?.successful()?;
            by_another = true;
        }
        let goes_on_as = if is_own { &admin } else { &to };
        pair.begin_into(goes_on_as, &[&["--until-end"], options].concat())?.wait()?.successful()?;
        pair.assert_same_rows()?;
        if by_another {
            return Ok(());
        }
    }
    bail!("it never ended between the two transactions of a branch")
}

fn goes_on(pair: &Pair, is_killed: bool) -> Result<()> {
    let Pair { source, target, .. } = pair;
    let mut goes_on_at = target.scalar("SELECT gtids FROM heddle.progress")?;
    if is_killed {
        let settled = heddle(&["settle", &target.plain_url(), "--json"])?.successful()?;
        let settled: serde_json::Value = serde_json::from_str(&settled.stdout)?;
        ensure!(settled[0]["prepared"].as_array().is_some_and(|prepared| !prepared.is_empty()), "{settled}");
        if let Some(position) = settled[0]["position"].as_str() {
            position.clone_into(&mut goes_on_at);
        }
    }
    let left = unsettled(pair)?;
    ensure!(left == (0, String::new()), "{left:?}");
    ensure!(!target.rows("XA RECOVER")?.is_empty(), "nothing is prepared");
    configure(source, target)?;
    if target.kind.is_mariadb() {
        target.execute(&format!("SET GLOBAL gtid_slave_pos='{goes_on_at}'"))?;
    }
    start_native(target)?;
    wait_caught_up(source, target)?;
    pair.assert_equal()?;
    target.execute(statement(target, "STOP"))?;
    let (here, there) = (target.rows("XA RECOVER")?, source.rows("XA RECOVER")?);
    ensure!(here.len() == 3 && there.len() == 3, "{here:?}, {there:?}");
    let has = source.kind.is_mariadb().then(|| source.scalar("SELECT @@gtid_binlog_pos")).transpose()?;
    configure(target, source)?;
    if let Some(has) = &has {
        source.execute(&format!("SET GLOBAL gtid_slave_pos='{has}'"))?;
    }
    start_native(source)?;
    target.run_script(
        b"XA COMMIT 'left 1'; XA ROLLBACK 'left 0'; XA COMMIT 'left 2'; INSERT INTO d.t VALUES (-99, 0);",
    )?;
    wait_caught_up(target, source)?;
    pair.assert_equal()?;
    nothing_is_left(source)?;
    nothing_is_left(target)?;
    heddle(&["channel", "forget", "default", "--to", &target.plain_url(), "--yes"])?.successful().map(drop)
}

e2e::tests! {
    mariadb_adjacent: adjacent("mariadb-10.11", 1500, &[]);
    mariadb_adjacent_preserve: adjacent("mariadb-10.11", 1500, PRESERVE);
    mysql_adjacent: adjacent("mysql-9.7", 1500, &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_adjacent: adjacent("mysql-5.7.22", 5000, &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_adjacent_preserve: adjacent("mysql-5.7.22", 5000, PRESERVE);
    #[ignore = "another server; run by the nightly script"]
    mariadb_11_8_adjacent: adjacent("mariadb-11.8", 5000, &[]);
    mariadb_interleaved: interleaved("mariadb-10.11", &[]);
    mariadb_interleaved_preserve: interleaved("mariadb-10.11", PRESERVE);
    mysql_interleaved: interleaved("mysql-9.7", &[]);
    mysql_interleaved_preserve: interleaved("mysql-9.7", PRESERVE);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_interleaved: interleaved("mysql-5.7.22", &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_interleaved_preserve: interleaved("mysql-5.7.22", PRESERVE);
    mariadb_behind: behind("mariadb-10.11", &[], &[]);
    mariadb_behind_preserve: behind("mariadb-10.11", &[], PRESERVE);
    mysql_behind: behind("mysql-9.7", &[], &[]);
    mysql_behind_preserve: behind("mysql-9.7", &[], PRESERVE);
    #[ignore = "another server; run by the nightly script"]
    mysql_5_7_behind: behind("mysql-5.7.22", &[], &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_8_0_behind_preserve: behind("mysql-8.0.15", &[], PRESERVE);
    #[ignore = "another server; run by the nightly script"]
    mysql_8_0_46_behind: behind("mysql-8.0.46", &[], &[]);
    #[ignore = "another server; run by the nightly script"]
    mysql_8_4_behind_preserve: behind("mysql-8.4", &[], PRESERVE);
    #[ignore = "another server; run by the nightly script"]
    mariadb_10_6_behind: behind("mariadb-10.6", &[], &[]);
    #[ignore = "another server; run by the nightly script"]
    mariadb_11_8_behind: behind("mariadb-11.8", &[], &[]);
    #[ignore = "another server; run by the nightly script"]
    mariadb_11_8_behind_preserve: behind("mariadb-11.8", &[], PRESERVE);
    #[ignore = "run by the nightly script"]
    mysql_behind_preserve_unlogged: behind("mysql-9.7", &["--skip-log-bin", "--skip-log-replica-updates"], PRESERVE);
    #[ignore = "run by the nightly script"]
    mariadb_target_crashes: target_crashes("mariadb-10.11", &[]);
    mariadb_target_crashes_preserve: target_crashes("mariadb-10.11", PRESERVE);
    #[ignore = "run by the nightly script"]
    mysql_target_crashes: target_crashes("mysql-9.7", &[]);
    mysql_target_crashes_preserve: target_crashes("mysql-9.7", PRESERVE);
    mariadb_prepared_when_its_end_does_not_come: prepared_when_its_end_does_not_come("mariadb-10.11", PRESERVE);
    mysql_prepared_when_its_end_does_not_come: prepared_when_its_end_does_not_come("mysql-9.7", &[]);
    #[ignore = "run by the nightly script"]
    mysql_settled_without_binlog: settled_without_binlog("mysql-9.7", ", XA_RECOVER_ADMIN", &[]);
    #[ignore = "run by the nightly script"]
    mariadb_settled_without_binlog: settled_without_binlog("mariadb-10.11", "", &[]);
    #[ignore = "run by the nightly script"]
    mysql_settled_without_binlog_preserve: settled_without_binlog("mysql-9.7", ", XA_RECOVER_ADMIN, SESSION_VARIABLES_ADMIN, SYSTEM_VARIABLES_ADMIN", PRESERVE);
    mariadb_stored_behind_a_definition: stored_behind_a_definition("mariadb-10.11", PRESERVE);
    mysql_stored_behind_a_definition: stored_behind_a_definition("mysql-9.7", PRESERVE);
    #[ignore = "run by the nightly script"]
    mysql_stored_behind_a_definition_local: stored_behind_a_definition("mysql-9.7", &[]);
    mariadb_killed_and_taken_over: taken_over("mariadb-10.11", true);
    mysql_killed_and_taken_over: taken_over("mysql-9.7", true);
    #[ignore = "run by the nightly script"]
    mariadb_stopped_and_taken_over: taken_over("mariadb-10.11", false);
    #[ignore = "run by the nightly script"]
    mysql_stopped_and_taken_over: taken_over("mysql-9.7", false);
    mariadb_empty_branches: empty_branches_survive_kills(&["--gtids", "preserve"]);
    mariadb_empty_branches_relaxed: empty_branches_survive_kills(&["--gtids", "preserve", "--commit-order", "relaxed"]);
    mariadb_prepared_outlives_all: prepared_outlives_all(MARIADB_10_11);
    mysql_prepared_outlives_all: prepared_outlives_all(MYSQL_9_7);
}
