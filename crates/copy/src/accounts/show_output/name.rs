//! Names of accounts and roles.

use std::borrow::Cow;
use std::fmt;

use apply::mysql::server::sql::{identifier, quote};
use binlog::Flavour;

/// An account. MariaDB's roles have no host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountName {
    pub user: String,
    pub host: Option<String>,
}

impl AccountName {
    pub fn new(user: impl Into<String>, host: &str) -> Self {
        Self { user: user.into(), host: Some(host.to_owned()) }
    }

    pub fn role(user: impl Into<String>) -> Self {
        Self { user: user.into(), host: None }
    }

    /// MariaDB's, of which every account is a member.
    pub fn is_public(&self) -> bool {
        self.host.is_none() && self.user.eq_ignore_ascii_case("PUBLIC")
    }

    /// The servers compare hosts without regard to case.
    pub fn is_same(&self, other: &Self) -> bool {
        let hosts = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        match (&self.host, &other.host) {
            (None, None) => self.user == other.user || self.is_public() && other.is_public(),
            (Some(a), Some(b)) => self.user == other.user && hosts(a, b),
            _ => false,
        }
    }

    /// A text of a server that puts names in quotes as they are: MySQL 5.7. Here with this one as a literal.
    pub fn quoted_in<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let is_plain = |text: &str| !text.contains(['\'', '\\']);
        match &self.host {
            Some(host) if !(is_plain(&self.user) && is_plain(host)) => {
                text.replace(&format!("'{}'@'{host}'", self.user), &self.to_string()).into()
            }
            _ => text.into(),
        }
    }

    /// Accounts that each server makes for itself, or a managed service for its own work.
    pub fn is_servers_own(&self) -> bool {
        const OF_SERVERS: [&str; 4] = ["mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys"];
        const OF_SERVICES: [&str; 7] = [
            "rdsadmin",
            "rdsrepladmin",
            "cloudsqladmin",
            "cloudsqlagent",
            "cloudsqlimport",
            "cloudsqlreplica",
            "azure_superuser",
        ];
        OF_SERVERS.iter().chain(&OF_SERVICES).any(|user| *user == self.user)
    }

    /// A role's name on a server of the other kind, too. `None`: it can not have it.
    pub fn of_role_at(&self, target: Flavour) -> Option<Self> {
        match (target, self.host.as_deref()) {
            _ if self.is_public() => (target == Flavour::MariaDb).then(|| self.clone()),
            (Flavour::MariaDb, None | Some("%")) => Some(Self::role(self.user.clone())),
            (Flavour::MariaDb, Some(_)) => None,
            (Flavour::MySql, None) => Some(Self::new(self.user.clone(), "%")),
            (Flavour::MySql, Some(_)) => Some(self.clone()),
        }
    }
}

/// As statements name it.
impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{}@{}", quote(&self.user), quote(host)),
            None if self.is_public() => f.write_str("PUBLIC"),
            None => f.write_str(&identifier(&self.user)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_server_does_not_quote() {
        let name = AccountName::new("a'b\\c", "%");
        assert_eq!(name.quoted_in("GRANT SELECT ON *.* TO 'a'b\\c'@'%' x"), "GRANT SELECT ON *.* TO 'a''b\\\\c'@'%' x");
        assert_eq!(name.quoted_in("TO `a'b\\c`@`%`"), "TO `a'b\\c`@`%`");
    }

    #[test]
    fn roles_of_the_other_vendor() {
        let role = AccountName::role("r");
        assert_eq!(role.of_role_at(Flavour::MySql), Some(AccountName::new("r", "%")));
        assert_eq!(AccountName::new("r", "%").of_role_at(Flavour::MariaDb), Some(role));
        assert_eq!(AccountName::new("r", "localhost").of_role_at(Flavour::MariaDb), None);
        assert_eq!(AccountName::role("PUBLIC").of_role_at(Flavour::MySql), None);
    }
}
