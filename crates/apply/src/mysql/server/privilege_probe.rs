//! Which privileges heddle's account lacks, found out by statements that change nothing. The server itself answers: roles, wildcards and partial revokes count as it
//! counts them. A run and `--dry-run` ask the same.

use engine::failure::{Failure, FailureKind};
use wire::Connection;

use super::bookkeeping::SCHEMA;
use super::errors::{failed, is_privilege};
use super::info::OwnAccount;

/// One that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    pub privilege: &'static str,
    pub scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `*.*`
    Everything,
    /// Heddle's own tables.
    OwnTables,
}

impl Lack {
    pub const fn everywhere(privilege: &'static str) -> Self {
        Self { privilege, scope: Scope::Everything }
    }
}

impl Scope {
    fn object(self) -> String {
        match self {
            Self::Everything => "*.*".to_owned(),
            Self::OwnTables => format!("{SCHEMA}.*"),
        }
    }

    /// What is of no use without it.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Everything => "rows cannot be applied",
            Self::OwnTables => "the progress cannot be kept",
        }
    }
}

/// On the tables of the progress, which need not be there: the servers look at privileges first.
pub fn of_own_tables(control: &mut Connection) -> Result<Vec<Lack>, Failure> {
    let progress = format!("{SCHEMA}.progress");
    let probes = [
        ("SELECT", format!("SELECT seq FROM {progress} WHERE FALSE")),
        ("INSERT", format!("INSERT INTO {progress} (channel) SELECT '' FROM DUAL WHERE FALSE")),
        ("UPDATE", format!("UPDATE {progress} SET seq=0 WHERE FALSE")),
        ("DELETE", format!("DELETE FROM {progress} WHERE FALSE")),
    ];
    let mut lacks = Vec::new();
    for (privilege, statement) in probes {
        if is_denied(control, &statement)? {
            lacks.push(Lack { privilege, scope: Scope::OwnTables });
        }
    }
    if control.execute(format!("SELECT COUNT(*) FROM {SCHEMA}.stops")).is_err() {
        // Nothing can be like a table that is never there. The servers look at CREATE before SELECT.
        let made = control.execute(format!("CREATE TABLE {SCHEMA}.probe LIKE {SCHEMA}.no_such_table"));
        let is_create = |error: &wire::Error| !error.to_string().contains("SELECT command");
        if made.is_err_and(|error| error.code().is_some_and(is_privilege) && is_create(&error)) {
            lacks.push(Lack { privilege: "CREATE", scope: Scope::OwnTables });
        }
    }
    Ok(lacks)
}

/// Whether the server wants a privilege that the account does not have. Any other error is for who executes such a statement in earnest.
pub fn is_denied(connection: &mut Connection, statement: &str) -> Result<bool, Failure> {
    match connection.execute(statement) {
        Ok(_) => Ok(false),
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        Err(error) => Ok(error.code().is_some_and(is_privilege)),
    }
}

/// All of them at once, with the statements that give them. `None`: nothing is missing.
pub fn failure(lacks: &[Lack], account: &OwnAccount) -> Option<Failure> {
    let (mut purposes, mut statements) = (Vec::new(), Vec::new());
    for scope in [Scope::Everything, Scope::OwnTables] {
        let mut names: Vec<&str> = Vec::new();
        for lack in lacks.iter().filter(|lack| lack.scope == scope) {
            if !names.contains(&lack.privilege) {
                names.push(lack.privilege);
            }
        }
        if !names.is_empty() {
            purposes.push(scope.purpose());
            statements.push(format!("GRANT {} ON {} TO {}", names.join(", "), scope.object(), account.name()));
        }
    }
    if statements.is_empty() {
        return None;
    }
    let verb = if statements.len() == 1 { "is" } else { "are" };
    let message = format!("target: {} {verb} missing: {}", statements.join(" and "), purposes.join(", and "));
    Some(
        Failure::new(FailureKind::Refused, message).remedy(
            "execute that on the target, and run the same command again; all that is needed: docs/privileges.md",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_named_at_once() {
        let account = OwnAccount { user: "small".to_owned(), host: "%".to_owned() };
        assert!(failure(&[], &account).is_none());
        let own = |privilege| Lack { privilege, scope: Scope::OwnTables };
        let said = |lacks: &[Lack]| failure(lacks, &account).expect("a failure").message;
        assert_eq!(
            said(&[own("INSERT"), own("DELETE")]),
            "target: GRANT INSERT, DELETE ON heddle.* TO 'small'@'%' is missing: the progress cannot be kept"
        );
        let lacks = [own("INSERT"), Lack::everywhere("SUPER"), Lack::everywhere("SUPER")];
        assert_eq!(
            said(&lacks),
            "target: GRANT SUPER ON *.* TO 'small'@'%' and GRANT INSERT ON heddle.* TO 'small'@'%' are missing: rows cannot be applied, and the progress cannot be kept"
        );
    }
}
