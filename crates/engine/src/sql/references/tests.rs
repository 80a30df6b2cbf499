use super::*;

/// What is found, each table with `!` if it is changed; then qualifiers and routines.
fn shown(found: Option<References>) -> String {
    let Some(found) = found else { return "not understood".to_owned() };
    let tables =
        found.tables.iter().map(|table| format!("{}{}", table.named.object, if table.is_changed { "!" } else { "" }));
    let qualifiers = found.qualifiers.iter().map(|qualifier| match &qualifier.schema {
        Some((schema, _)) => format!("{schema}.{}.", qualifier.table.0),
        None => format!("{}.", qualifier.table.0),
    });
    let routines = found.routines.iter().map(|named| format!("{}()", named.object));
    let unknown = found.unknown_function.iter().map(|name| format!("?{name}()"));
    let targets = found.targets.iter().map(|named| format!("->{}", named.object));
    tables.chain(targets).chain(qualifiers).chain(routines).chain(unknown).collect::<Vec<_>>().join(" ")
}

#[test]
fn tables_of_changes() {
    for (sql, expected) in [
        ("INSERT INTO t VALUES (1, 'FROM u')", "d.t!"),
        ("INSERT t SET a = (SELECT MAX(b) FROM e.u)", "d.t! e.u"),
        ("REPLACE LOW_PRIORITY INTO `e`.`t` (a, b) VALUES (1, 2), (3, REPLACE('a', 'b', 'c'))", "e.t!"),
        ("INSERT INTO t (a) SELECT a FROM u ON DUPLICATE KEY UPDATE a = VALUES(a), b = 2", "d.t! d.u"),
        ("INSERT INTO t VALUES (1) AS new(m, n) ON DUPLICATE KEY UPDATE a = new.m", "d.t! new."),
        ("INSERT INTO t TABLE u", "d.t! d.u"),
        ("INSERT INTO t (SELECT a FROM u)", "d.t! d.u"),
        ("INSERT INTO t PARTITION (p0) (a) VALUES (1)", "d.t!"),
        ("INSERT INTO t SELECT TRIM(LEADING 'x' FROM a), EXTRACT(YEAR FROM b) FROM u", "d.t! d.u"),
        ("UPDATE t SET a = 1, b = 2 WHERE t.c = 3", "d.t! t."),
        ("UPDATE t AS x, e.u y SET x.a = y.b", "d.t! e.u! x. y."),
        ("UPDATE t JOIN u USING (a, b) LEFT JOIN (v, w) ON v.a = w.a SET t.a = 1", "d.t! d.u! d.v! d.w! v. w. t."),
        ("UPDATE t STRAIGHT_JOIN (SELECT a FROM u) x ON x.a = t.a SET b = 1", "d.t! d.u x. t."),
        ("UPDATE t USE INDEX FOR JOIN (i, j), u SET a = 1", "d.t! d.u!"),
        ("UPDATE d.t SET a = (SELECT STRAIGHT_JOIN b FROM u, v) ORDER BY a, b LIMIT 1", "d.t! d.u d.v"),
        ("DELETE FROM t WHERE a IN (1, 2) ORDER BY b, c", "d.t!"),
        ("DELETE FROM a USING t AS a JOIN e.u WHERE a.x = u.x", "d.t! e.u! ->d.a a. u."),
        ("DELETE t, e.u.* FROM t JOIN e.u ON t.a = u.a", "d.t! e.u! ->d.t ->e.u t. u."),
        ("DELETE QUICK t.* FROM t", "d.t! ->d.t"),
        (
            "WITH x AS (SELECT * FROM u), y AS (SELECT * FROM x) UPDATE t JOIN y ON t.a = y.a SET t.b = 1",
            "d.u d.t! t. y. t.",
        ),
        (
            "WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 3) DELETE FROM t WHERE a IN (SELECT n FROM x)",
            "d.t!",
        ),
        ("INSERT INTO t SELECT * FROM u FOR SYSTEM_TIME AS OF TIMESTAMP'2020-01-01', v", "d.t! d.u d.v"),
        (
            "INSERT INTO t SELECT * FROM JSON_TABLE(@a.b, '$[*]' COLUMNS (x INT PATH '$')) AS j, LATERAL (SELECT j.x FROM u) l",
            "d.t! d.u j.",
        ),
        (
            "INSERT INTO t SELECT a FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.a = u.a) UNION SELECT b FROM w GROUP BY b, c",
            "d.t! d.u d.v d.w v. u.",
        ),
        ("INSERT INTO t VALUES (f(1), e.g(2), NOW())", "d.t! e.g() ?f()"),
        ("INSERT INTO t VALUES (NEXT VALUE FOR e.s, NEXTVAL(s2))", "d.t! e.s! d.s2!"),
        ("INSERT INTO t SELECT CASE WHEN a THEN b ELSE c END FROM u", "d.t! d.u"),
        ("INSERT INTO t SELECT 1 FROM DUAL", "d.t!"),
        ("LOAD DATA INFILE 'x' IGNORE INTO TABLE e.t FIELDS TERMINATED BY ',' (a, @b) SET c = @b", "e.t!"),
        ("SET STATEMENT sort_buffer_size = 1 FOR INSERT INTO t SELECT * FROM u", "d.t! d.u"),
        ("INSERT INTO t SELECT * FROM u /* , v */ -- JOIN w", "d.t! d.u"),
        ("INSERT INTO t SELECT * FROM u a INNER JOIN u b ON a.x = b.x, v", "d.t! d.u d.u d.v a. b."),
        ("INSERT INTO t SELECT * FROM {OJ u LEFT JOIN v ON 1}", "not understood"),
        ("INSERT INTO t SELECT 'x", "not understood"),
        ("CALL p()", "not understood"),
        ("INSERT INTO t SELECT a FROM (u", "not understood"),
    ] {
        assert_eq!(shown(of_change(sql.as_bytes(), "d", SqlMode::default())), expected, "{sql}");
    }
}

#[test]
fn tables_of_bodies() {
    for (body, expected) in [
        ("INSERT INTO t VALUES (NEW.a)", "d.t! NEW."),
        ("BEGIN SET NEW.a = 1; UPDATE t SET b = 2; DELETE FROM e.u; END", "d.t! e.u! NEW."),
        (
            "BEGIN IF x > 0 THEN INSERT INTO t SELECT * FROM u; ELSE REPLACE INTO v VALUES (REPLACE(a, 'b', 'c')); END IF; END",
            "d.t! d.u d.v!",
        ),
        ("BEGIN DECLARE c CURSOR FOR SELECT a, b FROM t, u; FETCH NEXT FROM c INTO x, y; END", "d.t d.u"),
        ("BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND, SQLSTATE '23000', 1062 INSERT INTO t VALUES (1); END", "d.t!"),
        (
            "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN UPDATE t SET a = 1; END; UPDATE u SET a = 1; END",
            "d.t! d.u!",
        ),
        ("SELECT CASE WHEN a THEN b ELSE c END INTO x FROM t", "d.t"),
        ("CASE x WHEN 1 THEN DELETE FROM t; ELSE BEGIN END; END CASE", "d.t!"),
        ("l: WHILE x < 3 DO UPDATE t SET a = x; SET x = x + 1; END WHILE", "d.t!"),
        ("RETURN (SELECT MAX(a) FROM t WHERE t.b = p)", "d.t t."),
        ("BEGIN CALL e.p(1); CALL q; END", "e.p() d.q()"),
        ("BEGIN PREPARE s FROM @x; EXECUTE s; END", "not understood"),
        ("BEGIN DROP TABLE t; END", "not understood"),
    ] {
        assert_eq!(shown(of_body(body.as_bytes(), 0, "d", SqlMode::default())), expected, "{body}");
    }
}

#[test]
fn heads_of_programs() {
    let head = |sql: &str| program_head(sql.as_bytes(), "d", SqlMode::default());
    let rest = |sql: &'static str| head(sql).and_then(|head| sql.get(head.body_at?..));
    assert_eq!(
        rest("CREATE ALGORITHM=MERGE DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `v` (x) AS SELECT 1"),
        Some("SELECT 1")
    );
    assert_eq!(
        rest("CREATE DEFINER=a@b TRIGGER e.g BEFORE INSERT ON t FOR EACH ROW FOLLOWS h SET @a = 1"),
        Some("SET @a = 1")
    );
    assert_eq!(rest("CREATE EVENT IF NOT EXISTS v ON SCHEDULE EVERY 1 DAY DO DELETE FROM t"), Some("DELETE FROM t"));
    let trigger = head("CREATE TRIGGER e.g BEFORE INSERT ON t FOR EACH ROW SET @a = 1").unwrap();
    assert_eq!(trigger.table.unwrap().object.to_string(), "e.t");
    let dropped = head("DROP VIEW IF EXISTS v, e.w CASCADE").unwrap();
    assert_eq!((dropped.names.len(), dropped.if_exists_at), (2, None));
    assert_eq!(head("DROP TRIGGER g").unwrap().if_exists_at, Some("DROP TRIGGER".len()));
    assert!(head("CREATE FUNCTION f RETURNS STRING SONAME 'x.so'").unwrap().is_loadable);
    assert!(head("CREATE TABLE t (a INT)").is_none());
}
