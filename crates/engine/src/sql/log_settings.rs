//! MariaDB's `SET STATEMENT variable=value, … FOR statement`, without the variables that are about the source's own log: a session may not change them
//! in a transaction, and what they did to the log they have done.

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// Found by setting each session variable of MariaDB 11.8 inside a transaction.
const NAMES: [&str; 7] = [
    "BINLOG_FORMAT",
    "BINLOG_DIRECT_NON_TRANSACTIONAL_UPDATES",
    "GTID_DOMAIN_ID",
    "GTID_SEQ_NO",
    "SKIP_REPLICATION",
    "SQL_LOG_BIN",
    "WSREP_ON",
];

/// The statement without them. `None`: it sets none.
pub fn without_log_settings(sql: &[u8], mode: SqlMode) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(sql, mode);
    if !cursor.eat_all(&["SET", "STATEMENT"]) {
        return None;
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut found = false;
    loop {
        let start = cursor.peek().start;
        let is_one = cursor.eat_any(&NAMES).is_some();
        let mut depth = 0u32;
        let end = loop {
            if depth == 0 && (cursor.is_punct(b',') || cursor.is("FOR")) {
                break cursor.end();
            }
            match cursor.take().kind {
                Kind::Punct(b'(') => depth += 1,
                Kind::Punct(b')') => depth = depth.checked_sub(1)?,
                Kind::End | Kind::Broken => return None,
                _ => {}
            }
        };
        if is_one {
            found = true;
        } else {
            kept.push(sql.get(start..end)?);
        }
        if !cursor.eat_punct(b',') {
            break;
        }
    }
    let rest = sql.get(cursor.peek().start..)?;
    if !found {
        return None;
    }
    if kept.is_empty() {
        cursor.take();
        return Some(sql.get(cursor.peek().start..)?.to_vec());
    }
    Some([b"SET STATEMENT ".as_slice(), &kept.join(&b", "[..]), b" ", rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_are_taken_out() {
        for (sql, expected) in [
            ("SET STATEMENT binlog_format=ROW FOR INSERT INTO t VALUES (1)", Some("INSERT INTO t VALUES (1)")),
            (
                "set statement Gtid_Domain_Id = (1+2), max_statement_time=1 FOR UPDATE t SET a = 'for, x'",
                Some("SET STATEMENT max_statement_time=1 FOR UPDATE t SET a = 'for, x'"),
            ),
            (
                "SET STATEMENT sql_mode='a,b', wsrep_on=0, tmp_table_size=IF(1,2,3) FOR DELETE FROM t",
                Some("SET STATEMENT sql_mode='a,b', tmp_table_size=IF(1,2,3) FOR DELETE FROM t"),
            ),
            ("SET STATEMENT max_statement_time=1 FOR DELETE FROM t", None),
            ("SET binlog_format=ROW", None),
            ("SET STATEMENT binlog_format=ROW", None),
            ("INSERT INTO t VALUES ('SET STATEMENT binlog_format=1 FOR')", None),
        ] {
            let edited = without_log_settings(sql.as_bytes(), SqlMode::default());
            assert_eq!(edited.map(|sql| String::from_utf8(sql).unwrap()).as_deref(), expected, "{sql}");
        }
    }
}
