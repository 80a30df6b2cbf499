use super::super::create_table::{History, KeyDefinition, KeyPartDefinition, TableDefinition, read};
use super::*;
use crate::sql::Charset;

const PLAIN: SqlMode =
    SqlMode { ansi_quotes: false, no_backslash_escapes: false, real_as_float: false, charset: Charset::Unknown };

fn table(sql: &str) -> TableDefinition {
    read(sql.as_bytes(), "d", PLAIN).unwrap_or_else(|| panic!("not understood: {sql}"))
}

/// Columns, then keys with their names: `a b! | P(a) u(b,c(3)) f→d.p(x)`; `!`: NOT NULL. Indexes that are not unique stand in brackets.
fn outline(table: &TableDefinition) -> String {
    let parts = |key: &KeyDefinition| {
        let part = |part: &KeyPartDefinition| match part {
            KeyPartDefinition::Column { name, prefix: None } => name.clone(),
            KeyPartDefinition::Column { name, prefix: Some(prefix) } => format!("{name}({prefix})"),
            KeyPartDefinition::Expression => "()".to_owned(),
        };
        key.parts.iter().map(part).collect::<Vec<_>>().join(",")
    };
    let name = |key: &KeyDefinition| key.name.clone().unwrap_or_default();
    let columns = table.columns.iter().map(|c| format!("{}{}", c.name, if c.nullable { "" } else { "!" }));
    let mut out: Vec<String> = columns.collect();
    out.push("|".to_owned());
    out.extend(table.primary_key.iter().map(|key| format!("P({})", parts(key))));
    out.extend(table.unique_keys.iter().map(|key| format!("{}({})", name(key), parts(key))));
    out.extend(table.other_keys.iter().map(|key| format!("[{}({})]", name(key), parts(key))));
    out.extend(table.foreign_keys.iter().map(|key| {
        let name = key.name.clone().unwrap_or_default();
        format!("{name}:{}→{}({})", key.columns.join(","), key.parent, key.parent_columns.join(","))
    }));
    out.join(" ")
}

fn after(known: &str, alter: &str) -> Option<String> {
    let known = table(known);
    let altered = match alter.split_whitespace().next() {
        Some("CREATE") => create_index(&known, alter.as_bytes(), PLAIN),
        Some("DROP") => drop_index(&known, alter.as_bytes(), PLAIN),
        _ => alter_table(&known, alter.as_bytes(), "d", PLAIN),
    };
    altered.map(|altered| outline(&altered.definition))
}

/// Each checked on MySQL 9.7 or MariaDB 10.11, or both: see `e2e/tests/definitions.rs`.
#[test]
fn clauses() {
    const T: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), UNIQUE u (a), KEY k (b))";
    const KEYS: &str = "P(id) u(a) [k(b)]";
    for (alter, expected) in [
        // Columns that come, anywhere.
        ("ADD c INT", format!("id! a b c | {KEYS}")),
        ("ADD COLUMN c INT NOT NULL DEFAULT 5 AFTER id", format!("id! c! a b | {KEYS}")),
        ("ADD c INT FIRST, ALGORITHM=INSTANT", format!("c id! a b | {KEYS}")),
        ("ADD c INT AFTER a, ADD d INT AFTER c, ADD e INT", format!("id! a c d b e | {KEYS}")),
        ("ADD (c INT, d INT)", format!("id! a b c d | {KEYS}")),
        ("ADD COLUMN (c INT, UNIQUE (c), d INT UNIQUE)", "id! a b c d | P(id) u(a) c(c) d(d) [k(b)]".to_owned()),
        ("ADD IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS c INT", format!("id! a b c | {KEYS}")),
        ("ADD c INT AS (a + 1) STORED UNIQUE AFTER a", "id! a c b | P(id) u(a) c(c) [k(b)]".to_owned()),
        ("ADD c INT COMMENT 'a, b' AFTER `id`, LOCK=NONE", format!("id! c a b | {KEYS}")),
        // Columns that go.
        ("DROP b", "id! a | P(id) u(a)".to_owned()),
        ("DROP COLUMN a, DROP COLUMN IF EXISTS x", "id! b | P(id) [k(b)]".to_owned()),
        ("DROP a CASCADE, ADD a BIGINT FIRST", "a id! b | P(id) [k(b)]".to_owned()),
        // Columns that change.
        ("MODIFY a BIGINT UNSIGNED NOT NULL", format!("id! a! b | {KEYS}")),
        ("MODIFY COLUMN a BIGINT FIRST", format!("a id! b | {KEYS}")),
        ("MODIFY id BIGINT AUTO_INCREMENT", format!("id! a b | {KEYS}")),
        ("MODIFY IF EXISTS x INT, MODIFY b TEXT AFTER id", format!("id! b a | {KEYS}")),
        ("CHANGE a c BIGINT AFTER b", "id! b c | P(id) u(c) [k(b)]".to_owned()),
        ("CHANGE COLUMN a A INT", "id! A b | P(id) u(A) [k(b)]".to_owned()),
        ("CHANGE a b INT, CHANGE b a VARCHAR(20)", "id! b a | P(id) u(b) [k(a)]".to_owned()),
        ("RENAME COLUMN a TO c", "id! c b | P(id) u(c) [k(b)]".to_owned()),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "id! b a | P(id) u(b) [k(a)]".to_owned()),
        ("RENAME COLUMN id TO key_id, ADD id INT", "key_id! a b id | P(key_id) u(a) [k(b)]".to_owned()),
        ("RENAME COLUMN id TO x, ADD UNIQUE (x, a)", "x! a b | P(x) u(a) x(x,a) [k(b)]".to_owned()),
        ("ALTER a SET DEFAULT 5", format!("id! a b | {KEYS}")),
        ("ALTER COLUMN a SET DEFAULT (1 + (2)), ALTER b DROP DEFAULT", format!("id! a b | {KEYS}")),
        ("ALTER COLUMN a SET INVISIBLE, ALTER COLUMN IF EXISTS a SET DEFAULT 1", format!("id! a b | {KEYS}")),
        // Indexes.
        ("ADD UNIQUE (b, a)", "id! a b | P(id) u(a) b(b,a) [k(b)]".to_owned()),
        ("ADD UNIQUE KEY (a)", "id! a b | P(id) u(a) a(a) [k(b)]".to_owned()),
        (
            "ADD UNIQUE (a), ADD UNIQUE (a DESC), ADD KEY (a)",
            "id! a b | P(id) u(a) a(a) a_2(a) [k(b)] [a_3(a)]".to_owned(),
        ),
        (
            "ADD CONSTRAINT c UNIQUE INDEX n USING BTREE (b(5)) COMMENT 'x'",
            "id! a b | P(id) u(a) n(b(5)) [k(b)]".to_owned(),
        ),
        ("ADD UNIQUE IF NOT EXISTS u (b)", format!("id! a b | {KEYS}")),
        (
            "ADD INDEX i (a), ADD FULLTEXT (b), ADD CHECK (a > 0)",
            "id! a b | P(id) u(a) [k(b)] [i(a)] [b(b)]".to_owned(),
        ),
        ("ADD UNIQUE e ((lower(b)))", "id! a b | P(id) u(a) e(()) [k(b)]".to_owned()),
        ("DROP INDEX u", "id! a b | P(id) [k(b)]".to_owned()),
        ("DROP KEY `U`, ADD UNIQUE u (b)", "id! a b | P(id) u(b) [k(b)]".to_owned()),
        ("DROP CONSTRAINT u", "id! a b | P(id) [k(b)]".to_owned()),
        ("DROP INDEX k", "id! a b | P(id) u(a)".to_owned()),
        ("DROP INDEX IF EXISTS x", format!("id! a b | {KEYS}")),
        ("RENAME INDEX u TO v, RENAME KEY k TO l", "id! a b | P(id) v(a) [l(b)]".to_owned()),
        ("ALTER INDEX u INVISIBLE, ALTER KEY k NOT IGNORED", format!("id! a b | {KEYS}")),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (a, id)", "id! a! b | P(a,id) u(a) [k(b)]".to_owned()),
        ("DROP PRIMARY KEY", "id! a b | u(a) [k(b)]".to_owned()),
        ("DROP INDEX `PRIMARY`, ADD x SERIAL PRIMARY KEY", "id! a b x! | P(x) u(a) x(x) [k(b)]".to_owned()),
        ("ADD PRIMARY KEY IF NOT EXISTS (a)", format!("id! a b | {KEYS}")),
        // Foreign keys and checks.
        ("ADD FOREIGN KEY (a) REFERENCES p (x) ON DELETE CASCADE", format!("id! a b | {KEYS} t_ibfk_1:a→d.p(x)")),
        (
            "ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES e.p (x), ADD FOREIGN KEY (a) REFERENCES t (id)",
            format!("id! a b | {KEYS} f:a→e.p(x) t_ibfk_1:a→d.t(id)"),
        ),
        (
            "ADD CONSTRAINT c CHECK (a > 0) NOT ENFORCED, DROP CHECK d, ALTER CHECK c ENFORCED",
            format!("id! a b | {KEYS}"),
        ),
        // What changes neither columns nor keys.
        ("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", format!("id! a b | {KEYS}")),
        ("CONVERT TO CHARSET DEFAULT", format!("id! a b | {KEYS}")),
        (
            "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
            format!("id! a b | {KEYS}"),
        ),
        ("FORCE, ALGORITHM=COPY, LOCK SHARED", format!("id! a b | {KEYS}")),
        ("ENGINE InnoDB, AUTO_INCREMENT = 5, COMMENT = 'UNIQUE (a)', STATS_PERSISTENT=0", format!("id! a b | {KEYS}")),
        ("DISABLE KEYS", format!("id! a b | {KEYS}")),
        ("ENABLE KEYS, RENAME TO x", format!("id! a b | {KEYS}")),
        ("ORDER BY a, b DESC", format!("id! a b | {KEYS}")),
        ("DISCARD TABLESPACE", format!("id! a b | {KEYS}")),
        ("PARTITION BY HASH (id) PARTITIONS 4", format!("id! a b | {KEYS}")),
        ("ENGINE=InnoDB PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (5))", format!("id! a b | {KEYS}")),
        ("ADD PARTITION (PARTITION q VALUES LESS THAN MAXVALUE)", format!("id! a b | {KEYS}")),
        ("DROP PARTITION p, q", format!("id! a b | {KEYS}")),
        ("REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (9))", format!("id! a b | {KEYS}")),
        ("EXCHANGE PARTITION p WITH TABLE x WITHOUT VALIDATION", format!("id! a b | {KEYS}")),
        ("TRUNCATE PARTITION ALL", format!("id! a b | {KEYS}")),
        ("REMOVE PARTITIONING", format!("id! a b | {KEYS}")),
        ("ADD SYSTEM VERSIONING", format!("id! a b | {KEYS}")),
    ] {
        for sql in [format!("ALTER TABLE t {alter}"), format!("alter online table if exists `d`.`t` nowait {alter};")] {
            assert_eq!(after(T, &sql), Some(expected.clone()), "{sql}");
        }
    }
}

#[test]
fn indexes() {
    const T: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, UNIQUE (a))";
    for (sql, expected) in [
        ("CREATE UNIQUE INDEX u ON t (id, a) USING BTREE ALGORITHM=INPLACE LOCK=NONE", "id! a | P(id) a(a) u(id,a)"),
        ("CREATE INDEX i USING HASH ON t (a)", "id! a | P(id) a(a) [i(a)]"),
        ("CREATE OR REPLACE UNIQUE INDEX a ON t WAIT 5 (a, id)", "id! a | P(id) a(a,id)"),
        ("CREATE UNIQUE INDEX IF NOT EXISTS a ON d.t (a, id)", "id! a | P(id) a(a)"),
        ("DROP INDEX a ON t", "id! a | P(id)"),
        ("DROP INDEX IF EXISTS x ON t NOWAIT", "id! a | P(id) a(a)"),
        ("DROP INDEX `PRIMARY` ON t", "id! a | a(a)"),
    ] {
        assert_eq!(after(T, sql).as_deref(), Some(expected), "{sql}");
    }
    assert_eq!(after(T, "DROP INDEX x ON t"), None);
    assert_eq!(after(T, "CREATE UNIQUE INDEX a ON t (id)"), None);
    assert_eq!(after(T, "CREATE UNIQUE INDEX u ON t (id) SOMEHOW"), None);
}

/// Another definition than the one that is known, or a clause that is not understood.
#[test]
fn what_does_not_fit_is_not_known_any_more() {
    const T: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, UNIQUE u (a))";
    for alter in [
        "ADD a INT",
        "ADD b INT AFTER x",
        "ADD b WIDGET",
        "ADD PRIMARY KEY (a)",
        "ADD UNIQUE u (id)",
        "ADD UNIQUE (x)",
        "DROP x",
        "DROP INDEX x",
        "MODIFY x INT",
        "CHANGE x y INT",
        "RENAME COLUMN x TO y",
        "RENAME COLUMN a TO id",
        "DROP id, DROP a",
        "CONVERT TO CHARACTER SET binary",
        "ADD b INT, FROBNICATE",
        "ADD b INT)",
        "",
    ] {
        let expected = alter.is_empty().then(|| "id! a | P(id) u(a)".to_owned());
        assert_eq!(after(T, &format!("ALTER TABLE t {alter}")), expected, "{alter}");
    }
}

#[test]
fn prefixes_of_keys() {
    for (column, modify, expected) in [
        ("VARCHAR(20)", "VARCHAR(30)", "u(a(10))"),
        ("VARCHAR(20)", "VARCHAR(10)", "u(a)"),
        ("VARCHAR(20)", "VARCHAR(5)", "u(a)"),
        ("TEXT", "VARCHAR(200)", "u(a(10))"),
        ("VARCHAR(20)", "LONGTEXT", "u(a(10))"),
        ("VARCHAR(20)", "INT", "u(a)"),
        ("VARCHAR(20)", "CHAR", "u(a)"),
    ] {
        let create = format!("CREATE TABLE t (a {column}, UNIQUE u (a(10)))");
        let found = after(&create, &format!("ALTER TABLE t MODIFY a {modify}"));
        assert_eq!(found, Some(format!("a | {expected}")), "{column} to {modify}");
    }
}

#[test]
fn parts_of_keys_go_with_their_columns() {
    const T: &str = "CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a, b), UNIQUE u (b, c), UNIQUE v (c))";
    assert_eq!(after(T, "ALTER TABLE t DROP c").as_deref(), Some("a! b! | P(a,b) u(b)"));
    assert_eq!(after(T, "ALTER TABLE t DROP b").as_deref(), Some("a! c | P(a) u(c) v(c)"));
    const GENERATED: &str =
        "CREATE TABLE t (my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE, a INT, PRIMARY KEY (my_row_id))";
    assert_eq!(after(GENERATED, "ALTER TABLE t ADD b INT FIRST").as_deref(), Some("my_row_id! b a | P(my_row_id)"));
}

#[test]
fn foreign_keys_are_dropped_by_name() {
    const T: &str = "CREATE TABLE t (a INT, b INT, FOREIGN KEY (a) REFERENCES p (x), CONSTRAINT f FOREIGN KEY (b) REFERENCES p (y))";
    assert_eq!(after(T, "ALTER TABLE t DROP FOREIGN KEY t_ibfk_1").as_deref(), Some("a b | f:b→d.p(y)"));
    assert_eq!(after(T, "ALTER TABLE t DROP CONSTRAINT F, DROP INDEX f").as_deref(), Some("a b | t_ibfk_1:a→d.p(x)"));
    assert_eq!(after(T, "ALTER TABLE t DROP FOREIGN KEY other").map(|found| found.matches('→').count()), Some(2));
}

#[test]
fn system_versioning_comes_and_goes() {
    let history = |create: &str, alter: &str| {
        alter_table(&table(create), alter.as_bytes(), "d", PLAIN).map(|altered| altered.definition.history)
    };
    const HIDDEN: &str = "CREATE TABLE t (a INT PRIMARY KEY) WITH SYSTEM VERSIONING";
    const COLUMNS: &str = "CREATE TABLE t (a INT, rs TIMESTAMP(6) AS ROW START, re TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, \
                           PRIMARY KEY (a, re), PERIOD FOR SYSTEM_TIME (rs, re)) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 5";
    assert_eq!(table(HIDDEN).history, Some(History::Hidden));
    assert_eq!(table("CREATE TABLE t (a INT WITH SYSTEM VERSIONING, b INT)").history, Some(History::Hidden));
    assert_eq!(table(COLUMNS).history, Some(History::Columns));
    assert_eq!(history(HIDDEN, "ALTER TABLE t DROP SYSTEM VERSIONING"), Some(None));
    assert_eq!(history(HIDDEN, "ALTER TABLE t ADD b INT WITHOUT SYSTEM VERSIONING"), Some(Some(History::Hidden)));
    const ADD: &str = "ALTER TABLE t ADD rs TIMESTAMP(6) AS ROW START, ADD re TIMESTAMP(6) AS ROW END, ADD PERIOD FOR SYSTEM_TIME (rs, re), \
                       ADD SYSTEM VERSIONING";
    assert_eq!(history("CREATE TABLE t (a INT)", ADD), Some(Some(History::Columns)));
    const DROP: &str =
        "ALTER TABLE t DROP COLUMN rs, DROP COLUMN re, DROP PERIOD FOR SYSTEM_TIME, DROP SYSTEM VERSIONING";
    assert_eq!(history(COLUMNS, DROP), Some(None));
    assert_eq!(after(COLUMNS, DROP).as_deref(), Some("a! | P(a)"));
    // A period of an application is none of these.
    assert_eq!(
        outline(&table("CREATE TABLE t (a INT, s DATE, e DATE, PERIOD FOR p (s, e), UNIQUE (a, p WITHOUT OVERLAPS))")),
        "a s e | a(a)"
    );
}

/// What the table had as its default stays that of the columns that are there.
#[test]
fn character_sets() {
    let create = "CREATE TABLE t (a CHAR(5), b CHAR(5) CHARACTER SET ascii, c INT) CHARSET=latin1 COLLATE=latin1_bin";
    let sets = |alter: &str| {
        let altered = alter_table(&table(create), alter.as_bytes(), "d", PLAIN).expect(alter).definition;
        let of = |charset: &Option<String>, collation: &Option<String>| {
            format!("{}/{}", charset.as_deref().unwrap_or("-"), collation.as_deref().unwrap_or("-"))
        };
        let columns = altered.columns.iter().map(|column| of(&column.charset, &column.collation));
        columns.chain([of(&altered.charset, &altered.collation)]).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sets("ALTER TABLE t CHARSET utf8mb4, ADD d CHAR(5)"), "latin1/latin1_bin ascii/- -/- -/- utf8mb4/-");
    assert_eq!(
        sets("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
        "utf8mb4/utf8mb4_bin utf8mb4/utf8mb4_bin -/- utf8mb4/utf8mb4_bin"
    );
    assert_eq!(sets("ALTER TABLE t MODIFY a CHAR(9)"), "-/- ascii/- -/- latin1/latin1_bin");
}

#[test]
fn partitions_that_become_tables() {
    let known = table("CREATE TABLE t (a INT PRIMARY KEY)");
    let altered = |sql: &str| alter_table(&known, sql.as_bytes(), "d", PLAIN).expect(sql);
    assert_eq!(
        altered("ALTER TABLE t CONVERT PARTITION p TO TABLE x").made.map(|n| n.to_string()).as_deref(),
        Some("d.x")
    );
    let taken_in = altered("ALTER TABLE t CONVERT TABLE e.x TO PARTITION p VALUES LESS THAN (5)").taken_in;
    assert_eq!(taken_in.map(|name| name.to_string()).as_deref(), Some("e.x"));
}
