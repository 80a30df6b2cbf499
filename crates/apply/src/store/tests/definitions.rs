//! DDL, as far as rows are concerned.

use binlog::{Column, ColumnKind};
use engine::failure::FailureKind;

use super::lab::{Lab, Source, TestValue, counts, int, rows_of, sql, text, transaction};

fn counted(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(table, rows)| (format!("shop.{table}"), *rows)).collect()
}

#[test]
fn tables_come_and_go() {
    let (dir, mut lab) = Lab::new();
    let (a, b) = (Source::full("a"), Source::full("b"));
    lab.sql("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(100))").unwrap();
    lab.one(&[a.insert(&[int(1), text("a")]), b.insert(&[int(1), text("b")])]).unwrap();
    lab.sql("RENAME TABLE a TO tmp, b TO a, tmp TO b").unwrap();
    lab.one(&[a.update(&[int(1), text("b")], &[int(1), text("b2")]), b.insert(&[int(2), text("a2")])]).unwrap();
    lab.sql("TRUNCATE TABLE a").unwrap();
    lab.one(&[a.insert(&[int(1), text("new")])]).unwrap();
    lab.sql("CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY, v VARCHAR(100))").unwrap();
    lab.sql("ALTER TABLE b RENAME TO c, ADD INDEX (v)").unwrap();
    lab.sql("DROP TABLE IF EXISTS nothing, unknown").unwrap();
    for other in
        ["CREATE VIEW w AS SELECT 1", "GRANT SELECT ON *.* TO x@y", "CREATE INDEX i ON a (v)", "DROP INDEX i ON a"]
    {
        lab.sql(other).unwrap();
    }
    let taken = lab.sql("CREATE TABLE a (id INT PRIMARY KEY)").unwrap_err();
    assert_eq!(taken.kind, FailureKind::Divergence);
    let seq = lab.marker.mark().seq;
    lab.close();
    let path = dir.path().join("store");
    assert_eq!(rows_of(&path, "shop.a"), ["1\tnew"]);
    assert_eq!(rows_of(&path, "shop.c"), ["1\ta", "2\ta2"]);
    let mut lab = Lab::open(&path);
    assert_eq!(lab.marker.mark().seq, seq);
    lab.sql("CREATE OR REPLACE TABLE a (id INT PRIMARY KEY, v VARCHAR(100))").unwrap();
    lab.close();
    assert_eq!(counts(&path), counted(&[("a", 0), ("c", 2)]));
    let mut lab = Lab::open(&path);
    lab.sql("DROP DATABASE shop").unwrap();
    lab.one(&[a.insert(&[int(1), text("again")])]).unwrap();
    lab.close();
    assert_eq!(counts(&path), counted(&[("a", 1)]));
}

/// CREATE TABLE … SELECT: the statement and the rows are one transaction.
#[test]
fn create_with_rows() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let path = dir.path().join("store");
    let create = "CREATE TABLE `t` (`id` INT NOT NULL, `v` VARCHAR(100), PRIMARY KEY (`id`)) START TRANSACTION";
    let events = |last: Vec<Vec<u8>>| transaction(&[vec![sql(create)], t.insert(&[int(1), text("a")]), last]);
    let failure = lab.group(&[events(t.insert(&[int(1), text("twice")]))]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Divergence);
    lab.group(&[events(t.insert(&[int(2), text("b")]))]).unwrap();
    lab.close();
    assert_eq!(rows_of(&path, "shop.t"), ["1\ta", "2\tb"]);
}

/// Without metadata the key is what CREATE TABLE said.
#[test]
fn declared_keys() {
    let (dir, mut lab) = Lab::new();
    let t = Source::plain("t");
    lab.sql("CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, v VARCHAR(100), PRIMARY KEY (id)) ENGINE=InnoDB").unwrap();
    lab.one(&[t.insert(&[int(1), text("a")])]).unwrap();
    lab.one(&[t.update(&[int(1), TestValue::Gone], &[TestValue::Gone, text("b")])]).unwrap();
    assert_eq!(lab.one(&[t.insert(&[int(1), text("c")])]).unwrap_err().kind, FailureKind::Divergence);
    for refused in ["ALTER TABLE t ADD x INT FIRST", "ALTER TABLE t DROP PRIMARY KEY", "DROP INDEX `PRIMARY` ON t"] {
        assert_eq!(lab.sql(refused).unwrap_err().kind, FailureKind::Refused, "{refused}");
    }
    lab.sql("ALTER TABLE t ADD x INT").unwrap();
    let wider = t.clone().with(Column::new(ColumnKind::LONG, 0, true));
    lab.one(&[wider.insert(&[int(2), text("d"), int(5)])]).unwrap();
    lab.sql("CREATE TABLE u LIKE t").unwrap();
    let mut moved = wider.clone();
    moved.columns.rotate_left(1);
    assert_eq!(lab.one(&[moved.insert(&[text("d"), int(5), int(3)])]).unwrap_err().kind, FailureKind::Refused);
    lab.close();
    assert_eq!(rows_of(&dir.path().join("store"), "shop.t"), ["1\tb", "2\td\t5"]);
}

#[test]
fn altered_tables() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let wider = t.clone().with(Column { name: Some("n".to_owned()), ..Column::new(ColumnKind::LONGLONG, 0, true) });
    lab.one(&[t.insert(&[int(1), text("a")]), t.insert(&[int(2), text("b")])]).unwrap();
    lab.sql("ALTER TABLE t ADD n BIGINT").unwrap();
    // A row of the old definition is found, and replaced by one of the new.
    lab.one(&[wider.update(&[int(1), text("a"), TestValue::Null], &[int(1), text("a"), TestValue::Big(5)])]).unwrap();
    // The key in another place, by its metadata.
    let mut moved = wider.clone();
    moved.columns.rotate_right(1);
    moved.key = Some(vec![1]);
    lab.one(&[moved.delete(&[TestValue::Null, int(2), text("b")])]).unwrap();
    let mut retyped = t.clone();
    retyped.columns[0].kind = ColumnKind::LONGLONG;
    let failure = lab.one(&[retyped.insert(&[TestValue::Big(9), text("x")])]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(failure.message.contains("primary key"), "{failure}");
    for refused in ["ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t DROP PARTITION p"] {
        assert_eq!(lab.sql(refused).unwrap_err().kind, FailureKind::Refused, "{refused}");
    }
    lab.sql("TRUNCATE t").unwrap();
    lab.sql("ALTER TABLE t MODIFY id BIGINT").unwrap();
    lab.one(&[retyped.insert(&[TestValue::Big(9), text("x")])]).unwrap();
    lab.close();
    assert_eq!(rows_of(&dir.path().join("store"), "shop.t"), ["9\tx"]);
}

#[test]
fn altered_tables_without_a_key() {
    let (_dir, mut lab) = Lab::new();
    let t = Source::plain("t");
    let wider = t.clone().with(Column::new(ColumnKind::LONG, 0, true));
    lab.one(&[t.insert(&[int(1), text("a")])]).unwrap();
    lab.sql("ALTER TABLE t ADD INDEX (v)").unwrap();
    lab.one(&[t.insert(&[int(1), text("a")])]).unwrap();
    lab.sql("ALTER TABLE t ADD n INT").unwrap();
    let failure = lab.one(&[wider.insert(&[int(1), text("a"), int(1)])]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(failure.message.contains("shop.t") && failure.remedy.contains("FULL"), "{failure}");
    lab.sql("TRUNCATE t").unwrap();
    lab.one(&[wider.insert(&[int(1), text("a"), int(1)])]).unwrap();
    lab.close();
}

#[test]
fn statements_that_change_rows_are_refused() {
    let (_dir, mut lab) = Lab::new();
    for statement in ["INSERT INTO t VALUES (1)", "CREATE TABLE t SELECT 1", "NONSENSE 1"] {
        let failure = lab.sql(statement).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        assert!(failure.remedy.contains("binlog_format=ROW"), "{failure}");
        assert!(failure.place.contains(statement), "{failure}");
    }
}

/// A sequence of MariaDB logs its one row again and again.
#[test]
fn sequences() {
    let (dir, mut lab) = Lab::new();
    let s = Source::plain("s");
    lab.sql("CREATE SEQUENCE s").unwrap();
    lab.one(&[s.insert(&[int(1), text("x")])]).unwrap();
    lab.one(&[s.insert(&[int(1001), text("x")])]).unwrap();
    lab.close();
    assert_eq!(rows_of(&dir.path().join("store"), "shop.s"), ["1001\tx"]);
}

#[test]
fn savepoints() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    lab.one(&[t.insert(&[int(1), text("a")])]).unwrap();
    lab.one(&[
        vec![sql("SAVEPOINT `s 1`")],
        t.update(&[int(1), text("a")], &[int(1), text("b")]),
        vec![sql("SAVEPOINT two")],
        t.insert(&[int(2), text("c")]),
        t.delete(&[int(1), text("b")]),
        vec![sql("ROLLBACK TO `TWO`")],
        t.insert(&[int(3), text("d")]),
    ])
    .unwrap();
    lab.close();
    assert_eq!(rows_of(&dir.path().join("store"), "shop.t"), ["1\tb", "3\td"]);
}
