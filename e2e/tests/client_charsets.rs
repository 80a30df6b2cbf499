//! Statements in the character sets of clients whose characters have several bytes, among them a backslash or a backtick: every reader of a log finds the
//! names that the server has.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::checksum::assert_equal;
use e2e::heddle::{Heddle, heddle};
use e2e::native::{native_replica, wait_caught_up};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use engine::sql::{Charset, SqlMode, names_user_locks};
use serde_json::Value;

/// A character set, the number of a collation, a name, and a text.
type Set = (&'static str, u16, &'static [u8], &'static [u8]);

/// The second byte of a character is a backtick in three of the names, a backslash in most texts.
const SETS: [Set; 9] = [
    ("gbk", 28, b"\xb6\xa9\xb5\xa5\x81\x60", b"\x81\\"),
    ("big5", 1, b"\xad\x71\xb3\xe6\xa5\x60", b"\xa5\\"),
    ("sjis", 13, b"\x92\x8d\x95\xb6\x83\x60", b"\x95\\"),
    ("cp932", 95, b"\x92\x8d\x95\xb6\x83\x60", b"\x95\\"),
    ("euckr", 19, b"\xc1\xd6\xb9\xae", b"\xb0A"),
    ("ujis", 12, b"\xc3\xed\xca\xb8", b"\xc9\xbd"),
    ("eucjpms", 97, b"\xc3\xed\xca\xb8", b"\xc9\xbd"),
    // Its bytes are UTF-8, too.
    ("gb2312", 24, b"\xd2\xbb", b"\xb9\xa6"),
    // The DROP TABLE that MySQL 9.7 logs doubles a second byte that is a backtick here, and MySQL 9.7 answers it with 1064.
    ("gb18030", 248, b"\xb6\xa9\xb5\xa5", b"\x81\\"),
];

fn sets(kind: Kind) -> impl Iterator<Item = Set> {
    SETS.into_iter().filter(move |(name, ..)| !(kind.is_mariadb() && *name == "gb18030"))
}

/// Puts the name and the text where `~` and `^` stand in a statement.
fn filled(statement: &str, (_, _, name, text): Set) -> Vec<u8> {
    let mut sql = Vec::new();
    for byte in statement.bytes() {
        match byte {
            b'~' => sql.extend_from_slice(name),
            b'^' => sql.extend_from_slice(text),
            byte => sql.push(byte),
        }
    }
    sql
}

fn name_of((_, collation, name, _): Set) -> Result<String> {
    Ok(binlog::charset::decode(collation, name).context("the name")?.into_owned())
}

const STATEMENTS: &[&str] = &[
    "CREATE TABLE `~` (id INT PRIMARY KEY, `c~` VARCHAR(20) DEFAULT '^' COMMENT '^', e ENUM('^', 'b') DEFAULT 'b') COMMENT='~^'",
    "INSERT INTO `~` (id) VALUES (1), (2), (3)",
    "ALTER TABLE ~ ADD d~ INT COMMENT '^', ADD UNIQUE `u~` (d~), COMMENT '^'",
    "UPDATE `~` SET d~ = id",
    "CREATE TABLE `l~` LIKE `~`",
    "RENAME TABLE `l~` TO `m~`",
    "INSERT INTO `m~` SELECT * FROM `~`",
    "CREATE INDEX `i~` ON `m~` (`c~`) COMMENT '^'",
    "TRUNCATE TABLE `m~`",
    "INSERT INTO `m~` (id) VALUES (4)",
    "DROP TABLE IF EXISTS `m~`, `none~`",
    "DELETE FROM `~` WHERE id = 3",
];

/// No store takes statements that change rows.
const IN_STATEMENTS: &[&str] = &[
    "SET SESSION binlog_format = STATEMENT",
    "UPDATE `~` SET `c~` = CONCAT('^', id, '\\'') WHERE id = 2",
    "UPDATE `~` SET `c~` = '^' WHERE `c~` = '^' AND id = 1",
];

/// The servers write these themselves, in UTF-8, whatever the client's character set. A native replica takes them for that, and stops.
const OWN: &[&str] = &[
    "CREATE TABLE `s~` (PRIMARY KEY (id)) SELECT * FROM `~`",
    "CREATE TEMPORARY TABLE `t~` LIKE `~`",
    "CREATE TABLE `o~` LIKE `t~`",
    "INSERT INTO `o~` SELECT * FROM `~`",
    "INSERT INTO `s~` (id) VALUES (9)",
    "BEGIN",
    "INSERT INTO `o~` (id) VALUES (15)",
    "SAVEPOINT `s~`",
    "INSERT INTO `o~` (id) VALUES (16)",
    "ROLLBACK TO `s~`",
    "COMMIT",
];

fn run(server: &Server, statements: &[&str]) -> Result<()> {
    for set in sets(server.kind) {
        let mut session = server.connect()?;
        session.execute(format!("CREATE DATABASE IF NOT EXISTS d_{} CHARACTER SET utf8mb4", set.0))?;
        session.execute(format!("USE d_{}", set.0))?;
        session.execute(format!("SET NAMES {}", set.0))?;
        for statement in statements {
            session.execute(filled(statement, set)).with_context(|| format!("{}: {statement}", set.0))?;
        }
    }
    Ok(())
}

fn everywhere(kind: Kind) -> Result<()> {
    let pair = Pair::start_with(kind, &[], &[])?;
    let native = Server::start(kind, &[])?;
    native_replica(&pair.source, &native)?;
    let first = pair.source.current_log()?;
    run(&pair.source, STATEMENTS)?;
    pair.source.rotate()?;
    run(&pair.source, IN_STATEMENTS)?;
    pair.to_the_end(&[])?;
    wait_caught_up(&pair.source, &native)?;
    assert_equal(&native, &pair.target).context("beside a native replica")?;
    // A replica would not find the tables of these.
    pair.source.rotate()?;
    run(&pair.source, OWN)?;
    pair.source.rotate()?;
    let logs = pair.source.dir().join("logs");
    std::fs::create_dir(&logs)?;
    for log in pair.source.binary_logs()? {
        std::fs::copy(&log, logs.join(log.file_name().context("a name")?))?;
    }
    inspect(kind, &logs)?;
    retag(&pair.source, &logs)?;
    store(&pair.source, &logs.join(first.file_name().context("a name")?))?;
    characters(&pair.source)?;
    backslashes(&pair.source)
}

fn json(arguments: &[&str], code: i32) -> Result<Value> {
    let run = Heddle::start(arguments)?.wait()?;
    ensure!(run.status.code() == Some(code), "{run}");
    serde_json::from_str(&run.stdout).with_context(|| run.to_string())
}

fn inspect(kind: Kind, logs: &Path) -> Result<()> {
    let logs = logs.display().to_string();
    let report = json(&["inspect", &logs, "--json"], 0)?;
    let tables = report["tables"].as_array().context("tables")?;
    for set in sets(kind) {
        let (schema, name) = (format!("d_{}", set.0), name_of(set)?);
        for name in [name.clone(), format!("m{name}"), format!("s{name}"), format!("o{name}")] {
            let table = tables.iter().find(|table| table["schema"] == *schema && table["table"] == *name);
            let table = table.with_context(|| format!("{schema}.{name}: {tables:#?}"))?;
            ensure!(table["ordered_as_a_whole"].is_null(), "{schema}.{name}: {table:#}");
        }
        let found = |find: &str, more: &[&str]| -> Result<usize> {
            let find = find.replace('~', &name).replace('^', &schema);
            let mut arguments = vec!["inspect", &logs, "--json", "--find", &find];
            arguments.extend(more);
            Ok(json(&arguments, 0)?["hits"].as_array().context("hits")?.len())
        };
        ensure!(found("alter ^.~", &[])? == 1, "{schema}");
        ensure!(found("delete ^.~", &["--where", "id=3"])? == 1, "{schema}");
        ensure!(found("update ^.~", &["--where", &format!("d{name}=2")])? == 3, "{schema}");
        ensure!(found("drop ^.m~", &[])? == 1, "{schema}");
        ensure!(found("any ^.?~".replace('?', "o").as_str(), &[])? == 3, "{schema}");
    }
    Ok(())
}

fn retag(source: &Server, logs: &Path) -> Result<()> {
    let out = source.dir().join("retagged").display().to_string();
    let report = json(&["retag", &logs.display().to_string(), "--out", &out, "--json"], 0)?;
    let unknown = report["unknown_tables"].as_object().context("unknown tables")?;
    for set in sets(source.kind) {
        for table in ["m", "o"] {
            let name = format!("d_{}.{table}{}", set.0, name_of(set)?);
            ensure!(!unknown.contains_key(&name), "{name}: {report:#}");
        }
    }
    Ok(())
}

fn store(source: &Server, log: &Path) -> Result<()> {
    let path = source.dir().join("store").display().to_string();
    let log = log.display().to_string();
    let to = format!("store:{path}");
    heddle(&["replicate", "--from", &log, "--to", &to, "--json"])?.successful()?;
    for set in sets(source.kind) {
        let dumped = heddle(&["store", "dump", &path, &format!("d_{}.{}", set.0, name_of(set)?)])?.successful()?;
        ensure!(dumped.stdout.lines().count() == 3, "{dumped}");
    }
    Ok(())
}

/// Each character that the server has in a set is the same here, or none.
fn characters(server: &Server) -> Result<()> {
    for (name, collation, ..) in sets(server.kind) {
        let codes = codes(name);
        let mut session = server.connect()?;
        session.execute("CREATE TEMPORARY TABLE d_gbk.codes (n INT AUTO_INCREMENT PRIMARY KEY, b VARBINARY(4))")?;
        for chunk in codes.chunks(4000) {
            let rows: Vec<String> = chunk.iter().map(|code| format!("(x'{}')", hex(code))).collect();
            session.execute(format!("INSERT INTO d_gbk.codes (b) VALUES {}", rows.join(",")))?;
        }
        let texts = format!("SELECT HEX(CONVERT(CONVERT(b USING {name}) USING utf8mb4)) FROM d_gbk.codes ORDER BY n");
        let rows = session.rows(texts)?;
        ensure!(rows.len() == codes.len(), "{name}: {} of {}", rows.len(), codes.len());
        let (mut same, mut none, mut other) = (0, 0, Vec::new());
        for (code, row) in codes.iter().zip(&rows) {
            let theirs = std::str::from_utf8(row.get(0).unwrap_or_default())?.to_owned();
            // A question mark: it has none. A replacement character: Big5's signs that Unicode did not have.
            if ["", "3F", "EFBFBD"].contains(&theirs.as_str()) {
                continue;
            }
            match binlog::charset::decode(collation, code) {
                Some(text) if hex(text.as_bytes()) == theirs => same += 1,
                None => none += 1,
                Some(text) => other.push(format!("{}: {theirs}, here {text}", hex(code))),
            }
        }
        ensure!(other.is_empty(), "{name}: {same} characters are the same, {none} are none here, others: {other:?}");
        ensure!(same > 5000 && none < same / 6, "{name}: {same} characters are the same, {none} are none here");
    }
    Ok(())
}

fn codes(set: &str) -> Vec<Vec<u8>> {
    let pairs = |first: std::ops::RangeInclusive<u8>, second: &[std::ops::RangeInclusive<u8>]| {
        let second: Vec<u8> = second.iter().cloned().flatten().collect();
        first.flat_map(|first| second.iter().map(|second| vec![first, *second]).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    match set {
        "big5" => pairs(0xa1..=0xf9, &[0x40..=0x7e, 0xa1..=0xfe]),
        "gb2312" => pairs(0xa1..=0xf7, &[0xa1..=0xfe]),
        "sjis" | "cp932" => {
            let mut all = pairs(0x81..=0x9f, &[0x40..=0x7e, 0x80..=0xfc]);
            all.extend(pairs(0xe0..=0xfc, &[0x40..=0x7e, 0x80..=0xfc]));
            all.extend((0xa1..=0xdf).map(|byte| vec![byte]));
            all
        }
        "euckr" => pairs(0x81..=0xfe, &[0x41..=0x5a, 0x61..=0x7a, 0x81..=0xfe]),
        "ujis" | "eucjpms" => {
            let mut all = pairs(0xa1..=0xfe, &[0xa1..=0xfe]);
            all.extend(pairs(0x8e..=0x8e, &[0xa1..=0xdf]));
            all.extend(
                pairs(0xa1..=0xfe, &[0xa1..=0xfe])
                    .into_iter()
                    .map(|pair| [[0x8f].as_slice(), pair.as_slice()].concat()),
            );
            all
        }
        _ => pairs(0x81..=0xfe, &[0x40..=0x7e, 0x80..=0xfe]),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Whether a backslash behind each byte is a character's second half, or escapes the quote behind it: as the server's own parser.
fn backslashes(server: &Server) -> Result<()> {
    for (name, collation, ..) in sets(server.kind) {
        let mut session = server.connect()?;
        session.execute(format!("SET NAMES {name}"))?;
        session.execute("SET character_set_results = NULL")?;
        let mode = SqlMode { charset: Charset::of_collation(collation), ..SqlMode::default() };
        for byte in 0x80..=0xff_u8 {
            let row = session.row([b"SELECT '".as_slice(), &[byte], b"\\' -- '"].concat());
            // Of a character that is none there may be an error: then nothing is in a log.
            let Ok(Some(row)) = row else { continue };
            let theirs = row.get(0).unwrap_or_default().len() == 2;
            let ours = names_user_locks(&[b"DO '".as_slice(), &[byte], b"\\', GET_LOCK('a', 0) -- '"].concat(), mode);
            ensure!(ours == theirs, "{name}: {byte:02x}: {theirs} on the server, {ours} here");
        }
    }
    Ok(())
}

e2e::tests! {
    mariadb_everywhere: everywhere(MARIADB_10_11);
    mysql_everywhere: everywhere(MYSQL_9_7);
}
