//! Accounts on their way to the target: which are made, and in which order. Made again, an account that an earlier attempt of this copy has made is as the
//! source has it now.

use std::collections::BTreeSet;

use apply::mysql::server::errors::failed;
use engine::failure::Failure;
use wire::{Connection, Error};

use super::attempt::{Secrecy, attempt};
use super::grantor::Grantor;
use super::notes::{Notes, named};
use super::records;
use super::show_output::AccountName;
use super::show_output::Grant;
use super::source::{self, SourceAccount, SourceAccounts};
use super::statements::{Creation, FirstState, name_at};
use super::target::{TargetAccounts, is_denied, mandatory_roles, partial_revokes};
use crate::source::source_failure;

/// Whether accounts can be copied at all.
pub enum Preparation {
    Ready(Box<AccountTransfer>),
    /// Why not, with what helps.
    Impossible(String),
}

struct Prepared {
    account: SourceAccount,
    creation: Creation,
    state: FirstState,
}

pub struct AccountTransfer {
    target: TargetAccounts,
    source_revokes: bool,
    accounts: Vec<Prepared>,
    /// On the target already.
    kept: Vec<AccountName>,
    /// Made by an earlier attempt of this copy.
    recorded: Vec<AccountName>,
    notes: Notes,
    /// What the whole source has and the target has not.
    settings: Vec<String>,
    /// Of accounts that are made: what is on objects that were not there.
    missing: Vec<(AccountName, Grant)>,
    unknown: BTreeSet<String>,
}

impl AccountTransfer {
    /// Reads both ends. Changes nothing.
    pub fn prepare(source: &mut Connection, control: &mut Connection, channel: &str) -> Result<Preparation, Failure> {
        if source.server().is_mariadb() && !source.server().at_least(10, 2, 0) {
            let why = "accounts are not copied: the source's version has no SHOW CREATE USER; make them on the target";
            return Ok(Preparation::Impossible(why.to_owned()));
        }
        let target = match TargetAccounts::read(control)? {
            Ok(target) => target,
            Err(own) => {
                return Ok(Preparation::Impossible(format!(
                    "accounts are not copied: Heddle's account on the target may not see which are there: GRANT SELECT ON mysql.* TO {own}"
                )));
            }
        };
        let recorded = records::read(control, channel)?;
        let is_recorded = |name: &AccountName| recorded.iter().any(|made| made.is_same(name));
        let stays = |name: &AccountName| target.has(name) && !is_recorded(name) || target.is_own(name);
        let mut kept = Vec::new();
        let read = source::read(source, |_| true);
        let SourceAccounts { accounts: of_source, mut notes } = match read {
            Err(error) if is_denied(&error) => return Ok(Preparation::Impossible(source_denial(source)?)),
            read => read.map_err(source_failure)?,
        };
        let mut accounts = Vec::new();
        for account in of_source {
            let there = name_at(&account, target.flavour);
            if there.as_ref().is_some_and(stays) || stays(&account.name) {
                kept.push(account.name.clone());
                continue;
            }
            let is_restricted = target.partial_revokes && !account.restricted().is_empty();
            let state = if is_restricted { FirstState::Locked } else { FirstState::AsOnSource };
            match Creation::new(&account, &target, state) {
                Ok(creation) => accounts.push(Prepared { account, creation, state }),
                Err(why) => notes.add(&account.name, format!("not copied: {why}")),
            }
        }
        if !accounts.is_empty() && !target.may_create {
            return Ok(Preparation::Impossible(format!(
                "{} accounts are not copied: Heddle's account on the target may not make them: GRANT CREATE USER ON *.* TO {}, and what it is to hand on WITH GRANT OPTION",
                accounts.len(),
                target.own
            )));
        }
        for Prepared { account, creation, .. } in &accounts {
            if !creation.left_out.is_empty() {
                notes.add(&account.name, format!("copied without {}", creation.left_out.join(", ")));
            }
        }
        kept.sort_by_key(|name| target.is_own(name));
        let (source_revokes, settings) = settings(source, &target).map_err(source_failure)?;
        Ok(Preparation::Ready(Box::new(Self {
            target,
            source_revokes,
            accounts,
            kept,
            recorded,
            notes,
            settings,
            missing: Vec::new(),
            unknown: BTreeSet::new(),
        })))
    }

    pub fn len(&self) -> usize {
        self.accounts.len()
    }

    /// What is known without making them.
    pub fn warnings(&self) -> Vec<String> {
        self.settings.iter().cloned().chain(self.notes.lines()).collect()
    }

    /// Makes them, with all that does not need views and routines.
    ///
    /// # Errors
    /// The target can not be asked. The same call goes on.
    pub fn make(&mut self, control: &mut Connection, channel: &str) -> Result<(), Failure> {
        self.drop_gone(control, channel)?;
        let mut made = Vec::new();
        for prepared in std::mem::take(&mut self.accounts) {
            if self.create(control, channel, &prepared)? {
                made.push(prepared);
            }
        }
        let Self { target, source_revokes, unknown, notes, missing, .. } = self;
        let mut grantor = Grantor { control, target, source_revokes: *source_revokes, unknown, notes };
        for Prepared { account, creation, .. } in &made {
            let name = &creation.name;
            missing.extend(grantor.grant(account, name)?.into_iter().map(|grant| (name.clone(), grant)));
        }
        for Prepared { account, creation, state } in &made {
            grantor.set_default_roles(&creation.name, &account.default_roles())?;
            let is_locked = account.definition.as_ref().is_some_and(|definition| definition.is_locked);
            if *state == FirstState::Locked && !is_locked {
                let unlock = format!("ALTER USER {} ACCOUNT UNLOCK", creation.name);
                if let Err(refusal) = attempt(grantor.control, &unlock, Secrecy::Open)? {
                    grantor.notes.add(&creation.name, format!("it stays locked: {}", refusal.text));
                }
            }
        }
        self.accounts = made;
        Ok(())
    }

    /// The rest, once all objects are there; and what there is to say.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub fn finish(mut self, control: &mut Connection) -> Result<(), Failure> {
        let Self { target, source_revokes, unknown, notes, missing, .. } = &mut self;
        let mut grantor = Grantor { control, target, source_revokes: *source_revokes, unknown, notes };
        for (name, grant) in missing.iter() {
            grantor.grant_missing(name, grant)?;
        }
        const NAMED_MAX: usize = 5;
        if !self.kept.is_empty() {
            let (count, names) = (self.kept.len(), named(self.kept.iter(), NAMED_MAX));
            tracing::info!("copy: {count} accounts are on the target already and stay as they are there: {names}");
        }
        for line in self.warnings() {
            tracing::warn!("copy: {line}");
        }
        tracing::info!("copy: {} accounts are made, with their grants", self.accounts.len());
        Ok(())
    }

    /// Made by an earlier attempt, and not to be made any more: the source has dropped them since.
    fn drop_gone(&mut self, control: &mut Connection, channel: &str) -> Result<(), Failure> {
        let Self { target, accounts, recorded, notes, .. } = self;
        let is_made = |name: &AccountName| accounts.iter().any(|prepared| prepared.creation.name.is_same(name));
        for name in recorded.iter().filter(|name| !is_made(name) && !name.is_public()) {
            if target.has(name) && !target.is_own(name) {
                let word = if name.host.is_some() { "USER" } else { "ROLE" };
                if let Err(refusal) = attempt(control, &format!("DROP {word} {name}"), Secrecy::Open)? {
                    notes.add(
                        name,
                        format!(
                            "an earlier attempt of the copy has made it, and the source has it no more: {}",
                            refusal.text
                        ),
                    );
                }
            }
            records::remove(control, channel, name)?;
        }
        Ok(())
    }

    /// Returns whether it is there.
    fn create(&mut self, control: &mut Connection, channel: &str, prepared: &Prepared) -> Result<bool, Failure> {
        let Prepared { account, creation, .. } = prepared;
        let name = &creation.name;
        let Some(create) = creation.create() else {
            records::add(control, channel, name)?;
            return Ok(true);
        };
        if self.recorded.iter().any(|made| made.is_same(name)) && self.target.has(name) && !remove(control, creation)? {
            return self.renew(control, prepared);
        }
        records::add(control, channel, name)?;
        match attempt(control, &create, Secrecy::HasHash)? {
            Ok(()) => Ok(true),
            Err(refusal) => {
                records::remove(control, channel, name)?;
                self.notes.add(&account.name, format!("not copied: {}", refusal.text));
                Ok(false)
            }
        }
    }

    /// One that can not be dropped: it is the definer of what is there already.
    fn renew(&mut self, control: &mut Connection, prepared: &Prepared) -> Result<bool, Failure> {
        let Prepared { account, creation, .. } = prepared;
        let name = &creation.name;
        let mut statements: Vec<(String, Secrecy)> =
            creation.alter().map(|sql| (sql, Secrecy::HasHash)).into_iter().collect();
        statements.push((format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {name}"), Secrecy::Open));
        for row in control.rows(format!("SHOW GRANTS FOR {name}")).map_err(failed)? {
            let taken_back = match Grant::parse(row.required_text(0).map_err(failed)?, name) {
                Ok(Some(Grant::Roles { roles, .. })) => {
                    roles.iter().map(|role| format!("REVOKE {role} FROM {name}")).collect()
                }
                Ok(Some(Grant::Proxy { account, .. })) => vec![format!("REVOKE PROXY ON {account} FROM {name}")],
                _ => Vec::new(),
            };
            statements.extend(taken_back.into_iter().map(|sql| (sql, Secrecy::Open)));
        }
        for (sql, secrecy) in statements {
            if let Err(refusal) = attempt(control, &sql, secrecy)? {
                self.notes.add(
                    &account.name,
                    format!(
                        "an earlier attempt of the copy has made it, and it may be older than the source's: {}",
                        refusal.text
                    ),
                );
            }
        }
        Ok(true)
    }
}

/// `false`: the target does not let it go.
fn remove(control: &mut Connection, creation: &Creation) -> Result<bool, Failure> {
    match creation.drop() {
        Some(drop) => Ok(attempt(control, &drop, Secrecy::Open)?.is_ok()),
        None => Ok(false),
    }
}

/// Whether the source has `partial_revokes`; what of its settings the target should have.
fn settings(source: &mut Connection, target: &TargetAccounts) -> Result<(bool, Vec<String>), Error> {
    let source_revokes = partial_revokes(source)?;
    let roles = mandatory_roles(source)?;
    let mut settings = Vec::new();
    if !roles.is_empty() && roles != target.mandatory_roles {
        settings.push(format!("the source's accounts have mandatory_roles={roles}: set it on the target as well"));
    }
    Ok((source_revokes, settings))
}

fn source_denial(source: &mut Connection) -> Result<String, Failure> {
    let own = source.scalar("SELECT CURRENT_USER()").map_err(source_failure)?.unwrap_or_default();
    let (user, host) = own.rsplit_once('@').unwrap_or((&own, ""));
    Ok(format!(
        "accounts are not copied: Heddle's account on the source may not read them: GRANT SELECT ON mysql.* TO {}; or make them on the target",
        AccountName::new(user, host)
    ))
}
