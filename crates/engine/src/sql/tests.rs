use proptest::prelude::*;

use super::create_table::{GenerationKind, KeyPartDefinition, ReferenceAction, TableDefinition};
use super::*;

const PLAIN: SqlMode =
    SqlMode { ansi_quotes: false, no_backslash_escapes: false, real_as_float: false, charset: Charset::Unknown };

fn at(sql: &str) -> Statement {
    classify(sql.as_bytes(), "d", PLAIN)
}

fn create(temporary: bool, like: bool, select: bool) -> DdlKind {
    DdlKind::CreateTable { temporary, if_not_exists: false, like, select, start_transaction: false }
}

/// `tables` as `schema.name`, separated by spaces.
fn check(sql: &str, class: Class, tables: &str) {
    let statement = at(sql);
    assert_eq!(statement.class, class, "{sql}");
    let names: Vec<_> = statement.tables.iter().map(ToString::to_string).collect();
    assert_eq!(names.join(" "), tables, "{sql}");
}

#[test]
fn transaction_control() {
    for (sql, class) in [
        ("BEGIN", Class::Begin),
        ("begin work;", Class::Begin),
        ("START TRANSACTION WITH CONSISTENT SNAPSHOT", Class::Begin),
        ("BEGIN NOT ATOMIC SELECT 1; END", Class::Unknown),
        ("COMMIT", Class::Commit),
        ("COMMIT /* added by server */", Class::Commit),
        ("ROLLBACK", Class::Rollback),
        ("ROLLBACK TO `a b`", Class::RollbackTo),
        ("ROLLBACK TO SAVEPOINT x", Class::RollbackTo),
        ("ROLLBACK TO savepoint", Class::RollbackTo),
        ("SAVEPOINT `x`", Class::Savepoint),
        ("RELEASE SAVEPOINT `x`", Class::Release),
        ("SET @a = 1", Class::SetStatement),
        ("", Class::Unknown),
        ("# Dummy event replacing event type 160", Class::Unknown),
        ("/* x", Class::Unknown),
        ("SHOW TABLES", Class::Unknown),
        ("`BEGIN`", Class::Unknown),
    ] {
        check(sql, class, "");
    }
}

#[test]
fn xa() {
    let xid =
        |global: &[u8], branch: &[u8], format| Some(Xid { global: global.to_vec(), branch: branch.to_vec(), format });
    for (sql, class, expected) in [
        ("XA START X'6162',X'',1", Class::XaStart { resume: false }, xid(b"ab", b"", 1)),
        ("XA END X'6162',X'63',7", Class::XaEnd, xid(b"ab", b"c", 7)),
        ("XA PREPARE 'ab','c'", Class::XaPrepare, xid(b"ab", b"c", 1)),
        ("XA COMMIT X'61',X'',1 ONE PHASE", Class::XaCommit { one_phase: true }, xid(b"a", b"", 1)),
        ("XA COMMIT 0x61", Class::XaCommit { one_phase: false }, xid(b"a", b"", 1)),
        ("XA ROLLBACK X'61',X'',0x10", Class::XaRollback, xid(b"a", b"", 16)),
        ("XA COMMIT X'6'", Class::Unknown, None),
        ("XA COMMIT 'a\\'b'", Class::Unknown, None),
        ("XA RECOVER", Class::Unknown, None),
        ("XA", Class::Unknown, None),
    ] {
        let statement = at(sql);
        assert_eq!((statement.class, statement.xid), (class, expected), "{sql}");
    }
}

#[test]
fn dml() {
    for (sql, kind, tables) in [
        ("INSERT INTO t VALUES (1)", DmlKind::Insert, "d.t"),
        ("insert low_priority ignore `x`.`y``z` set a=1", DmlKind::Insert, "x.y`z"),
        ("REPLACE t SELECT * FROM u", DmlKind::Replace, "d.t"),
        ("UPDATE t SET a=1", DmlKind::Update, "d.t"),
        ("UPDATE t AS x SET a=1", DmlKind::Update, "d.t"),
        ("UPDATE t, u SET t.a=u.a", DmlKind::Update, ""),
        ("UPDATE (SELECT 1) x, u SET a=1", DmlKind::Update, ""),
        ("DELETE FROM s.t WHERE a=1", DmlKind::Delete, "s.t"),
        ("DELETE FROM t", DmlKind::Delete, "d.t"),
        ("DELETE t FROM t JOIN u", DmlKind::Delete, ""),
        ("DELETE FROM t USING t JOIN u", DmlKind::Delete, ""),
        (
            "LOAD DATA LOCAL INFILE '/tmp/into table x' REPLACE INTO TABLE `t` FIELDS TERMINATED BY ','",
            DmlKind::LoadData,
            "d.t",
        ),
        ("WITH x AS (SELECT 1) UPDATE t SET a=1", DmlKind::Other, ""),
        ("SELECT `d`.`f`(1)", DmlKind::Other, ""),
        ("SELECT SETVAL(`s`, 10, 1, 0)", DmlKind::Other, ""),
        ("(SELECT f())", DmlKind::Other, ""),
        ("CALL p()", DmlKind::Other, ""),
        ("SET STATEMENT max_statement_time=(1+1), a=2 FOR INSERT INTO t VALUES (1)", DmlKind::Insert, "d.t"),
    ] {
        check(sql, Class::Dml { kind }, tables);
    }
    check("LOAD INDEX INTO CACHE t", Class::Unknown, "");
}

#[test]
fn ddl() {
    let drop = |temporary, if_exists| DdlKind::DropTable { temporary, if_exists };
    for (sql, kind, tables) in [
        ("CREATE TABLE t (a INT, b VARCHAR(10) DEFAULT 'select')", create(false, false, false), "d.t"),
        (
            "CREATE TABLE x.t (a INT REFERENCES p(a), FOREIGN KEY (a) REFERENCES q.p (a))",
            create(false, false, false),
            "x.t x.p q.p",
        ),
        ("CREATE TEMPORARY TABLE t (a INT)", create(true, false, false), "d.t"),
        ("CREATE TABLE t LIKE x.u", create(false, true, false), "d.t x.u"),
        ("CREATE TABLE t (LIKE u)", create(false, true, false), "d.t d.u"),
        ("CREATE TABLE t SELECT 1", create(false, false, true), "d.t"),
        ("CREATE TABLE t ((SELECT 1))", create(false, false, true), "d.t"),
        ("CREATE TABLE t (a INT) ENGINE=InnoDB REPLACE AS SELECT 1", create(false, false, true), "d.t"),
        ("CREATE TABLE t (a INT AS (1) STORED, KEY(a)) COMMENT='as select'", create(false, false, false), "d.t"),
        ("CREATE TABLE t WITH x AS (SELECT 1) SELECT * FROM x", create(false, false, true), "d.t"),
        ("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING", create(false, false, false), "d.t"),
        ("CREATE TABLE t (a INT) ENGINE=MERGE UNION=(a,x.b)", create(false, false, false), "d.t d.a x.b"),
        (
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1));",
            create(false, false, false),
            "d.t",
        ),
        ("/*!40000 CREATE */ /*M!100301 TABLE */ t (a INT /*!80023 INVISIBLE */)", create(false, false, false), "d.t"),
        ("CREATE TABLE `日本``語`.`é é` (a INT)", create(false, false, false), "日本`語.é é"),
        ("CREATE TABLE d1.2020 (a INT)", create(false, false, false), "d1.2020"),
        ("ALTER TABLE t ADD COLUMN rename_me INT", DdlKind::AlterTable, "d.t"),
        ("ALTER ONLINE IGNORE TABLE x.t RENAME TO u", DdlKind::AlterTable, "x.t d.u"),
        ("ALTER TABLE t RENAME AS x.u", DdlKind::AlterTable, "d.t x.u"),
        ("ALTER TABLE t RENAME u, ADD b INT", DdlKind::AlterTable, "d.t d.u"),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX i TO j", DdlKind::AlterTable, "d.t"),
        (
            "ALTER TABLE x.t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p (a) ON DELETE CASCADE",
            DdlKind::AlterTable,
            "x.t x.p",
        ),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u WITHOUT VALIDATION", DdlKind::AlterTable, "d.t d.u"),
        ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", DdlKind::AlterTable, "d.t d.u"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", DdlKind::AlterTable, "d.t"),
        ("DROP TABLE `a`,b , x.`c` /* generated by server */", drop(false, false), "d.a d.b x.c"),
        ("DROP TEMPORARY TABLE IF EXISTS `a`", drop(true, true), "d.a"),
        ("DROP TABLE a RESTRICT", drop(false, false), "d.a"),
        ("DROP TABLE a WAIT 5 CASCADE", drop(false, false), "d.a"),
        ("RENAME TABLE a TO b, x.c TO y.d", DdlKind::RenameTable, "d.a d.b x.c y.d"),
        ("RENAME TABLE IF EXISTS a NOWAIT TO b", DdlKind::RenameTable, "d.a d.b"),
        ("TRUNCATE a", DdlKind::Truncate, "d.a"),
        ("TRUNCATE TABLE x.a", DdlKind::Truncate, "x.a"),
        ("CREATE UNIQUE INDEX i USING BTREE ON x.t (a)", DdlKind::CreateIndex, "x.t"),
        ("CREATE OR REPLACE INDEX IF NOT EXISTS i ON t (a)", DdlKind::CreateIndex, "d.t"),
        ("DROP INDEX `on` ON t", DdlKind::DropIndex, "d.t"),
        (
            "CREATE ALGORITHM=UNDEFINED DEFINER=`r``t`@`local host` SQL SECURITY DEFINER VIEW v AS SELECT 1",
            DdlKind::View,
            "",
        ),
        ("CREATE DEFINER=root@127.0.0.1 PROCEDURE p() BEGIN DROP TABLE t; END", DdlKind::Routine, ""),
        ("CREATE DEFINER=CURRENT_USER() AGGREGATE FUNCTION f() RETURNS INT RETURN 1", DdlKind::Routine, ""),
        ("CREATE DEFINER=`root`@`%` TRIGGER x.g BEFORE INSERT ON t FOR EACH ROW SET NEW.a=1", DdlKind::Trigger, "x.t"),
        ("DROP TRIGGER IF EXISTS g", DdlKind::Trigger, ""),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t", DdlKind::Event, ""),
        ("CREATE USER 'a'@'%' IDENTIFIED BY 'x'", DdlKind::Account, ""),
        ("GRANT ALL ON *.* TO a", DdlKind::Account, ""),
        ("SET PASSWORD FOR 'a'@'%'='x'", DdlKind::Account, ""),
        ("SET DEFAULT ROLE r TO u", DdlKind::Account, ""),
        ("RENAME USER a TO b", DdlKind::Account, ""),
        ("DROP ROLE r", DdlKind::Account, ""),
        ("ANALYZE NO_WRITE_TO_BINLOG TABLE a, b", DdlKind::Analyze, "d.a d.b"),
        ("OPTIMIZE TABLE a", DdlKind::Optimize, "d.a"),
        ("REPAIR LOCAL TABLE a QUICK", DdlKind::Repair, "d.a"),
        ("FLUSH TABLES", DdlKind::Flush, ""),
        ("CREATE SEQUENCE s START WITH 1", DdlKind::Sequence, "d.s"),
        ("DROP SEQUENCE IF EXISTS s, x.r", DdlKind::Sequence, "d.s x.r"),
        ("INSTALL PLUGIN x SONAME 'y'", DdlKind::Other, ""),
        ("CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", DdlKind::Other, ""),
    ] {
        check(sql, Class::Ddl { kind }, tables);
    }
}

#[test]
fn ddl_that_is_not_understood() {
    for sql in [
        "CREATE TABLE",
        "CREATE TABLE t (a INT",
        "CREATE TABLE t (a INT))",
        "CREATE TABLE t (a INT) /*! ENGINE=x",
        "CREATE TABLE t (a INT); DROP TABLE u",
        "DROP TABLE a b",
        "DROP TABLE a; DROP TABLE b",
        "DROP TABLE `a",
        "RENAME TABLE a b",
        "TRUNCATE a, b",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES",
        "CREATE GADGET g",
        "HELP 'x'",
    ] {
        check(sql, Class::Unknown, "");
    }
    let latin1 = b"DROP TABLE `caf\xe9`";
    assert_eq!(classify(latin1, "d", PLAIN).class, Class::Unknown);
}

#[test]
fn schemas_and_guards() {
    for (sql, kind, schema) in [
        ("CREATE DATABASE IF NOT EXISTS `x y` CHARACTER SET utf8mb4", DdlKind::CreateDatabase, "x y"),
        ("DROP SCHEMA x", DdlKind::DropDatabase, "x"),
        ("ALTER DATABASE x COLLATE utf8mb4_bin", DdlKind::AlterDatabase, "x"),
        ("ALTER DATABASE CHARACTER SET utf8mb4", DdlKind::AlterDatabase, "d"),
    ] {
        let statement = at(sql);
        assert_eq!((statement.class, statement.schemas), (Class::Ddl { kind }, vec![schema.to_owned()]), "{sql}");
    }
    for (sql, homes) in [
        ("CREATE VIEW v AS SELECT 1", vec!["d"]),
        ("DROP VIEW IF EXISTS x.v, w, y.`v w`", vec!["x", "d", "y"]),
        ("CREATE DEFINER=`root`@`%` TRIGGER x.g BEFORE INSERT ON t FOR EACH ROW SET NEW.a=1", vec!["x"]),
        ("DROP TRIGGER IF EXISTS x.g", vec!["x"]),
        ("CREATE DEFINER=root@localhost FUNCTION IF NOT EXISTS x.f() RETURNS INT RETURN 1", vec!["x"]),
        ("CREATE PACKAGE BODY x.p AS END", vec!["x"]),
        ("ALTER PROCEDURE p COMMENT 'x'", vec!["d"]),
        ("DROP EVENT x.e", vec!["x"]),
        ("DROP TABLE x.t", vec![]),
        ("CREATE USER a@b", vec![]),
    ] {
        assert_eq!(at(sql).homes, homes, "{sql}");
    }
    for (sql, if_exists, if_not_exists, or_replace) in [
        ("CREATE TABLE IF NOT EXISTS t (a INT)", false, true, false),
        ("CREATE OR REPLACE TABLE t (a INT)", false, false, true),
        ("CREATE OR REPLACE DEFINER=a@b VIEW v AS SELECT 1", false, false, true),
        ("DROP TABLE IF EXISTS t", true, false, false),
        ("ALTER TABLE IF EXISTS t ADD a INT", true, false, false),
        ("DROP DATABASE IF EXISTS t", true, false, false),
        ("DROP TABLE t", false, false, false),
    ] {
        assert_eq!(at(sql).guards, Guards { if_exists, if_not_exists, or_replace }, "{sql}");
    }
    let atomic = at("CREATE TABLE `t` (\n  `a` int NOT NULL\n) START TRANSACTION");
    assert!(matches!(
        atomic.class,
        Class::Ddl { kind: DdlKind::CreateTable { start_transaction: true, select: false, .. } }
    ));
}

/// MySQL 9.4 and later.
#[test]
fn duality_views_are_views() {
    for sql in [
        "CREATE JSON DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM t",
        "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`u`@`%` SQL SECURITY INVOKER JSON RELATIONAL DUALITY VIEW IF NOT EXISTS d.v AS SELECT 1",
        "ALTER JSON DUALITY VIEW v AS SELECT 1",
    ] {
        let statement = at(sql);
        assert_eq!(statement.class, Class::Ddl { kind: DdlKind::View }, "{sql}");
        assert!(statement.homes.iter().all(|home| home == "d"), "{sql}: {:?}", statement.homes);
    }
}

#[test]
fn start_transaction_is_found_outside_strings_and_parentheses() {
    for (sql, rest) in [
        ("CREATE TABLE t (a INT) START TRANSACTION", "CREATE TABLE t (a INT) "),
        ("CREATE TABLE t (a INT) START TRANSACTION COMMENT='c'", "CREATE TABLE t (a INT)  COMMENT='c'"),
        (
            "CREATE TABLE t (a INT COMMENT 'START TRANSACTION') /* x */ START TRANSACTION ENGINE=InnoDB",
            "CREATE TABLE t (a INT COMMENT 'START TRANSACTION') /* x */  ENGINE=InnoDB",
        ),
        ("CREATE TABLE t (a INT) COMMENT='START TRANSACTION'", ""),
    ] {
        let cut = start_transaction_at(sql.as_bytes(), SqlMode::default());
        let text =
            cut.map(|at| format!("{}{}", sql.get(..at.start).unwrap(), sql.get(at.end..).unwrap())).unwrap_or_default();
        assert_eq!(text, rest);
    }
}

#[test]
fn modes_and_character_sets() {
    let ansi = SqlMode::from_bits(4);
    let plain_backslash = SqlMode::from_bits(1 << 20);
    let table = |sql: &[u8], mode| classify(sql, "d", mode).tables.first().map(ToString::to_string);
    assert_eq!(table(br#"DROP TABLE "a""b""#, ansi).unwrap(), "d.a\"b");
    assert_eq!(table(br#"DROP TABLE "a""#, PLAIN), None);
    let backslash = br"CREATE TABLE t (a INT COMMENT 'x\', b INT REFERENCES p (a), c INT COMMENT '\'')";
    assert_eq!(classify(backslash, "d", plain_backslash).class, Class::Unknown);
    assert_eq!(classify(backslash, "d", PLAIN).tables.len(), 1);
    let end = br"CREATE TABLE t (a INT COMMENT 'x\', b INT REFERENCES p (a))";
    assert_eq!(classify(end, "d", plain_backslash).tables.len(), 2);
    // In Shift-JIS 0x83 0x5c is one character: whether the string ends here is not known.
    assert_eq!(classify(b"CREATE TABLE t (a INT COMMENT '\x83\\')", "d", PLAIN).class, Class::Unknown);
    assert_eq!(classify("CREATE TABLE t (a INT COMMENT 'é\\'')".as_bytes(), "d", PLAIN).tables.len(), 1);
    assert_eq!(at("DROP TABLE a -- b\n, c --d").class, Class::Unknown);
    assert_eq!(at("DROP TABLE a -- b\n, c # d").tables.len(), 2);
}

fn table(sql: &str) -> Option<TableDefinition> {
    create_table::parse(sql.as_bytes(), "d", PLAIN)
}

/// Columns and keys in one line: `name type[!]` (`!`: NOT NULL), then keys.
fn outline(table: &TableDefinition) -> String {
    let parts = |key: &create_table::KeyDefinition| {
        let part = |part: &KeyPartDefinition| match part {
            KeyPartDefinition::Column { name, prefix: None } => name.clone(),
            KeyPartDefinition::Column { name, prefix: Some(prefix) } => format!("{name}({prefix})"),
            KeyPartDefinition::Expression => "()".to_owned(),
        };
        key.parts.iter().map(part).collect::<Vec<_>>().join(",")
    };
    let mut out: Vec<String> = Vec::new();
    for column in &table.columns {
        out.push(format!("{} {}{}", column.name, column.type_text, if column.nullable { "" } else { "!" }));
    }
    out.extend(table.primary_key.iter().map(|key| format!("P:{}", parts(key))));
    out.extend(table.unique_keys.iter().map(|key| format!("U:{}", parts(key))));
    for key in &table.foreign_keys {
        out.push(format!("F:{}>{}({})", key.columns.join(","), key.parent, key.parent_columns.join(",")));
    }
    out.join("; ")
}

#[test]
fn create_table_definitions() {
    for (sql, expected) in [
        ("CREATE TABLE t (id INT PRIMARY KEY, b INT)", "id INT!; b INT; P:id"),
        (
            "CREATE TABLE `t` (\n `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,\n `v` varchar(20) CHARACTER SET latin1 \
             COLLATE latin1_bin DEFAULT 'a,b)',\n PRIMARY KEY (`id`),\n UNIQUE KEY `u` (`v`(5) DESC,`id`) USING BTREE \
             COMMENT 'x',\n KEY `k` (`v`)\n) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin \
             COMMENT='x' ROW_FORMAT=DYNAMIC",
            "id bigint(20) unsigned!; v varchar(20); P:id; U:v(5),id",
        ),
        (
            "CREATE TABLE t (a TEXT CHARACTER SET utf8mb4, b DOUBLE PRECISION, c CHAR)",
            "a TEXT; b DOUBLE PRECISION; c CHAR",
        ),
        ("CREATE TABLE t (a SERIAL)", "a SERIAL!; U:a"),
        (
            "CREATE TABLE t (a INT NOT NULL, b INT UNIQUE, c INT AS (a+1) STORED, UNIQUE ((lower(a))), CONSTRAINT `f` \
             FOREIGN KEY (a, b) REFERENCES `x`.`p` (i, j) ON DELETE CASCADE ON UPDATE SET NULL, CHECK (a > 1))",
            "a INT!; b INT; c INT; U:b; U:(); F:a,b>x.p(i,j)",
        ),
        (
            "CREATE TABLE t (a TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), \
             b DECIMAL(5,2) DEFAULT -1.5 COMMENT 'x', c BIT(3) DEFAULT b'101', d JSON CHECK (json_valid(d)), \
             e ENUM('a','b)') NULL, PRIMARY KEY USING BTREE (A)) PARTITION BY KEY (a) PARTITIONS 4",
            "a TIMESTAMP(6)!; b DECIMAL(5,2); c BIT(3); d JSON; e ENUM('a','b)'); P:a",
        ),
        ("CREATE TABLE t (a INT /*!80023 INVISIBLE */) /*!50100 TABLESPACE `x` */", "a INT"),
        ("CREATE TABLE t (a INT) START TRANSACTION", "a INT"),
    ] {
        let table = table(sql).unwrap_or_else(|| panic!("not understood: {sql}"));
        assert_eq!(outline(&table), expected, "{sql}");
    }
    let t = table(
        "CREATE TABLE x.t (a INT UNSIGNED, g INT GENERATED ALWAYS AS (a) VIRTUAL, FOREIGN KEY (a) REFERENCES p (a) ON DELETE \
         SET DEFAULT) ENGINE InnoDB CHARSET latin1, COLLATE 'latin1_bin'",
    )
    .unwrap();
    assert_eq!(t.name, ObjectName::new("x", "t"));
    assert_eq!(
        (t.engine.as_deref(), t.charset.as_deref(), t.collation.as_deref()),
        (Some("InnoDB"), Some("latin1"), Some("latin1_bin"))
    );
    assert!(t.columns[0].unsigned && t.columns[1].generated == Some(GenerationKind::Virtual));
    let key = &t.foreign_keys[0];
    assert_eq!(
        (key.parent.schema.as_str(), key.on_delete, key.on_update),
        ("x", ReferenceAction::SetDefault, ReferenceAction::Restrict)
    );
}

#[test]
fn create_table_refuses_what_it_does_not_know() {
    for sql in [
        "CREATE TABLE t LIKE u",
        "CREATE TABLE t SELECT 1",
        "CREATE TABLE t (a INT) SELECT 1 AS b",
        "CREATE TABLE t (a INT) AS SELECT 1",
        "CREATE TABLE t (a INT) PARTITION BY KEY (a) SELECT 1",
        "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE t (a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START)",
        "CREATE TABLE t (a INT, PERIOD FOR SYSTEM_TIME (a, b))",
        "CREATE TABLE t (a VARCHAR(9) COMPRESSED)",
        "CREATE TABLE t (a CHAR(9) CHARACTER SET binary)",
        "CREATE TABLE t (a CHAR(9)) CHARSET=binary",
        "CREATE TABLE t (a CHAR(9) BINARY)",
        "CREATE TABLE t (a WIDGET)",
        "CREATE TABLE t (a INT, PRIMARY KEY (b))",
        "CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))",
        "CREATE TABLE t (a INT, A INT)",
        "CREATE TABLE t (a INT, PRIMARY KEY (a WITHOUT OVERLAPS))",
        "CREATE TABLE t ()",
        "CREATE TABLE t (a INT,)",
        "CREATE TABLE t (a INT",
        "CREATE VIEW v AS SELECT 1",
        "",
    ] {
        assert_eq!(table(sql), None, "{sql}");
    }
}

proptest! {
    #[test]
    fn takes_any_bytes(sql in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = classify(&sql, "d", PLAIN);
        let _ = create_table::parse(&sql, "d", PLAIN);
    }

    #[test]
    fn takes_any_tokens(
        words in prop::collection::vec(prop::sample::select(vec![
            "CREATE", "TABLE", "t", "(", ")", ",", "INT", "KEY", "UNIQUE", "PRIMARY", "REFERENCES", "'", "`", "\"", "/*", "*/",
            "/*!50000", "--", "\n", "SELECT", "AS", "DROP", "ALTER", "RENAME", "TO", "XA", "COMMIT", ".", "@", "\\", "1", ";",
            "IF", "EXISTS", "NOT", "OR", "REPLACE", "DEFAULT", "ON", "FOREIGN", "SET", "FOR", "STATEMENT", "é",
        ]), 0..30),
        bits in any::<u64>(),
    ) {
        let sql = words.join(" ");
        let _ = classify(sql.as_bytes(), "d", SqlMode::from_bits(bits));
        let _ = create_table::parse(sql.as_bytes(), "d", SqlMode::from_bits(bits));
        let _ = create_table::parse(format!("CREATE TABLE t ({sql}").as_bytes(), "d", SqlMode::from_bits(bits));
    }

    /// Names come back as they were, whatever is in them.
    #[test]
    fn quoted_names_survive(schema in "[^\u{0}]{1,12}", name in "[^\u{0}]{1,12}") {
        let quote = |text: &str| format!("`{}`", text.replace('`', "``"));
        let sql = format!("DROP TABLE/**/{}.{},x", quote(&schema), quote(&name));
        let statement = classify(sql.as_bytes(), "d", PLAIN);
        prop_assert_eq!(&statement.tables[0], &ObjectName { schema, name });
        prop_assert_eq!(statement.tables.len(), 2);
    }
}

/// Latin1 is decoded; of one without a table a statement that changes rows is one all the same.
#[test]
fn names_in_the_character_set_of_the_session() {
    let latin1 = SqlMode { charset: Charset::of_collation(8), ..SqlMode::default() };
    let other = SqlMode { charset: Charset::of_collation(4), ..SqlMode::default() };
    for sql in [b"INSERT INTO `\xe9\x80` VALUES ('\xe9\\')".as_slice(), b"REPLACE `\xe9\x80` (a) SELECT 1"] {
        let known = classify(sql, "d", latin1);
        let tables: Vec<String> = known.tables.iter().map(|table| format!("{}.{}", table.schema, table.name)).collect();
        assert_eq!(tables, ["d.é€"]);
        for mode in [latin1, other] {
            assert!(matches!(classify(sql, "d", mode).class, Class::Dml { .. }), "{}", sql.escape_ascii());
        }
    }
    for sql in ["ANALYZE INSERT INTO t VALUES (1)", "ANALYZE FORMAT=JSON UPDATE t SET a=1"] {
        assert!(matches!(classify(sql.as_bytes(), "d", latin1).class, Class::Dml { .. }), "{sql}");
    }
    let table = classify(b"CREATE TABLE `t\xe9` (a INT)", "d", latin1).tables;
    assert_eq!(table.first().map(|table| table.name.as_str()), Some("té"));
    // A client that says Latin1 and sends UTF-8: the server has taken it for Latin1.
    assert_eq!(
        classify("DROP TABLE `té`".as_bytes(), "d", latin1).tables.first().map(|table| table.name.as_str()),
        Some("tÃ©")
    );
    // What servers write themselves, in UTF-8.
    let own = "CREATE TABLE `té` (\n  `a` int\n)";
    assert_eq!(classify(own.as_bytes(), "d", latin1).tables.first().map(|table| table.name.as_str()), Some("té"));
}
