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

/// In an `ALTER USER`, the new passwords of `CURRENT_USER`. MariaDB takes everything of such a statement but these (seen with 10.11); MySQL logs who it was.
pub fn ignored_passwords_at(sql: &[u8], mode: SqlMode) -> Vec<Range<usize>> {
    let mut cursor = Cursor::new(sql, mode);
    let mut places = Vec::new();
    if !cursor.eat_all(&["ALTER", "USER"]) {
        return places;
    }
    loop {
        if cursor.eat("CURRENT_USER") {
            if cursor.is_punct(b'(') && cursor.skip_parens().is_none() {
                return places;
            }
            let start = cursor.peek().start;
            if cursor.eat("IDENTIFIED") {
                authentication(&mut cursor);
                places.push(start..cursor.end());
            }
            continue;
        }
        if matches!(cursor.take().kind, Kind::End | Kind::Broken) {
            return places;
        }
    }
}

/// `BY [PASSWORD] 'x'`, `VIA plugin [USING 'x' | USING PASSWORD('x')] [OR plugin …]`
pub(super) fn authentication(cursor: &mut Cursor<'_>) {
    if cursor.eat("BY") {
        cursor.eat("PASSWORD");
        cursor.ident_or_text();
        return;
    }
    cursor.eat_any(&["VIA", "WITH"]);
    loop {
        cursor.ident_or_text();
        if cursor.eat_any(&["USING", "AS", "BY"]).is_some() {
            if cursor.eat("PASSWORD") {
                cursor.skip_parens();
            } else {
                cursor.ident_or_text();
            }
        }
        if !cursor.eat("OR") {
            return;
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

    #[test]
    fn passwords_that_mariadb_ignores() {
        let left = |sql: &str| {
            let mut left = sql.to_owned();
            for place in ignored_passwords_at(sql.as_bytes(), SqlMode::default()).into_iter().rev() {
                left.replace_range(place, "");
            }
            left
        };
        assert_eq!(left("ALTER USER CURRENT_USER IDENTIFIED BY 'x'"), "ALTER USER CURRENT_USER ");
        assert_eq!(
            left("alter user current_user ( ) identified by password '*x' REQUIRE SSL, u IDENTIFIED BY 'y'"),
            "alter user current_user ( )  REQUIRE SSL, u IDENTIFIED BY 'y'"
        );
        assert_eq!(
            left("ALTER USER CURRENT_USER() IDENTIFIED VIA a USING PASSWORD('x') OR b USING 'y' ACCOUNT LOCK"),
            "ALTER USER CURRENT_USER()  ACCOUNT LOCK"
        );
        assert_eq!(
            left("GRANT SELECT ON *.* TO CURRENT_USER IDENTIFIED BY 'x'"),
            "GRANT SELECT ON *.* TO CURRENT_USER IDENTIFIED BY 'x'"
        );
    }
}
