//! What an ALTER TABLE or RENAME TABLE does to names, rows and the places of columns.
//!
//! For targets that execute no SQL. Says nothing of types and indexes: table maps tell those.

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;
use super::names::ObjectName;

/// One ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    pub table: ObjectName,
    pub renamed_to: Option<ObjectName>,
    /// Rows come or go without being logged: partitions dropped, exchanged or converted, tablespaces imported, the
    /// history of a system-versioned table dropped.
    pub moves_rows: bool,
    /// The primary key may be another one afterwards.
    pub primary_key: bool,
    /// Columns may stand at other places, or their values be encoded otherwise, with the same types as before.
    pub columns: bool,
}

/// The pairs (old name, new name) of a RENAME TABLE, in order.
pub fn renames(sql: &[u8], default_schema: &str, mode: SqlMode) -> Option<Vec<(ObjectName, ObjectName)>> {
    let mut cursor = Cursor::new(sql, mode);
    cursor.eat("RENAME").then_some(())?;
    cursor.eat_any(&["TABLE", "TABLES"])?;
    cursor.eat_all(&["IF", "EXISTS"]);
    let mut pairs = Vec::new();
    loop {
        let from = cursor.object(default_schema)?;
        if cursor.eat("WAIT") {
            cursor.take();
        } else {
            cursor.eat("NOWAIT");
        }
        cursor.eat("TO").then_some(())?;
        pairs.push((from, cursor.object(default_schema)?));
        if !cursor.eat_punct(b',') {
            return cursor.at_end().then_some(pairs);
        }
    }
}

/// Reads an ALTER TABLE; `None` for any other statement.
pub fn alteration(sql: &[u8], default_schema: &str, mode: SqlMode) -> Option<Alteration> {
    let mut cursor = Cursor::new(sql, mode);
    cursor.eat("ALTER").then_some(())?;
    while cursor.eat_any(&["ONLINE", "OFFLINE", "IGNORE"]).is_some() {}
    cursor.eat("TABLE").then_some(())?;
    cursor.eat_all(&["IF", "EXISTS"]);
    let table = cursor.object(default_schema)?;
    let mut found = Alteration { table, renamed_to: None, moves_rows: false, primary_key: false, columns: false };
    let mut depth = 0u32;
    loop {
        if depth == 0 && clause(&mut found, &mut cursor, default_schema)? {
            continue;
        }
        match cursor.take().kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.checked_sub(1)?,
            Kind::End if depth == 0 => return Some(found),
            Kind::Punct(b';') if depth == 0 && cursor.at_end() => return Some(found),
            Kind::End | Kind::Broken | Kind::Punct(b';') => return None,
            _ => {}
        }
    }
}

/// Whether an ALTER TABLE empties or drops partitions: it then does nothing else.
pub fn removes_partitions(sql: &[u8], default_schema: &str, mode: SqlMode) -> bool {
    let mut cursor = Cursor::new(sql, mode);
    let subject = |cursor: &mut Cursor<'_>| {
        cursor.eat("ALTER").then_some(())?;
        while cursor.eat_any(&["ONLINE", "OFFLINE", "IGNORE"]).is_some() {}
        cursor.eat("TABLE").then_some(())?;
        cursor.eat_all(&["IF", "EXISTS"]);
        cursor.object(default_schema)
    };
    if subject(&mut cursor).is_none() {
        return false;
    }
    if cursor.eat("WAIT") {
        cursor.take();
    } else {
        cursor.eat("NOWAIT");
    }
    cursor.eat_all(&["TRUNCATE", "PARTITION"]) || cursor.eat_all(&["DROP", "PARTITION"])
}

/// Takes some words that matter; false when none stands here.
fn clause(found: &mut Alteration, cursor: &mut Cursor<'_>, default_schema: &str) -> Option<bool> {
    if cursor.eat("RENAME") {
        if cursor.eat("COLUMN") {
            found.columns = true;
        } else if cursor.eat_any(&["INDEX", "KEY", "CONSTRAINT"]).is_none() {
            if cursor.eat_any(&["TO", "AS"]).is_none() {
                cursor.eat_punct(b'=');
            }
            found.renamed_to = Some(cursor.object(default_schema)?);
        }
    } else if cursor.eat("DROP") {
        if cursor.eat("PRIMARY") {
            found.primary_key = true;
        } else if cursor.eat("PARTITION") || cursor.eat_all(&["SYSTEM", "VERSIONING"]) {
            found.moves_rows = true;
        } else if cursor.eat_any(&["INDEX", "KEY", "FOREIGN", "CONSTRAINT", "CHECK"]).is_none() {
            found.columns = true;
        }
    } else if cursor.eat_any(&["EXCHANGE", "DISCARD", "IMPORT"]).is_some()
        || cursor.eat_all(&["TRUNCATE", "PARTITION"])
        || cursor.eat_all(&["CONVERT", "PARTITION"])
        || cursor.eat_all(&["CONVERT", "TABLE"])
    {
        found.moves_rows = true;
    } else if cursor.eat("PRIMARY") {
        found.primary_key = true;
    } else if cursor.eat_any(&["FIRST", "AFTER", "CONVERT", "CHARACTER", "CHARSET", "VERSIONING"]).is_some() {
        found.columns = true;
    } else {
        return Some(false);
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ObjectName {
        let (schema, name) = text.split_once('.').unwrap();
        ObjectName::new(schema, name)
    }

    #[test]
    fn partitions_that_go() {
        for (sql, is_one) in [
            ("ALTER TABLE t DROP PARTITION p0, p1", true),
            ("ALTER ONLINE TABLE IF EXISTS `x`.t NOWAIT DROP PARTITION IF EXISTS p0", true),
            ("ALTER TABLE t TRUNCATE PARTITION ALL", true),
            ("ALTER TABLE t DROP COLUMN a", false),
            ("ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (9))", false),
            ("DROP TABLE t", false),
        ] {
            assert_eq!(removes_partitions(sql.as_bytes(), "d", SqlMode::default()), is_one, "{sql}");
        }
    }

    #[test]
    fn pairs_of_renames() {
        let check = |sql: &str, expected: Option<&[(&str, &str)]>| {
            let pairs = renames(sql.as_bytes(), "d", SqlMode::default());
            let expected: Option<Vec<_>> =
                expected.map(|pairs| pairs.iter().map(|(a, b)| (name(a), name(b))).collect());
            assert_eq!(pairs, expected, "{sql}");
        };
        check("RENAME TABLE a TO tmp, b TO a, tmp TO b", Some(&[("d.a", "d.tmp"), ("d.b", "d.a"), ("d.tmp", "d.b")]));
        check("rename tables if exists `x`.`a` nowait to y.a;", Some(&[("x.a", "y.a")]));
        check("RENAME USER a TO b", None);
        check("RENAME TABLE a TO", None);
    }

    #[test]
    fn alterations() {
        // Renamed to, then: rows, primary key, columns.
        let check = |sql: &str, renamed_to: Option<&str>, flags: (bool, bool, bool)| {
            let found = alteration(sql.as_bytes(), "d", SqlMode::default()).expect(sql);
            assert_eq!(found.table, name("d.t"), "{sql}");
            assert_eq!(found.renamed_to, renamed_to.map(name), "{sql}");
            assert_eq!((found.moves_rows, found.primary_key, found.columns), flags, "{sql}");
        };
        check("ALTER TABLE t ADD INDEX (a), ENGINE=InnoDB", None, (false, false, false));
        check("ALTER TABLE t ADD COLUMN x INT DEFAULT (first(1))", None, (false, false, false));
        check("ALTER TABLE t ADD x INT AFTER a", None, (false, false, true));
        check("alter online table d.t rename to e.u, drop index i", Some("e.u"), (false, false, false));
        check("ALTER TABLE t RENAME INDEX a TO b", None, (false, false, false));
        check("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", None, (false, true, false));
        check("ALTER TABLE t DROP a", None, (false, false, true));
        check("ALTER TABLE t DROP PARTITION p0", None, (true, false, false));
        check("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", None, (true, false, false));
        check("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", None, (false, false, true));
        assert_eq!(alteration(b"ALTER DATABASE d CHARACTER SET x", "d", SqlMode::default()), None);
    }
}
