//! What a `GRANT` or `REVOKE` is about.

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// Whether it may be about something of its session's default schema: unless it names an object behind `ON`, and the object's schema.
pub fn grants_in_default_schema(sql: &[u8], mode: SqlMode) -> bool {
    let mut cursor = Cursor::new(sql, mode);
    if cursor.eat_any(&["GRANT", "REVOKE"]).is_none() {
        return false;
    }
    loop {
        if cursor.eat("ON") {
            cursor.eat_any(&["TABLE", "FUNCTION", "PROCEDURE", "PACKAGE", "LIBRARY"]);
            cursor.eat("BODY");
            // Of a schema that is called as one of these words the dot is next.
            if !cursor.is_punct(b'.') {
                cursor.take();
            }
            return !cursor.is_punct(b'.');
        }
        if matches!(cursor.take().kind, Kind::End | Kind::Broken) {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_need_the_schema() {
        for (sql, needs) in [
            ("GRANT SELECT ON b.* TO x", false),
            ("REVOKE ALL ON *.* FROM x", false),
            ("grant select\non `b b`.`t` to x", false),
            ("GRANT EXECUTE ON PROCEDURE b.p TO x", false),
            ("GRANT EXECUTE ON PACKAGE BODY b.p TO x", false),
            ("GRANT SELECT ON function.t TO x", false),
            ("CREATE USER x", false),
            ("GRANT SELECT ON t TO x", true),
            ("GRANT SELECT ON * TO x", true),
            ("GRANT EXECUTE ON FUNCTION f TO x", true),
            ("GRANT SELECT ON `b.t` TO x", true),
            ("GRANT SELECT (`on`, c) ON t TO x", true),
            ("GRANT r1 TO x", true),
        ] {
            assert_eq!(grants_in_default_schema(sql.as_bytes(), SqlMode::default()), needs, "{sql}");
        }
    }
}
