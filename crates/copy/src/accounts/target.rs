//! What the target has of accounts, and what it can have. Asks only.

use std::collections::BTreeSet;

use apply::mysql::server::Grants;
use apply::mysql::server::errors::{failed, is_privilege};
use binlog::Flavour;
use engine::failure::Failure;
use wire::{Connection, Error};

use super::show_output::AccountName;

#[derive(Clone, Debug)]
pub struct TargetAccounts {
    pub flavour: Flavour,
    pub version: (u16, u16, u16),
    /// Plugins that accounts can log in with.
    pub plugins: BTreeSet<String>,
    /// MySQL's `partial_revokes`: schemas can be taken out of privileges on `*.*`; `_` and `%` in the names of schemas are these characters.
    pub partial_revokes: bool,
    /// MySQL's `mandatory_roles`.
    pub mandatory_roles: String,
    /// Heddle's own account there.
    pub own: AccountName,
    pub names: Vec<AccountName>,
    /// Whether Heddle's account may make others, as far as that is known without trying.
    pub may_create: bool,
}

impl TargetAccounts {
    /// `Err`: its account may not read them.
    pub fn read(control: &mut Connection) -> Result<Result<Self, AccountName>, Failure> {
        let server = control.server();
        let (flavour, version) = (server.flavour, server.version);
        let own = control.scalar("SELECT CURRENT_USER()").map_err(failed)?.unwrap_or_default();
        let (user, host) = own.rsplit_once('@').unwrap_or((&own, ""));
        let own = AccountName::new(user, host);
        let is_role = if flavour == Flavour::MariaDb { "is_role" } else { "'N'" };
        let names = match control.rows(format!("SELECT User, Host, {is_role} FROM mysql.user")) {
            Err(error) if is_denied(&error) => return Ok(Err(own)),
            rows => rows.and_then(|rows| rows.iter().map(name).collect()).map_err(failed)?,
        };
        let plugins = control
            .rows("SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE='AUTHENTICATION' AND PLUGIN_STATUS='ACTIVE'")
            .map_err(failed)?;
        let plugins = plugins.iter().filter_map(|row| row.text(0).ok().flatten().map(str::to_owned)).collect();
        let partial_revokes = partial_revokes(control).map_err(failed)?;
        let mandatory_roles = mandatory_roles(control).map_err(failed)?;
        let grants = Grants::read(control).map_err(failed)?;
        // A role may have more.
        let may_create = grants.has_roles() || grants.everywhere("CREATE USER");
        Ok(Ok(Self { flavour, version, plugins, partial_revokes, mandatory_roles, own, names, may_create }))
    }

    pub fn has(&self, name: &AccountName) -> bool {
        self.names.iter().any(|there| there.is_same(name))
    }

    /// Heddle's own account, at whatever host.
    pub fn is_own(&self, name: &AccountName) -> bool {
        name.host.is_some() && name.user == self.own.user
    }

    pub fn is_mariadb_from(&self, major: u16, minor: u16, patch: u16) -> bool {
        self.flavour == Flavour::MariaDb && self.version >= (major, minor, patch)
    }

    pub fn is_mysql_from(&self, major: u16, minor: u16, patch: u16) -> bool {
        self.flavour == Flavour::MySql && self.version >= (major, minor, patch)
    }
}

fn name(row: &wire::Row) -> Result<AccountName, Error> {
    let (user, host) = (row.required_text(0)?, row.required_text(1)?);
    Ok(if row.required_text(2)? == "Y" { AccountName::role(user) } else { AccountName::new(user, host) })
}

/// Of either end.
pub fn partial_revokes(connection: &mut Connection) -> Result<bool, Error> {
    if connection.server().is_mariadb() || !connection.server().at_least(8, 0, 16) {
        return Ok(false);
    }
    Ok(connection.scalar("SELECT @@global.partial_revokes")?.as_deref() == Some("1"))
}

/// Of either end; empty where there are none.
pub fn mandatory_roles(connection: &mut Connection) -> Result<String, Error> {
    if connection.server().is_mariadb() || !connection.server().at_least(8, 0, 2) {
        return Ok(String::new());
    }
    Ok(connection.scalar("SELECT @@global.mandatory_roles")?.unwrap_or_default())
}

/// Whether an account lacks a privilege for what it has asked.
pub fn is_denied(error: &Error) -> bool {
    const ACCESS_DENIED: u16 = 1045;
    !matches!(error, Error::Auth { .. }) && error.code().is_some_and(|code| is_privilege(code) || code == ACCESS_DENIED)
}
