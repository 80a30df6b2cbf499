//! Functions whose value is the account that runs a statement, or what that account has switched on: `USER()` and its like.
//!
//! Statements of a log are run by another account on a target than on their source. Never says what the value was.

use super::SqlMode;
use super::tokens::{TokenPosition, tokens};

/// With parentheses only.
const CALLS: [&str; 4] = ["USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_ROLE"];
/// With parentheses or without.
const WORDS: [&str; 2] = ["CURRENT_USER", "CURRENT_ROLE"];

/// The first of them that a text names, outside of quotes and comments. `ALTER TABLE … ADD user (…)` and the like do no harm: they are rare.
pub fn named_user_function(sql: &[u8], mode: SqlMode) -> Option<&'static str> {
    tokens(sql, mode).filter(|here| !here.is_qualified).find_map(|TokenPosition { mut cursor, .. }| {
        let word = WORDS.into_iter().find(|word| cursor.is(word));
        word.or_else(|| cursor.eat_any(&CALLS).filter(|_| cursor.eat_punct(b'(') && cursor.eat_punct(b')')))
    })
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
