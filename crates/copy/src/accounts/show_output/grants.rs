//! What `SHOW GRANTS` says of an account, taken apart.

use super::name::AccountName;
use super::tokens::Tokens;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantOption {
    /// The account has it for itself.
    HasNot,
    /// `WITH GRANT OPTION`, `WITH ADMIN OPTION`
    Has,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// With their columns. The object's text is that of the statement: `*.*`, `` `d`.* ``, ``PROCEDURE `d`.`p` ``.
    Privileges {
        privileges: Vec<String>,
        object: String,
        option: GrantOption,
    },
    /// A schema is taken out of privileges on `*.*`: MySQL's partial revokes.
    Revoked {
        privileges: Vec<String>,
        object: String,
    },
    Proxy {
        account: AccountName,
        option: GrantOption,
    },
    Roles {
        roles: Vec<AccountName>,
        option: GrantOption,
    },
    DefaultRole(AccountName),
}

/// A line that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownGrant;

impl Grant {
    /// `None`: it is of another account. MariaDB adds the lines of roles.
    pub fn parse(line: &str, of: &AccountName) -> Result<Option<Self>, UnknownGrant> {
        let (grantee, grant) = parse(line).ok_or(UnknownGrant)?;
        Ok(grantee.is_same(of).then_some(grant))
    }
}

fn parse(line: &str) -> Option<(AccountName, Grant)> {
    let mut tokens = Tokens::of(line)?;
    if tokens.eat_all(&["SET", "DEFAULT", "ROLE"]) {
        let role = tokens.account()?;
        tokens.eat("FOR").then_some(())?;
        return Some((tokens.account()?, Grant::DefaultRole(role)));
    }
    let owned = |parts: Vec<&str>| parts.into_iter().map(str::to_owned).collect::<Vec<String>>();
    if tokens.eat("REVOKE") {
        let privileges = owned(tokens.list_until(&["ON"]));
        tokens.eat("ON").then_some(())?;
        let object = tokens.list_until(&["FROM"]).join(", ");
        tokens.eat("FROM").then_some(())?;
        return Some((tokens.account()?, Grant::Revoked { privileges, object }));
    }
    tokens.eat("GRANT").then_some(())?;
    if tokens.eat_all(&["PROXY", "ON"]) {
        let account = tokens.account()?;
        tokens.eat("TO").then_some(())?;
        let grantee = tokens.account()?;
        return Some((grantee, Grant::Proxy { account, option: grant_option(&mut tokens) }));
    }
    let what = tokens.list_until(&["ON", "TO"]);
    let object = if tokens.eat("ON") { Some(tokens.list_until(&["TO"]).join(", ")) } else { None };
    tokens.eat("TO").then_some(())?;
    let grantee = tokens.account()?;
    let option = grant_option(&mut tokens);
    let grant = match object {
        Some(object) => Grant::Privileges { privileges: owned(what), object, option },
        None => {
            let roles = what.into_iter().map(|role| Tokens::of(role)?.account()).collect::<Option<_>>()?;
            Grant::Roles { roles, option }
        }
    };
    Some((grantee, grant))
}

/// MariaDB has the password and the limits in between.
fn grant_option(tokens: &mut Tokens<'_>) -> GrantOption {
    while !tokens.is_at_end() {
        if tokens.eat_all(&["GRANT", "OPTION"]) || tokens.eat_all(&["ADMIN", "OPTION"]) {
            return GrantOption::Has;
        }
        tokens.take();
    }
    GrantOption::HasNot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Grant) {
        assert_eq!(Grant::parse(line, &AccountName::new("app", "%")), Ok(Some(expected)), "{line}");
    }

    fn privileges(privileges: &[&str], object: &str, option: GrantOption) -> Grant {
        let privileges = privileges.iter().map(|name| (*name).to_owned()).collect();
        Grant::Privileges { privileges, object: object.to_owned(), option }
    }

    #[test]
    fn lines() {
        use GrantOption::{Has, HasNot};
        check(
            "GRANT SELECT (`a`, `b`), INSERT (`a`), CREATE TEMPORARY TABLES ON `d`.`t` TO `app`@`%`",
            privileges(&["SELECT (`a`, `b`)", "INSERT (`a`)", "CREATE TEMPORARY TABLES"], "`d`.`t`", HasNot),
        );
        check(
            "GRANT ALL PRIVILEGES ON `a\\_b\\%`.* TO 'app'@'%' WITH GRANT OPTION",
            privileges(&["ALL PRIVILEGES"], "`a\\_b\\%`.*", Has),
        );
        check(
            "GRANT SELECT ON *.* TO `app`@`%` IDENTIFIED BY PASSWORD '*WITH GRANT OPTION' REQUIRE SSL WITH MAX_USER_CONNECTIONS 3",
            privileges(&["SELECT"], "*.*", HasNot),
        );
        check(
            "GRANT SELECT ON *.* TO `app`@`%` IDENTIFIED BY PASSWORD '*A' WITH GRANT OPTION MAX_USER_CONNECTIONS 3",
            privileges(&["SELECT"], "*.*", Has),
        );
        check(
            "GRANT EXECUTE ON PACKAGE BODY `d`.`on to` TO `app`@`%`",
            privileges(&["EXECUTE"], "PACKAGE BODY `d`.`on to`", HasNot),
        );
        check(
            "GRANT PROXY ON ''@'h' TO 'app'@'%'",
            Grant::Proxy { account: AccountName::new("", "h"), option: HasNot },
        );
        let roles = vec![AccountName::new("r1", "%"), AccountName::new("r2", "localhost")];
        check("GRANT `r1`@`%`,`r2`@`localhost` TO `app`@`%` WITH ADMIN OPTION", Grant::Roles { roles, option: Has });
        check("GRANT `r1` TO `app`@`%`", Grant::Roles { roles: vec![AccountName::role("r1")], option: HasNot });
        check("SET DEFAULT ROLE `r1` FOR `app`@`%`", Grant::DefaultRole(AccountName::role("r1")));
        check(
            "REVOKE SELECT, INSERT ON `d`.* FROM `app`@`%`",
            Grant::Revoked { privileges: vec!["SELECT".to_owned(), "INSERT".to_owned()], object: "`d`.*".to_owned() },
        );
    }

    #[test]
    fn lines_of_others() {
        let of = |line: &str, account: AccountName| Grant::parse(line, &account);
        assert_eq!(of("GRANT USAGE ON *.* TO `r3`", AccountName::role("r1")), Ok(None));
        assert_eq!(of("GRANT USAGE ON *.* TO `app`@`localhost`", AccountName::new("app", "%")), Ok(None));
        let found = of("GRANT SELECT ON `d`.* TO PUBLIC", AccountName::role("PUBLIC"));
        assert_eq!(found, Ok(Some(privileges(&["SELECT"], "`d`.*", GrantOption::HasNot))));
        assert_eq!(of("SHOW something", AccountName::role("r1")), Err(UnknownGrant));
    }
}
