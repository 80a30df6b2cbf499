//! What DDL makes of a table, as `heddle inspect` works it out from a log, against what the server itself says (SHOW CREATE TABLE): every clause of
//! ALTER TABLE, and statements that are made up of them at random.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use engine::sql::SqlMode;
use engine::sql::create_table::{KeyDefinition, KeyPartDefinition, TableDefinition, read};
use engine::survey::Definitions;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const TABLE: &str = "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b VARCHAR(20), c TEXT, e INT NOT NULL DEFAULT 1, UNIQUE u (a), UNIQUE (b(10), a), KEY k (b), \
                     UNIQUE v (e))";
const PARENT: &str = "CREATE TABLE d.p (x INT PRIMARY KEY, y INT UNIQUE)";

/// Clauses of ALTER TABLE; a server that does not know one refuses the statement.
const CLAUSES: &[&str] = &[
    "ADD c1 INT",
    "ADD COLUMN c2 INT NOT NULL DEFAULT 5 AFTER id",
    "ADD c3 VARCHAR(9) FIRST",
    "ADD (c4 INT, c5 INT UNIQUE)",
    "ADD c6 INT AS (a + 1) VIRTUAL AFTER a",
    "ADD COLUMN IF NOT EXISTS a INT",
    "DROP a",
    "DROP COLUMN b",
    "DROP COLUMN IF EXISTS c1",
    "DROP COLUMN c",
    "MODIFY a BIGINT UNSIGNED NOT NULL",
    "MODIFY a BIGINT",
    "MODIFY b VARCHAR(10) FIRST",
    "MODIFY b VARCHAR(40) AFTER e",
    "MODIFY b TEXT",
    "CHANGE a a2 BIGINT AFTER e",
    "CHANGE e E INT NOT NULL",
    "CHANGE id id2 INT FIRST",
    "RENAME COLUMN a TO a3",
    "RENAME COLUMN b TO c, RENAME COLUMN c TO b",
    "RENAME COLUMN id TO a, RENAME COLUMN a TO id",
    "ALTER a SET DEFAULT 5",
    "ALTER COLUMN b DROP DEFAULT",
    "ALTER COLUMN e SET INVISIBLE",
    "ADD UNIQUE (a)",
    "ADD UNIQUE (b, a)",
    "ADD UNIQUE KEY x ((a + 1))",
    "ADD CONSTRAINT y UNIQUE INDEX z (e, a DESC) COMMENT 'x'",
    "ADD INDEX (a)",
    "ADD FULLTEXT (c)",
    "DROP INDEX u",
    "DROP KEY b",
    "DROP INDEX k",
    "DROP INDEX IF EXISTS nothing",
    "DROP CONSTRAINT v",
    "RENAME INDEX u TO u2",
    "RENAME KEY v TO v2",
    "ALTER INDEX u INVISIBLE",
    "ALTER INDEX u IGNORED",
    "DROP PRIMARY KEY",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (e, id)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
    "ADD PRIMARY KEY (id)",
    "ADD FOREIGN KEY (a) REFERENCES p (x) ON DELETE CASCADE",
    "ADD CONSTRAINT f FOREIGN KEY fi (e) REFERENCES p (y)",
    "DROP FOREIGN KEY f",
    "DROP FOREIGN KEY t_ibfk_1",
    "DROP CONSTRAINT f",
    "ADD CONSTRAINT ch CHECK (e > 0)",
    "DROP CONSTRAINT ch",
    "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "CHARACTER SET latin1, ENGINE=InnoDB",
    "COMMENT 'ADD UNIQUE (e)' ROW_FORMAT=DYNAMIC",
    "FORCE, ALGORITHM=COPY",
    "ORDER BY e",
    "ADD SYSTEM VERSIONING",
    "DROP SYSTEM VERSIONING",
];

const INDEXES: &[&str] = &[
    "CREATE UNIQUE INDEX i1 ON d.t (e, a)",
    "CREATE INDEX i2 ON d.t (e) ALGORITHM=INPLACE LOCK=NONE",
    "CREATE OR REPLACE UNIQUE INDEX i1 ON d.t (e)",
    "DROP INDEX i1 ON d.t",
    "DROP INDEX u ON d.t",
    "DROP INDEX `PRIMARY` ON d.t",
];

/// Columns in their order; unique keys and foreign keys in any.
fn outline(table: &TableDefinition) -> String {
    let parts = |key: &KeyDefinition| {
        let part = |part: &KeyPartDefinition| match part {
            KeyPartDefinition::Column { name, prefix } => {
                format!("{name}{}", prefix.map_or(String::new(), |p| format!("({p})")))
            }
            KeyPartDefinition::Expression => "()".to_owned(),
        };
        key.parts.iter().map(part).collect::<Vec<_>>().join(",")
    };
    let columns = table.columns.iter().map(|c| format!("{}{}", c.name, if c.nullable { "" } else { "!" }));
    let mut keys: Vec<String> = table
        .unique_keys
        .iter()
        .map(|key| format!("{}({})", key.name.clone().unwrap_or_default(), parts(key)))
        .collect();
    keys.extend(table.foreign_keys.iter().map(|key| {
        format!(
            "{}:{}→{}({})",
            key.name.clone().unwrap_or_default(),
            key.columns.join(","),
            key.parent,
            key.parent_columns.join(",")
        )
    }));
    keys.sort();
    let primary = table.primary_key.as_ref().map_or("-".to_owned(), parts);
    format!("{} | {primary} | {} | {:?}", columns.collect::<Vec<_>>().join(" "), keys.join(" "), table.history)
}

struct Compared {
    server: Server,
    definitions: Definitions,
    /// Statements that the server has executed.
    executed: u32,
}

impl Compared {
    fn start(kind: Kind) -> Result<Self> {
        // What is versioned may be altered.
        let options: &[&str] = if kind.is_mariadb() { &["--system-versioning-alter-history=KEEP"] } else { &[] };
        let server = Server::start(kind, options)?;
        let mut compared = Self { server, definitions: Definitions::default(), executed: 0 };
        compared.anew()?;
        Ok(compared)
    }

    fn anew(&mut self) -> Result<()> {
        self.definitions = Definitions::default();
        self.server.execute("DROP DATABASE IF EXISTS d; CREATE DATABASE d")?;
        for sql in [PARENT, TABLE] {
            self.server.execute(sql)?;
            self.definitions.execute(sql.as_bytes(), "d", SqlMode::default());
        }
        Ok(())
    }

    /// What a server refuses does nothing.
    fn statement(&mut self, sql: &str) -> Result<()> {
        if self.server.execute(&format!("USE d; {sql}")).is_err() {
            return Ok(());
        }
        self.executed += 1;
        self.definitions.execute(sql.as_bytes(), "d", SqlMode::default());
        let row = self.server.connect()?.row("SHOW CREATE TABLE d.t")?.context("no table")?;
        let created = String::from_utf8(row.get(1).context("no definition")?.to_vec())?;
        let theirs = read(created.as_bytes(), "d", SqlMode::default()).with_context(|| created.clone())?;
        let ours = self.definitions.get("d", "t").with_context(|| format!("not understood: {sql}"))?;
        ensure!(outline(ours) == outline(&theirs), "{sql}\n  ours   {}\n  theirs {}", outline(ours), outline(&theirs));
        Ok(())
    }
}

fn every_clause(kind: Kind) -> Result<()> {
    let mut compared = Compared::start(kind)?;
    for clause in CLAUSES {
        compared.anew()?;
        compared.statement(&format!("ALTER TABLE t {clause}"))?;
    }
    for sql in INDEXES {
        compared.statement(sql)?;
    }
    ensure!(compared.executed > 40, "only {} statements went through", compared.executed);
    Ok(())
}

fn at_random(kind: Kind, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut compared = Compared::start(kind)?;
    for round in 0..150 {
        if round % 15 == 0 {
            compared.anew()?;
        }
        let count = random.random_range(1..4);
        let clauses: Vec<&str> = (0..count).map(|_| CLAUSES[random.random_range(0..CLAUSES.len())]).collect();
        let statement = format!("ALTER TABLE t {}", clauses.join(", "));
        compared.statement(&statement).with_context(|| format!("seed {seed}"))?;
    }
    eprintln!("{kind:?}: {} statements of 150 went through", compared.executed);
    ensure!(compared.executed > 20, "only {} statements went through", compared.executed);
    Ok(())
}

#[test]
fn every_clause_on_mysql() -> Result<()> {
    every_clause(MYSQL_9_7)
}

#[test]
fn every_clause_on_mariadb() -> Result<()> {
    every_clause(MARIADB_10_11)
}

#[test]
fn clauses_at_random_on_mysql() -> Result<()> {
    at_random(MYSQL_9_7, 7)
}

#[test]
fn clauses_at_random_on_mariadb() -> Result<()> {
    at_random(MARIADB_10_11, 7)
}
