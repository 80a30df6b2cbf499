//! Functions whose value is the account that runs a statement, or what that account has switched on: `USER()` and its like.
//!
//! Statements of a log are run by another account on a target than on their source. Never says what the value was.

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// With parentheses only.
const CALLS: [&str; 4] = ["USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_ROLE"];
/// With parentheses or without.
const WORDS: [&str; 2] = ["CURRENT_USER", "CURRENT_ROLE"];

/// The first of them that a text names, outside of quotes and comments. `ALTER TABLE … ADD user (…)` and the like do no harm: they are rare.
pub fn named_user_function(sql: &[u8], mode: SqlMode) -> Option<&'static str> {
    let mut cursor = Cursor::new(sql, mode);
    let mut is_qualified = false;
    loop {
        if !is_qualified {
            if let Some(word) = WORDS.into_iter().find(|word| cursor.is(word)) {
                return Some(word);
            }
            let mut ahead = cursor;
            if let Some(word) = ahead.eat_any(&CALLS)
                && ahead.eat_punct(b'(')
                && ahead.eat_punct(b')')
            {
                return Some(word);
            }
        }
        is_qualified = cursor.is_punct(b'.') || cursor.is_punct(b'@');
        if matches!(cursor.take().kind, Kind::End | Kind::Broken) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_function_is_named() {
        for (sql, expected) in [
            ("INSERT INTO t VALUES (user())", Some("USER")),
            ("UPDATE t SET a = CONCAT(System_User ( ), 'x')", Some("SYSTEM_USER")),
            ("SELECT session_user()", Some("SESSION_USER")),
            ("INSERT INTO t VALUES (CURRENT_USER)", Some("CURRENT_USER")),
            ("INSERT INTO t VALUES (CURRENT_USER())", Some("CURRENT_USER")),
            ("INSERT INTO t VALUES (current_role)", Some("CURRENT_ROLE")),
            ("INSERT INTO user (a) VALUES (1)", None),
            ("INSERT INTO t VALUES ('USER()') -- user()", None),
            ("INSERT INTO t SELECT d.user() FROM t", None),
            ("INSERT INTO t SELECT `user`.a FROM user", None),
            ("SET PASSWORD = 'x'", None),
        ] {
            assert_eq!(named_user_function(sql.as_bytes(), SqlMode::default()), expected, "{sql}");
        }
    }
}
