//! `CURRENT_USER` in a statement: who that is depends on the session, so a replica has to put the source's name in its place.

use std::ops::Range;

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// Where the statement says `CURRENT_USER` or `CURRENT_USER()`, in order; not in quotes or comments.
pub fn current_user_at(sql: &[u8], mode: SqlMode) -> Vec<Range<usize>> {
    let mut cursor = Cursor::new(sql, mode);
    let mut places = Vec::new();
    loop {
        let start = cursor.peek().start;
        if cursor.eat("CURRENT_USER") {
            let mut end = cursor.end();
            if cursor.eat_punct(b'(') && cursor.eat_punct(b')') {
                end = cursor.end();
            }
            places.push(start..end);
            continue;
        }
        if matches!(cursor.take().kind, Kind::End | Kind::Broken) {
            return places;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_named() {
        let check = |sql: &str, expected: &[&str]| {
            let places = current_user_at(sql.as_bytes(), SqlMode::default());
            assert_eq!(
                places.iter().map(|place| sql.get(place.clone()).unwrap()).collect::<Vec<_>>(),
                expected,
                "{sql}"
            );
        };
        check("GRANT r TO current_user, Current_User ( ), x", &["current_user", "Current_User ( )"]);
        check("ALTER USER CURRENT_USER() IDENTIFIED BY 'CURRENT_USER()'", &["CURRENT_USER()"]);
        check("GRANT SELECT ON `current_user`.* TO a -- current_user", &[]);
        check("INSERT INTO t VALUES (CURRENT_USER(", &["CURRENT_USER"]);
        check("SELECT 'not closed, CURRENT_USER", &[]);
    }
}
