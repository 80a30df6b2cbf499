//! The name in SAVEPOINT, ROLLBACK TO and RELEASE SAVEPOINT.

use super::SqlMode;
use super::cursor::Cursor;

/// `None`: the statement is none of these, or its name cannot be read.
pub fn savepoint_name(sql: &[u8], mode: SqlMode) -> Option<String> {
    let mut cursor = Cursor::new(sql, mode);
    match cursor.eat_any(&["SAVEPOINT", "RELEASE", "ROLLBACK"])? {
        "SAVEPOINT" => {}
        "RELEASE" => cursor.eat("SAVEPOINT").then_some(())?,
        _ => {
            cursor.eat("WORK");
            cursor.eat("TO").then_some(())?;
            // A savepoint may itself be called SAVEPOINT.
            let mut named = cursor;
            if named.eat("SAVEPOINT") && named.ident().is_some() {
                cursor.eat("SAVEPOINT");
            }
        }
    }
    let name = cursor.ident()?;
    cursor.at_end().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Charset;

    #[test]
    fn names_of_savepoints() {
        let gbk = SqlMode { charset: Charset::of_collation(28), ..SqlMode::default() };
        for (sql, expected) in [
            (b"SAVEPOINT a".as_slice(), Some("a")),
            (b"SAVEPOINT `a``b` ;", Some("a`b")),
            (b"ROLLBACK TO `x y`", Some("x y")),
            (b"ROLLBACK TO SAVEPOINT x", Some("x")),
            (b"rollback work to savepoint", Some("savepoint")),
            (b"RELEASE SAVEPOINT `\x81`x`", Some("\u{4e63}x")),
            (b"ROLLBACK", None),
            (b"INSERT INTO t VALUES (1)", None),
        ] {
            assert_eq!(savepoint_name(sql, gbk).as_deref(), expected, "{}", sql.escape_ascii());
        }
    }
}
