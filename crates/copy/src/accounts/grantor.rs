//! Privileges on the target: each line of the source's `SHOW GRANTS` executed there, as far as the target takes it.

use std::collections::BTreeSet;

use binlog::Flavour;
use engine::failure::Failure;
use wire::Connection;

use super::attempt::{Refusal, Secrecy, attempt};
use super::notes::Notes;
use super::show_output::AccountName;
use super::show_output::{Grant, GrantOption};
use super::source::SourceAccount;
use super::target::TargetAccounts;

/// An account that is granted something, and what is known of the target meanwhile.
pub struct Grantor<'a> {
    pub control: &'a mut Connection,
    pub target: &'a TargetAccounts,
    /// The source has `partial_revokes`.
    pub source_revokes: bool,
    /// Privileges that the target's grammar does not have.
    pub unknown: &'a mut BTreeSet<String>,
    pub notes: &'a mut Notes,
}

impl Grantor<'_> {
    /// Returns what refers to routines, and to objects that are not there yet.
    pub fn grant(&mut self, account: &SourceAccount, name: &AccountName) -> Result<Vec<Grant>, Failure> {
        let restricted: Vec<String> = account.restricted().into_iter().map(str::to_owned).collect();
        let mut missing = Vec::new();
        for grant in &account.grants {
            match grant {
                // Made anew, a routine loses what was granted on it.
                Grant::Privileges { object, .. } if is_routine(object) => missing.push(grant.clone()),
                Grant::Privileges { privileges, object, option } => {
                    let kept = self.without_restricted(name, privileges, object, &restricted);
                    if self.grant_privileges(name, &kept, object, *option)? == Found::Nothing {
                        missing.push(grant.clone());
                    }
                }
                Grant::Revoked { privileges, object } => self.revoke(name, privileges, object)?,
                Grant::Proxy { account, option } => {
                    let sql = format!("GRANT PROXY ON {account} TO {name}{}", grant_option(*option));
                    if let Err(refusal) = attempt(self.control, &sql, Secrecy::Open)? {
                        self.refused(name, &format!("PROXY ON {account}"), &refusal);
                    }
                }
                Grant::Roles { roles, option } => self.grant_roles(name, roles, *option)?,
                Grant::DefaultRole(_) => {}
            }
        }
        Ok(missing)
    }

    /// Once all objects are there.
    pub fn grant_missing(&mut self, name: &AccountName, grant: &Grant) -> Result<(), Failure> {
        let Grant::Privileges { privileges, object, option } = grant else { return Ok(()) };
        if self.grant_privileges(name, privileges, object, *option)? == Found::Nothing {
            self.notes.add(name, format!("copied without its privileges on {object}, which the target does not have"));
        }
        Ok(())
    }

    /// Of an account from whose privileges on `*.*` schemas are taken out: where the target does not take that, it does not get these.
    fn without_restricted(
        &mut self,
        name: &AccountName,
        privileges: &[String],
        object: &str,
        restricted: &[String],
    ) -> Vec<String> {
        if self.target.partial_revokes || object != "*.*" || restricted.is_empty() {
            return privileges.to_vec();
        }
        let is_all = privileges.iter().any(|privilege| privilege.starts_with("ALL"));
        let (left_out, kept): (Vec<&String>, Vec<&String>) =
            privileges.iter().partition(|privilege| is_all || restricted.contains(privilege));
        self.notes.add(
            name,
            format!(
                "copied without {} on *.*: the target does not take schemas out of them (partial_revokes)",
                left_out.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
            ),
        );
        kept.into_iter().cloned().collect()
    }

    fn grant_privileges(
        &mut self,
        name: &AccountName,
        privileges: &[String],
        object: &str,
        option: GrantOption,
    ) -> Result<Found, Failure> {
        let Some(object) = self.object_at(name, object) else { return Ok(Found::Object) };
        let (unknown, known): (Vec<&String>, Vec<&String>) =
            privileges.iter().partition(|privilege| self.unknown.contains(*privilege));
        let mut left_out: Vec<(String, String)> = Vec::new();
        left_out.extend(unknown.into_iter().map(|privilege| (privilege.clone(), NOT_KNOWN.to_owned())));
        let is_usage = |privilege: &&String| privilege.as_str() == "USAGE" && option == GrantOption::HasNot;
        let known: Vec<&String> = known.into_iter().filter(|privilege| !is_usage(privilege)).collect();
        if !known.is_empty() {
            let list = known.iter().map(|privilege| privilege.as_str()).collect::<Vec<_>>().join(", ");
            let whole = self.execute(name, &list, &object, option)?;
            match whole {
                Ok(()) => {}
                Err(refusal) if refusal.is_missing_object() => return Ok(Found::Nothing),
                Err(refusal) if known.len() == 1 => self.note_refusal(&known, &refusal, &mut left_out),
                // Which of them it is.
                Err(_) => {
                    for privilege in known {
                        if let Err(refusal) = self.execute(name, privilege, &object, option)? {
                            self.note_refusal(&[privilege], &refusal, &mut left_out);
                        }
                    }
                }
            }
        }
        let reasons: BTreeSet<&String> = left_out.iter().map(|(_, reason)| reason).collect();
        for reason in reasons {
            let of_reason = left_out.iter().filter(|(_, other)| other == reason);
            let privileges: Vec<&str> = of_reason.map(|(privilege, _)| privilege.as_str()).collect();
            self.notes.add(name, format!("copied without {} on {object}: {reason}", privileges.join(", ")));
        }
        Ok(Found::Object)
    }

    fn note_refusal(&mut self, privileges: &[&String], refusal: &Refusal, left_out: &mut Vec<(String, String)>) {
        for privilege in privileges {
            let reason = if refusal.is_unknown_word() {
                self.unknown.insert((*privilege).clone());
                NOT_KNOWN.to_owned()
            } else {
                self.explained(refusal)
            };
            left_out.push(((*privilege).clone(), reason));
        }
    }

    fn execute(
        &mut self,
        name: &AccountName,
        privileges: &str,
        object: &str,
        option: GrantOption,
    ) -> Result<Result<(), Refusal>, Failure> {
        let sql = format!("GRANT {privileges} ON {object} TO {name}{}", grant_option(option));
        attempt(self.control, &sql, Secrecy::Open)
    }

    /// What `_` and `%` mean in a schema's name depends on the server. `None`: nothing means the same.
    fn object_at(&mut self, name: &AccountName, object: &str) -> Option<String> {
        let Some(schema) = object.strip_suffix(".*").filter(|schema| *schema != "*") else {
            return Some(object.to_owned());
        };
        match (self.source_revokes, self.target.partial_revokes) {
            (true, false) => Some(format!("{}.*", escaped(schema))),
            (false, true) => match unescaped(schema) {
                Some(schema) => Some(format!("{schema}.*")),
                None => {
                    self.notes.add(
                        name,
                        format!("copied without its privileges on {object}: the target has no wildcards (partial_revokes=ON)"),
                    );
                    None
                }
            },
            _ => Some(object.to_owned()),
        }
    }

    /// Without it the account would have more than on the source: it loses these everywhere.
    fn revoke(&mut self, name: &AccountName, privileges: &[String], object: &str) -> Result<(), Failure> {
        if !self.target.partial_revokes {
            return Ok(());
        }
        let list = privileges.join(", ");
        if let Err(refusal) = attempt(self.control, &format!("REVOKE {list} ON {object} FROM {name}"), Secrecy::Open)? {
            for privilege in privileges {
                let everywhere = format!("REVOKE {privilege} ON *.* FROM {name}");
                // It may not have it in the first place.
                drop(attempt(self.control, &everywhere, Secrecy::Open)?);
            }
            self.notes.add(
                name,
                format!("copied without {list} on *.*, of which {object} can not be taken out: {}", refusal.text),
            );
        }
        Ok(())
    }

    fn grant_roles(&mut self, name: &AccountName, roles: &[AccountName], option: GrantOption) -> Result<(), Failure> {
        let admin = if option == GrantOption::Has { " WITH ADMIN OPTION" } else { "" };
        for role in roles {
            let Some(there) = role.of_role_at(self.target.flavour) else {
                self.notes.add(name, format!("copied without the role {role}: the target has no such roles"));
                continue;
            };
            if let Err(refusal) = attempt(self.control, &format!("GRANT {there} TO {name}{admin}"), Secrecy::Open)? {
                self.refused(name, &format!("the role {role}"), &refusal);
            }
        }
        Ok(())
    }

    /// MariaDB takes one.
    pub fn set_default_roles(&mut self, name: &AccountName, roles: &[AccountName]) -> Result<(), Failure> {
        let there: Vec<AccountName> = roles.iter().filter_map(|role| role.of_role_at(self.target.flavour)).collect();
        let is_mariadb = self.target.flavour == Flavour::MariaDb;
        let taken: Vec<AccountName> = there.into_iter().take(if is_mariadb { 1 } else { usize::MAX }).collect();
        if taken.len() < roles.len() {
            self.notes.add(name, "copied with fewer default roles than it has: the target takes one, of its own roles");
        }
        if taken.is_empty() {
            return Ok(());
        }
        let list = taken.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let before = if is_mariadb { "FOR" } else { "TO" };
        if let Err(refusal) = attempt(self.control, &format!("SET DEFAULT ROLE {list} {before} {name}"), Secrecy::Open)?
        {
            self.refused(name, "its default roles", &refusal);
        }
        Ok(())
    }

    fn refused(&mut self, name: &AccountName, what: &str, refusal: &Refusal) {
        let reason = self.explained(refusal);
        self.notes.add(name, format!("copied without {what}: {reason}"));
    }

    fn explained(&self, refusal: &Refusal) -> String {
        if refusal.is_denied() {
            let own = &self.target.own;
            format!("Heddle's account there, {own}, can hand on only what it has itself (error {})", refusal.code)
        } else {
            refusal.text.clone()
        }
    }
}

const NOT_KNOWN: &str = "the target does not know it";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Object,
    /// What the privileges are on is not there.
    Nothing,
}

/// `PROCEDURE …`, `FUNCTION …`, `PACKAGE …`: tables and schemas have no word before their names.
fn is_routine(object: &str) -> bool {
    object.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn grant_option(option: GrantOption) -> &'static str {
    if option == GrantOption::Has { " WITH GRANT OPTION" } else { "" }
}

/// The name of a schema in which `_` and `%` are these characters, where they stand for others.
fn escaped(schema: &str) -> String {
    let mut text = String::new();
    let mut before = ' ';
    for c in schema.chars() {
        if matches!(c, '_' | '%') && before != '\\' {
            text.push('\\');
        }
        text.push(c);
        before = c;
    }
    text
}

/// The other way round; `None`: it stands for several.
fn unescaped(schema: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = schema.chars();
    while let Some(c) = characters.next() {
        match c {
            '_' | '%' => return None,
            '\\' => text.push(characters.next()?),
            c => text.push(c),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_of_schemas() {
        assert_eq!(escaped("`a_b%`"), "`a\\_b\\%`");
        assert_eq!(escaped("`a\\_b`"), "`a\\_b`");
        assert_eq!(unescaped("`a\\_b\\%c`").as_deref(), Some("`a_b%c`"));
        assert_eq!(unescaped("`a_b`"), None);
    }
}
