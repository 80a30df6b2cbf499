//! Heddle's own tables on the target: what the source's log may not do to them, and where an application has a schema of their name.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Run, heddle};
use e2e::pair::Pair;
use e2e::refusal::refused_with_remedy;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};

const TABLES: &str = "SET GLOBAL log_bin_trust_function_creators = ON; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
    INSERT INTO d.t VALUES (1, 0), (2, 0), (3, 0)";
/// A source that is a target of heddle's, too, has such a table, which is not logged here.
const BOOKS: &str = "SET sql_log_bin = 0; CREATE DATABASE heddle; CREATE TABLE heddle.progress (channel VARCHAR(64) PRIMARY KEY, seq BIGINT, owner VARCHAR(255));
    INSERT INTO heddle.progress VALUES ('victim', 1, '')";
const PROGRAMS: &str = "DELIMITER //
    CREATE FUNCTION d.forge() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE heddle.progress SET seq = seq + 100 WHERE channel = 'victim'; RETURN 1; END//
    DELIMITER ;
    CREATE TABLE d.fires (id INT PRIMARY KEY) ENGINE=InnoDB;
    CREATE TRIGGER d.fire BEFORE INSERT ON d.fires FOR EACH ROW UPDATE heddle.progress SET seq = seq + 100 WHERE channel = 'victim';
    CREATE VIEW d.books AS SELECT channel, seq FROM heddle.progress";

/// What the source logs as a statement, and a word of what the channel says of it.
const FORGERIES: [(&str, &str); 8] = [
    ("INSERT INTO d.t VALUES (10, d.forge())", "heddle's own tables"),
    ("INSERT INTO d.fires VALUES (1)", "heddle's own tables"),
    ("UPDATE d.books SET seq = 99 WHERE channel = 'victim'", "heddle's own tables"),
    (
        "UPDATE d.t x, heddle.progress p SET x.v = 9, p.seq = 99 WHERE p.channel = 'victim' AND x.id = 1",
        "heddle's own tables",
    ),
    ("UPDATE heddle.progress p JOIN (SELECT 1 x) y SET p.seq = 98", "heddle's own tables"),
    (
        "INSERT INTO d.t VALUES (20, 0); INSERT INTO d.t VALUES (21, 0); BEGIN; INSERT INTO d.t VALUES (22, 0); INSERT INTO d.t VALUES (23, d.forge()); \
         COMMIT; INSERT INTO d.t VALUES (24, 0)",
        "heddle's own tables",
    ),
    ("CREATE TABLE d.made ENGINE=InnoDB AS SELECT d.forge() AS x", "d.forge"),
    (
        "XA START 'a'; INSERT INTO d.t VALUES (30, d.forge()); XA END 'a'; XA PREPARE 'a'; XA ROLLBACK 'a'",
        "heddle's own tables",
    ),
];

fn skip(pair: &Pair) -> Result<()> {
    let position = pair.target.scalar("SELECT position FROM heddle.stops WHERE channel = 'default'")?;
    let url = pair.target.url();
    heddle(&["channel", "skip", "default", "--to", &url, "--position", &position, "--yes"])?.successful()?;
    Ok(())
}

fn until_end(pair: &Pair, more: &[&str]) -> Result<Run> {
    pair.begin(&[&["--until-end"], more].concat())?.wait()
}

/// No statement of a source writes where another channel is, whatever runs the change. What stands before it is applied, and what comes behind it later.
fn forged(kind: Kind, options: &[&str]) -> Result<()> {
    let in_statements = ["--binlog-format=STATEMENT"];
    let pair = Pair::start_with(kind, &in_statements, &["--log-bin-trust-function-creators=ON"])?;
    until_end(&pair, &["--channel", "victim"])?.successful()?;
    let victim = || pair.target.rows("SELECT * FROM heddle.progress WHERE channel = 'victim'");
    let before = victim()?;
    ensure!(before.len() == 1, "no channel to be forged: {before:?}");
    pair.source.execute(TABLES)?;
    until_end(&pair, options)?.successful()?;
    pair.source.execute(BOOKS)?;
    pair.source.execute(PROGRAMS)?;
    until_end(&pair, options)?.successful()?;
    for (sql, word) in FORGERIES {
        let is_xa = sql.starts_with("XA");
        // MySQL executes no function that changes a table while it fills another (1746).
        if is_xa && options.contains(&"preserve") || sql.starts_with("CREATE TABLE") && !kind.is_mariadb() {
            continue;
        }
        pair.source.run_script(sql.as_bytes()).with_context(|| sql.to_owned())?;
        let run = until_end(&pair, options)?;
        refused_with_remedy(&run, &[]).with_context(|| sql.to_owned())?;
        ensure!(run.stderr.to_lowercase().contains(word), "{sql}: {run}");
        ensure!(victim()? == before, "{sql}: the other channel's row was changed: {:?}, {run}", victim()?);
        if sql.contains("(24") {
            let rows = pair.target.scalar("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t WHERE id >= 20")?;
            ensure!(rows == "20,21", "what stands before it is applied, and nothing of it: {rows}, {run}");
        }
        if is_xa {
            // Its end has nothing to end, and is left out as well.
            pair.target
                .execute("DROP FUNCTION d.forge; CREATE FUNCTION d.forge() RETURNS INT DETERMINISTIC RETURN 1")?;
        } else {
            skip(&pair)?;
        }
        until_end(&pair, options)?.successful().with_context(|| sql.to_owned())?;
    }
    ensure!(victim()? == before, "the other channel's row was changed");
    let rows = pair.target.scalar("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t")?;
    ensure!(rows == "1,2,3,20,21,24", "{rows}");
    Ok(())
}

/// Somebody writes to the progress of a channel that runs: what it says of that names no other heddle.
fn changed_by_hand(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLES)?;
    let running = pair.begin(&[])?;
    pair.target.wait_until("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'")?;
    pair.target.wait_until("SELECT COUNT(*) = 3 FROM d.t")?;
    pair.target.execute("UPDATE heddle.progress SET seq = seq + 100")?;
    pair.source.execute("CREATE TABLE d.later (id INT PRIMARY KEY)")?;
    let run = running.wait()?;
    refused_with_remedy(&run, &["progress was changed on the target, and not by another heddle"])?;
    ensure!(!run.stderr.contains("has taken this channel over"), "{run}");
    Ok(())
}

/// An application's schema of that name stops the channel before it begins, or at its first table; in a schema of another name heddle's tables are in nobody's way.
fn schema_of_application(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    until_end(&pair, &[])?.successful()?;
    pair.source.execute(
        "CREATE DATABASE heddle; CREATE TABLE heddle.orders (id INT PRIMARY KEY); INSERT INTO heddle.orders VALUES (7)",
    )?;
    let run = until_end(&pair, &[])?;
    refused_with_remedy(&run, &["heddle.orders", "--bookkeeping-schema"])?;
    pair.target.execute("DROP DATABASE d")?;
    // Of files nobody can be asked: the first table stops the channel.
    let (index, url) = (pair.source.binlog_index().display().to_string(), pair.target.url());
    let files = heddle(&["replicate", "--from", &index, "--to", &url, "--channel", "files", "--start-anyway"])?;
    refused_with_remedy(&files, &["heddle.orders", "which is not heddle's own", "--bookkeeping-schema"])?;
    pair.target.execute("DROP DATABASE heddle; DROP DATABASE d")?;
    let elsewhere = ["--bookkeeping-schema", "books"];
    until_end(&pair, &elsewhere)?.successful()?;
    pair.source.execute("INSERT INTO heddle.orders VALUES (8); INSERT INTO d.t VALUES (2)")?;
    until_end(&pair, &elsewhere)?.successful()?;
    let rows = "SELECT CONCAT((SELECT SUM(id) FROM heddle.orders), '/', (SELECT SUM(id) FROM d.t))";
    ensure!(pair.target.scalar(rows)? == "15/3", "{:?}", pair.target.scalar(rows)?);
    let listed = heddle(&["channel", "list", "--to", &url, "--bookkeeping-schema", "books"])?.successful()?;
    ensure!(listed.stdout.contains("default"), "{listed}");
    let status = heddle(&["status", "--to", &url, "--json", "--bookkeeping-schema", "books"])?.successful()?;
    ensure!(status.stdout.contains("\"default\""), "{status}");
    heddle(&["settle", &url, "--bookkeeping-schema", "books"])?.successful()?;
    let wrong = heddle(&["channel", "list", "--to", &url, "--bookkeeping-schema", "Büro"])?;
    ensure!(wrong.status.code() == Some(2) && wrong.stderr.contains("lower case letters"), "{wrong}");
    Ok(())
}

e2e::tests! {
    mariadb_forged: forged(MARIADB_10_11, &[]);
    mysql_forged: forged(MYSQL_9_7, &[]);
    mariadb_forged_with_kept_gtids: forged(MARIADB_10_11, &["--gtids", "preserve"]);
    mysql_forged_with_kept_gtids: forged(MYSQL_9_7, &["--gtids", "preserve"]);
    mariadb_changed_by_hand: changed_by_hand(MARIADB_10_11);
    mysql_changed_by_hand: changed_by_hand(MYSQL_9_7);
    mariadb_schema_of_application: schema_of_application(MARIADB_10_11);
    mysql_schema_of_application: schema_of_application(MYSQL_9_7);
}
