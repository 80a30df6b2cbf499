//! An account of the source in the words of the target: the statement that makes it, or why there is none. Pure.

use apply::mysql::server::sql::quote;
use binlog::Flavour;

use super::show_output::AccountName;
use super::show_output::{Combination, Definition, LoginMethod, NATIVE};
use super::source::{AccountKind, SourceAccount};
use super::target::TargetAccounts;

/// How an account is made.
#[derive(Clone)]
pub struct Creation {
    /// As the target calls it.
    pub name: AccountName,
    /// Behind `CREATE` or `ALTER`; empty: it is there. It has the password's hash.
    statement: String,
    /// What the account has on the source and not on the target.
    pub left_out: Vec<String>,
}

/// It logs in only when all is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstState {
    AsOnSource,
    Locked,
}

impl Creation {
    /// # Errors
    /// In words: why it can not be made.
    pub fn new(account: &SourceAccount, target: &TargetAccounts, state: FirstState) -> Result<Self, String> {
        let not_there = || Err("the target has no such roles".to_owned());
        let Some(name) = name_at(account, target.flavour) else { return not_there() };
        let mut creation = Self { name, statement: String::new(), left_out: Vec::new() };
        let definition = match (&account.definition, account.kind, target.flavour) {
            (_, AccountKind::Public, _) if target.is_mariadb_from(10, 11, 0) => return Ok(creation),
            (_, AccountKind::Public, _) => return not_there(),
            // An account of the source's, also as a role.
            (Some(definition), _, Flavour::MySql) => definition,
            (Some(definition), AccountKind::User, Flavour::MariaDb) => definition,
            (_, _, Flavour::MySql) if !target.is_mysql_from(8, 0, 0) => return not_there(),
            _ => {
                creation.statement = format!("ROLE {}", creation.name);
                return Ok(creation);
            }
        };
        let login = creation.login(definition, target)?;
        creation.statement = format!("USER {} {login}", creation.name);
        creation.add_clauses(definition, target, state)?;
        Ok(creation)
    }

    /// `None`: it is there already.
    pub fn create(&self) -> Option<String> {
        (!self.statement.is_empty()).then(|| format!("CREATE {}", self.statement))
    }

    pub fn alter(&self) -> Option<String> {
        self.statement.starts_with("USER").then(|| format!("ALTER {}", self.statement))
    }

    pub fn drop(&self) -> Option<String> {
        let word = self.statement.split(' ').next().filter(|word| !word.is_empty())?;
        Some(format!("DROP {word} {}", self.name))
    }

    /// The part about logins.
    fn login(&mut self, definition: &Definition, target: &TargetAccounts) -> Result<String, String> {
        let mut methods = Vec::new();
        for method in &definition.methods {
            match method_at(method, target) {
                Ok(method) => methods.push(method),
                Err(why) if definition.combination == Combination::All || definition.methods.len() == 1 => {
                    return Err(why);
                }
                Err(why) => self.left_out.push(format!("{} ({why})", method.plugin)),
            }
        }
        let takes_several = target.is_mariadb_from(10, 4, 0) || definition.combination == Combination::All;
        if !takes_several && methods.len() > 1 {
            let kept = methods.iter().position(|method| method.value.is_some()).unwrap_or(0);
            let others = methods.iter().enumerate().filter(|(at, _)| *at != kept);
            self.left_out
                .extend(others.map(|(_, method)| format!("{} (one of several ways to log in)", method.plugin)));
            methods = methods.into_iter().skip(kept).take(1).collect();
        }
        if methods.is_empty() {
            return Err(format!("the target has none of its ways to log in: {}", self.left_out.join(", ")));
        }
        if definition.combination == Combination::All && !target.is_mysql_from(8, 0, 27) {
            return Err("it logs in with several factors, which the target does not know".to_owned());
        }
        let is_mysql = target.flavour == Flavour::MySql;
        let of_value = if is_mysql { "AS" } else { "USING" };
        let texts: Vec<String> = methods
            .iter()
            .map(|Method { plugin, value }| match value {
                Some(value) => format!("{} {of_value} {value}", quote(plugin)),
                None => quote(plugin),
            })
            .collect();
        Ok(if is_mysql {
            format!("IDENTIFIED WITH {}", texts.join(" AND IDENTIFIED WITH "))
        } else {
            format!("IDENTIFIED VIA {}", texts.join(" OR "))
        })
    }

    fn add_clauses(
        &mut self,
        definition: &Definition,
        target: &TargetAccounts,
        state: FirstState,
    ) -> Result<(), String> {
        let mut text = definition.require.as_ref().map_or_else(String::new, |require| format!(" REQUIRE {require}"));
        let (limits, unknown): (Vec<_>, Vec<_>) = definition
            .limits
            .iter()
            .partition(|(name, _)| target.flavour == Flavour::MariaDb || name != "MAX_STATEMENT_TIME");
        let written = |limits: &[&(String, String)]| -> Vec<String> {
            limits.iter().map(|(name, number)| format!("{name} {number}")).collect()
        };
        self.left_out.extend(written(&unknown));
        if !limits.is_empty() {
            text.push_str(&format!(" WITH {}", written(&limits).join(" ")));
        }
        for clause in &definition.clauses {
            if knows_clause(clause, target) {
                text.push_str(&format!(" {clause}"));
            } else {
                // A comment is the operator's own.
                self.left_out.push(clause.split('\'').next().unwrap_or_default().trim().to_owned());
            }
        }
        if definition.is_locked || state == FirstState::Locked {
            if !(target.is_mysql_from(5, 7, 6) || target.is_mariadb_from(10, 4, 2)) {
                return Err("it is locked, which accounts of the target can not be".to_owned());
            }
            text.push_str(" ACCOUNT LOCK");
        }
        self.statement.push_str(&text);
        Ok(())
    }
}

/// How the target calls an account of the source; `None`: it can not have it.
pub fn name_at(account: &SourceAccount, target: Flavour) -> Option<AccountName> {
    match (account.kind, &account.definition) {
        (AccountKind::User, _) => Some(account.name.clone()),
        _ => account.name.of_role_at(target),
    }
}

fn knows_clause(clause: &str, target: &TargetAccounts) -> bool {
    let from_mysql = |major, minor, patch| target.is_mysql_from(major, minor, patch);
    let is = |words: &str| clause.starts_with(words);
    if is("PASSWORD EXPIRE") {
        from_mysql(5, 7, 4) || target.is_mariadb_from(10, 4, 3)
    } else if is("PASSWORD HISTORY") || is("PASSWORD REUSE") {
        from_mysql(8, 0, 3)
    } else if is("PASSWORD REQUIRE") {
        from_mysql(8, 0, 13)
    } else if is("FAILED_LOGIN_ATTEMPTS") || is("PASSWORD_LOCK_TIME") {
        from_mysql(8, 0, 19)
    } else {
        from_mysql(8, 0, 21)
    }
}

/// A login method in the target's words. It has the password's hash.
struct Method {
    plugin: String,
    value: Option<String>,
}

fn method_at(method: &LoginMethod, target: &TargetAccounts) -> Result<Method, String> {
    const SOCKETS: [&str; 2] = ["auth_socket", "unix_socket"];
    let mut plugin = method.plugin.as_str();
    if SOCKETS.contains(&plugin) && method.value.is_none() {
        plugin = if target.flavour == Flavour::MySql { "auth_socket" } else { "unix_socket" };
    }
    if !target.plugins.contains(plugin) {
        return Err(format!("the target does not have the authentication plugin {plugin}"));
    }
    let value =
        match &method.value {
            Some(value) if value.is_hidden() => {
                return Err(
                    "the source does not show its password's hash to Heddle's account: GRANT SELECT ON mysql.* to it"
                        .to_owned(),
                );
            }
            Some(value) => Some(literal_at(value.literal(), target).ok_or_else(|| {
                format!("the target takes the hash of {} only as text, which it is not", method.plugin)
            })?),
            None => None,
        };
    if value.is_none() && plugin != NATIVE && !SOCKETS.contains(&plugin) && target.flavour == Flavour::MariaDb {
        // What it means there is not known.
        return Err(format!("it has no password, and logs in with {plugin}"));
    }
    Ok(Method { plugin: plugin.to_owned(), value })
}

/// Hexadecimal literals only where the grammar has them.
fn literal_at(literal: &str, target: &TargetAccounts) -> Option<String> {
    let Some(digits) = literal.strip_prefix("0x") else { return Some(literal.to_owned()) };
    if target.is_mysql_from(8, 0, 17) {
        return Some(literal.to_owned());
    }
    let bytes = hex::decode(digits).ok()?;
    bytes.iter().all(|byte| byte.is_ascii_graphic()).then(|| String::from_utf8(bytes).ok().map(|text| quote(&text)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(flavour: Flavour, version: (u16, u16, u16), plugins: &[&str]) -> TargetAccounts {
        TargetAccounts {
            flavour,
            version,
            plugins: plugins.iter().map(|plugin| (*plugin).to_owned()).collect(),
            partial_revokes: false,
            mandatory_roles: String::new(),
            own: AccountName::new("heddle", "%"),
            names: Vec::new(),
            may_create: true,
        }
    }

    fn creation(sql: &str, target: &TargetAccounts) -> Result<Creation, String> {
        let definition = Definition::parse(sql).unwrap();
        let kind = if definition.is_role() { AccountKind::Role } else { AccountKind::User };
        let name = AccountName::new("a", "%");
        let account = SourceAccount { name, kind, definition: Some(definition), grants: Vec::new() };
        Creation::new(&account, target, FirstState::AsOnSource)
    }

    fn check(sql: &str, target: &TargetAccounts, expected: &str, left_out: &[&str]) {
        let creation = creation(sql, target).unwrap_or_else(|why| panic!("{sql}: {why}"));
        assert_eq!(creation.create().as_deref(), Some(expected), "{sql}");
        assert_eq!(creation.left_out, left_out, "{sql}");
    }

    #[test]
    fn on_the_same_server() {
        let target = target(Flavour::MySql, (9, 7, 0), &["caching_sha2_password"]);
        check(
            "CREATE USER `a`@`%` IDENTIFIED WITH 'caching_sha2_password' AS 0x24 DEFAULT ROLE `r`@`%` REQUIRE X509 WITH MAX_USER_CONNECTIONS 3 PASSWORD EXPIRE NEVER ACCOUNT LOCK PASSWORD HISTORY 5",
            &target,
            "CREATE USER 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS 0x24 REQUIRE X509 WITH MAX_USER_CONNECTIONS 3 PASSWORD EXPIRE NEVER PASSWORD HISTORY 5 ACCOUNT LOCK",
            &[],
        );
        let why = creation("CREATE USER a IDENTIFIED WITH 'mysql_native_password' AS '*A'", &target).err();
        assert_eq!(why.as_deref(), Some("the target does not have the authentication plugin mysql_native_password"));
        let why = creation("CREATE USER a IDENTIFIED WITH 'caching_sha2_password' AS '<secret>'", &target).err();
        assert!(why.is_some_and(|why| why.contains("GRANT SELECT ON mysql.*")));
    }

    #[test]
    fn on_an_older_server() {
        let target = target(Flavour::MySql, (5, 7, 22), &[NATIVE]);
        check(
            "CREATE USER `a`@`%` IDENTIFIED WITH 'mysql_native_password' AS 0x2A4142 PASSWORD EXPIRE DEFAULT PASSWORD HISTORY 5 ATTRIBUTE '{\"a\": 1}'",
            &target,
            "CREATE USER 'a'@'%' IDENTIFIED WITH 'mysql_native_password' AS '*AB'",
            &["PASSWORD HISTORY 5", "ATTRIBUTE"],
        );
        let two = "CREATE USER a IDENTIFIED WITH 'mysql_native_password' AS '*A' AND IDENTIFIED WITH 'mysql_native_password' AS '*B'";
        assert!(creation(two, &target).is_err());
    }

    #[test]
    fn on_the_other_vendors_server() {
        let mariadb = target(Flavour::MariaDb, (10, 11, 6), &[NATIVE, "unix_socket"]);
        check(
            "CREATE USER a IDENTIFIED WITH 'mysql_native_password' AS 0x2A4142 REQUIRE SSL ACCOUNT UNLOCK PASSWORD REQUIRE CURRENT",
            &mariadb,
            "CREATE USER 'a'@'%' IDENTIFIED VIA 'mysql_native_password' USING '*AB' REQUIRE SSL",
            &["PASSWORD REQUIRE CURRENT"],
        );
        check(
            "CREATE USER a IDENTIFIED WITH 'auth_socket'",
            &mariadb,
            "CREATE USER 'a'@'%' IDENTIFIED VIA 'unix_socket'",
            &[],
        );
        let role = "CREATE USER `a`@`%` IDENTIFIED WITH 'caching_sha2_password' PASSWORD EXPIRE ACCOUNT LOCK";
        check(role, &mariadb, "CREATE ROLE `a`", &[]);
        let why = creation("CREATE USER a IDENTIFIED WITH 'caching_sha2_password' AS 0x24", &mariadb).err();
        assert_eq!(why.as_deref(), Some("the target does not have the authentication plugin caching_sha2_password"));
        let mysql = target(Flavour::MySql, (8, 0, 40), &[NATIVE]);
        check(
            "CREATE USER a IDENTIFIED VIA unix_socket OR mysql_native_password USING '*A' WITH MAX_STATEMENT_TIME 1.5 MAX_USER_CONNECTIONS 2",
            &mysql,
            "CREATE USER 'a'@'%' IDENTIFIED WITH 'mysql_native_password' AS '*A' WITH MAX_USER_CONNECTIONS 2",
            &["unix_socket (the target does not have the authentication plugin auth_socket)", "MAX_STATEMENT_TIME 1.5"],
        );
        assert!(creation("CREATE USER a IDENTIFIED VIA ed25519 USING 'x' OR gssapi", &mysql).is_err());
    }

    #[test]
    fn roles_without_a_host() {
        let role = |name: AccountName, kind, target: &TargetAccounts| {
            let account = SourceAccount { name, kind, definition: None, grants: Vec::new() };
            Creation::new(&account, target, FirstState::AsOnSource).map(|creation| (creation.create(), creation.drop()))
        };
        let mariadb = target(Flavour::MariaDb, (10, 11, 6), &[]);
        let made = |create: &str, drop: &str| Ok((Some(create.to_owned()), Some(drop.to_owned())));
        assert_eq!(role(AccountName::role("r"), AccountKind::Role, &mariadb), made("CREATE ROLE `r`", "DROP ROLE `r`"));
        assert_eq!(role(AccountName::role("PUBLIC"), AccountKind::Public, &mariadb), Ok((None, None)));
        let mysql = target(Flavour::MySql, (8, 0, 40), &[]);
        assert_eq!(
            role(AccountName::role("r"), AccountKind::Role, &mysql),
            made("CREATE ROLE 'r'@'%'", "DROP ROLE 'r'@'%'")
        );
        assert!(role(AccountName::role("PUBLIC"), AccountKind::Public, &mysql).is_err());
        assert!(role(AccountName::role("r"), AccountKind::Role, &target(Flavour::MySql, (5, 7, 22), &[])).is_err());
    }
}
