//! What `SHOW CREATE USER` says of an account, taken apart: how it logs in, and what its logins are bound to.

use std::fmt;

use super::name::AccountName;
use super::tokens::{Token, TokenKind, Tokens};

/// A literal of a statement that nobody may read: a hash. It has no form for messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn literal(&self) -> &str {
        &self.0
    }

    /// What servers show in its place to an account that may not read it.
    pub fn is_hidden(&self) -> bool {
        self.0.contains("<secret>")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A plugin, and what it compares a login with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginMethod {
    pub plugin: String,
    pub value: Option<Secret>,
}

/// Which of several methods a login has to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// MariaDB's `OR`.
    Any,
    /// MySQL's `AND`.
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub methods: Vec<LoginMethod>,
    pub combination: Combination,
    pub default_roles: Vec<AccountName>,
    /// Behind `REQUIRE`; `None`: nothing.
    pub require: Option<String>,
    /// `MAX_…`, with the number.
    pub limits: Vec<(String, String)>,
    /// Other clauses than the defaults: about its password, and `ATTRIBUTE`.
    pub clauses: Vec<String>,
    pub is_locked: bool,
}

/// MySQL's roles are accounts that are made so.
const EXPIRED: &str = "PASSWORD EXPIRE";

impl Definition {
    /// `None`: it is not understood.
    pub fn parse(sql: &str) -> Option<Self> {
        let mut tokens = Tokens::of(sql)?;
        tokens.eat_all(&["CREATE", "USER"]).then_some(())?;
        tokens.account()?;
        let mut definition = Self {
            methods: Vec::new(),
            combination: Combination::Any,
            default_roles: Vec::new(),
            require: None,
            limits: Vec::new(),
            clauses: Vec::new(),
            is_locked: false,
        };
        while let Some(head) = tokens.peek() {
            let clause = clause(&mut tokens)?;
            definition.take(head, clause)?;
        }
        if definition.methods.is_empty() {
            // MariaDB: of an account without a password.
            definition.methods.push(LoginMethod { plugin: NATIVE.to_owned(), value: None });
        }
        Some(definition)
    }

    fn take(&mut self, head: Token<'_>, clause: &str) -> Option<()> {
        let mut tokens = Tokens::of(clause)?;
        tokens.take()?;
        match head.text.to_ascii_uppercase().as_str() {
            "IDENTIFIED" => self.take_methods(&mut tokens)?,
            "DEFAULT" => {
                tokens.eat("ROLE").then_some(())?;
                loop {
                    self.default_roles.push(tokens.account()?);
                    if !tokens.eat_punct(",") {
                        break;
                    }
                }
                tokens.is_at_end().then_some(())?;
            }
            "REQUIRE" => {
                let start = tokens.peek()?.start;
                if !tokens.is("NONE") {
                    self.require = clause.get(start..).map(str::to_owned);
                }
            }
            "WITH" => {
                while let Some(limit) = tokens.take() {
                    self.limits.push((limit.text.to_owned(), tokens.take()?.text.to_owned()));
                }
            }
            "ACCOUNT" => self.is_locked = tokens.eat("LOCK"),
            _ if clause.ends_with(" DEFAULT") => {}
            _ => self.clauses.push(clause.to_owned()),
        }
        Some(())
    }

    fn take_methods(&mut self, tokens: &mut Tokens<'_>) -> Option<()> {
        if tokens.eat_all(&["BY", "PASSWORD"]) {
            let value = Some(value(tokens)?);
            self.methods.push(LoginMethod { plugin: NATIVE.to_owned(), value });
            return tokens.is_at_end().then_some(());
        }
        let is_mysql = tokens.eat("WITH");
        (is_mysql || tokens.eat("VIA")).then_some(())?;
        loop {
            let plugin = tokens.take()?.name()?;
            let has_value = tokens.eat("AS") || tokens.eat("USING");
            let value = if has_value { Some(value(tokens)?) } else { None };
            self.methods.push(LoginMethod { plugin, value });
            if !tokens.eat("OR") {
                break;
            }
        }
        if is_mysql && (tokens.eat("AND") || self.methods.len() > 1) {
            self.combination = Combination::All;
        }
        tokens.is_at_end().then_some(())
    }

    /// MySQL's `CREATE ROLE`: an account that nobody logs in to.
    pub fn is_role(&self) -> bool {
        self.is_locked && self.methods.iter().all(|method| method.value.is_none()) && self.is_expired()
    }

    /// Its password has to be changed at the next login.
    pub fn is_expired(&self) -> bool {
        self.clauses.iter().any(|clause| clause == EXPIRED)
    }
}

pub const NATIVE: &str = "mysql_native_password";

fn value(tokens: &mut Tokens<'_>) -> Option<Secret> {
    let token = tokens.take()?;
    let is_literal = token.kind == TokenKind::Text || token.kind == TokenKind::Word && token.text.starts_with("0x");
    is_literal.then(|| Secret(token.text.to_owned()))
}

/// The next clause, from its first word on.
fn clause<'a>(tokens: &mut Tokens<'a>) -> Option<&'a str> {
    let head = tokens.take()?;
    (head.kind == TokenKind::Word).then_some(())?;
    if head.is_word("IDENTIFIED") {
        let is_by = tokens.is("BY");
        tokens.take()?;
        if is_by {
            tokens.eat("PASSWORD");
        }
    } else if head.is_word("PASSWORD") {
        tokens.take()?;
    }
    while let Some(token) = tokens.peek() {
        let is_head = HEADS.iter().any(|word| token.is_word(word))
            || token.is_word("DEFAULT") && tokens.peek_second().is_some_and(|next| next.is_word("ROLE"));
        if is_head {
            break;
        }
        tokens.take();
    }
    Some(tokens.text_from(head.start))
}

const HEADS: [&str; 9] = [
    "IDENTIFIED",
    "REQUIRE",
    "WITH",
    "PASSWORD",
    "ACCOUNT",
    "FAILED_LOGIN_ATTEMPTS",
    "PASSWORD_LOCK_TIME",
    "ATTRIBUTE",
    "COMMENT",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn method(plugin: &str, value: Option<&str>) -> LoginMethod {
        LoginMethod { plugin: plugin.to_owned(), value: value.map(|value| Secret(value.to_owned())) }
    }

    #[test]
    fn of_mysql() {
        let found = Definition::parse(
            "CREATE USER `a``@b`@`%` IDENTIFIED WITH 'caching_sha2_password' AS 0x2441 DEFAULT ROLE `r1`@`%`,`r2`@`localhost` REQUIRE SUBJECT '/CN=a' ISSUER '/CN=WITH' \
             WITH MAX_QUERIES_PER_HOUR 5 MAX_USER_CONNECTIONS 3 PASSWORD EXPIRE INTERVAL 30 DAY ACCOUNT UNLOCK PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL DEFAULT \
             PASSWORD REQUIRE CURRENT FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 2 ATTRIBUTE '{\"comment\": \"it\\'s WITH\"}'",
        )
        .unwrap();
        assert_eq!(found.methods, [method("caching_sha2_password", Some("0x2441"))]);
        assert_eq!(found.default_roles, [AccountName::new("r1", "%"), AccountName::new("r2", "localhost")]);
        assert_eq!(found.require.as_deref(), Some("SUBJECT '/CN=a' ISSUER '/CN=WITH'"));
        let limits = [("MAX_QUERIES_PER_HOUR", "5"), ("MAX_USER_CONNECTIONS", "3")];
        assert_eq!(found.limits, limits.map(|(name, number)| (name.to_owned(), number.to_owned())));
        assert_eq!(
            found.clauses,
            [
                "PASSWORD EXPIRE INTERVAL 30 DAY",
                "PASSWORD HISTORY 5",
                "PASSWORD REQUIRE CURRENT",
                "FAILED_LOGIN_ATTEMPTS 3",
                "PASSWORD_LOCK_TIME 2",
                "ATTRIBUTE '{\"comment\": \"it\\'s WITH\"}'"
            ]
        );
        assert!(!found.is_locked && !found.is_role());
    }

    #[test]
    fn several_methods() {
        let found = Definition::parse(
            "CREATE USER 'm'@'%' IDENTIFIED WITH 'a' AS 'x''y\\'' AND IDENTIFIED WITH 'b' REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK",
        )
        .unwrap();
        assert_eq!(found.methods, [method("a", Some("'x''y\\''")), method("b", None)]);
        assert_eq!((found.combination, found.require, found.clauses.len()), (Combination::All, None, 0));
        let found = Definition::parse("CREATE USER `t`@`localhost` IDENTIFIED VIA unix_socket OR ed25519 USING 'abc' ACCOUNT LOCK PASSWORD EXPIRE").unwrap();
        assert_eq!(found.methods, [method("unix_socket", None), method("ed25519", Some("'abc'"))]);
        assert_eq!((found.combination, found.is_locked, found.is_expired()), (Combination::Any, true, true));
        let device = "CREATE USER `m`@`%` IDENTIFIED WITH 'w' INITIAL AUTHENTICATION IDENTIFIED WITH 'c' AS 'x'";
        assert_eq!(Definition::parse(device), None);
    }

    #[test]
    fn of_mariadb() {
        let found = Definition::parse(
            "CREATE USER `e`@`10.0.0.0/255.255.255.0` IDENTIFIED BY PASSWORD '*AB' REQUIRE SSL WITH MAX_STATEMENT_TIME 1.500000 PASSWORD EXPIRE NEVER",
        )
        .unwrap();
        assert_eq!(found.methods, [method(NATIVE, Some("'*AB'"))]);
        assert_eq!(found.limits, [("MAX_STATEMENT_TIME".to_owned(), "1.500000".to_owned())]);
        assert_eq!(found.clauses, ["PASSWORD EXPIRE NEVER"]);
        assert_eq!(Definition::parse("CREATE USER ``@`h`").unwrap().methods, [method(NATIVE, None)]);
    }

    #[test]
    fn roles_and_secrets() {
        let role = "CREATE USER `r`@`%` IDENTIFIED WITH 'caching_sha2_password' REQUIRE NONE PASSWORD EXPIRE ACCOUNT LOCK PASSWORD HISTORY DEFAULT";
        assert!(Definition::parse(role).unwrap().is_role());
        let hidden = Definition::parse("CREATE USER `r`@`%` IDENTIFIED WITH 'c' AS '<secret>'").unwrap();
        assert!(hidden.methods.iter().all(|method| method.value.as_ref().is_some_and(Secret::is_hidden)));
        assert!(
            !format!("{:?}", Definition::parse("CREATE USER a IDENTIFIED BY PASSWORD 'hunter2'")).contains("hunter2")
        );
    }
}
