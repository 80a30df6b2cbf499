//! Which accounts a statement about users, roles and privileges changes, by their places in its grammar, and the statement without some of them.
//!
//! Never decides which ones are left out. A statement that is not understood has no answer.

use std::ops::Range;

use super::SqlMode;
use super::current_user::authentication;
use super::cursor::Cursor;
use super::lexer::Kind;

/// An account as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    Named {
        user: String,
        /// `None`: the server chooses one.
        host: Option<String>,
    },
    /// That of the session: it is named `CURRENT_USER` or `USER()`, or is not named.
    OfSession,
}

/// One of the accounts that a statement changes, with what belongs to it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `RENAME USER` has two in one entry.
    pub accounts: Vec<Account>,
    range: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Refused where the account is there.
    CreateUser,
    CreateRole,
    /// `CREATE OR REPLACE`, `CREATE … IF NOT EXISTS`
    CreateAnyway,
    /// `GRANT`, `REVOKE`
    HandOn,
    Other,
}

/// What an account statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStatement {
    pub verb: Verb,
    pub entries: Vec<Entry>,
    /// `GRANT`, `REVOKE`: where the privileges and their object stand, or the roles.
    pub handed_on: Option<Range<usize>>,
}

/// What is left of a statement without some of its accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementRemainder {
    Everything,
    Some(Vec<u8>),
    Nothing,
}

/// `None`: it is not understood, or no account statement.
pub fn account_statement(sql: &[u8], mode: SqlMode) -> Option<AccountStatement> {
    let mut cursor = Cursor::new(sql, mode);
    behind_settings(&mut cursor)?;
    match cursor.eat_any(&["CREATE", "ALTER", "DROP", "RENAME", "SET", "GRANT", "REVOKE"])? {
        "CREATE" => create(&mut cursor),
        "ALTER" => {
            cursor.eat("USER").then_some(())?;
            cursor.eat_all(&["IF", "EXISTS"]);
            Some(AccountStatement::of(Verb::Other, list(&mut cursor, with_authentication)?))
        }
        "DROP" => {
            cursor.eat_any(&["USER", "ROLE"])?;
            cursor.eat_all(&["IF", "EXISTS"]);
            Some(AccountStatement::of(Verb::Other, list(&mut cursor, name_only)?))
        }
        "RENAME" => {
            cursor.eat("USER").then_some(())?;
            Some(AccountStatement::of(Verb::Other, list(&mut cursor, pair)?))
        }
        "SET" => set(&mut cursor),
        "GRANT" => hand_on(&mut cursor, "TO"),
        _ => hand_on(&mut cursor, "FROM"),
    }
}

impl AccountStatement {
    fn of(verb: Verb, entries: Vec<Entry>) -> Self {
        Self { verb, entries, handed_on: None }
    }

    /// The statement (`sql` is its text) without the entries for which `is_left_out` says so.
    pub fn without(&self, sql: &[u8], is_left_out: impl Fn(&Entry) -> bool) -> StatementRemainder {
        let kept: Vec<&Entry> = self.entries.iter().filter(|entry| !is_left_out(entry)).collect();
        if kept.len() == self.entries.len() {
            return StatementRemainder::Everything;
        }
        let (Some(first), Some(last), false) = (self.entries.first(), self.entries.last(), kept.is_empty()) else {
            return StatementRemainder::Nothing;
        };
        let mut text = sql.get(..first.range.start).unwrap_or_default().to_vec();
        for (at, entry) in kept.into_iter().enumerate() {
            if at > 0 {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(sql.get(entry.range.clone()).unwrap_or_default());
        }
        text.extend_from_slice(sql.get(last.range.end..).unwrap_or_default());
        StatementRemainder::Some(text)
    }
}

/// MariaDB's `SET STATEMENT variable=value, … FOR statement`.
fn behind_settings(cursor: &mut Cursor<'_>) -> Option<()> {
    while cursor.eat_all(&["SET", "STATEMENT"]) {
        while !cursor.eat("FOR") {
            take(cursor)?;
        }
    }
    Some(())
}

/// A token, or a parenthesis with all that is in it.
fn take(cursor: &mut Cursor<'_>) -> Option<()> {
    match cursor.peek().kind {
        Kind::Punct(b'(') => cursor.skip_parens(),
        Kind::End | Kind::Broken => None,
        _ => {
            cursor.take();
            Some(())
        }
    }
}

fn create(cursor: &mut Cursor<'_>) -> Option<AccountStatement> {
    let replaces = cursor.eat_all(&["OR", "REPLACE"]);
    let object = cursor.eat_any(&["USER", "ROLE"])?;
    let keeps = cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    let (verb, entries) = match object {
        "USER" => (Verb::CreateUser, list(cursor, with_authentication)?),
        _ => (Verb::CreateRole, list(cursor, name_only)?),
    };
    Some(AccountStatement::of(if replaces || keeps { Verb::CreateAnyway } else { verb }, entries))
}

/// `SET PASSWORD [FOR account] …`, `SET DEFAULT ROLE … TO account, …` (MySQL), `SET DEFAULT ROLE role [FOR account]` (MariaDB).
fn set(cursor: &mut Cursor<'_>) -> Option<AccountStatement> {
    let of = |entries| Some(AccountStatement::of(Verb::Other, entries));
    let of_session = || vec![Entry { accounts: vec![Account::OfSession], range: 0..0 }];
    if cursor.eat("PASSWORD") {
        return if cursor.eat("FOR") { of(vec![name_only(cursor)?]) } else { of(of_session()) };
    }
    cursor.eat_all(&["DEFAULT", "ROLE"]).then_some(())?;
    loop {
        if cursor.eat("TO") {
            return of(list(cursor, name_only)?);
        }
        if cursor.eat("FOR") {
            return of(vec![name_only(cursor)?]);
        }
        if cursor.at_end() {
            return of(of_session());
        }
        take(cursor)?;
    }
}

fn hand_on(cursor: &mut Cursor<'_>, until: &str) -> Option<AccountStatement> {
    cursor.eat_all(&["IF", "EXISTS"]);
    let start = cursor.peek().start;
    let end = loop {
        let end = cursor.end();
        if cursor.eat(until) {
            break end;
        }
        take(cursor)?;
    };
    let entries = list(cursor, with_authentication)?;
    Some(AccountStatement { verb: Verb::HandOn, entries, handed_on: Some(start..end) })
}

fn list(cursor: &mut Cursor<'_>, one: impl Fn(&mut Cursor<'_>) -> Option<Entry>) -> Option<Vec<Entry>> {
    let mut entries = vec![one(cursor)?];
    while cursor.eat_punct(b',') {
        entries.push(one(cursor)?);
    }
    Some(entries)
}

fn name_only(cursor: &mut Cursor<'_>) -> Option<Entry> {
    let start = cursor.peek().start;
    Some(Entry { accounts: vec![account(cursor)?], range: start..cursor.end() })
}

/// `old TO new`
fn pair(cursor: &mut Cursor<'_>) -> Option<Entry> {
    let start = cursor.peek().start;
    let old = account(cursor)?;
    cursor.eat("TO").then_some(())?;
    let new = account(cursor)?;
    Some(Entry { accounts: vec![old, new], range: start..cursor.end() })
}

/// An account and how it is authenticated. What comes behind the last one, such as `REQUIRE SSL`, is about all of them.
fn with_authentication(cursor: &mut Cursor<'_>) -> Option<Entry> {
    let mut entry = name_only(cursor)?;
    while !cursor.is_punct(b',') && !cursor.at_end() && !is_about_all(*cursor) {
        if cursor.eat("IDENTIFIED") {
            authentication(cursor);
        } else if !KEEPING_PASSWORDS.iter().any(|words| cursor.eat_all(words)) {
            take(cursor)?;
        }
    }
    entry.range.end = cursor.end();
    Some(entry)
}

/// Parts of one account's authentication that end with a word which could begin an option for all.
const KEEPING_PASSWORDS: [&[&str]; 3] =
    [&["RETAIN", "CURRENT", "PASSWORD"], &["DISCARD", "OLD", "PASSWORD"], &["RANDOM", "PASSWORD"]];

fn is_about_all(mut cursor: Cursor<'_>) -> bool {
    if cursor.eat("PASSWORD") {
        return cursor.eat_any(&["EXPIRE", "HISTORY", "REUSE", "REQUIRE"]).is_some();
    }
    let words = [
        "REQUIRE",
        "WITH",
        "ACCOUNT",
        "COMMENT",
        "ATTRIBUTE",
        "DEFAULT",
        "FAILED_LOGIN_ATTEMPTS",
        "PASSWORD_LOCK_TIME",
        "AS",
        "IGNORE",
    ];
    cursor.eat_any(&words).is_some()
}

/// `user[@host]`, `CURRENT_USER[()]`, `USER()`.
fn account(cursor: &mut Cursor<'_>) -> Option<Account> {
    let mut ahead = *cursor;
    let has_parens = |ahead: &mut Cursor<'_>| ahead.eat_punct(b'(') && ahead.eat_punct(b')');
    if ahead.eat("CURRENT_USER") {
        *cursor = ahead;
        if has_parens(&mut ahead) {
            *cursor = ahead;
        }
        return Some(Account::OfSession);
    }
    if ahead.eat("USER") && has_parens(&mut ahead) {
        *cursor = ahead;
        return Some(Account::OfSession);
    }
    let user = cursor.ident_or_text()?;
    let host = if cursor.eat_punct(b'@') { Some(host(cursor)?) } else { None };
    Some(Account::Named { user, host })
}

/// In quotes, or letters, digits and dots.
fn host(cursor: &mut Cursor<'_>) -> Option<String> {
    if !matches!(cursor.peek().kind, Kind::Word | Kind::Number) {
        return cursor.ident_or_text();
    }
    let mut host = Vec::new();
    while host.is_empty() || cursor.peek().start == cursor.end() {
        match cursor.peek().kind {
            Kind::Word | Kind::Number | Kind::Punct(b'.') => host.extend_from_slice(cursor.take().text),
            _ => break,
        }
    }
    String::from_utf8(host).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(account: &Account) -> String {
        match account {
            Account::OfSession => "SESSION".to_owned(),
            Account::Named { user, host: None } => user.clone(),
            Account::Named { user, host: Some(host) } => format!("{user}@{host}"),
        }
    }

    /// The accounts of each entry, and what is left without those of `h`, whatever their host, and of the session.
    #[track_caller]
    fn check(sql: &str, entries: &str, left: &str) {
        let statement = account_statement(sql.as_bytes(), SqlMode::default()).expect(sql);
        let found: Vec<String> = statement
            .entries
            .iter()
            .map(|entry| entry.accounts.iter().map(shown).collect::<Vec<_>>().join(">"))
            .collect();
        assert_eq!(found.join(" "), entries, "{sql}");
        let remaining = statement.without(sql.as_bytes(), |entry| {
            entry.accounts.iter().any(|account| match account {
                Account::Named { user, .. } => user == "h",
                Account::OfSession => true,
            })
        });
        let remaining = match remaining {
            StatementRemainder::Everything => "=".to_owned(),
            StatementRemainder::Nothing => "-".to_owned(),
            StatementRemainder::Some(text) => String::from_utf8(text).unwrap(),
        };
        assert_eq!(remaining, left, "{sql}");
    }

    #[test]
    fn users_and_roles() {
        check("CREATE USER h", "h", "-");
        check("CREATE USER 'h'@'10.0.0.%' IDENTIFIED BY 'x' REQUIRE SSL ACCOUNT LOCK", "h@10.0.0.%", "-");
        check("create user `a` @ localhost, u@127.0.0.1 , \"v\"@`h`", "a@localhost u@127.0.0.1 v@h", "=");
        check(
            "CREATE USER a IDENTIFIED WITH 'p' AS 'x, y', h@b IDENTIFIED BY 'it''s', c REQUIRE SSL WITH MAX_USER_CONNECTIONS 1",
            "a h@b c",
            "CREATE USER a IDENTIFIED WITH 'p' AS 'x, y', c REQUIRE SSL WITH MAX_USER_CONNECTIONS 1",
        );
        check(
            "CREATE USER IF NOT EXISTS 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS 'h', 'h'@'%' IDENTIFIED WITH 'x' \
             DEFAULT ROLE `r`@`%`, h PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK",
            "a@% h@%",
            "CREATE USER IF NOT EXISTS 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS 'h' DEFAULT ROLE `r`@`%`, h PASSWORD EXPIRE \
             DEFAULT ACCOUNT UNLOCK",
        );
        check(
            "CREATE OR REPLACE USER h@'%', k@'%' IDENTIFIED VIA a USING PASSWORD('x') OR b USING 'y'",
            "h@% k@%",
            "CREATE OR REPLACE USER k@'%' IDENTIFIED VIA a USING PASSWORD('x') OR b USING 'y'",
        );
        check("ALTER USER a IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD REQUIRE SSL", "a", "=");
        check(
            "ALTER USER h DISCARD OLD PASSWORD, a IDENTIFIED BY PASSWORD '*x' PASSWORD HISTORY 5 COMMENT 'h'",
            "h a",
            "ALTER USER a IDENTIFIED BY PASSWORD '*x' PASSWORD HISTORY 5 COMMENT 'h'",
        );
        check("ALTER USER IF EXISTS h@'%' PASSWORD EXPIRE", "h@%", "-");
        check("ALTER USER USER() IDENTIFIED BY 'x'", "SESSION", "-");
        check("ALTER USER CURRENT_USER ( ) IDENTIFIED BY 'x'", "SESSION", "-");
        check("ALTER USER 'user'@'%' IDENTIFIED BY 'x'", "user@%", "=");
        check("DROP USER IF EXISTS a, h@x, b;", "a h@x b", "DROP USER IF EXISTS a, b;");
        check("DROP ROLE 'h'", "h", "-");
        check("CREATE ROLE r, h WITH ADMIN h@'%'", "r h", "CREATE ROLE r WITH ADMIN h@'%'");
        check(
            "RENAME USER a@b TO c, d TO h@'%', h TO e, f TO g",
            "a@b>c d>h@% h>e f>g",
            "RENAME USER a@b TO c, f TO g",
        );
        check("/*!50706 CREATE USER */ 'h'@'%' /* h */", "h@%", "-");
        check(
            "SET STATEMENT max_statement_time=(1) FOR DROP USER h, a",
            "h a",
            "SET STATEMENT max_statement_time=(1) FOR DROP USER a",
        );
    }

    #[test]
    fn passwords_and_default_roles() {
        check("SET PASSWORD FOR 'h'@'%' = '*x'", "h@%", "-");
        check("SET PASSWORD FOR a@b = PASSWORD('h')", "a@b", "=");
        check("SET PASSWORD = 'x'", "SESSION", "-");
        check("SET PASSWORD FOR CURRENT_USER() = 'x'", "SESSION", "-");
        check("SET DEFAULT ROLE h TO a, h@'%'", "a h@%", "SET DEFAULT ROLE h TO a");
        check("SET DEFAULT ROLE ALL TO h", "h", "-");
        check("SET DEFAULT ROLE 'r' FOR 'a'@'%'", "a@%", "=");
        check("SET DEFAULT ROLE r", "SESSION", "-");
    }

    #[test]
    fn privileges_and_roles_that_are_handed_on() {
        check(
            "GRANT SELECT (a, `to`), INSERT ON d.t TO a, h@'%' WITH GRANT OPTION",
            "a h@%",
            "GRANT SELECT (a, `to`), INSERT ON d.t TO a WITH GRANT OPTION",
        );
        check("GRANT ALL PRIVILEGES ON `h`.* TO a IDENTIFIED BY PASSWORD '*x' REQUIRE NONE", "a", "=");
        check(
            "GRANT ALL ON *.* TO h IDENTIFIED BY 'x', b IDENTIFIED WITH 'p' AS 'y'",
            "h b",
            "GRANT ALL ON *.* TO b IDENTIFIED WITH 'p' AS 'y'",
        );
        check("GRANT h TO a WITH ADMIN OPTION", "a", "=");
        check("GRANT r, s TO CURRENT_USER, a", "SESSION a", "GRANT r, s TO a");
        check("GRANT PROXY ON h TO 'a'@'b'", "a@b", "=");
        check("GRANT SELECT ON *.* TO h AS a WITH ROLE r", "h", "-");
        check(
            "REVOKE IF EXISTS ALL PRIVILEGES, GRANT OPTION FROM h, a IGNORE UNKNOWN USER",
            "h a",
            "REVOKE IF EXISTS ALL PRIVILEGES, GRANT OPTION FROM a IGNORE UNKNOWN USER",
        );
        check("REVOKE ADMIN OPTION FOR r FROM h", "h", "-");
        let sql = "GRANT ALL ON `shop`.* TO app";
        let handed_on = account_statement(sql.as_bytes(), SqlMode::default()).unwrap().handed_on.unwrap();
        assert_eq!(sql.get(handed_on), Some("ALL ON `shop`.*"));
    }

    #[test]
    fn what_is_no_account_statement_or_not_understood() {
        for sql in [
            "CREATE TABLE h (a INT)",
            "SET @a = 1",
            "DROP DATABASE h",
            "GRANT SELECT ON d.t",
            "CREATE USER 'a\\'b'",
            "DROP USER",
            "",
        ] {
            assert_eq!(account_statement(sql.as_bytes(), SqlMode::default()), None, "{sql}");
        }
    }
}
