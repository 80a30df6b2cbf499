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

/// The roles that a `GRANT role, … TO` or `REVOKE [ADMIN OPTION FOR] role, … FROM` hands on, or takes back. `None`: it is about privileges.
pub fn roles_handed_on(sql: &[u8], mode: SqlMode) -> Option<Vec<String>> {
    let mut cursor = Cursor::new(sql, mode);
    let end = match cursor.eat_any(&["GRANT", "REVOKE"])? {
        "GRANT" => "TO",
        _ => {
            cursor.eat_all(&["ADMIN", "OPTION", "FOR"]);
            "FROM"
        }
    };
    let mut roles = Vec::new();
    loop {
        roles.push(cursor.ident_or_text()?);
        if cursor.eat(end) {
            return Some(roles);
        }
        cursor.eat_punct(b',').then_some(())?;
    }
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

    #[test]
    fn which_roles_are_handed_on() {
        for (sql, expected) in [
            ("GRANT r TO u", Some("r")),
            ("grant `r 1`, 'r2' to u@h, v with admin option", Some("r 1 r2")),
            ("REVOKE r FROM u", Some("r")),
            ("REVOKE ADMIN OPTION FOR r, s FROM u", Some("r s")),
            ("GRANT SELECT ON d.* TO u", None),
            ("GRANT ALL PRIVILEGES ON *.* TO u", None),
            ("GRANT SELECT, INSERT (a) ON d.t TO u", None),
            ("GRANT PROXY ON u TO v", None),
            ("DROP ROLE r", None),
        ] {
            let roles = roles_handed_on(sql.as_bytes(), SqlMode::default());
            assert_eq!(roles.map(|roles| roles.join(" ")).as_deref(), expected, "{sql}");
        }
    }
}
