//! Calls of `DATABASE()` and `SCHEMA()`: their value is the default schema of the session that runs the statement. Never says what it was.

use std::ops::Range;

use super::SqlMode;
use super::tokens::{TokenPosition, tokens};

/// Where a text calls them, outside of quotes and comments.
pub fn default_schema_calls_at(sql: &[u8], mode: SqlMode) -> Vec<Range<usize>> {
    let call = |TokenPosition { mut cursor, is_qualified }: TokenPosition<'_>| {
        let start = cursor.peek().start;
        let is_call = !is_qualified
            && cursor.eat_any(&["DATABASE", "SCHEMA"]).is_some()
            && cursor.eat_punct(b'(')
            && cursor.eat_punct(b')');
        is_call.then(|| start..cursor.end())
    };
    tokens(sql, mode).filter_map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_default_schema_is_asked_for() {
        for (sql, expected) in [
            ("INSERT INTO d.t VALUES (DATABASE(), 1)", &["DATABASE()"][..]),
            ("UPDATE d.t SET a = CONCAT(schema ( ), database())", &["schema ( )", "database()"]),
            ("INSERT INTO d.t VALUES ('DATABASE()') -- schema()", &[]),
            ("DROP DATABASE d", &[]),
            ("INSERT INTO d.t SELECT f.database() FROM d.u", &[]),
            ("INSERT INTO d.database (a) VALUES (1)", &[]),
        ] {
            let found = default_schema_calls_at(sql.as_bytes(), SqlMode::default());
            let found: Vec<_> = found.into_iter().map(|at| sql.get(at).unwrap_or_default()).collect();
            assert_eq!(found, expected, "{sql}");
        }
    }
}
