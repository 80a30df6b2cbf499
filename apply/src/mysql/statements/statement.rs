//! One statement of the source: what kind it is, its text on the target, its session state, and what its errors mean.

use std::borrow::Cow;

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, DdlKind, SqlMode, Statement, grants_in_default_schema};
use engine::transaction::{Item, LoadFile, StatementItem, Transaction};

use crate::mysql::progress::statements::SCHEMA;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::identifier;
use crate::mysql::session::{MySqlSession, settings};
use crate::mysql::statements::context;

pub(in crate::mysql) fn commits_by_itself(statement: &StatementItem) -> bool {
    match &statement.class.class {
        Class::Dml { .. }
        | Class::Begin
        | Class::Commit
        | Class::Rollback
        | Class::Savepoint
        | Class::RollbackTo
        | Class::Release
        | Class::SetStatement => false,
        Class::Ddl { kind } => !is_temporary(*kind),
        Class::XaStart { .. } | Class::XaEnd | Class::XaPrepare | Class::XaCommit { .. } | Class::XaRollback => true,
        Class::Unknown => true,
    }
}

/// Temporary tables do not end the transaction.
fn is_temporary(kind: DdlKind) -> bool {
    matches!(kind, DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. })
}

pub(in crate::mysql) fn is_temporary_ddl(statement: &StatementItem) -> bool {
    matches!(&statement.class.class, Class::Ddl { kind } if is_temporary(*kind))
}

/// One statement with its session state; the session is itself again afterwards.
pub(in crate::mysql) fn execute(session: &mut MySqlSession, statement: &StatementItem) -> Result<(), Failure> {
    let outcome = execute_text(session, statement, text(statement, false).as_ref());
    // Also after an error that ends the attempt: the next statement must not run in this one's session state.
    match outcome {
        Err(lost) if lost.kind == FailureKind::ConnectionLost => Err(lost),
        outcome => {
            let reset = session.reset_after(statement);
            outcome.and(reset)
        }
    }
}

/// Leaves the session with the statement's state.
pub(in crate::mysql) fn execute_text(
    session: &mut MySqlSession,
    statement: &StatementItem,
    sql: &[u8],
) -> Result<(), Failure> {
    session.script.send(&mut session.connection)?;
    let sql = with_invoker(statement, sql, session.shared.info.flavour)?;
    let sql = sql.as_ref();
    let frame = context::frame(statement, &session.shared.info)?;
    let own = &frame.own;
    match session.connection.query(format!("{own};{}", frame.text(None))) {
        Err(error) if error.code() == Some(code::BAD_DB) && !needs_schema(statement) => {
            session.connection.query(format!("{own};{}", frame.text(Some(SCHEMA)))).map_err(failed)?
        }
        done => done.map_err(failed)?,
    };
    let outcome = match &statement.file {
        None => session.connection.query(sql).map(|_| ()),
        Some(file) => {
            let sql = load_data_text(statement, file);
            session.connection.query_with_local_infile(&sql, &mut file.data.as_slice()).map(|_| ())
        }
    };
    let expected = statement.query.error_code;
    match outcome {
        Err(error) if error.code().is_some_and(|code| code == expected) => Ok(()),
        Err(error) if error.code() == Some(code::BAD_TABLE) && is_half_drop(statement) => Ok(()),
        Ok(()) if expected != 0 && !is_kill(expected) => Err(Failure::new(
            FailureKind::Divergence,
            format!("the statement failed with error {expected} on the source, but not on the target"),
        )
        .remedy("compare the tables of this statement on source and target")),
        other => other.map_err(failed),
    }
}

/// Whether it may name something of its session's default schema. If it does not, that schema may have been dropped by another session before it
/// ran on the source, and any other does as well.
fn needs_schema(statement: &StatementItem) -> bool {
    let schema = String::from_utf8_lossy(&statement.query.schema);
    let Statement { class, tables, schemas, homes, .. } = &statement.class;
    let names = || tables.iter().map(|table| &table.schema).chain(schemas).chain(homes);
    let is_known = match class {
        Class::Ddl { kind: DdlKind::Account } => {
            !grants_in_default_schema(&statement.query.sql, SqlMode::of(&statement.query.vars))
        }
        Class::Ddl { .. } | Class::Dml { .. } => names().next().is_some(),
        _ => false,
    };
    !is_known || names().any(|name| name.eq_ignore_ascii_case(&schema))
}

/// What to do about error 1146.
const TABLE_OF_STATEMENT_GONE: &str = "the target lacks a table that the statement names. Load the source's schema and data as of the \
    start position first; or, if it was a temporary table, it has ended with the connection or the heddle that made it: do by hand what the \
    statements on it would do, and go on behind them with a new --channel and --start";

/// A DROP TABLE that the server wrote itself, of several tables of which some were missing: MariaDB logs it with error code 0, and it fails
/// again after it has dropped the others.
fn is_half_drop(statement: &StatementItem) -> bool {
    let is_drop = matches!(&statement.class.class, Class::Ddl { kind: DdlKind::DropTable { .. } });
    is_drop
        && statement.class.tables.len() > 1
        && statement.query.sql.trim_ascii_end().ends_with(b"/* generated by server */")
}

/// Error codes that say "it was killed", which a target does not repeat.
fn is_kill(code: u16) -> bool {
    matches!(code, 1053 | 1317 | 1927)
}

/// The statement's text. MySQL's atomic CREATE TABLE … SELECT, logged as `CREATE TABLE … START TRANSACTION` and the rows, runs without
/// these words where it cannot be atomic: its rows follow in a transaction of their own, together with the progress.
///
/// A scheduled event does not run here: what it does on the source is in the source's log.
pub(in crate::mysql) fn text(statement: &StatementItem, atomic: bool) -> Cow<'_, [u8]> {
    let sql: &[u8] = &statement.query.sql;
    let mode = SqlMode::of(&statement.query.vars);
    if let Class::Dml { .. } = &statement.class.class
        && let Some(edited) = engine::sql::without_log_settings(sql, mode)
    {
        return edited.into();
    }
    let (at, instead) = match &statement.class.class {
        Class::Ddl { kind: DdlKind::Event } => (engine::sql::enabled_at(sql, mode), b" DISABLE ON SLAVE ".as_slice()),
        _ if starts_transaction(statement) && !atomic => (engine::sql::start_transaction_at(sql, mode), b"".as_slice()),
        _ => (None, b"".as_slice()),
    };
    let edited = at.and_then(|at| Some([sql.get(..at.start)?, instead, sql.get(at.end..)?].concat()));
    edited.map_or(sql.into(), Into::into)
}

pub(in crate::mysql) fn starts_transaction(statement: &StatementItem) -> bool {
    matches!(&statement.class.class, Class::Ddl { kind: DdlKind::CreateTable { start_transaction: true, .. } })
}

/// LOAD DATA INFILE 'its temporary name' … → LOAD DATA LOCAL INFILE 'heddle' [IGNORE|REPLACE] INTO …
fn load_data_text(statement: &StatementItem, file: &LoadFile) -> Vec<u8> {
    let sql = &statement.query.sql;
    let mut text = Vec::with_capacity(sql.len() + 32);
    let (before, after) = (sql.get(..file.name_range.start), sql.get(file.name_range.end..));
    text.extend_from_slice(before.unwrap_or_default());
    text.extend_from_slice(b" LOCAL INFILE 'heddle'");
    text.extend_from_slice(match file.duplicates {
        1 => b" IGNORE".as_slice(),
        2 => b" REPLACE".as_slice(),
        _ => b"".as_slice(),
    });
    text.extend_from_slice(b" INTO");
    text.extend_from_slice(after.unwrap_or_default());
    text
}

const BY_HAND: &str = "make the change by hand on the target, with the account's name, and go on behind the statement with a new --channel and \
    --start; on the source, name accounts, and set binlog_format to ROW or MIXED";

/// `CURRENT_USER` in an account statement is whoever ran it on the source, not our account on the target; so is who a new role is given to. In other statements the servers
/// call it unsafe, and log rows unless the source is told not to.
pub(in crate::mysql) fn with_invoker<'a>(
    statement: &StatementItem,
    sql: &'a [u8],
    target: Flavour,
) -> Result<Cow<'a, [u8]>, Failure> {
    if let Class::Ddl { kind: DdlKind::Event } = &statement.class.class {
        return Ok(with_definer(statement, sql));
    }
    let accounts = match &statement.class.class {
        Class::Ddl { kind } if kind.is_account() => true,
        Class::Dml { .. } => false,
        _ => return Ok(sql.into()),
    };
    let mode = SqlMode::of(&statement.query.vars);
    if target == Flavour::MariaDb
        && let Some(at) = engine::sql::role_without_admin_at(sql, mode)
        && let Some(account) = invoker(statement)
    {
        let admin = format!(" WITH ADMIN {account}");
        return Ok([sql.get(..at).unwrap_or_default(), admin.as_bytes(), sql.get(at..).unwrap_or_default()]
            .concat()
            .into());
    }
    let places = engine::sql::current_user_at(sql, mode);
    if places.is_empty() {
        return Ok(sql.into());
    }
    let refused = |why: &str| Err(Failure::new(FailureKind::Refused, why).remedy(BY_HAND));
    if !accounts {
        return refused("the statement depends on CURRENT_USER, which is another account on the target");
    }
    let Some((user, host)) = &statement.query.vars.invoker else {
        return refused("the statement names CURRENT_USER, and the source did not log who that was");
    };
    let Some(account) = account(user, host) else {
        return refused("the statement names CURRENT_USER, whose name is not UTF-8");
    };
    let mut text = Vec::with_capacity(sql.len() + account.len());
    let mut end = 0;
    for place in places {
        text.extend_from_slice(sql.get(end..place.start).unwrap_or_default());
        text.extend_from_slice(account.as_bytes());
        end = place.end;
    }
    text.extend_from_slice(sql.get(end..).unwrap_or_default());
    Ok(text.into())
}

/// `ALTER EVENT` makes who runs it the event's definer.
fn with_definer<'a>(statement: &StatementItem, sql: &'a [u8]) -> Cow<'a, [u8]> {
    let at = engine::sql::alters_event_at(sql, SqlMode::of(&statement.query.vars));
    let edited = at.zip(invoker(statement)).and_then(|(at, invoker)| {
        let definer = format!(" DEFINER={invoker}");
        Some([sql.get(..at)?, definer.as_bytes(), sql.get(at..)?].concat())
    });
    edited.map_or(sql.into(), Into::into)
}

/// As far as the source has logged it, and it is UTF-8.
fn invoker(statement: &StatementItem) -> Option<String> {
    statement.query.vars.invoker.as_ref().and_then(|(user, host)| account(user, host))
}

/// `None`: not UTF-8.
fn account(user: &[u8], host: &[u8]) -> Option<String> {
    let (user, host) = (std::str::from_utf8(user).ok()?, std::str::from_utf8(host).ok()?);
    // A role has no host.
    Some(if host.is_empty() { identifier(user) } else { format!("{}@{}", identifier(user), identifier(host)) })
}

/// What the contexts of statements change, and [`settings`] does not: the server's own settings again.
fn defaults(info: &TargetInfo) -> String {
    let mut sets = String::from(
        "foreign_key_checks=1, unique_checks=1, sql_auto_is_null=0, timestamp=DEFAULT, \
         time_zone=DEFAULT, lc_time_names=DEFAULT, auto_increment_increment=DEFAULT, auto_increment_offset=DEFAULT, \
         collation_server=DEFAULT",
    );
    let (mysql, version) = (info.flavour == Flavour::MySql, info.version);
    for (variable, is_there) in [
        ("default_collation_for_utf8mb4", mysql && version >= (8, 0, 11)),
        ("sql_require_primary_key", mysql && version >= (8, 0, 13)),
        ("enable_cascade_triggers", mysql && version >= (9, 7, 0)),
        ("check_constraint_checks", !mysql && version >= (10, 2, 1)),
        ("sql_if_exists", !mysql && version >= (10, 5, 2)),
        ("system_versioning_insert_history", !mysql && version >= (10, 11, 0)),
        ("character_set_collations", info.has_collations_of_character_sets()),
    ] {
        if is_there {
            sets.push_str(&format!(", {variable}=DEFAULT"));
        }
    }
    sets
}

/// After a statement with its own context: the session's settings again.
pub(in crate::mysql) fn reset(statement: &StatementItem, info: &TargetInfo) -> String {
    let mut defaults = defaults(info);
    let encrypted = statement.query.vars.default_table_encryption;
    if encrypted.is_some_and(|encrypted| encrypted != u8::from(info.encrypts_tables)) {
        defaults.push_str(", default_table_encryption=DEFAULT");
    }
    format!("{}, {defaults}", settings(info))
}

impl MySqlSession {
    /// See [`reset`].
    pub(in crate::mysql) fn reset_after(&mut self, statement: &StatementItem) -> Result<(), Failure> {
        self.connection.execute(reset(statement, &self.shared.info)).map(|_| ()).map_err(failed)
    }
}

pub(in crate::mysql) fn at_statement(failure: Failure, transaction: &Transaction, item: &Item) -> Failure {
    if !failure.place.is_empty() {
        return failure;
    }
    let Item::Statement(statement) = item else { return failure.at(transaction.place()) };
    let failure = match failure.code {
        Some(code::NO_SUCH_TABLE) => failure.remedy(TABLE_OF_STATEMENT_GONE),
        _ => failure,
    };
    // An account statement can hold a password.
    let text = match &statement.class.class {
        Class::Ddl { kind } if kind.is_account() => "an account statement (text not shown)".to_owned(),
        _ => String::from_utf8_lossy(&statement.query.sql).chars().take(500).collect(),
    };
    failure.at(format!("{}, statement: {text}", transaction.place()))
}
