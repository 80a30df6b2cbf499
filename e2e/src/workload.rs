//! Workloads from a seed: schemas, tables with every kind of key, and sessions that change them.
//!
//! Statements may fail (duplicate keys, foreign keys, deadlocks): a session goes on with its next one. What the source has done
//! in the end is the truth, whatever it was asked. Never uses what a replica of any kind could not repeat: statement format
//! only through MIXED, no approximate numbers in tables without a key.

mod values;

use self::values::{WORDS, key, value};
use crate::server::{Kind, Server};
use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::thread;

/// How much, and what of it.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub tables: usize,
    pub sessions: usize,
    /// Transactions of each session.
    pub transactions: usize,
    /// Of a hundred transactions so many are definitions.
    pub definitions_percent: u32,
    /// Prepared XA transactions.
    pub xa: bool,
    /// REPLACE, too: MySQL from 9.6 on keeps the rows that refer to the one that is replaced, older ones and MariaDB do what their foreign keys say.
    pub replace: bool,
    /// Temporary tables in statements: they end with the session that holds them, on a target as anywhere.
    pub temporary: bool,
    /// Also what only the same flavour takes: MySQL's JSON; minimal row images, which may leave out a NOT NULL column.
    pub same_flavour: bool,
    /// What changes rows that no row event tells of: foreign keys, whose cascades only MySQL from 9.6 on logs, and exchanged partitions; and
    /// row images that leave out columns.
    pub unlogged: bool,
}

/// Tables to start with, and a script for each session.
#[derive(Clone, Debug)]
pub struct Workload {
    /// All of it is in here, or in schemas whose names begin with this.
    pub schema: String,
    pub tables: String,
    pub sessions: Vec<String>,
}

/// One table: what sessions have to know of it.
#[derive(Clone, Debug)]
struct Table {
    name: String,
    /// SQL expressions for a random key and for the other columns are made from these.
    key: KeyKind,
    columns: Vec<Column>,
    /// Column `p` refers to this table's `id`.
    parent: Option<String>,
    /// Rows are changed with REPLACE, too.
    replace: bool,
    /// No unique key with NULLs stands beside another index, see [`Table::keep_apart`].
    apart: bool,
}

impl Table {
    /// MariaDB's row applier takes the first row that it finds by any index for the right one if the table's first index is unique: where that
    /// is a key with NULLs, it may look for rows by another (seen with 10.1 and 11.4, the servers' own replicas included).
    fn keep_apart(&mut self, mariadb: bool) {
        self.apart = mariadb && matches!(self.key, KeyKind::NullableUnique | KeyKind::None);
    }

    fn has_primary_key(&self) -> bool {
        !matches!(self.key, KeyKind::UniqueOnly | KeyKind::NullableUnique | KeyKind::None)
    }

    /// Whether it may have any index beside the one that its key is.
    fn takes_indexes(&self) -> bool {
        !(self.apart && self.key == KeyKind::NullableUnique)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    Auto,
    Int,
    Text,
    Pair,
    /// No primary key, a unique key over NOT NULL columns.
    UniqueOnly,
    /// A unique key that may be NULL.
    NullableUnique,
    None,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: &'static str,
}

const KINDS: [&str; 22] = [
    "INT",
    "BIGINT UNSIGNED",
    "DECIMAL(12,3)",
    "VARCHAR(40)",
    "VARCHAR(300)",
    "TEXT",
    "BLOB",
    "DATETIME(3)",
    "TIMESTAMP(2) NULL",
    "DATE",
    "TIME(1)",
    "YEAR",
    "ENUM('a','b','c')",
    "SET('x','y','z')",
    "BIT(9)",
    "CHAR(7)",
    "VARBINARY(20)",
    "SMALLINT",
    "MEDIUMINT",
    "TINYINT UNSIGNED",
    "DOUBLE",
    "MEDIUMTEXT",
];

/// Collations that all servers from 5.6 and 10.1 on have.
const COLLATIONS: [&str; 9] = [
    "utf8mb4_general_ci",
    "utf8mb4_bin",
    "utf8mb4_unicode_ci",
    "utf8mb4_unicode_520_ci",
    "latin1_swedish_ci",
    "latin1_general_cs",
    "utf8mb4_swedish_ci",
    "ascii_general_ci",
    "latin1_bin",
];

impl Workload {
    pub fn new(seed: u64, size: Size, kind: Kind) -> Workload {
        let mut random = StdRng::seed_from_u64(seed);
        let schema = format!("r{seed}");
        // MariaDB makes an update of a REPLACE, and in an image of that update which is not full leaves out the columns that go back to their
        // defaults: its own replicas differ then (seen with 10.11, MINIMAL and NOBLOB).
        let replace = random.random_bool(0.5) && size.replace;
        let tables: Vec<Table> = (0..size.tables)
            .map(|number| Table { replace, ..table(&mut random, &schema, number, kind, size) })
            .collect();
        let mut sql = format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4;\n");
        let mut made: Vec<Table> = Vec::new();
        for mut table in tables {
            table.keep_apart(kind.is_mariadb() || !size.same_flavour);
            let parents: Vec<&Table> =
                made.iter().filter(|parent| matches!(parent.key, KeyKind::Auto | KeyKind::Int)).collect();
            if !parents.is_empty() && random.random_bool(0.4) && table.takes_indexes() && size.unlogged {
                table.parent = parents.choose(&mut random).map(|parent| parent.name.clone());
            }
            sql += &definition(&mut random, &table);
            made.push(table);
        }
        let sessions =
            (0..size.sessions).map(|number| session(&mut random, &schema, number, &made, size, kind)).collect();
        Workload { schema, tables: sql, sessions }
    }

    /// Makes the tables, then runs the sessions side by side to their ends.
    pub fn run(&self, server: &Server) -> Result<()> {
        run_script(server, &self.tables)?;
        thread::scope(|scope| {
            let running: Vec<_> =
                self.sessions.iter().map(|script| scope.spawn(|| run_script(server, script))).collect();
            for session in running {
                session.join().map_err(|_| anyhow::anyhow!("a session's thread ended"))??;
            }
            Ok(())
        })
    }
}

/// Every statement in turn, whatever becomes of those before. Also when the server goes away meanwhile.
pub fn run_script(server: &Server, sql: &str) -> Result<()> {
    let mut child = server
        .client(&["--batch", "--force", "--silent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting the client")?;
    let mut stdin = child.stdin.take().context("the client's input")?;
    // A client whose server is gone closes its input.
    let _ = stdin.write_all(sql.as_bytes());
    drop(stdin);
    child.wait().map(drop).context("waiting for the client")
}

fn table(random: &mut StdRng, schema: &str, number: usize, kind: Kind, size: Size) -> Table {
    let key = match random.random_range(0..12) {
        0..=3 => KeyKind::Auto,
        4..=5 => KeyKind::Int,
        6..=7 => KeyKind::Text,
        8 => KeyKind::Pair,
        9 => KeyKind::UniqueOnly,
        10 => KeyKind::NullableUnique,
        _ => KeyKind::None,
    };
    let mut columns = Vec::new();
    for column in 0..random.random_range(1..6) {
        let mut kind_of = *KINDS.choose(random).unwrap_or(&"INT");
        // Rows of a table without a key are found by their values.
        if matches!(key, KeyKind::None | KeyKind::NullableUnique) && matches!(kind_of, "DOUBLE") {
            kind_of = "INT";
        }
        columns.push(Column { name: format!("c{column}"), kind: kind_of });
    }
    if size.same_flavour
        && kind.has_json()
        && random.random_bool(0.3)
        && key != KeyKind::None
        && key != KeyKind::NullableUnique
    {
        columns.push(Column { name: "j".to_owned(), kind: "JSON" });
    }
    Table { name: format!("{schema}.t{number}"), key, columns, parent: None, replace: true, apart: false }
}

fn definition(random: &mut StdRng, table: &Table) -> String {
    let collation = COLLATIONS.choose(random).copied().unwrap_or("utf8mb4_bin");
    let charset = collation.split('_').next().unwrap_or("utf8mb4");
    let mut lines = vec![match table.key {
        KeyKind::Auto => "id INT AUTO_INCREMENT PRIMARY KEY".to_owned(),
        KeyKind::Int => "id INT NOT NULL PRIMARY KEY".to_owned(),
        KeyKind::Text => "id VARCHAR(20) NOT NULL PRIMARY KEY".to_owned(),
        KeyKind::Pair => "id INT NOT NULL, k VARCHAR(10) NOT NULL, PRIMARY KEY (k, id)".to_owned(),
        KeyKind::UniqueOnly => "id INT NOT NULL, UNIQUE KEY the_id (id)".to_owned(),
        KeyKind::NullableUnique => "id INT NULL, UNIQUE KEY the_id (id)".to_owned(),
        KeyKind::None => "id INT".to_owned(),
    }];
    for column in &table.columns {
        lines.push(format!("{} {}", column.name, column.kind));
    }
    let prefix = random.random_bool(0.4);
    let (number, text) = match (table.apart, table.takes_indexes()) {
        (false, _) if prefix => (", UNIQUE KEY u (u)", ", UNIQUE KEY s (s(3))"),
        (false, _) => (", UNIQUE KEY u (u)", ", KEY s (s)"),
        (true, true) => (", KEY u (u)", ", KEY s (s)"),
        (true, false) => ("", ""),
    };
    lines.push(format!("u INT NULL{number}"));
    lines.push(format!("s VARCHAR(30) NULL{text}"));
    match &table.parent {
        Some(parent) => {
            let acts = [
                "ON DELETE CASCADE",
                "ON DELETE CASCADE ON UPDATE CASCADE",
                "ON DELETE SET NULL ON UPDATE CASCADE",
                "",
            ];
            let act = acts.choose(random).copied().unwrap_or("");
            lines.push(format!("p INT NULL, KEY p (p), FOREIGN KEY (p) REFERENCES {parent} (id) {act}"));
        }
        None => lines.push("p INT NULL".to_owned()),
    }
    format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB CHARACTER SET {charset} COLLATE {collation};\n",
        table.name,
        lines.join(", ")
    )
}

/// Column names and values for one row.
fn row(random: &mut StdRng, table: &Table) -> (String, String) {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let mut put = |name: &str, text: String| {
        names.push(name.to_owned());
        values.push(text);
    };
    if table.key != KeyKind::Auto || random.random_bool(0.3) {
        put("id", key(random, table));
    }
    if table.key == KeyKind::Pair {
        put("k", format!("'{}'", WORDS.choose(random).unwrap_or(&"a")));
    }
    for column in &table.columns {
        if random.random_bool(0.8) {
            put(&column.name, value(random, column.kind));
        }
    }
    put("u", if random.random_bool(0.5) { "NULL".to_owned() } else { random.random_range(0..200).to_string() });
    put(
        "s",
        if random.random_bool(0.5) {
            "NULL".to_owned()
        } else {
            format!("'{}{}'", WORDS.choose(random).unwrap_or(&"a"), random.random_range(0..40))
        },
    );
    put("p", if random.random_bool(0.3) { "NULL".to_owned() } else { random.random_range(0..40).to_string() });
    (names.join(","), values.join(","))
}

fn condition(random: &mut StdRng, table: &Table) -> String {
    match random.random_range(0..6) {
        0..=2 => format!("id = {}", key(random, table)),
        3 => format!("u = {}", random.random_range(0..200)),
        4 => format!("p BETWEEN {0} AND {0} + 2", random.random_range(0..40)),
        _ => format!("id IN ({}, {}) ORDER BY u, id LIMIT 3", key(random, table), key(random, table)),
    }
}

fn change(random: &mut StdRng, table: &Table, kind: Kind) -> String {
    let name = &table.name;
    match random.random_range(0..14) {
        0..=4 => {
            let verbs = ["INSERT INTO", "INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO"];
            // Since 9.6 MySQL's own replicas stop at a REPLACE of a row that others refer to (seen with 9.7): only the source
            // checks foreign keys at the statement's end.
            let verbs = if kind.major() == 9 || !table.replace { &verbs[..3] } else { &verbs[..] };
            let verb = verbs.choose(random).copied().unwrap_or("INSERT INTO");
            let (names, values) = row(random, table);
            format!("{verb} {name} ({names}) VALUES ({values})")
        }
        5 => {
            let (names, values) = row(random, table);
            format!(
                "INSERT INTO {name} ({names}) VALUES ({values}) ON DUPLICATE KEY UPDATE u = u + 1000, s = CONCAT('d', s)"
            )
        }
        6..=9 => {
            let column = table.columns.choose(random);
            let set = match (random.random_range(0..5), column) {
                (0, _) => format!("u = {}", random.random_range(0..200)),
                (1, _) => format!("p = {}", random.random_range(0..40)),
                (2, _) => format!("s = '{}{}'", WORDS.choose(random).unwrap_or(&"a"), random.random_range(0..40)),
                (_, Some(column)) if column.kind == "JSON" => "j = JSON_SET(j, '$.a', 5)".to_owned(),
                (_, Some(column)) => format!("{} = {}", column.name, value(random, column.kind)),
                (_, None) => "u = NULL".to_owned(),
            };
            format!("UPDATE {name} SET {set} WHERE {}", condition(random, table))
        }
        10 => format!("UPDATE {name} SET id = {} WHERE id = {}", key(random, table), key(random, table)),
        11..=12 => format!("DELETE FROM {name} WHERE {}", condition(random, table)),
        _ => {
            // A text plus a number is an error or none, by version.
            let other = if table.key == KeyKind::Text { "CONCAT(id, '+')" } else { "id + 100" };
            let condition = condition(random, table);
            format!("INSERT INTO {name} (id, u, p) SELECT {other}, NULL, p FROM {name} WHERE {condition}")
        }
    }
}

fn session(random: &mut StdRng, schema: &str, number: usize, tables: &[Table], size: Size, kind: Kind) -> String {
    let mut sql = format!("USE {schema};\nSET SESSION innodb_lock_wait_timeout = 2, lock_wait_timeout = 20;\n");
    for round in 0..size.transactions {
        let Some(table) = tables.choose(random) else { break };
        if random.random_range(0..100) < size.definitions_percent {
            define(random, &mut sql, (schema, kind), (number, round), tables, size);
            continue;
        }
        if random.random_bool(0.05) {
            let part_images = size.unlogged && !(kind.is_mariadb() && table.replace);
            setting(random, &mut sql, kind, size.same_flavour, part_images);
        }
        if size.xa && random.random_bool(0.04) {
            let one = change(random, table, kind);
            let end = ["COMMIT", "ROLLBACK"].choose(random).copied().unwrap_or("COMMIT");
            let _ = writeln!(
                sql,
                "XA START 'x{number}-{round}'; {one}; XA END 'x{number}-{round}'; XA PREPARE 'x{number}-{round}'; XA {end} 'x{number}-{round}';"
            );
            continue;
        }
        if random.random_bool(0.4) {
            let _ = writeln!(sql, "{};", change(random, table, kind));
            continue;
        }
        sql += "START TRANSACTION;\n";
        for _ in 0..random.random_range(1..6) {
            let Some(table) = tables.choose(random) else { break };
            if random.random_bool(0.1) {
                let _ = writeln!(sql, "SAVEPOINT s; {}; ROLLBACK TO s;", change(random, table, kind));
            }
            let _ = writeln!(sql, "{};", change(random, table, kind));
        }
        sql += if random.random_bool(0.1) { "ROLLBACK;\n" } else { "COMMIT;\n" };
    }
    sql
}

/// What a session changes mid-stream; `part_images`: row images may leave columns out.
fn setting(random: &mut StdRng, sql: &mut String, kind: Kind, same_flavour: bool, part_images: bool) {
    let mut settings = vec![
        "binlog_row_image = 'FULL'",
        "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
        "sql_mode = ''",
        "time_zone = '+05:30'",
        "foreign_key_checks = 0",
        "foreign_key_checks = 1",
        "auto_increment_increment = 3",
        "auto_increment_offset = 2",
    ];
    if part_images {
        settings.push("binlog_row_image = 'NOBLOB'");
    }
    if same_flavour && part_images {
        settings.push("binlog_row_image = 'MINIMAL'");
    }
    if same_flavour {
        // A statement need not do the same on another server: an INSERT … SELECT of no rows that leaves out a column is an error on MariaDB.
        settings.extend(["binlog_format = 'MIXED'", "binlog_format = 'ROW'"]);
    }
    // An update is then logged as a partial one, which MariaDB does not know, JSON in it or not.
    if same_flavour && kind.has_json() && kind.major() >= 8 {
        settings.push("binlog_row_value_options = 'PARTIAL_JSON'");
        settings.push("binlog_row_value_options = ''");
    }
    if let Some(setting) = settings.choose(random) {
        let _ = writeln!(sql, "SET SESSION {setting};");
    }
}

/// Definitions: of tables that are this session's alone, and of those that all use.
fn define(
    random: &mut StdRng,
    sql: &mut String,
    (schema, kind): (&str, Kind),
    (number, round): (usize, usize),
    tables: &[Table],
    size: Size,
) {
    let Some(shared) = tables.choose(random) else { return };
    let name = &shared.name;
    let own = format!("{schema}.o{number}_{round}");
    let _ = match random.random_range(0..if size.temporary { 17 } else { 16 }) {
        // Rows that have no key to be known by would have to be given the new column's value.
        0 if !size.unlogged && !shared.has_primary_key() => writeln!(sql, "ANALYZE TABLE {name};"),
        0 => writeln!(sql, "ALTER TABLE {name} ADD COLUMN x{number}_{round} INT DEFAULT {round};"),
        1 | 2 if !shared.takes_indexes() => writeln!(sql, "ALTER TABLE {name} COMMENT 'of {number}, {round}';"),
        1 => writeln!(sql, "ALTER TABLE {name} ADD INDEX (u, p);"),
        2 => writeln!(sql, "CREATE INDEX i{number}_{round} ON {name} (p); DROP INDEX i{number}_{round} ON {name};"),
        3 => writeln!(
            sql,
            "CREATE TABLE {own} (id INT PRIMARY KEY, v INT); INSERT INTO {own} VALUES (1, {round}), (2, 2); CREATE TABLE {own}_b LIKE {own}; \
             INSERT INTO {own}_b SELECT id + 10, v FROM {own}; RENAME TABLE {own} TO {own}_x, {own}_b TO {own}, {own}_x TO {own}_b;"
        ),
        4 => writeln!(sql, "CREATE TABLE {own} SELECT 1 AS a, 'x' AS b;"),
        5 => writeln!(
            sql,
            "CREATE TABLE {own} (id INT PRIMARY KEY); INSERT INTO {own} VALUES (1); TRUNCATE {own}; INSERT INTO {own} VALUES (2);"
        ),
        6 => writeln!(sql, "CREATE TABLE {own} (id INT); CREATE TABLE {own}_b (id INT); DROP TABLE {own}, {own}_b;"),
        7 => writeln!(
            sql,
            "CREATE VIEW {own} AS SELECT id FROM {name}; CREATE OR REPLACE VIEW {own} AS SELECT id, u FROM {name};"
        ),
        8 => writeln!(sql, "CREATE VIEW {own} AS SELECT 1 AS a; DROP VIEW {own};"),
        9 => writeln!(sql, "CREATE PROCEDURE {own}() SELECT {round}; DROP PROCEDURE {own};"),
        10 => writeln!(sql, "CREATE PROCEDURE {own}() SELECT {round};"),
        11 => writeln!(
            sql,
            "CREATE TABLE {own} (id INT PRIMARY KEY, n INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20)); \
             INSERT INTO {own} VALUES (1, 1), (11, 2); CREATE TABLE {own}_e (id INT PRIMARY KEY, n INT); INSERT INTO {own}_e VALUES (2, 3);{} \
             UPDATE {own} SET n = n + 1;",
            if size.unlogged {
                format!(" ALTER TABLE {own} EXCHANGE PARTITION p0 WITH TABLE {own}_e;")
            } else {
                String::new()
            }
        ),
        12 => writeln!(
            sql,
            "CREATE DATABASE {schema}d; CREATE TABLE {schema}d.a (i INT PRIMARY KEY); CREATE TABLE {schema}d.b (i INT); DROP DATABASE {schema}d;"
        ),
        13 => writeln!(
            sql,
            "CREATE TABLE {own} (id INT PRIMARY KEY, n INT); CREATE TRIGGER {own}_t BEFORE INSERT ON {own} FOR EACH ROW SET NEW.n = 7; INSERT INTO {own} (id) VALUES (1), (2);"
        ),
        16 => writeln!(
            sql,
            "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY); INSERT INTO tmp VALUES (1), (2); INSERT INTO {name} (id, u) SELECT id, NULL FROM tmp; DROP TEMPORARY TABLE tmp;"
        ),
        _ => {
            // MariaDB 10.1 can wait for itself in the second. MySQL logs it when it has let go of its locks, perhaps behind a branch that came later: a native
            // replica then waits for itself for ever, and so does its STOP REPLICA.
            let waits = kind.has_old_optimize() || size.xa && !kind.is_mariadb();
            let optimize = if waits { String::new() } else { format!(" OPTIMIZE TABLE {name};") };
            writeln!(sql, "ALTER TABLE {name} ENGINE=InnoDB;{optimize}")
        }
    };
}
