//! Statements about users, roles and privileges: what of them the target executes.
//!
//! Heddle's own account on the target is never changed: a new password or a lost privilege would lock the channel out. An account that is there
//! already stays as it is where the source creates it. No text of a statement is shown but the privileges that it hands on.

use engine::failure::{Failure, FailureKind};
use engine::sql::{
    Account, AccountStatement, Class, SqlMode, StatementRemainder, Verb, account_statement, grants_in_default_schema,
};
use engine::transaction::{StatementItem, Transaction};

use super::execute::text::with_invoker;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::{OwnAccount, TargetInfo};
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::channel::AccountStatements;
use crate::mysql::session::connection::ChannelConnection;

/// What is executed of a statement.
pub enum ExecutedPart {
    Whole,
    Edited(Box<StatementItem>),
    Nothing,
}

/// Whether a heddle that ended before may have executed the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    No,
    Perhaps,
}

/// Of any statement: one that is not about accounts is executed whole.
pub fn kept(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    transaction: &Transaction,
    tried: Tried,
) -> Result<ExecutedPart, Failure> {
    if !is_about_accounts(statement) {
        return Ok(ExecutedPart::Whole);
    }
    let channel = std::sync::Arc::clone(connection.channel_context());
    if channel.account_statements() == AccountStatements::Skip {
        if channel.is_first_account_statement_left_out() {
            tracing::info!("--account-statements skip: left out here and from now on ({})", transaction.place());
        }
        return Ok(ExecutedPart::Nothing);
    }
    let sql = with_invoker(statement, &statement.query.sql, channel.info().flavour)?;
    let own = &channel.info().account;
    let Some(found) = account_statement(&sql, SqlMode::of(&statement.query.vars)) else {
        return not_understood(&sql, own);
    };
    let is_own = |account: &Account| match account {
        Account::Named { user, .. } => *user == own.user,
        Account::OfSession => true,
    };
    let there = match found.verb {
        Verb::CreateUser | Verb::CreateRole => those_there(connection, &found, is_own)?,
        Verb::CreateAnyway | Verb::HandOn | Verb::Other => Vec::new(),
    };
    let about_own = found.entries.iter().flat_map(|entry| &entry.accounts).any(is_own);
    if about_own && channel.is_first_account_statement_left_out() {
        tracing::warn!(
            "the source changes the account that heddle uses on the target ({}): left out, here and from now on ({})",
            own.name(),
            transaction.place()
        );
    }
    if !there.is_empty() && tried == Tried::No {
        let names: Vec<String> = there.iter().filter_map(name).collect();
        tracing::warn!(
            "the source creates {}, which the target has already and keeps as it is there ({}): compare SHOW CREATE USER and SHOW GRANTS on both ends",
            names.join(", "),
            transaction.place()
        );
    }
    let remaining =
        found.without(&sql, |entry| entry.accounts.iter().any(|account| is_own(account) || there.contains(account)));
    Ok(match remaining {
        StatementRemainder::Everything => ExecutedPart::Whole,
        StatementRemainder::Nothing => ExecutedPart::Nothing,
        StatementRemainder::Some(text) => ExecutedPart::Edited(Box::new(with_text(statement, text))),
    })
}

pub fn is_about_accounts(statement: &StatementItem) -> bool {
    matches!(&statement.class.class, Class::Ddl { kind } if kind.is_account())
}

/// Nothing else of its session matters to an account statement.
fn with_text(statement: &StatementItem, text: Vec<u8>) -> StatementItem {
    let mut query = statement.query.clone();
    query.sql = text.into();
    StatementItem {
        query,
        timestamp: statement.timestamp,
        suppress_use: statement.suppress_use,
        context: Vec::new(),
        class: statement.class.clone(),
        file: None,
    }
}

fn not_understood(sql: &[u8], own: &OwnAccount) -> Result<ExecutedPart, Failure> {
    let user = own.user.as_bytes();
    if user.is_empty() || !sql.windows(user.len()).any(|part| part == user) {
        return Ok(ExecutedPart::Whole);
    }
    Err(Failure::new(
        FailureKind::Refused,
        format!("an account statement that heddle does not understand may be about its own account, {}", own.name()),
    )
    .remedy(
        "do on the target by hand what the statement does to other accounts, then run the same command again with --account-statements skip until it is passed",
    ))
}

/// Those of the accounts that the target has. Without the privilege to ask, the statement's own error says it.
fn those_there(
    connection: &mut ChannelConnection,
    statement: &AccountStatement,
    is_own: impl Fn(&Account) -> bool,
) -> Result<Vec<Account>, Failure> {
    let roles_have_no_host =
        statement.verb == Verb::CreateRole && connection.info().flavour == binlog::Flavour::MariaDb;
    let mut there = Vec::new();
    for account in statement.entries.iter().flat_map(|entry| &entry.accounts).filter(|account| !is_own(account)) {
        let Account::Named { user, host } = account else { continue };
        let host = host.as_deref().unwrap_or(if roles_have_no_host { "" } else { "%" });
        let sql = format!(
            "SELECT COUNT(*) FROM mysql.user WHERE User={} AND LOWER(Host)=LOWER({})",
            quote(user),
            quote(host)
        );
        match connection.wire.scalar(sql) {
            Ok(count) if count.as_deref() != Some("0") => there.push(account.clone()),
            Err(error) if error.is_connection_lost() => return Err(failed(error)),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(there)
}

fn name(account: &Account) -> Option<String> {
    match account {
        Account::Named { user, host: Some(host) } => Some(format!("{}@{}", quote(user), quote(host))),
        Account::Named { user, host: None } => Some(quote(user)),
        Account::OfSession => None,
    }
}

/// A `REVOKE` that was executed before, perhaps, says that nothing is there to be revoked: it is done then.
pub fn judge(done: Result<(), Failure>, statement: &StatementItem, tried: Tried) -> Result<(), Failure> {
    const NOTHING_GRANTED: [u16; 3] =
        [code::NONEXISTING_GRANT, code::NONEXISTING_TABLE_GRANT, code::NONEXISTING_PROC_GRANT];
    let is_revoked = |failure: &Failure| failure.code.is_some_and(|number| NOTHING_GRANTED.contains(&number));
    match done {
        Err(failure) if tried == Tried::Perhaps && is_revoked(&failure) && is_about_accounts(statement) => Ok(()),
        done => done,
    }
}

/// Says which privileges heddle's account lacks, for a `GRANT` or `REVOKE` that the target has refused.
pub fn explained(failure: Failure, statement: &StatementItem, target: &TargetInfo) -> Failure {
    const DENIED: [u16; 5] = [
        code::ACCESS_DENIED,
        code::ACCESS_DENIED_DB,
        code::TABLEACCESS_DENIED,
        code::COLUMNACCESS_DENIED,
        code::ACCESS_DENIED_NO_PASSWORD,
    ];
    let is_denied = failure.code.is_some_and(|number| DENIED.contains(&number));
    if !is_denied || !is_about_accounts(statement) {
        return failure;
    }
    let schema = String::from_utf8_lossy(&statement.query.schema);
    let mode = SqlMode::of(&statement.query.vars);
    match what_is_lacking(&statement.query.sql, mode, &schema, &target.account.name()) {
        Some(lacking) => failure.remedy(format!(
            "heddle's account can hand on only what it has itself: as an administrator of the target run {lacking}; then run the same command again \
             (or leave such statements out with --account-statements skip)"
        )),
        None => failure,
    }
}

/// The statement that gives heddle's account (`own`) what the source's statement hands on. `None`: it hands on nothing that can be named.
fn what_is_lacking(sql: &[u8], mode: SqlMode, schema: &str, own: &str) -> Option<String> {
    let handed_on = account_statement(sql, mode)?.handed_on?;
    let privileges = engine::sql::shown(sql.get(handed_on)?, mode, 500);
    // `REVOKE ALL PRIVILEGES, GRANT OPTION FROM`, `REVOKE ADMIN OPTION FOR`
    if privileges.contains("OPTION") {
        return None;
    }
    if engine::sql::roles_handed_on(sql, mode).is_some() {
        return Some(format!("GRANT {privileges} TO {own} WITH ADMIN OPTION"));
    }
    let is_of_proxies = privileges.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("proxy"));
    let is_within = !is_of_proxies && grants_in_default_schema(sql, mode) && !schema.is_empty();
    let within = if is_within { format!("USE {}; ", identifier(schema)) } else { String::new() };
    Some(format!("{within}GRANT {privileges} TO {own} WITH GRANT OPTION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_said_without_secrets() {
        for (sql, lacking) in [
            (
                "GRANT ALL PRIVILEGES ON `shop`.* TO app IDENTIFIED BY 'hunter2'",
                Some("GRANT ALL PRIVILEGES ON `shop`.* TO 'h'@'%' WITH GRANT OPTION"),
            ),
            ("GRANT SELECT (a) ON t TO app", Some("USE `d`; GRANT SELECT (a) ON t TO 'h'@'%' WITH GRANT OPTION")),
            (
                "REVOKE EXECUTE ON PROCEDURE d.p FROM app",
                Some("GRANT EXECUTE ON PROCEDURE d.p TO 'h'@'%' WITH GRANT OPTION"),
            ),
            ("GRANT PROXY ON u TO app", Some("GRANT PROXY ON u TO 'h'@'%' WITH GRANT OPTION")),
            ("GRANT r, s TO app", Some("GRANT r, s TO 'h'@'%' WITH ADMIN OPTION")),
            ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM app", None),
            ("CREATE USER app IDENTIFIED BY 'hunter2'", None),
        ] {
            let found = what_is_lacking(sql.as_bytes(), SqlMode::default(), "d", "'h'@'%'");
            assert_eq!(found.as_deref(), lacking, "{sql}");
        }
    }
}
