//! Whether a statement can run a stored function, view or trigger, as far as its text says it. Where that is not sure, it can.

use super::cursor::Cursor;
use super::lexer::Kind;
use super::statement::{Class, DmlKind, Statement};
use super::{SqlMode, mentions};

/// May stand before a parenthesis without a call: reserved on every server, so no function has such a name without quotes.
const KEYWORDS: [&str; 24] = [
    "VALUES", "IN", "AND", "OR", "XOR", "NOT", "WHERE", "SET", "ON", "BETWEEN", "LIKE", "CASE", "WHEN", "THEN", "ELSE",
    "INTERVAL", "DIV", "MOD", "BY", "IS", "REGEXP", "RLIKE", "BINARY", "UPDATE",
];
/// The servers' own functions, which a call means that follows its name at once.
const FUNCTIONS: [&str; 48] = [
    "ABS",
    "CAST",
    "CEIL",
    "CHAR_LENGTH",
    "COALESCE",
    "CONCAT",
    "CONCAT_WS",
    "CONVERT",
    "CURDATE",
    "CURRENT_TIMESTAMP",
    "CURTIME",
    "DATE",
    "DATE_ADD",
    "DATE_FORMAT",
    "DATE_SUB",
    "FLOOR",
    "FROM_UNIXTIME",
    "GREATEST",
    "HEX",
    "IF",
    "IFNULL",
    "JSON_ARRAY",
    "JSON_EXTRACT",
    "JSON_OBJECT",
    "JSON_REMOVE",
    "JSON_SET",
    "LEAST",
    "LEFT",
    "LENGTH",
    "LOWER",
    "MD5",
    "NOW",
    "NULLIF",
    "REPEAT",
    "REPLACE",
    "RIGHT",
    "ROUND",
    "SUBSTR",
    "SUBSTRING",
    "TRIM",
    "UNHEX",
    "UNIX_TIMESTAMP",
    "UPPER",
    "UTC_TIMESTAMP",
    "UUID",
    "YEAR",
    "MONTH",
    "DAY",
];
/// With them other tables or views may be read.
const READS: [&str; 6] = ["SELECT", "WITH", "TABLE", "JOIN", "USING", "CALL"];

/// Of a statement whose one table is a table without triggers: whether it runs nothing of the target's own. `kept_out`: a schema that it must not name either.
pub fn runs_no_program(sql: &[u8], statement: &Statement, mode: SqlMode, kept_out: &str) -> bool {
    let ([table], Class::Dml { kind: DmlKind::Insert | DmlKind::Replace | DmlKind::Update | DmlKind::Delete }) =
        (&*statement.tables, &statement.class)
    else {
        return false;
    };
    // What stands in comments for some versions only is read by a server, and perhaps not here.
    if statement.is_ambiguous || mentions(sql, kept_out.as_bytes()) || mentions(sql, b"/*!") || mentions(sql, b"/*M!") {
        return false;
    }
    let mut cursor = Cursor::new(sql, mode);
    let mut parentheses = 0;
    // A name, the byte behind it, and whether a schema stands before it.
    let mut name: Option<(&[u8], usize, bool)> = None;
    let mut is_behind_dot = false;
    loop {
        let token = cursor.take();
        match token.kind {
            Kind::End => return true,
            Kind::Broken => return false,
            Kind::Punct(b'(') => {
                parentheses += 1;
                let is_column_list = |word: &[u8]| parentheses == 1 && unquoted(word) == table.name.as_bytes();
                let is_call = |(word, end, qualified): (&[u8], usize, bool)| {
                    let is_one_of =
                        |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
                    let is_known = !qualified && (is_one_of(&KEYWORDS) || is_one_of(&FUNCTIONS) && end == token.start);
                    !is_known && !is_column_list(word)
                };
                if name.is_some_and(is_call) {
                    return false;
                }
            }
            Kind::Word if READS.iter().any(|word| token.text.eq_ignore_ascii_case(word.as_bytes())) => return false,
            _ => {}
        }
        name = matches!(token.kind, Kind::Word | Kind::Quoted(_)).then_some((
            token.text,
            token.start + token.text.len(),
            is_behind_dot,
        ));
        is_behind_dot = token.kind == Kind::Punct(b'.');
    }
}

fn unquoted(word: &[u8]) -> &[u8] {
    match word {
        [b'`' | b'"', inner @ .., _] => inner,
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::classify;

    #[test]
    fn what_may_run_a_program() {
        let check = |sql: &str, expected: bool| {
            let statement = classify(sql.as_bytes(), "d", SqlMode::default());
            let found = runs_no_program(sql.as_bytes(), &statement, SqlMode::default(), "heddle");
            assert_eq!(found, expected, "{sql}");
        };
        for sql in [
            "INSERT INTO t VALUES (1, 'f(2)')",
            "INSERT INTO d.t (a, b) VALUES (1, NOW()), (2, CONCAT('a', \"b\"))",
            "INSERT INTO `t` (a) VALUES (1) ON DUPLICATE KEY UPDATE a=VALUES(a)+(1)",
            "UPDATE t SET v = v + 1, s = CONCAT(LEFT(s, 40), '7') WHERE id IN (1, 2) AND (a OR b)",
            "DELETE FROM t WHERE a BETWEEN (1) AND (2)",
            "REPLACE INTO t SET a = -(3)",
        ] {
            check(sql, true);
        }
        for sql in [
            "INSERT INTO t VALUES (f(1))",
            "INSERT INTO t VALUES (d.now())",
            "INSERT INTO t VALUES (now ())",
            "INSERT INTO t VALUES (`now`())",
            "INSERT INTO t VALUES (t(1))",
            "INSERT INTO t (a) VALUES (t(1))",
            "INSERT INTO t SELECT a FROM v",
            "INSERT INTO t TABLE v",
            "UPDATE t SET a = (SELECT b FROM v)",
            "UPDATE t, u SET a = 1",
            "UPDATE t SET a = 1 WHERE b = 'Heddle'",
            "UPDATE t SET a = /*!50000 f(1) */ 1",
            "DELETE FROM t USING t JOIN u",
            "CALL p(1)",
            "DO f()",
            "WITH x AS (SELECT f()) UPDATE t SET a = 1",
            "UPDATE t SET a = 'x",
        ] {
            check(sql, false);
        }
    }
}
