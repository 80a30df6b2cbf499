//! Statements that take locks by name, or let go of all that their session holds.

use super::SqlMode;
use super::tokens::tokens;

const CALLS: [&str; 2] = ["GET_LOCK", "RELEASE_ALL_LOCKS"];

/// Whether a text names such a function, outside of quotes and comments.
pub fn names_user_locks(sql: &[u8], mode: SqlMode) -> bool {
    tokens(sql, mode).any(|mut here| here.cursor.eat_any(&CALLS).is_some() && here.cursor.eat_punct(b'('))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_statements_name_locks() {
        for (sql, expected) in [
            ("INSERT INTO t SELECT GET_LOCK('a', 0)", true),
            ("UPDATE t SET n = n + IF(n > 5, 1, get_lock ('a', 100))", true),
            ("INSERT INTO t VALUES (RELEASE_ALL_LOCKS())", true),
            ("INSERT INTO t VALUES (RELEASE_LOCK('a'), IS_FREE_LOCK('a'))", false),
            ("INSERT INTO t VALUES ('GET_LOCK(1)') -- get_lock(", false),
            ("INSERT INTO t (get_lock) VALUES (1)", false),
        ] {
            assert_eq!(names_user_locks(sql.as_bytes(), SqlMode::default()), expected, "{sql}");
        }
    }
}
