//! `CREATE ROLE`: whose it is.

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// Where a `WITH ADMIN` clause would stand in a `CREATE ROLE` that has none: MariaDB then gives the role to whoever runs it.
pub fn role_without_admin_at(sql: &[u8], mode: SqlMode) -> Option<usize> {
    let mut cursor = Cursor::new(sql, mode);
    cursor.eat("CREATE").then_some(())?;
    cursor.eat_all(&["OR", "REPLACE"]);
    cursor.eat("ROLE").then_some(())?;
    while !cursor.at_end() {
        if cursor.is("WITH") || matches!(cursor.take().kind, Kind::End | Kind::Broken) {
            return None;
        }
    }
    Some(cursor.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_roles_that_are_nobodys_yet() {
        for (sql, with) in [
            ("CREATE ROLE r", Some("CREATE ROLE r!")),
            ("create or replace role `with`, b ; ", Some("create or replace role `with`, b! ; ")),
            ("CREATE ROLE IF NOT EXISTS r -- a note", Some("CREATE ROLE IF NOT EXISTS r! -- a note")),
            ("CREATE ROLE r WITH ADMIN x@localhost", None),
            ("CREATE USER u", None),
            ("DROP ROLE r", None),
        ] {
            let at = role_without_admin_at(sql.as_bytes(), SqlMode::default());
            assert_eq!(
                at.map(|at| format!("{}!{}", sql.get(..at).unwrap(), sql.get(at..).unwrap())).as_deref(),
                with,
                "{sql}"
            );
        }
    }
}
