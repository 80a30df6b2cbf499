//! The source's accounts, as its own `SHOW` statements say them. Changes nothing.

use binlog::Flavour;
use wire::{Connection, Error};

use super::notes::Notes;
use super::show_output::AccountName;
use super::show_output::Definition;
use super::show_output::{Grant, UnknownGrant};
use super::target::is_denied;
use crate::definitions::in_one_character_set;

/// What becomes of an account's name where it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// Somebody logs in to it.
    User,
    Role,
    /// MariaDB's PUBLIC: it is everywhere, and has grants.
    Public,
}

/// An account of the source.
#[derive(Clone, Debug)]
pub struct SourceAccount {
    pub name: AccountName,
    pub kind: AccountKind,
    /// `None`: a role of MariaDB's, which has none.
    pub definition: Option<Definition>,
    pub grants: Vec<Grant>,
}

impl SourceAccount {
    pub fn default_roles(&self) -> Vec<AccountName> {
        let of_definition = self.definition.iter().flat_map(|definition| definition.default_roles.iter().cloned());
        let of_grants = self.grants.iter().filter_map(|grant| match grant {
            Grant::DefaultRole(role) => Some(role.clone()),
            _ => None,
        });
        of_definition.chain(of_grants).collect()
    }

    /// Privileges on `*.*` from which schemas are taken out.
    pub fn restricted(&self) -> Vec<&str> {
        let revoked = self.grants.iter().filter_map(|grant| match grant {
            Grant::Revoked { privileges, .. } => Some(privileges),
            _ => None,
        });
        revoked.flatten().map(String::as_str).collect()
    }
}

/// What the source has, and what of it can not be said.
#[derive(Clone, Debug, Default)]
pub struct SourceAccounts {
    pub accounts: Vec<SourceAccount>,
    pub notes: Notes,
}

/// `takes`: which are asked for.
pub fn read(source: &mut Connection, takes: impl Fn(&AccountName) -> bool) -> Result<SourceAccounts, Error> {
    in_one_character_set(source, |source| {
        let is_mysql = source.server().flavour == Flavour::MySql;
        if is_mysql && source.server().at_least(8, 0, 17) {
            // Hashes have bytes that are no text.
            source.execute_repeatable("SET SESSION print_identified_with_as_hex=ON")?;
        }
        let mut found = SourceAccounts::default();
        for name in names(source)? {
            if name.is_servers_own() || !takes(&name) {
                continue;
            }
            match show(source, &name)? {
                Shown::Account(account) => found.accounts.push(*account),
                Shown::Gone => {}
                Shown::Unknown => found.notes.add(
                    &name,
                    "not copied: Heddle does not understand what SHOW CREATE USER and SHOW GRANTS of the source say",
                ),
            }
        }
        if is_mysql && source.server().at_least(8, 0, 14) {
            for name in with_second_password(source)? {
                if found.accounts.iter().any(|account| account.name == name) {
                    found.notes.add(&name, "copied without the second password that it has (RETAIN CURRENT PASSWORD)");
                }
            }
        }
        // A statement that has changed a table of accounts, and is not in the log yet, holds the lock that this waits for.
        source.rows("SHOW GRANTS")?;
        Ok(found)
    })
}

fn names(source: &mut Connection) -> Result<Vec<AccountName>, Error> {
    let is_mariadb = source.server().is_mariadb();
    let is_role = if is_mariadb { "is_role" } else { "'N'" };
    let rows = source.rows(format!("SELECT User, Host, {is_role} FROM mysql.user ORDER BY 1, 2"))?;
    let name = |row: &wire::Row| {
        let (user, host) = (row.required_text(0)?, row.required_text(1)?);
        Ok(if row.required_text(2)? == "Y" { AccountName::role(user) } else { AccountName::new(user, host) })
    };
    rows.iter().map(name).collect()
}

enum Shown {
    Account(Box<SourceAccount>),
    /// It was dropped meanwhile: the log says so.
    Gone,
    Unknown,
}

fn show(source: &mut Connection, name: &AccountName) -> Result<Shown, Error> {
    // No such account, no such grant, an operation on none.
    const GONE: [u16; 4] = [1133, 1141, 1396, 1959];
    let is_gone = |error: &Error| error.code().is_some_and(|code| GONE.contains(&code));
    // The server can not say it of this one.
    let is_of_account = |error: &Error| {
        matches!(error, Error::Server { .. })
            && !is_denied(error)
            && error.availability().is_none()
            && !error.is_connection_lost()
    };
    let definition = if name.host.is_none() {
        None
    } else {
        let row = match source.row(format!("SHOW CREATE USER {name}")) {
            Err(error) if is_gone(&error) => return Ok(Shown::Gone),
            Err(error) if is_of_account(&error) => return Ok(Shown::Unknown),
            row => row?,
        };
        let text = row.and_then(|row| row.get(0).map(|text| String::from_utf8(text.to_vec())));
        let Some(definition) = text.and_then(Result::ok).and_then(|text| Definition::parse(&name.quoted_in(&text)))
        else {
            return Ok(Shown::Unknown);
        };
        Some(definition)
    };
    let rows = match source.rows(format!("SHOW GRANTS FOR {name}")) {
        // One that is only named in `mysql.user`.
        Err(error) if is_gone(&error) => return Ok(Shown::Gone),
        Err(error) if is_of_account(&error) => return Ok(Shown::Unknown),
        rows => rows?,
    };
    let mut grants = Vec::new();
    for row in &rows {
        match Grant::parse(&name.quoted_in(row.required_text(0)?), name) {
            Ok(grant) => grants.extend(grant),
            Err(UnknownGrant) => return Ok(Shown::Unknown),
        }
    }
    let kind = match &definition {
        _ if name.is_public() => AccountKind::Public,
        None => AccountKind::Role,
        Some(definition) if definition.is_role() => AccountKind::Role,
        Some(_) => AccountKind::User,
    };
    Ok(Shown::Account(Box::new(SourceAccount { name: name.clone(), kind, definition, grants })))
}

fn with_second_password(source: &mut Connection) -> Result<Vec<AccountName>, Error> {
    let rows = source.rows(
        "SELECT User, Host FROM mysql.user WHERE JSON_CONTAINS_PATH(User_attributes, 'one', '$.additional_password')",
    )?;
    rows.iter().map(|row| Ok(AccountName::new(row.required_text(0)?, row.required_text(1)?))).collect()
}
