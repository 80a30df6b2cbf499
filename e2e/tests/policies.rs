//! Every policy on real servers: one workload of concurrent sessions, applied anew with each. Hot rows, a unique
//! secondary key, a foreign key with a cascade, a table without a key, several schemas and domains, definitions, XA, a long and a huge
//! transaction. In the source's order a reader looks all the while for a state that the source never had.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::checksum::{Checksums, assert_equal, contents, differences};
use e2e::heddle::{Heddle, heddle};
use e2e::policies::suits;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const SESSIONS: u32 = 5;
const STEPS: u32 = 70;
/// Of a megabyte each.
const HUGE_ROWS: u32 = 20;

/// One session's statements. It may meet deadlocks: those transactions are not in the log.
fn session(random: &mut StdRng, number: u32, phase: u32) -> String {
    let mut sql = String::from("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;\n");
    for step in 0..STEPS {
        let id = (phase * SESSIONS + number) * STEPS + step;
        let (hot, other) = (random.random_range(1..8), random.random_range(1..200));
        let _ = match random.random_range(0..12) {
            0..3 => writeln!(sql, "UPDATE shop.hot SET v = v + 1 WHERE id = {hot};"),
            3 => writeln!(
                sql,
                "BEGIN; UPDATE bank.account SET v = v - 1 WHERE id = {hot}; UPDATE bank.account SET v = v + 1 WHERE id = {}; COMMIT;",
                hot + 1
            ),
            4..6 => writeln!(sql, "INSERT INTO shop.parent VALUES ({id}, {other}) ON DUPLICATE KEY UPDATE u = NULL;"),
            6 => writeln!(
                sql,
                "INSERT INTO shop.child SELECT {id}, MIN(id), {other} FROM shop.parent WHERE id > {other};"
            ),
            7 => writeln!(sql, "DELETE FROM shop.parent WHERE u = {other};"),
            8 => writeln!(
                sql,
                "INSERT INTO shop.bare VALUES ({hot}, {hot}); DELETE FROM shop.bare WHERE a = {other} LIMIT 1;"
            ),
            9 => writeln!(sql, "REPLACE INTO mail.inbox VALUES ({other}, REPEAT('x', {hot} * 30), {id});"),
            10 => writeln!(sql, "UPDATE mail.inbox SET n = n + 1 WHERE id < {hot} * 20;"),
            // The second is never there without the first, for who sees states in the source's order.
            _ => writeln!(sql, "INSERT INTO shop.first VALUES ({id}); INSERT INTO bank.second VALUES ({id});"),
        };
    }
    sql
}

fn run_session(server: &Server, sql: &str) -> Result<()> {
    let mut child = server.client(&["--force"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    child.stdin.take().context("no pipe to the client")?.write_all(sql.as_bytes())?;
    // With --force an error of one statement does not end it, and does not count.
    child.wait()?;
    Ok(())
}

fn workload(source: &Server) -> Result<()> {
    let seed = e2e::seed(20_160_130, "policies");
    let accounts: String = (1..9)
        .map(|id| format!("INSERT INTO bank.account VALUES ({id}, 100); INSERT INTO shop.hot VALUES ({id}, 0);"))
        .collect();
    source.execute(&format!(
        "CREATE DATABASE shop; CREATE DATABASE bank; CREATE DATABASE mail; \
         CREATE TABLE shop.hot (id INT PRIMARY KEY, v INT); CREATE TABLE bank.account (id INT PRIMARY KEY, v INT); \
         CREATE TABLE shop.parent (id INT PRIMARY KEY, u INT NULL, UNIQUE (u)); \
         CREATE TABLE shop.child (id INT PRIMARY KEY, p INT NULL, n INT, FOREIGN KEY (p) REFERENCES shop.parent (id) ON DELETE CASCADE); \
         CREATE TABLE shop.bare (a INT, b INT); CREATE TABLE mail.inbox (id INT PRIMARY KEY, t TEXT, n INT); \
         CREATE TABLE shop.first (id INT PRIMARY KEY); CREATE TABLE bank.second (id INT PRIMARY KEY); \
         CREATE TABLE mail.big (id INT PRIMARY KEY, t LONGTEXT); {accounts}"
    ))?;
    // More than is held in memory: it is applied in pieces.
    let rows: String =
        (0..HUGE_ROWS).map(|id| format!("INSERT INTO mail.big VALUES ({id}, REPEAT('h', 1000000));")).collect();
    source.execute(&format!("BEGIN; {rows} UPDATE mail.big SET t = 'small' WHERE id % 3 = 0; COMMIT"))?;
    for phase in 0..2 {
        thread::scope(|scope| {
            let sessions: Vec<_> = (0..SESSIONS)
                .map(|number| {
                    let mut random = StdRng::seed_from_u64(seed + u64::from(phase * SESSIONS + number));
                    let domain = if source.kind.is_mariadb() {
                        format!("SET gtid_domain_id = {};\n", number % 3)
                    } else {
                        String::new()
                    };
                    let sql = domain + &session(&mut random, number, phase);
                    scope.spawn(move || run_session(source, &sql))
                })
                .collect();
            sessions
                .into_iter()
                .try_for_each(|session| session.join().map_err(|_| anyhow::anyhow!("a session's thread ended"))?)
        })?;
        source.execute(&format!(
            "ALTER TABLE shop.hot ADD COLUMN c{phase} INT DEFAULT 7; XA START 'x{phase}'; UPDATE shop.hot SET v = v + 5; XA END 'x{phase}'; \
             XA PREPARE 'x{phase}'; XA COMMIT 'x{phase}'; UPDATE mail.inbox SET n = n + 100; FLUSH BINARY LOGS; TRUNCATE TABLE shop.bare"
        ))?;
    }
    Ok(())
}

/// How a policy is run, and whether readers see the source's states only.
struct Way {
    policy: &'static str,
    order: &'static str,
    more: &'static [&'static str],
}

const fn way(policy: &'static str, order: &'static str, more: &'static [&'static str]) -> Way {
    Way { policy, order, more }
}

const EVERYWHERE: [Way; 11] = [
    way("serial", "preserve", &["--grouping", "off"]),
    way("writeset", "preserve", &["--grouping", "off"]),
    way("writeset", "relaxed", &["--grouping", "off"]),
    way("database", "per-lane", &["--grouping", "off"]),
    way("commit-order", "preserve", &["--grouping", "off"]),
    way("writeset-tags", "preserve", &["--grouping", "off", "--writeset-history", "500"]),
    way("writeset-session", "relaxed", &["--grouping", "off"]),
    way("minimal", "preserve", &["--grouping", "off"]),
    way("minimal", "relaxed", &["--grouping", "off"]),
    way("optimistic", "preserve", &["--grouping", "off"]),
    way("aggressive", "preserve", &["--grouping", "10"]),
];

const MYSQL: [Way; 2] = [
    way("logical-clock", "preserve", &["--grouping", "off"]),
    way("logical-clock-unblocked", "relaxed", &["--grouping", "off"]),
];

const MARIADB: [Way; 2] = [
    way("conservative", "preserve", &["--grouping", "off"]),
    way("domain", "per-lane", &["--grouping", "off", "--domain-workers-max", "3"]),
];

/// What is killed here is heddle, never a server: nothing is lost without fsyncs.
const FAST: [&str; 2] = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"];

struct Stand {
    source: Server,
    target: Server,
    /// What the source holds.
    held: Checksums,
}

impl Stand {
    /// A source with the workload, and a target that is started with `options`.
    fn new(kind: Kind, options: &[&str]) -> Result<Self> {
        let (source, target) = Server::start_two((kind, &[]), (kind, options))?;
        workload(&source)?;
        let held = contents(&source)?;
        Ok(Self { source, target, held })
    }

    fn arguments(&self, channel: &str, way: &Way) -> Vec<String> {
        let (from, to) = (self.source.binlog_index().display().to_string(), self.target.url());
        let fixed =
            ["replicate", "--from", &from, "--to", &to, "--json", "--workers", "6", "--channel", channel, "--policy"];
        let chosen = [way.policy, "--commit-order", way.order];
        fixed.iter().chain(&chosen).chain(way.more).map(|&argument| argument.to_owned()).collect()
    }

    fn empty(&self) -> Result<()> {
        self.target.execute("DROP DATABASE IF EXISTS shop; DROP DATABASE IF EXISTS bank; DROP DATABASE IF EXISTS mail")
    }

    /// From nothing to the end, with a reader beside it.
    fn run(&self, way: &Way) -> Result<()> {
        self.empty()?;
        let channel = format!("{}-{}", way.policy, way.order);
        let arguments = self.arguments(&channel, way);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let done = AtomicBool::new(way.order != "preserve");
        let run = thread::scope(|scope| {
            let reader = scope.spawn(|| self.read(&done));
            let run = heddle(&arguments);
            done.store(true, Ordering::Relaxed);
            reader.join().map_err(|_| anyhow::anyhow!("the reader's thread ended"))??;
            run
        })?;
        let run = run.successful()?;
        eprintln!("{channel}: {}", run.stdout.trim());
        let different = differences(&self.held, &contents(&self.target)?);
        ensure!(different.is_empty(), "{different:?}\n{run}");
        Ok(())
    }

    fn read(&self, done: &AtomicBool) -> Result<()> {
        while !done.load(Ordering::Relaxed) {
            // The tables are not there at first.
            let orphans = self
                .target
                .scalar("SELECT COUNT(*) FROM bank.second LEFT JOIN shop.first USING (id) WHERE first.id IS NULL");
            ensure!(orphans.as_deref().unwrap_or("0") == "0", "the second is there without the first");
            let sum = self.target.scalar("SELECT CONCAT(SUM(v) MOD 100, ' ', COUNT(*)) FROM bank.account");
            ensure!(
                sum.as_deref().map_or(true, |sum| sum.starts_with("0 ") || sum == "NULL"),
                "money is lost: {sum:?}"
            );
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Policies of the list that no table above knows: with each order that they allow.
fn others(kind: Kind) -> Vec<Way> {
    let is_known = |name: &str| EVERYWHERE.iter().chain(&MYSQL).chain(&MARIADB).any(|way| way.policy == name);
    let policies = engine::policy::ALL.iter().filter(|policy| suits(policy, kind) && !is_known(policy.name));
    let ways =
        policies.flat_map(|policy| policy.requires.orders.iter().map(move |order| (policy.name, order.as_str())));
    ways.map(|(policy, order)| way(policy, order, &["--grouping", "off"])).collect()
}

fn every_policy(kind: Kind, ways: &[Way], refused: &[(&str, &str)]) -> Result<()> {
    let stand = Stand::new(kind, &FAST)?;
    let only = std::env::var("HEDDLE_POLICY").ok();
    let others = others(kind);
    for way in
        EVERYWHERE.iter().chain(ways).chain(&others).filter(|way| only.as_ref().is_none_or(|only| only == way.policy))
    {
        stand.run(way).with_context(|| format!("{} {}", way.policy, way.order))?;
    }
    stand.empty()?;
    for (policy, message) in refused {
        let arguments = stand.arguments(&format!("refused-{policy}"), &way_of(policy));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        heddle(&arguments)?.failed_with(message)?;
    }
    killed(&stand)?;
    stand.target.stop()
}

/// A source with the policies of its time, into a server like it.
fn of_its_time(name: &str, ways: &[Way]) {
    let test = || -> Result<()> {
        let stand = Stand::new(name.parse()?, &[])?;
        ways.iter().try_for_each(|way| stand.run(way).with_context(|| format!("{} {}", way.policy, way.order)))
    };
    test().unwrap_or_else(|error| panic!("{error:#}"));
}

const WRITESET: Way = way("writeset", "preserve", &[]);
const CLOCK: [Way; 3] = [
    way("logical-clock", "preserve", &["--grouping", "off"]),
    way("logical-clock-unblocked", "relaxed", &["--grouping", "off"]),
    WRITESET,
];

#[test]
#[ignore = "scripts/nightly"]
fn mysql_5_6_of_its_time() {
    of_its_time("mysql-5.6.14", &[way("database", "per-lane", &["--grouping", "off"]), WRITESET]);
}

#[test]
#[ignore = "scripts/nightly"]
fn mysql_5_7_of_its_time() {
    of_its_time("mysql-5.7.22", &CLOCK);
}

#[test]
#[ignore = "scripts/nightly"]
fn mysql_8_0_of_its_time() {
    of_its_time("mysql-8.0.15", &CLOCK);
}

#[test]
#[ignore = "scripts/nightly"]
fn mysql_8_0_46_of_its_time() {
    of_its_time("mysql-8.0.46", &CLOCK);
}

#[test]
#[ignore = "scripts/nightly"]
fn mysql_8_4_of_its_time() {
    of_its_time("mysql-8.4", &CLOCK);
}

#[test]
#[ignore = "scripts/nightly"]
fn mariadb_10_1_of_its_time() {
    let ways = [
        way("domain", "per-lane", &["--grouping", "off"]),
        way("minimal", "preserve", &["--grouping", "off"]),
        way("conservative", "preserve", &["--grouping", "off"]),
        way("optimistic", "preserve", &["--grouping", "off"]),
        way("aggressive", "preserve", &["--grouping", "off"]),
        WRITESET,
    ];
    of_its_time("mariadb-10.1", &ways);
}

fn way_of(policy: &str) -> Way {
    let known = EVERYWHERE.iter().chain(&MYSQL).chain(&MARIADB).find(|way| way.policy == policy);
    known.map_or(way("writeset", "relaxed", &[]), |known| way(known.policy, "preserve", &[]))
}

/// Every way, each killed again and again until it gets to the end.
fn every_policy_killed(kind: Kind, ways: &[Way]) -> Result<()> {
    let stand = Stand::new(kind, &FAST)?;
    let mut random = StdRng::seed_from_u64(e2e::seed(20_161_122, "policies killed -- --ignored"));
    for way in EVERYWHERE.iter().chain(ways).chain(&others(kind)) {
        stand.empty()?;
        let channel = format!("killed-{}-{}", way.policy, way.order);
        let arguments = stand.arguments(&channel, way);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut kills = 0;
        for _ in 0..8 {
            let mut running = Heddle::start(&arguments)?;
            thread::sleep(Duration::from_millis(random.random_range(50..700)));
            kills += u32::from(!running.has_ended()?);
            running.kill()?;
            running.wait()?;
        }
        let run = heddle(&arguments)?.successful()?;
        eprintln!("{channel}: {kills} kills");
        let different = differences(&stand.held, &contents(&stand.target)?);
        ensure!(different.is_empty(), "{channel}: {different:?}\n{run}");
    }
    Ok(())
}

#[test]
#[ignore = "scripts/nightly"]
fn mariadb_killed() {
    every_policy_killed(MARIADB_10_11, &MARIADB).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
#[ignore = "scripts/nightly"]
fn mysql_killed() {
    every_policy_killed(MYSQL_9_7, &MYSQL).unwrap_or_else(|error| panic!("{error:#}"));
}

/// Killed with gaps; `--fill-gaps` closes them and no more, then the rest follows.
fn killed(stand: &Stand) -> Result<()> {
    stand.empty()?;
    let way = way("writeset", "relaxed", &["--grouping", "off"]);
    let arguments = stand.arguments("killed", &way);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut seen_gap = false;
    for round in 0..6 {
        let running = Heddle::start(&arguments)?;
        thread::sleep(Duration::from_millis(150 + 120 * round));
        running.kill()?;
        running.wait()?;
        let status = || -> Result<serde_json::Value> {
            let run = heddle(&["status", "--to", &stand.target.url(), "--channel", "killed", "--json"])?;
            if !run.status.success() {
                return Ok(serde_json::Value::Null);
            }
            Ok(serde_json::from_str::<serde_json::Value>(&run.stdout)?[0].take())
        };
        let before = status()?;
        let Some(last) = before["islands"].as_array().and_then(|islands| islands.last()?[1].as_u64()) else { continue };
        seen_gap |= before["gaps"].as_array().is_some_and(|gaps| !gaps.is_empty());
        let mut fill = arguments.clone();
        fill.push("--fill-gaps");
        heddle(&fill)?.successful()?;
        let after = status()?;
        ensure!(after["low_water"].as_u64() == Some(last), "filled to {}, not to {last}", after["low_water"]);
        ensure!(after["gaps"].as_array().is_some_and(Vec::is_empty), "gaps are left: {after}");
    }
    eprintln!("a kill left gaps: {seen_gap}");
    heddle(&arguments)?.successful()?;
    assert_equal(&stand.source, &stand.target)
}

#[test]
fn mariadb() {
    let refused = [("logical-clock", "does not tag its transactions")];
    if let Err(error) = every_policy(MARIADB_10_11, &MARIADB, &refused) {
        panic!("{error:#}");
    }
}

#[test]
fn mysql() {
    let refused = [("conservative", "is not a MariaDB"), ("domain", "is not a MariaDB")];
    if let Err(error) = every_policy(MYSQL_9_7, &MYSQL, &refused) {
        panic!("{error:#}");
    }
}
