//! Bad input: each ends with a message that says what is wrong and what to do, a non-zero exit, and nothing lost. Where the cause
//! can be repaired, it is, and the same command then finishes the work. Files: `refused_files`.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::checksum::{contents, differences};
use e2e::heddle::{Heddle, Run, binary, heddle};
use e2e::pair::Pair;
use e2e::refusal::{TABLE, refused, refused_with_remedy};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server};
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A pair whose channel has begun, and that has more to do.
fn begun(kind: Kind, target: &[&str]) -> Result<Pair> {
    let pair = Pair::start_with(kind, &[], target)?;
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")?;
    pair.to_the_end(&[])?;
    Ok(pair)
}

fn until_end(pair: &Pair) -> Result<Run> {
    pair.begin(&["--until-end"])?.wait()
}

/// The relay log is lost, and so is what the source had at the time.
fn purged(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.source.execute("INSERT INTO d.t VALUES (3, 'c')")?;
    pair.source.rotate()?;
    pair.source.rotate()?;
    std::fs::remove_dir_all(&pair.relay)?;
    pair.source.purge_all_but_last()?;
    pair.source.execute("INSERT INTO d.t VALUES (4, 'd')")?;
    refused_with_remedy(&until_end(&pair)?, &["1236", "purged"])?;
    let rows = pair.target.scalar("SELECT COUNT(*) FROM d.t")?;
    ensure!(rows == "2", "{rows} rows on the target");
    Ok(())
}

/// An event that is damaged in the source's file: asked for again a few times, not for ever.
fn damaged_for_good(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.source.execute("INSERT INTO d.t VALUES (3, 'a needle in a haystack')")?;
    let log = pair.source.current_log()?;
    pair.source.rotate()?;
    let mut bytes = std::fs::read(&log)?;
    let needle = b"a needle in a haystack";
    // In the rows, not in a text that MariaDB logs before them.
    let at = bytes.windows(needle.len()).rposition(|window| window == needle).context("no such row in the log")?;
    bytes[at] ^= 1;
    std::fs::write(&log, bytes)?;
    let name = log.file_name().context("a log has a name")?.to_string_lossy().into_owned();
    refused_with_remedy(&until_end(&pair)?, &["broken event", &name, "verify-binlog-checksum"])?;
    let rows = pair.target.scalar("SELECT COUNT(*) FROM d.t")?;
    ensure!(rows == "2", "{rows} rows on the target");
    Ok(())
}

/// What MariaDB has not is refused there; `behind` leaves out what comes before.
fn not_in_mariadb(behind: &str, sql: &str, texts: &[&str]) -> Result<()> {
    let pair = Pair::start_two((MYSQL_9_7, &[]), (MARIADB_10_11, &[]))?;
    pair.source.execute(behind)?;
    let (file, offset) = e2e::native::position(&pair.source)?;
    pair.target.execute(&behind.replace(" JSON", " LONGTEXT"))?;
    pair.source.execute(sql)?;
    let held = contents(&pair.target)?;
    let run = pair.begin(&["--until-end", "--start", &format!("{file}:{offset}")])?.wait()?;
    refused_with_remedy(&run, texts)?;
    ensure!(run.status.code() == Some(1), "{run}");
    // The transaction is named; nothing of it is applied, and nothing is noted as applied.
    let summary = run.summary()?;
    let (error, place) = (&summary["error"], summary["error"]["place"].as_str().unwrap_or_default());
    ensure!(error["kind"] == "Refused" && place.contains(&format!("{file}:{offset}")), "at '{place}': {run}");
    ensure!(run.number("transactions")? == 0 && run.number("low_water")? == 0, "{run}");
    let lines = differences(&held, &contents(&pair.target)?);
    ensure!(lines.is_empty(), "the target has changed:\n  {}\n{run}", lines.join("\n  "));
    Ok(())
}

/// Two rows with one value in an index that MariaDB's row applier may look for them by, and their unique key has no NULL: type, value of the one
/// and of the other.
const SHARED: [(&str, &str, &str); 22] = [
    ("x INT, KEY x (x)", "-5", "-5"),
    ("x BIGINT UNSIGNED, KEY x (x)", "18446744073709551615", "18446744073709551615"),
    ("x DECIMAL(12,3), KEY x (x)", "-1.5", "-1.5"),
    ("x YEAR, KEY x (x)", "2024", "2024"),
    ("x FLOAT, KEY x (x)", "1.1", "1.1"),
    ("x DOUBLE, KEY x (x)", "-2.2e-100", "-2.2e-100"),
    ("x DATE, KEY x (x)", "'2024-02-29'", "'2024-02-29'"),
    ("x DATETIME(3), KEY x (x)", "'2024-02-29 01:02:03.456'", "'2024-02-29 01:02:03.456'"),
    ("x TIME(6), KEY x (x)", "'-10:20:30.123456'", "'-10:20:30.123456'"),
    ("x TIMESTAMP(6) NULL, KEY x (x)", "'2024-02-29 01:02:03.456789'", "'2024-02-29 01:02:03.456789'"),
    ("x ENUM('a','b'), KEY x (x)", "'b'", "'b'"),
    ("x SET('a','b','c'), KEY x (x)", "'a,c'", "'a,c'"),
    ("x BIT(11), KEY x (x)", "b'10000000001'", "b'10000000001'"),
    ("x CHAR(5) CHARACTER SET latin1, KEY x (x)", "'a'", "'A '"),
    ("x VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, KEY x (x)", "'straße'", "'STRASSE'"),
    ("x VARCHAR(9) CHARACTER SET utf16, KEY x (x)", "'é'", "'E'"),
    ("x TEXT CHARACTER SET utf8mb4, KEY x (x(3))", "'abcd'", "'abce'"),
    ("x VARBINARY(9), KEY x (x)", "X'00FF'", "X'00FF'"),
    ("x BINARY(4), KEY x (x)", "X'01'", "X'01'"),
    ("x BLOB, KEY x (x(2))", "X'010203'", "X'010204'"),
    ("x UUID, KEY x (x)", "'123e4567-e89b-12d3-a456-426655440000'", "'123e4567-e89b-12d3-a456-426655440000'"),
    ("x INT, y INT, KEY x (x, y)", "NULL, 7", "NULL, 7"),
];

/// Another index then leads to fewer rows than the unique key.
const MOSTLY_NULL: &str = "INSERT INTO d.t (z) SELECT seq FROM d.seq_1_to_300; ANALYZE TABLE d.t";

/// MariaDB's own replicas may change the wrong row here: Heddle asks before.
fn shared_index() -> Result<()> {
    let pair = Pair::start(MARIADB_10_11)?;
    for (number, (columns, one, other)) in SHARED.into_iter().enumerate() {
        let table = format!(
            "SET time_zone = '+00:00'; CREATE DATABASE IF NOT EXISTS d; \
             CREATE OR REPLACE TABLE d.t (a INT NULL, {columns}, z INT INVISIBLE, UNIQUE KEY a (a), KEY z (z)) ENGINE=InnoDB; \
             INSERT INTO d.t VALUES (1, {one}), (2, {other}), (3, {}); UPDATE d.t SET z = 9000 + a; {MOSTLY_NULL}",
            "NULL".to_owned() + if columns.contains(", y") { ", 8" } else { "" }
        );
        pair.source.execute(&table)?;
        pair.target.execute(&table)?;
        let (file, offset) = e2e::native::position(&pair.source)?;
        pair.source.execute("DELETE FROM d.t WHERE a = 3")?;
        pair.source.execute("DELETE FROM d.t WHERE a = 2")?;
        let (channel, start) = (format!("c{number}"), format!("{file}:{offset}"));
        let relay = pair.target.dir().join(&channel).display().to_string();
        let to = pair.target.url();
        let arguments = ["replicate", "--from", &pair.from, "--to", &to, "--json", "--relay-dir", &relay];
        let run = heddle(&[&arguments[..], &["--until-end", "--channel", &channel, "--start", &start]].concat())?;
        refused_with_remedy(&run, &["MariaDB could take another row of d.t", "delete from d.t"])
            .with_context(|| columns.to_owned())?;
        ensure!(run.number("transactions")? == 1, "{columns}: {run}");
        let rows = pair.target.scalar("SELECT GROUP_CONCAT(a ORDER BY a) FROM d.t")?;
        ensure!(rows == "1,2", "{columns}: the target holds {rows}");
    }
    Ok(())
}

const DOCUMENTS: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, j JSON); \
    INSERT INTO d.t VALUES (1, CONCAT('{\"a\": 1, \"b\": \"', REPEAT('x', 200), '\"}'))";
const PARTIAL: &str =
    "SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE d.t SET j = JSON_SET(j, '$.a', 2) WHERE id = 1";
/// No JSON in it: the event is a partial one all the same.
const NUMBERS: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT); INSERT INTO d.t VALUES (1, 1)";
const PARTIAL_WITHOUT: &str = "SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE d.t SET n = 2 WHERE id = 1";
const PARTIAL_TEXTS: &[&str] = &[
    "a partial JSON update (binlog_row_value_options=PARTIAL_JSON) can not be applied to MariaDB",
    "set binlog_row_value_options='' on the source",
    "d.t",
];
const CHILDREN: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB; \
    CREATE TABLE d.c (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES d.t (id) ON DELETE CASCADE) ENGINE=InnoDB; \
    INSERT INTO d.t VALUES (1); INSERT INTO d.c VALUES (1, 1)";
const CASCADE: &str =
    "SET SESSION binlog_format = STATEMENT, enable_cascade_triggers = ON; DELETE FROM d.t WHERE id = 1";

fn reset_statement(kind: Kind) -> &'static str {
    if kind.is_mariadb() { "RESET MASTER" } else { "RESET BINARY LOGS AND GTIDS" }
}

/// The source begins anew: what it sends now is not what follows.
fn reset(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.source.execute(reset_statement(kind))?;
    pair.source.execute("INSERT INTO d.t VALUES (3, 'c')")?;
    for relay in [true, false] {
        if !relay {
            std::fs::remove_dir_all(&pair.relay)?;
        }
        refused_with_remedy(&until_end(&pair)?, &["source"]).with_context(|| format!("with its relay log: {relay}"))?;
        let rows = pair.target.scalar("SELECT COUNT(*) FROM d.t")?;
        ensure!(rows == "2", "{rows} rows on the target");
    }
    Ok(())
}

/// The source is a copy from before what the target has.
fn back_in_time(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a')")?;
    pair.source.stop()?;
    let earlier = pair.source.dir().join("earlier");
    copy(&pair.source.data(), &earlier)?;
    pair.source.restart(&[])?;
    pair.source.execute("INSERT INTO d.t VALUES (2, 'b'), (3, 'c')")?;
    pair.to_the_end(&[])?;
    pair.source.stop()?;
    std::fs::remove_dir_all(pair.source.data())?;
    std::fs::rename(&earlier, pair.source.data())?;
    pair.source.restart(&[])?;
    refused_with_remedy(&until_end(&pair)?, &["source"])?;
    let rows = pair.target.scalar("SELECT COUNT(*) FROM d.t")?;
    ensure!(rows == "3", "{rows} rows on the target");
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "copying {}", from.display());
    Ok(())
}

/// Names with capitals come to a server that does not tell them from small letters, which has the table's foreign keys under another name.
fn capitals(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &[], &["--lower-case-table-names=1"])?;
    pair.source.execute(
        "CREATE DATABASE Shop; CREATE TABLE Shop.Alone (id INT PRIMARY KEY); INSERT INTO Shop.Alone VALUES (1);
         CREATE TABLE Shop.Parent (id INT PRIMARY KEY);
         CREATE TABLE Shop.Child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES Shop.Parent (id) ON DELETE CASCADE);
         INSERT INTO Shop.Parent VALUES (1)",
    )?;
    refused(&until_end(&pair)?, &["Shop.Parent", "lower_case_table_names", "foreign key"])?;
    let rows = pair.target.scalar("SELECT COUNT(*) FROM shop.alone")?;
    ensure!(rows == "1", "{rows} rows of a table without foreign keys");
    Ok(())
}

/// Another server answers at the source's address.
fn another_server(kind: Kind) -> Result<()> {
    let mut pair = begun(kind, &[])?;
    let other = Server::start(kind, &[])?;
    other.execute(TABLE)?;
    other.execute("INSERT INTO d.t VALUES (7, 'x')")?;
    pair.from = other.url();
    let run = until_end(&pair)?;
    refused(&run, &["source"])?;
    let rows = pair.target.scalar("SELECT COUNT(*) FROM d.t")?;
    ensure!(rows == "2", "{rows} rows on the target: {run}");
    Ok(())
}

/// An account without what is needed: the privilege is named.
fn missing_privileges(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a')")?;
    let user = format!(
        "CREATE USER small@'%' IDENTIFIED BY '{PASSWORD}'; CREATE USER small@localhost IDENTIFIED BY '{PASSWORD}'"
    );
    let run = |from: &str, to: &str| {
        heddle(&["replicate", "--from", from, "--to", to, "--until-end", "--relay-dir", &pair.relay])
    };
    let small = |url: &str| url.replace("heddle@", "small@");
    // Outside the log: the accounts are no part of what is replicated.
    pair.source.execute(&format!("SET sql_log_bin = 0; {user}"))?;
    pair.target.execute(&format!("SET sql_log_bin = 0; {user}"))?;
    let (source, target) = (pair.source.url(), pair.target.url());
    let (client, stream) = if kind.is_mariadb() {
        ("BINLOG MONITOR", "REPLICATION SLAVE")
    } else {
        ("REPLICATION CLIENT", "REPLICATION SLAVE")
    };
    refused(&run(&small(&source), &target)?, &[client])?;
    for account in ["small@'%'", "small@localhost"] {
        pair.source.execute(&format!("SET sql_log_bin = 0; GRANT {client} ON *.* TO {account}"))?;
    }
    refused(&run(&small(&source), &target)?, &[stream])?;
    let apply = if kind.is_mariadb() { "BINLOG REPLAY" } else { "BINLOG_ADMIN" };
    let as_binlog = |target: &str| -> Result<Run> {
        let arguments = [
            "replicate",
            "--from",
            &source,
            "--to",
            target,
            "--until-end",
            "--json",
            "--relay-dir",
            &pair.relay,
            "--rows",
            "binlog",
        ];
        heddle(&arguments)
    };
    refused(&as_binlog(&small(&target))?, &[apply, "CREATE ON heddle.*"])?;
    for account in ["small@'%'", "small@localhost"] {
        pair.target.execute(&format!(
            "SET sql_log_bin = 0; GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON *.* TO {account}"
        ))?;
    }
    refused(&as_binlog(&small(&target))?, &[apply])?;
    // The accounts are not the same.
    pair.run_to_the_end(&[])?;
    pair.assert_same_rows()
}

/// More workers than the target takes connections: named with the server, and what to do.
fn too_many_connections(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.source.execute("INSERT INTO d.t VALUES (3, 'c')")?;
    pair.target.execute("SET GLOBAL max_connections = 12")?;
    let run = pair.begin(&["--until-end", "--workers", "30"])?.wait()?;
    let address = pair.target.url().replace("mysql://", "target ");
    refused_with_remedy(&run, &[address.trim_end_matches('/'), "1040", "fewer --workers"])?;
    pair.target.execute("SET GLOBAL max_connections = 151")?;
    pair.to_the_end(&[]).map(drop)
}

/// An account that may do all but write to a read-only server.
fn read_only(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.source.execute("INSERT INTO d.t VALUES (3, 'c')")?;
    let apply = if kind.is_mariadb() { "BINLOG REPLAY, BINLOG ADMIN" } else { "BINLOG_ADMIN, SESSION_VARIABLES_ADMIN" };
    for (account, server) in
        ["plain@'%'", "plain@localhost"].iter().flat_map(|account| [(account, &pair.source), (account, &pair.target)])
    {
        server.execute(&format!(
            "SET sql_log_bin = 0; CREATE USER {account} IDENTIFIED BY '{PASSWORD}'; GRANT {apply} ON *.* TO {account}; \
             GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON *.* TO {account}"
        ))?;
    }
    pair.target.execute("SET GLOBAL read_only = 1")?;
    let to = pair.target.url().replace("heddle@", "plain@");
    refused_with_remedy(&pair.begin_into(&to, &["--until-end"])?.wait()?, &["read"])?;
    pair.target.execute("SET GLOBAL read_only = 0")?;
    pair.begin_into(&to, &["--until-end"])?.wait()?.successful()?;
    pair.to_the_end(&[]).map(drop)
}

/// The target's table is not the source's; `repair` makes it so again.
fn other_table(kind: Kind, spoil: &str, repair: &str, texts: &[&str]) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.target.execute(spoil)?;
    pair.source.execute(
        "INSERT INTO d.t VALUES (3, 'a long value, as it was on the source'); UPDATE d.t SET v = 'x' WHERE id = 1",
    )?;
    refused_with_remedy(&until_end(&pair)?, texts)?;
    pair.target.execute(repair)?;
    pair.to_the_end(&[]).map(drop)
}

/// A missing row among many transactions that share packets, or a group: all before it are there, nothing of it or of what follows is.
/// `before`, `after`: ids of rows that come with a transaction each.
fn missing_row_among(kind: Kind, before: Range<u32>, after: Range<u32>, options: &[&str]) -> Result<()> {
    let pair = begun(kind, &[])?;
    let inserts = |ids: &Range<u32>| -> String {
        ids.clone().map(|id| format!("INSERT INTO d.t VALUES ({id}, 'new'); ")).collect()
    };
    pair.target.execute(DELETE_ROW[0])?;
    pair.source.execute(&format!("{}UPDATE d.t SET v = 'x' WHERE id = 1; {}", inserts(&before), inserts(&after)))?;
    pair.source.execute("UPDATE d.t SET v = 'y' WHERE id = 1")?;
    let to_the_end = [&["--until-end"], options].concat();
    refused_with_remedy(&pair.begin(&to_the_end)?.wait()?, &["update of d.t key (id=1)"])?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM d.t WHERE id >= 100")? == before.len().to_string());
    pair.target.execute(DELETE_ROW[1])?;
    let run = pair.to_the_end(options)?;
    ensure!(run.number("transactions")? == after.len() as u64 + 2, "{run}");
    Ok(())
}

fn missing_row_in_a_packet(kind: Kind, order: &str) -> Result<()> {
    let apart = ["--grouping", "off", "--workers", "1", "--commit-order", order];
    missing_row_among(kind, 100..200, 200..300, &apart)
}

/// Of many pieces.
fn missing_row_in_a_group(kind: Kind, options: &[&str]) -> Result<()> {
    missing_row_among(kind, 100..453, 500..800, options)
}

/// A table without transactions keeps what came before the error, and the GTID is used up: no later run may take that for the whole.
fn half_of_a_statement_with_kept_gtids(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let options = ["--until-end", "--gtids", "preserve"];
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.m (id INT PRIMARY KEY, n INT) ENGINE=MyISAM")?;
    pair.to_the_end(&["--gtids", "preserve"])?;
    pair.target.execute("SET sql_log_bin=0; INSERT INTO d.m VALUES (2, 9)")?;
    pair.source.execute("INSERT INTO d.m VALUES (1, 1), (2, 2), (3, 3); INSERT INTO d.m VALUES (4, 4)")?;
    refused_with_remedy(&pair.begin(&options)?.wait()?, &["Duplicate", "a part of the transaction"])?;
    pair.target.execute("SET sql_log_bin=0; DELETE FROM d.m WHERE id = 2")?;
    refused_with_remedy(&pair.begin(&options)?.wait()?, &["an earlier run has failed", "a part of the transaction"])?;
    let rows = pair.target.rows("SELECT id FROM d.m")?;
    ensure!(rows.len() == 1, "nothing comes after it: {rows:?}");
    Ok(())
}

/// A target that is told to be lenient with its own replication would be so with us: nothing is begun on it.
fn lenient_target(kind: Kind, option: &str, repair: &str) -> Result<()> {
    let name = if kind.is_mariadb() { "slave" } else { "replica" };
    let pair = Pair::start_with(kind, &[], &[&format!("--{name}-{option}")])?;
    pair.source.execute(TABLE)?;
    let text = option.split('=').next().unwrap_or_default().replace('-', "_");
    refused_with_remedy(&until_end(&pair)?, &[&format!("{name}_{text} is ")])?;
    let run = pair.begin(&["--dry-run"])?.wait()?;
    ensure!(!run.status.success() && run.stdout.contains(&format!("{name}_{text} is ")), "{run}");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'd'")? == "0");
    match repair {
        "" => pair.target.restart(&[&format!("--{name}-skip-errors=OFF")])?,
        statement => pair.target.execute(&statement.replace("NAME", name))?,
    }
    pair.to_the_end(&[]).map(drop)
}

/// MySQL has the mode of `BINLOG` statements in the session: what its own replication does is not ours.
fn idempotent(kind: Kind) -> Result<()> {
    let pair = begun(kind, &["--replica-exec-mode=IDEMPOTENT"])?;
    pair.target.execute("DELETE FROM d.t WHERE id = 1; INSERT INTO d.t VALUES (3, 'q')")?;
    pair.source.execute("UPDATE d.t SET v = 'x' WHERE id = 1; INSERT INTO d.t VALUES (3, 'c')")?;
    refused_with_remedy(&until_end(&pair)?, &["d.t key (id=1)"])?;
    pair.target.execute("INSERT INTO d.t VALUES (1, 'a')")?;
    refused_with_remedy(&until_end(&pair)?, &["d.t key (id=3)"])?;
    pair.target.execute("DELETE FROM d.t WHERE id = 3")?;
    pair.to_the_end(&[]).map(drop)
}

fn large_row(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &[], &["--max-allowed-packet=1M"])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v LONGBLOB); INSERT INTO d.t VALUES (1, REPEAT('x', 3000000))")?;
    refused_with_remedy(&until_end(&pair)?, &["max_allowed_packet"])?;
    pair.target.execute("SET GLOBAL max_allowed_packet = 64 * 1024 * 1024")?;
    pair.to_the_end(&[]).map(drop)
}

/// The source's clock goes to and fro.
fn clock_jumps(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    for time in ["2030-01-01 00:00:00", "1980-01-01 00:00:00", "2037-12-31 23:59:59", "1970-01-02 00:00:00"] {
        pair.source.execute(&format!(
            "SET timestamp = UNIX_TIMESTAMP('{time}'); INSERT INTO d.t SELECT MAX(id) + 1, NOW() FROM d.t; CREATE TABLE d.x (id INT); \
             INSERT INTO d.x VALUES (1); DROP TABLE d.x; UPDATE d.t SET v = NOW() WHERE id = 1"
        ))?;
    }
    pair.to_the_end(&[])?;
    heddle(&["status", "--to", &pair.target.url()])?.successful().map(drop)
}

/// The source ends the first one's dump.
fn same_server_id(kind: Kind) -> Result<()> {
    let pair = Pair::start(kind)?;
    let other = Server::start(kind, &[])?;
    let begin = |target: &Server| {
        let (to, relay) = (target.url(), target.dir().join("relay").display().to_string());
        let options = ["replicate", "--from", &pair.from, "--to", &to, "--relay-dir", &relay, "--server-id", "77"];
        Heddle::start(&options)
    };
    let first = begin(&pair.target)?;
    let dumps = "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'";
    while pair.source.scalar(dumps)? != "1" {
        thread::sleep(Duration::from_millis(20));
    }
    let second = begin(&other)?;
    refused_with_remedy(&first.wait()?, &["same server_uuid/server_id", "--server-id"])?;
    second.terminate()?;
    second.wait()?.successful().map(drop)
}

/// The second is refused while the first goes on; once that has ended, it may.
fn two_on_one_channel(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    let mut first = pair.begin(&[])?;
    pair.source.execute("INSERT INTO d.t VALUES (9, 'y')")?;
    // It holds the channel once it has applied something.
    while pair.target.scalar("SELECT COUNT(*) FROM d.t WHERE id = 9")? != "1" {
        ensure!(!first.has_ended()?, "the first ended: {}", first.wait()?);
        thread::sleep(Duration::from_millis(20));
    }
    let relay = pair.target.dir().join("other-relay").display().to_string();
    let second =
        heddle(&["replicate", "--from", &pair.from, "--to", &pair.target.url(), "--until-end", "--relay-dir", &relay])?;
    refused_with_remedy(&second, &["in use"])?;
    let dry = pair.begin(&["--dry-run"])?.wait()?;
    ensure!(!dry.status.success() && dry.stdout.contains("is in use"), "{dry}");
    ensure!(!dry.stdout.contains("does not have what the channel has applied"), "{dry}");
    pair.source.execute("INSERT INTO d.t VALUES (10, 'z')")?;
    ensure!(!first.has_ended()?, "the first ended: {}", first.wait()?);
    first.terminate()?;
    first.wait()?.successful()?;
    pair.to_the_end(&[]).map(drop)
}

/// Files that the server has encrypted are named and refused; the server itself sends them in clear.
fn encrypted(kind: Kind) -> Result<()> {
    let option = if kind.is_mariadb() { "--encrypt-binlog=ON" } else { "--binlog-encryption=ON" };
    let mut pair = Pair::start_with(kind, &["--keyring", option], &[])?;
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a secret')")?;
    pair.source.rotate()?;
    pair.source.execute("UPDATE d.t SET v = 'another' WHERE id = 1")?;
    let index = pair.source.binlog_index().display().to_string();
    let file = std::fs::read(pair.source.data().join("binlog.000001"))?;
    ensure!(!file.windows(8).any(|bytes| bytes == b"a secret"), "the log is not encrypted");
    let live = std::mem::replace(&mut pair.from, index.clone());
    let texts = ["binlog.000001", "encrypted", "live server"];
    refused(&until_end(&pair)?, &texts)?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'd'")? == "0");
    let run = heddle(&["inspect", &index])?;
    let said = |text: &&str| run.stdout.contains(*text) || run.stderr.contains(*text);
    ensure!(!run.status.success() && texts.iter().all(said), "{run}");
    pair.from = live;
    pair.to_the_end(&[]).map(drop)
}

/// The relay log can not grow, as on a full disk: what is there is applied, and the same command goes on when there is room again.
fn relay_disk_full(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.source.execute("CREATE TABLE d.big (id INT PRIMARY KEY, v LONGBLOB)")?;
    for id in 0..20 {
        pair.source.execute(&format!("INSERT INTO d.big VALUES ({id}, REPEAT('x', 100000))"))?;
    }
    let to = pair.target.url();
    let arguments =
        ["replicate", "--from", &pair.from, "--to", &to, "--json", "--until-end", "--relay-dir", &pair.relay];
    let run = Heddle::start_with_small_files(&arguments, 1_000_000)?.wait()?;
    refused_with_remedy(&run, &[&pair.relay, "File too large"])?;
    // A disk that is full now may have room later: who starts it again need not be a person.
    match Heddle::start_on_small_disk(&arguments, Path::new(&pair.relay), 1_000_000)? {
        None => eprintln!("no disk of its own: user namespaces are not allowed here"),
        Some(running) => {
            let run = running.wait()?;
            refused_with_remedy(&run, &[&pair.relay, "the disk is full"])?;
            ensure!(run.status.code() == Some(75), "{run}");
        }
    }
    pair.to_the_end(&[]).map(drop)
}

/// MariaDB's GTIDs name their server by its number alone: the source's definitions would seem to be the target's own.
fn preserving_gtids_of_the_targets_number() -> Result<()> {
    let pair = Pair::start(MARIADB_10_11)?;
    let source = pair.source.scalar("SELECT @@global.server_id")?;
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a')")?;
    pair.target.execute(&format!("SET GLOBAL server_id = {source}"))?;
    let preserving = ["--until-end", "--gtids", "preserve", "--server-id", "4321"];
    refused_with_remedy(&pair.begin(&preserving)?.wait()?, &["--gtids preserve", "server_id"])?;
    pair.target.execute(&format!("SET GLOBAL server_id = {source} + 1; RESET MASTER"))?;
    pair.to_the_end(&["--gtids", "preserve", "--server-id", "4321"]).map(drop)
}

/// What the source does not have can be asked for again, rightly, as long as nothing is applied.
fn wrong_start(kind: Kind, from_files: bool) -> Result<()> {
    let mut pair = Pair::start(kind)?;
    if from_files {
        pair = pair.with_files();
    }
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a')")?;
    let at = |place: &'static str| ["--until-end", "--start", place];
    for wrong in ["binlog.000001:77777", "binlog.000001:5"] {
        let run = pair.begin(&at(wrong))?.wait()?;
        ensure!(!run.status.success(), "{run}");
    }
    pair.to_the_end(&["--start", "binlog.000001:4"])?;
    let again = pair.begin(&at("binlog.000001:4"))?.wait()?.successful()?;
    ensure!(again.stderr.contains("is not used: the channel has passed it"), "{again}");
    refused_with_remedy(&pair.begin(&at("binlog.000001:77777"))?.wait()?, &["lies behind that"])
}

/// Out of order a target that is strict about it would stop in the middle, with gaps.
fn strict_gtids_in_relaxed_order() -> Result<()> {
    let pair = Pair::start_with(MARIADB_10_11, &[], &["--gtid-strict-mode=ON"])?;
    pair.source.execute(TABLE)?;
    pair.source.execute("INSERT INTO d.t VALUES (1, 'a')")?;
    let relaxed = ["--until-end", "--gtids", "preserve", "--commit-order", "relaxed"];
    refused_with_remedy(&pair.begin(&relaxed)?.wait()?, &["gtid_strict_mode"])?;
    ensure!(!pair.begin(&[&relaxed[..], &["--dry-run"]].concat())?.wait()?.status.success());
    pair.to_the_end(&["--gtids", "preserve"]).map(drop)
}

/// The source gets another server_id. MySQL's servers have a UUID; MariaDB's could be another one, so its relay log is discarded, and it goes on by GTID.
fn other_server_id(kind: Kind) -> Result<()> {
    let pair = begun(kind, &[])?;
    pair.source.execute("INSERT INTO d.t VALUES (3, 'c')")?;
    pair.source.restart(&["--server-id=4000000000"])?;
    pair.source.execute("INSERT INTO d.t VALUES (4, 'd')")?;
    pair.to_the_end(&[])?;
    pair.source
        .execute("SET SESSION server_id = 77; UPDATE d.t SET v = 'e'")
        .or_else(|_| pair.source.execute("UPDATE d.t SET v = 'e'"))?;
    pair.to_the_end(&[]).map(drop)
}

/// GTIDs come and go while the channel goes on; a source that does not send those it has, now that they are off, says so.
fn gtid_mode_changes() -> Result<()> {
    let pair = Pair::start_two((MYSQL_9_7, &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]), (MYSQL_9_7, &[]))?;
    pair.source.execute(TABLE)?;
    let set = |mode: &str, id: u32| {
        pair.source.execute(&format!("SET GLOBAL gtid_mode = {mode}; INSERT INTO d.t VALUES ({id}, '{mode}')"))
    };
    pair.to_the_end(&[])?;
    pair.source.execute("SET GLOBAL enforce_gtid_consistency = ON")?;
    set("OFF_PERMISSIVE", 1)?;
    set("ON_PERMISSIVE", 2)?;
    pair.to_the_end(&[])?;
    set("ON", 3)?;
    pair.to_the_end(&[])?;
    std::fs::remove_dir_all(&pair.relay)?;
    set("ON", 4)?;
    pair.to_the_end(&[])?;
    for (id, mode) in (5..).zip(["ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"]) {
        set(mode, id)?;
    }
    refused_with_remedy(&until_end(&pair)?, &["GTID_MODE = OFF", "gtid_mode = OFF_PERMISSIVE"])?;
    set("OFF_PERMISSIVE", 8)?;
    pair.to_the_end(&[])?;
    set("OFF", 9)?;
    pair.to_the_end(&[]).map(drop)
}

/// A report that can not be written is none.
fn full_disk_of_a_report() -> Result<()> {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
    let run = std::process::Command::new(binary()?).args(["policies", "--json"]).stdout(full).output()?;
    let said = String::from_utf8_lossy(&run.stderr);
    ensure!(run.status.code() == Some(75) && said.contains("standard output is not whole"), "{:?}: {said}", run.status);
    Ok(())
}

const DROP_TABLE: [&str; 2] = ["RENAME TABLE d.t TO d.u", "RENAME TABLE d.u TO d.t"];
const DROP_COLUMN: [&str; 2] = [
    "ALTER TABLE d.t DROP COLUMN v",
    "ALTER TABLE d.t ADD COLUMN v VARCHAR(50); UPDATE d.t SET v = IF(id = 1, 'a', 'b')",
];
const OTHER_TYPE: [&str; 2] = [
    "ALTER TABLE d.t MODIFY v DATETIME",
    "ALTER TABLE d.t MODIFY v VARCHAR(50); UPDATE d.t SET v = IF(id = 1, 'a', 'b')",
];
const DELETE_ROW: [&str; 2] = ["DELETE FROM d.t WHERE id = 1", "INSERT INTO d.t VALUES (1, 'a')"];
const INSERT_ROW: [&str; 2] = ["INSERT INTO d.t VALUES (3, 'q')", "DELETE FROM d.t WHERE id = 3"];
const SHORTER: [&str; 2] = ["ALTER TABLE d.t MODIFY v VARCHAR(5)", "ALTER TABLE d.t MODIFY v VARCHAR(50)"];

e2e::tests! {
    mariadb_purged: purged(MARIADB_10_11);
    mysql_purged: purged(MYSQL_9_7);
    mariadb_reset: reset(MARIADB_10_11);
    mysql_reset: reset(MYSQL_9_7);
    mariadb_back_in_time: back_in_time(MARIADB_10_11);
    mysql_back_in_time: back_in_time(MYSQL_9_7);
    mariadb_capitals: capitals(MARIADB_10_11);
    mariadb_another_server: another_server(MARIADB_10_11);
    mariadb_missing_privileges: missing_privileges(MARIADB_10_11);
    mysql_missing_privileges: missing_privileges(MYSQL_9_7);
    mariadb_too_many_connections: too_many_connections(MARIADB_10_11);
    mysql_too_many_connections: too_many_connections(MYSQL_9_7);
    mariadb_read_only: read_only(MARIADB_10_11);
    mysql_read_only: read_only(MYSQL_9_7);
    mariadb_missing_table: other_table(MARIADB_10_11, DROP_TABLE[0], DROP_TABLE[1], &["1146", "d.t"]);
    mysql_missing_table: other_table(MYSQL_9_7, DROP_TABLE[0], DROP_TABLE[1], &["1146", "d.t"]);
    mariadb_missing_column: other_table(MARIADB_10_11, DROP_COLUMN[0], DROP_COLUMN[1], &["1 columns", "d.t"]);
    mysql_missing_column: other_table(MYSQL_9_7, DROP_COLUMN[0], DROP_COLUMN[1], &["1 columns", "d.t"]);
    mariadb_other_type: other_table(MARIADB_10_11, &format!("DELETE FROM d.t; {}; INSERT INTO d.t (id) VALUES (1), (2)", OTHER_TYPE[0]), OTHER_TYPE[1], &["1105", "compare the definitions", "d.t: column v is datetime on the target"]);
    mysql_other_type: other_table(MYSQL_9_7, &format!("DELETE FROM d.t; {}; INSERT INTO d.t (id) VALUES (1), (2)", OTHER_TYPE[0]), OTHER_TYPE[1], &["d.t"]);
    mariadb_shorter_column: other_table(MARIADB_10_11, SHORTER[0], SHORTER[1], &["1105", "compare the definitions", "d.t: column v is varchar(5) on the target"]);
    mysql_shorter_column: other_table(MYSQL_9_7, SHORTER[0], SHORTER[1], &["d.t"]);
    mariadb_missing_row_in_a_packet: missing_row_in_a_packet(MARIADB_10_11, "relaxed");
    mysql_missing_row_in_a_packet: missing_row_in_a_packet(MYSQL_9_7, "relaxed");
    mariadb_half_of_a_statement_with_kept_gtids: half_of_a_statement_with_kept_gtids(MARIADB_10_11);
    mysql_half_of_a_statement_with_kept_gtids: half_of_a_statement_with_kept_gtids(MYSQL_9_7);
    mariadb_missing_row_in_a_packet_in_order: missing_row_in_a_packet(MARIADB_10_11, "preserve");
    mysql_missing_row_in_a_packet_in_order: missing_row_in_a_packet(MYSQL_9_7, "preserve");
    mariadb_missing_row_in_a_group: missing_row_in_a_group(MARIADB_10_11, &[]);
    mysql_missing_row_in_a_group: missing_row_in_a_group(MYSQL_9_7, &[]);
    mysql_missing_row_in_a_group_relaxed: missing_row_in_a_group(MYSQL_9_7, &["--commit-order", "relaxed", "--workers", "1"]);
    mariadb_missing_row: other_table(MARIADB_10_11, DELETE_ROW[0], DELETE_ROW[1], &["d.t key (id=1)"]);
    mysql_missing_row: other_table(MYSQL_9_7, DELETE_ROW[0], DELETE_ROW[1], &["d.t key (id=1)"]);
    mariadb_duplicate_row: other_table(MARIADB_10_11, INSERT_ROW[0], INSERT_ROW[1], &["1062", "d.t key (id=3)"]);
    mysql_duplicate_row: other_table(MYSQL_9_7, INSERT_ROW[0], INSERT_ROW[1], &["1062", "d.t key (id=3)"]);
    mariadb_idempotent: lenient_target(MARIADB_10_11, "exec-mode=IDEMPOTENT", "SET GLOBAL NAME_exec_mode = STRICT");
    mariadb_skips_errors: lenient_target(MARIADB_10_11, "skip-errors=1032,1062", "");
    mysql_skips_errors: lenient_target(MYSQL_9_7, "skip-errors=1032,1062", "");
    mariadb_lossy: lenient_target(MARIADB_10_11, "type-conversions=ALL_LOSSY", "SET GLOBAL NAME_type_conversions = ''");
    mysql_lossy: lenient_target(MYSQL_9_7, "type-conversions=ALL_LOSSY,ALL_NON_LOSSY", "SET GLOBAL NAME_type_conversions = 'ALL_NON_LOSSY'");
    mariadb_triggers_for_rows: lenient_target(MARIADB_10_11, "run-triggers-for-rbr=YES", "SET GLOBAL NAME_run_triggers_for_rbr = NO");
    mysql_idempotent: idempotent(MYSQL_9_7);
    mariadb_encrypted: encrypted(MARIADB_10_11);
    mysql_encrypted: encrypted(MYSQL_9_7);
    mariadb_relay_disk_full: relay_disk_full(MARIADB_10_11);
    mysql_relay_disk_full: relay_disk_full(MYSQL_9_7);
    mariadb_other_server_id: other_server_id(MARIADB_10_11);
    mysql_other_server_id: other_server_id(MYSQL_9_7);
    json_into_mariadb: not_in_mariadb(DOCUMENTS, "INSERT INTO d.t VALUES (2, '{}')", &["d.t has a JSON column"]);
    partial_json_into_mariadb: not_in_mariadb(DOCUMENTS, PARTIAL, PARTIAL_TEXTS);
    partial_update_into_mariadb: not_in_mariadb(NUMBERS, PARTIAL_WITHOUT, PARTIAL_TEXTS);
    mysql_gtid_mode_changes: gtid_mode_changes();
    mariadb_shared_index: shared_index();
    cascade_triggers_into_mariadb: not_in_mariadb(CHILDREN, CASCADE, &["enable_cascade_triggers"]);
    report_on_a_full_disk: full_disk_of_a_report();
    mariadb_large_row: large_row(MARIADB_10_11);
    mysql_large_row: large_row(MYSQL_9_7);
    mariadb_clock_jumps: clock_jumps(MARIADB_10_11);
    mysql_clock_jumps: clock_jumps(MYSQL_9_7);
    mariadb_two_on_one_channel: two_on_one_channel(MARIADB_10_11);
    mysql_two_on_one_channel: two_on_one_channel(MYSQL_9_7);
    mariadb_wrong_start: wrong_start(MARIADB_10_11, false);
    mysql_wrong_start: wrong_start(MYSQL_9_7, false);
    mariadb_wrong_start_in_files: wrong_start(MARIADB_10_11, true);
    mysql_wrong_start_in_files: wrong_start(MYSQL_9_7, true);
    mariadb_strict_gtids_in_relaxed_order: strict_gtids_in_relaxed_order();
    mariadb_preserving_gtids_of_the_targets_number: preserving_gtids_of_the_targets_number();
    mariadb_damaged_for_good: damaged_for_good(MARIADB_10_11);
    mysql_damaged_for_good: damaged_for_good(MYSQL_9_7);
    mysql_same_server_id: same_server_id(MYSQL_9_7);
    mariadb_same_server_id: same_server_id(MARIADB_10_11);
}
