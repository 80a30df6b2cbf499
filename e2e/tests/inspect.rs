//! `heddle inspect` and `heddle simulate` on logs that real servers wrote, with a bottleneck planted in each: it has to be
//! the first that is named.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::Heddle;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TABLES: &str = "CREATE DATABASE shop; USE shop;
    CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, note VARCHAR(200) NOT NULL);
    CREATE TABLE counter (id INT PRIMARY KEY, hits INT NOT NULL); INSERT INTO counter VALUES (1, 0), (2, 0);
    CREATE TABLE audit (at DATETIME, what VARCHAR(50));
    CREATE TABLE customer (id INT PRIMARY KEY, orders INT NOT NULL) ENGINE=InnoDB;
    CREATE TABLE visit (id INT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL,
        FOREIGN KEY (customer) REFERENCES customer (id)) ENGINE=InnoDB; INSERT INTO customer VALUES (1, 0);
    CREATE TABLE hits (id INT PRIMARY KEY AUTO_INCREMENT, url VARCHAR(50) NOT NULL) ENGINE=MyISAM;
    CREATE TABLE event (number INT NULL, what VARCHAR(30), UNIQUE KEY (number)) ENGINE=InnoDB;
    CREATE TABLE lease (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(30) NOT NULL, UNIQUE KEY (name)) ENGINE=InnoDB;
    CREATE TABLE job (id INT PRIMARY KEY AUTO_INCREMENT, state INT NOT NULL) ENGINE=InnoDB;
    CREATE TABLE ends (queue VARCHAR(20) PRIMARY KEY, head BIGINT NOT NULL) ENGINE=InnoDB; INSERT INTO ends VALUES ('mail', 0);
    CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, stock INT NOT NULL) ENGINE=InnoDB;
    INSERT INTO item (stock) VALUES (1), (2), (3), (4);";

/// What the tables are filled with so often that each time doubles them.
const DOUBLED: (&str, usize) = ("INSERT INTO item (stock) SELECT stock FROM item;", 9);

/// What is planted: its name, the statements (of turn n), and what the first finding must say.
type Planted = (&'static str, fn(u32) -> String, &'static str, &'static str);

const PLANTED: &[Planted] = &[
    ("hot row", |_| "UPDATE counter SET hits = hits + 1 WHERE id = 1".into(), "hot_key", "shop.counter, id=1"),
    ("no key", |n| format!("INSERT INTO audit VALUES (NOW(), 'w{n}')"), "table_without_key", "shop.audit"),
    ("ddl", |n| if n % 5 == 0 { "TRUNCATE TABLE counter".into() } else { String::new() }, "ddl_truncate", "TRUNCATE"),
    (
        "foreign key",
        |n| format!("UPDATE customer SET orders = {n} WHERE id = 1; INSERT INTO visit (customer) VALUES (1)"),
        "hot_key",
        "shop.customer, id=1",
    ),
    (
        "statements",
        |n| {
            format!(
                "SET SESSION binlog_format = STATEMENT; UPDATE orders SET note = 'x' WHERE customer = {n}; SET SESSION binlog_format = ROW"
            )
        },
        "statement",
        "statements",
    ),
    ("log table", |n| format!("INSERT INTO hits (url) VALUES ('u{n}')"), "non_transactional", "shop.hits"),
    (
        "a unique key that may be null",
        |n| format!("INSERT INTO event VALUES ({}, 'e{n}')", if n % 2 == 0 { "NULL".into() } else { n.to_string() }),
        "table_without_key",
        "shop.event",
    ),
    (
        "a lock by name",
        |_| "INSERT INTO lease (name) VALUES ('cron'); DELETE FROM lease WHERE name = 'cron'".into(),
        "hot_key",
        "shop.lease, name=cron",
    ),
    (
        "a queue with its head in a row",
        |n| {
            format!(
                "BEGIN; INSERT INTO job (state) VALUES (0); UPDATE ends SET head = {n} WHERE queue = 'mail'; COMMIT"
            )
        },
        "hot_key",
        "shop.ends, queue=mail",
    ),
    (
        "batches",
        |n| if n % 80 == 40 { "UPDATE item SET stock = stock + 1".into() } else { String::new() },
        "large_transaction",
        "large transactions",
    ),
    (
        "temporary tables",
        |n| {
            format!(
                "SET SESSION binlog_format = STATEMENT; CREATE TEMPORARY TABLE t{n} (a INT); DROP TEMPORARY TABLE t{n}; \
                 SET SESSION binlog_format = ROW"
            )
        },
        "temporary_table",
        "temporary tables",
    ),
];

/// Many independent transactions, with the planted statement after each.
fn script(planted: fn(u32) -> String) -> String {
    let turns =
        (0..400).map(|n| format!("INSERT INTO orders (customer, note) VALUES ({n}, 'note {n}'); {};\n", planted(n)));
    let body: String = turns.collect();
    format!("USE shop;\n{}", body.replace("; ;", ";"))
}

/// The files from the one that is being written on: what comes next is alone in them.
fn inspect(arguments: &[&str], code: i32) -> Result<Value> {
    let mut all = vec!["inspect", "--json"];
    all.extend(arguments);
    let run = Heddle::start(&all)?.wait()?;
    ensure!(run.status.code() == Some(code), "{run}");
    serde_json::from_str(&run.stdout).with_context(|| run.to_string())
}

fn check(kind: Kind) -> Result<()> {
    let server = Server::start(kind, &[])?;
    server.execute(&format!("{TABLES}{}FLUSH BINARY LOGS;", DOUBLED.0.repeat(DOUBLED.1)))?;
    let url = server.url();
    for (name, statement, kind, says) in PLANTED {
        let log = server.current_log()?.display().to_string();
        server.execute(&script(*statement))?;
        server.rotate()?;
        let report = inspect(&[&log, "--schema", &url], 0)?;
        let first = &report["findings"][0];
        let title = first["title"].as_str().unwrap_or_default();
        ensure!(first["kind"] == *kind && title.contains(says), "{name}: the first finding is {first:#}");
        let verdict = &report["verdict"];
        ensure!(
            verdict["limit"] == *kind && verdict["change"] == first["change"],
            "{name}: {verdict:#} beside {first:#}"
        );
        ensure!(report["transactions"].as_u64() >= Some(400), "{name}: {report:#}");
        ensure!(report["problems"].as_array().is_some_and(Vec::is_empty), "{name}: {report:#}");
    }
    large(&server, &url)?;
    unknown_keys(&server)?;
    live(&server, &url)?;
    follow(&server, &url)?;
    find(&server, &url)?;
    damaged(&server)
}

/// The change is found in files, live and without definitions, and the command ends just before it.
fn find(server: &Server, url: &str) -> Result<()> {
    server.rotate()?;
    let log = server.current_log()?;
    server.execute(
        "CREATE DATABASE bin; USE bin; CREATE TABLE orders (id INT PRIMARY KEY, price DECIMAL(9,2), note VARCHAR(50), at DATETIME) ENGINE=InnoDB;
         INSERT INTO orders VALUES (1, 1.50, 'one', '2026-01-02 03:04:05'), (2, 2, NULL, NULL), (3, -3, 'it''s', NULL);
         UPDATE orders SET note = 'two' WHERE id = 2; BEGIN; DELETE FROM orders WHERE id = 1; DELETE FROM orders WHERE id = 3; COMMIT;
         SET SESSION binlog_format = STATEMENT; UPDATE orders SET price = 9 WHERE id = 2; SET SESSION binlog_format = ROW;
         CREATE TABLE other LIKE orders; ALTER TABLE orders ADD x INT; TRUNCATE TABLE orders; DROP TABLE other",
    )?;
    server.rotate()?;
    let copy = server.dir().join("found.000001").display().to_string();
    std::fs::copy(&log, &copy)?;
    let name = log.file_name().context("a name")?.to_string_lossy().into_owned();
    let hits = |arguments: &[&str], code: i32| -> Result<Vec<Value>> {
        inspect(arguments, code)?["hits"].as_array().cloned().context("hits")
    };
    // What is looked for, in how many transactions it is, and what is said of the first.
    let cases: [(&[&str], usize, &str); 13] = [
        (&["delete bin.orders"], 1, "id"),
        (&["delete bin.orders", "--where", "id=3"], 1, "\"before\":\"3\""),
        (&["DELETE BIN.ord*", "--where", "note=it's"], 1, "it's"),
        (&["insert bin.orders", "--where", "price=1.5", "--where", "at=2026-01-02 03:04:05"], 1, "1.50"),
        (&["insert bin.orders", "--where", "note=NULL"], 1, "\"after\":\"2\""),
        // A statement has no rows in the log.
        (&["update bin.orders", "--where", "@3=two"], 2, "\"rows\":1"),
        (&["update bin.orders"], 2, "\"rows\":1"),
        (&["create bin.*"], 3, "CREATE DATABASE"),
        (&["alter bin.orders"], 1, "ADD x INT"),
        (&["truncate bin.orders"], 1, "TRUNCATE"),
        (&["drop bin.*"], 1, "bin.other"),
        (&["any bin.orders"], 7, "bin.orders"),
        (&["any *.orders", "--limit", "2"], 2, "bin.orders"),
    ];
    for (find, count, says) in cases {
        let found = hits(&[[copy.as_str(), "--find"].as_slice(), find].concat(), 0)?;
        let first = found.first().map(ToString::to_string).unwrap_or_default();
        ensure!(found.len() == count && first.contains(says), "{find:?}: {count}, {says}: {found:#?}");
        let live = hits(&[["--from", url, "--start", &name, "--find"].as_slice(), find].concat(), 0)?;
        let places = |hits: &[Value]| -> Vec<Value> { hits.iter().map(|hit| hit["position"].clone()).collect() };
        ensure!(places(&live) == places(&found), "{find:?}, live: {live:#?}");
    }
    ensure!(hits(&[&copy, "--find", "delete bin.orders", "--where", "id=2"], 5)?.is_empty());
    // Where nobody says what the columns are, they have numbers.
    let rows = server.dir().join("rows.000001");
    let last = server.current_log()?;
    server.execute("INSERT INTO bin.orders (id, note) VALUES (7, 'seven')")?;
    server.rotate()?;
    std::fs::copy(&last, &rows)?;
    let rows = rows.display().to_string();
    ensure!(hits(&[&rows, "--find", "insert bin.orders", "--where", "id=7"], 4)?.is_empty());
    ensure!(hits(&[&rows, "--find", "insert bin.orders", "--where", "@1=7"], 0)?.len() == 1);
    ensure!(hits(&[&rows, "--schema", url, "--find", "insert bin.orders", "--where", "id=7"], 0)?.len() == 1);
    let run = Heddle::start(&["inspect", &copy, "--find", "delete bin.orders"])?.wait()?.successful()?;
    let command = run.stdout.split_once("--until-position ").context("a command")?.1;
    let until = command.split_whitespace().next().context("a position")?;
    let path = server.dir().join("before").display().to_string();
    let to = format!("store:{path}");
    Heddle::start(&["replicate", "--from", &copy, "--to", &to, "--until-position", until])?.wait()?.successful()?;
    let dumped = Heddle::start(&["store", "dump", &path, "bin.orders"])?.wait()?.successful()?;
    ensure!(dumped.stdout.lines().count() == 4 && dumped.stdout.contains("two"), "{dumped}");
    Ok(())
}

fn large(server: &Server, url: &str) -> Result<()> {
    let log = server.current_log()?.display().to_string();
    let doublings = "INSERT INTO orders (customer, note) SELECT customer, note FROM orders;".repeat(6);
    server.execute(&format!("USE shop; {doublings} DELETE FROM orders WHERE id > 100;"))?;
    server.rotate()?;
    let report = inspect(&[&log, "--schema", url], 0)?;
    ensure!(report["findings"][0]["kind"] == "large_transaction", "{:#}", report["findings"]);
    ensure!(report["largest_transactions"][0]["rows"].as_u64() > Some(100_000), "{report:#}");
    Ok(())
}

/// Without definitions the log of a hot row says only that keys are not known; with a dump it names the row.
fn unknown_keys(server: &Server) -> Result<()> {
    let log = server.current_log()?.display().to_string();
    server.execute(&script(|_| {
        "UPDATE counter SET hits = hits + 1 WHERE id = 2; INSERT IGNORE INTO counter VALUES (2, 0)".into()
    }))?;
    server.rotate()?;
    let report = inspect(&[&log], 0)?;
    ensure!(report["findings"][0]["kind"] == "keys_unknown", "{:#}", report["findings"]);
    let dump = server.dir().join("schema.sql");
    std::fs::write(
        &dump,
        "USE `shop`;\nCREATE TABLE `orders` (`id` int NOT NULL, `customer` int, `note` varchar(200), PRIMARY KEY (`id`));\n\
         CREATE TABLE `counter` (`id` int NOT NULL, `hits` int, PRIMARY KEY (`id`));\n",
    )?;
    let report = inspect(&[&log, "--schema", &dump.display().to_string()], 0)?;
    ensure!(
        report["findings"][0]["title"].as_str().is_some_and(|title| title.contains("id=2")),
        "{:#}",
        report["findings"]
    );
    Ok(())
}

/// A live server's log is the same as its files, whatever the number of threads.
fn live(server: &Server, url: &str) -> Result<()> {
    // A copy: the server may still write what nobody asked for (MariaDB's checkpoints, a moment after a rotation).
    let index = copy_of_the_log(server)?.display().to_string();
    let files = inspect(&[&index, "--schema", url], 0)?;
    let one = inspect(&[&index, "--schema", url, "--threads", "1"], 0)?;
    for (field, value) in files.as_object().context("a report")? {
        ensure!(*value == one[field], "{field} with one thread: {:#}, with several: {value:#}", one[field]);
    }
    ensure!(files == one, "the number of threads matters");
    let live = inspect(&["--from", url], 0)?;
    for field in
        ["transactions", "rows", "amil", "amil_writeset", "amil_exact", "barriers", "hot_keys", "mariadb_group_size"]
    {
        ensure!(files[field] == live[field], "{field}: {} in files, {} live", files[field], live[field]);
    }
    let simulated = Heddle::start(&["simulate", &index, "--schema", url, "--workers", "1,8", "--json"])?.wait()?;
    ensure!(simulated.status.success(), "{simulated}");
    let report: Value = serde_json::from_str(&simulated.stdout)?;
    ensure!(report["verdict"]["sentence"].as_str().is_some_and(|text| !text.is_empty()), "{report:#}");
    let defaults = report["policies"].as_array().into_iter().flatten().filter(|line| line["is_heddle_default"] == true);
    ensure!(defaults.map(|line| &line["policy"]).eq([&Value::from("heddle-grouping")]), "{report:#}");
    for policy in report["policies"].as_array().context("policies")? {
        let speed = |run: usize| policy["runs"][run]["transactions_per_second"].as_f64().unwrap_or(0.0);
        ensure!(speed(0) > 0.0 && speed(1) >= 0.9 * speed(0), "{policy:#}");
    }
    Ok(())
}

/// A source that is written, goes on in another file, and is started again: each transaction is counted once.
fn follow(server: &Server, url: &str) -> Result<()> {
    let log = server.current_log()?.display().to_string();
    let name = log.rsplit('/').next().context("a name")?;
    let follow = Heddle::start(&["inspect", "--from", url, "--follow", "--start", name, "--json"])?;
    let load = || server.execute(&script(|_| String::new()));
    load()?;
    server.rotate()?;
    load()?;
    all_is_sent(server)?;
    server.stop()?;
    server.restart(&[])?;
    load()?;
    all_is_sent(server)?;
    // What is sent still has to be read.
    std::thread::sleep(Duration::from_secs(2));
    follow.signal(Signal::INT)?;
    let run = follow.wait()?;
    ensure!(run.status.code() == Some(0), "{run}");
    let report: Value = serde_json::from_str(&run.stdout).with_context(|| run.to_string())?;
    ensure!(report["transactions"] == 1200 && report["rows"] == 1200, "{report:#}");
    ensure!(report["files"].as_array().is_some_and(|files| files.len() >= 3), "{:#}", report["files"]);
    Ok(())
}

/// Waits until whoever reads the server's log has been sent all of it.
fn all_is_sent(server: &Server) -> Result<()> {
    server.wait_until(
        "SELECT COUNT(*) = 1 FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' AND state LIKE '%has sent all binlog%'",
    )
}

fn copy_of_the_log(server: &Server) -> Result<PathBuf> {
    let dir = server.dir().join("copy");
    std::fs::create_dir(&dir)?;
    let mut index = String::new();
    for name in server.rows("SHOW BINARY LOGS")?.into_iter().map(|mut row| row.swap_remove(0)) {
        std::fs::copy(server.data().join(&name), dir.join(&name))?;
        index.push_str(&format!("./{name}\n"));
    }
    let path = dir.join("binlog.index");
    std::fs::write(&path, index)?;
    Ok(path)
}

/// Where the event that holds the middle of a log begins.
fn middle_event(log: &[u8]) -> Result<usize> {
    let mut at = binlog::MAGIC.len();
    loop {
        let header = log.get(at..).and_then(binlog::Header::parse).context("a whole log")?;
        let next = at + header.event_len as usize;
        if next > log.len() / 2 {
            return Ok(at);
        }
        at = next;
    }
}

/// A damaged body costs its transaction; behind a damaged length nothing can be read. The rest is counted, and every
/// problem says where.
fn damaged(server: &Server) -> Result<()> {
    let log = std::fs::read(server.binary_logs()?.swap_remove(1))?;
    let middle = middle_event(&log)?;
    const HIGHEST_OF_THE_LENGTH: usize = 12;
    let copy = server.dir().join("damaged.000002");
    for (at, least) in [(middle + binlog::HEADER_LEN + 1, 2), (middle + HIGHEST_OF_THE_LENGTH, 1)] {
        let mut bytes = log.clone();
        bytes[at] ^= 0x20;
        bytes.truncate(bytes.len() - 10);
        std::fs::write(&copy, bytes)?;
        let report = inspect(&[&copy.display().to_string()], 4)?;
        let problems = report["problems"].as_array().context("problems")?;
        ensure!(
            problems.len() >= least && problems.iter().all(|problem| problem["offset"].as_u64() > Some(4)),
            "{problems:#?}"
        );
        ensure!(report["transactions"].as_u64() > Some(100), "{report:#}");
    }
    let page = server.dir().join("report.html");
    let _ = inspect(&[&copy.display().to_string(), "--html", &page.display().to_string()], 4)?;
    let html = std::fs::read_to_string(&page)?;
    ensure!(html.contains("damaged.000002") && !html.contains("http"), "the page");
    strange(server, &log)?;
    let none = Heddle::start(&["inspect", &Path::new("/dev/null").display().to_string()])?.wait()?;
    ensure!(none.status.code() == Some(1), "{none}");
    Ok(())
}

/// A file that is missing in a series, one that is encrypted, and events that nobody knows: named; the rest is reported.
fn strange(server: &Server, log: &[u8]) -> Result<()> {
    let dir = server.dir().join("strange");
    std::fs::create_dir(&dir)?;
    let path = |name: &str| dir.join(name).display().to_string();
    let check = |files: &[&str], named: &str, says: &str| -> Result<()> {
        let files: Vec<String> = files.iter().map(|name| path(name)).collect();
        let report = inspect(&files.iter().map(String::as_str).collect::<Vec<_>>(), 4)?;
        let problems = report["problems"].as_array().context("problems")?;
        let told =
            |problem: &Value, field: &str, text: &str| problem[field].as_str().is_some_and(|told| told.contains(text));
        let found = problems.iter().any(|problem| told(problem, "file", named) && told(problem, "problem", says));
        ensure!(found, "{named}: {says}: {problems:#?}");
        ensure!(report["transactions"].as_u64() > Some(100), "{report:#}");
        Ok(())
    };
    std::fs::write(path("binlog.000005"), log)?;
    std::fs::write(path("binlog.000007"), log)?;
    check(&["binlog.000005", "binlog.000007"], "", "binlog.000006 is missing")?;
    let mut encrypted = log.to_vec();
    encrypted[0] = 0xfd;
    std::fs::write(path("binlog.000006"), encrypted)?;
    check(&["binlog.000005", "binlog.000006"], "binlog.000006", "encrypted")?;
    let mut unknown = log.to_vec();
    let at = middle_event(log)?;
    let end = at + u32::from_le_bytes(log[at + 9..at + 13].try_into()?) as usize;
    unknown[at + 4] = 200;
    let crc = crc32(&unknown[at..end - 4]);
    unknown[end - 4..end].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(path("binlog.000006"), unknown)?;
    check(&["binlog.000006"], "binlog.000006", "type 200 is not known")
}

/// Of an event; bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn bottlenecks_planted_in_mysql_are_named() -> Result<()> {
    check(MYSQL_9_7)
}

#[test]
fn bottlenecks_planted_in_mariadb_are_named() -> Result<()> {
    check(MARIADB_10_11)
}
