//! What kind of statement one of the source is, and its text for the target. Runs nothing.

use std::borrow::Cow;
use std::ops::Range;

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, DdlKind, SqlMode, Statement, grants_in_default_schema};
use engine::transaction::{Item, StatementItem};

use crate::mysql::server::sql::identifier;

pub fn is_rollback(item: &Item) -> bool {
    matches!(item, Item::Statement(statement) if statement.class.class == Class::Rollback)
}

pub fn is_own_commit(item: &Item) -> bool {
    matches!(item, Item::Statement(statement) if commits_by_itself(statement))
}

pub fn commits_by_itself(statement: &StatementItem) -> bool {
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

pub fn is_temporary_ddl(statement: &StatementItem) -> bool {
    matches!(&statement.class.class, Class::Ddl { kind } if is_temporary(*kind))
}

/// Whether it runs where its default schema is gone. One that the source's server wrote itself does; not one that changes "the" schema, which would
/// change another.
pub fn may_do_without_schema(statement: &StatementItem) -> bool {
    let alters_schema = matches!(&statement.class.class, Class::Ddl { kind: DdlKind::AlterDatabase });
    statement.suppress_use && !alters_schema || !needs_schema(statement)
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

/// How MySQL's atomic CREATE TABLE … SELECT is executed, which is logged as `CREATE TABLE … START TRANSACTION` and the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateTable {
    /// As it is logged: in one transaction with its rows.
    WithItsRows,
    /// Without the words START TRANSACTION: its rows follow in a transaction of their own, together with the progress.
    BeforeItsRows,
}

/// The statement's text for the target.
///
/// A scheduled event is disabled: what it does on the source is in the source's log. Where the source's session had no default schema, `DATABASE()` is
/// NULL: a session of the target can not go back to having none.
pub fn text(statement: &StatementItem, create_table: CreateTable) -> Cow<'_, [u8]> {
    let sql = edited(statement, create_table);
    if statement.query.schema.is_empty() { with_default_schema(statement, sql, None) } else { sql }
}

/// Says the value of `DATABASE()` in a statement that changes rows. `schema`: the source's default one, if there was any.
pub fn with_default_schema<'a>(statement: &StatementItem, sql: Cow<'a, [u8]>, schema: Option<&str>) -> Cow<'a, [u8]> {
    if !matches!(&statement.class.class, Class::Dml { .. }) {
        return sql;
    }
    let places = engine::sql::default_schema_calls_at(&sql, SqlMode::of(&statement.query.vars));
    if places.is_empty() {
        return sql;
    }
    let value = schema.map_or_else(|| "NULL".to_owned(), |schema| format!("_utf8 X'{}'", hex::encode_upper(schema)));
    replaced(&sql, places.into_iter().map(|place| (place, value.as_str()))).into()
}

/// The text with other words in these places, which come in their order.
fn replaced<'a>(sql: &[u8], edits: impl Iterator<Item = (Range<usize>, &'a str)>) -> Vec<u8> {
    let mut text = Vec::with_capacity(sql.len());
    let mut end = 0;
    for (place, instead) in edits {
        text.extend_from_slice(sql.get(end..place.start).unwrap_or_default());
        text.extend_from_slice(instead.as_bytes());
        end = place.end;
    }
    text.extend_from_slice(sql.get(end..).unwrap_or_default());
    text
}

fn edited(statement: &StatementItem, create_table: CreateTable) -> Cow<'_, [u8]> {
    let sql: &[u8] = &statement.query.sql;
    let mode = SqlMode::of(&statement.query.vars);
    if let Class::Dml { .. } = &statement.class.class
        && let Some(edited) = engine::sql::without_log_settings(sql, mode)
    {
        return edited.into();
    }
    let (at, instead) = match &statement.class.class {
        Class::Ddl { kind: DdlKind::Event } => (engine::sql::enabled_at(sql, mode), b" DISABLE ON SLAVE ".as_slice()),
        _ if starts_transaction(statement) && create_table == CreateTable::BeforeItsRows => {
            (engine::sql::start_transaction_at(sql, mode), b"".as_slice())
        }
        _ => (None, b"".as_slice()),
    };
    let edited = at.and_then(|at| Some([sql.get(..at.start)?, instead, sql.get(at.end..)?].concat()));
    edited.map_or(sql.into(), Into::into)
}

pub fn starts_transaction(statement: &StatementItem) -> bool {
    matches!(&statement.class.class, Class::Ddl { kind: DdlKind::CreateTable { start_transaction: true, .. } })
}

const BY_HAND: &str = "make the change by hand on the target, with the account's name, and go on behind the statement with a new --channel and \
    --start; on the source, name accounts, and set binlog_format to ROW or MIXED";

/// A stored program whose text ends with a semicolon came in a packet of several statements. MySQL takes semicolons off the end of a packet, and keeps
/// them in the program's text where another statement follows.
pub fn with_its_end<'a>(statement: &StatementItem, sql: Cow<'a, [u8]>, target: Flavour) -> Cow<'a, [u8]> {
    let is_program = matches!(
        &statement.class.class,
        Class::Ddl { kind: DdlKind::Event | DdlKind::Trigger | DdlKind::Routine | DdlKind::View }
    );
    if is_program && target == Flavour::MySql && sql.trim_ascii_end().ends_with(b";") {
        return [&sql, b" SET @@session.last_insert_id=0".as_slice()].concat().into();
    }
    sql
}

/// See [`engine::sql::made_idempotent`].
pub fn idempotent<'a>(statement: &StatementItem, sql: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
    let more = engine::sql::made_idempotent(&sql, SqlMode::of(&statement.query.vars));
    let edited = more.and_then(|(at, words)| Some([sql.get(..at)?, words.as_bytes(), sql.get(at..)?].concat()));
    edited.map_or(sql, Into::into)
}

/// Names who ran the statement on the source, where it means its own account: `CURRENT_USER` in an account statement, and who a new role is
/// given to. Statements that change rows by who runs them are refused: the servers call them unsafe, and log rows unless the source is told not to.
pub fn with_invoker<'a>(statement: &StatementItem, sql: &'a [u8], target: Flavour) -> Result<Cow<'a, [u8]>, Failure> {
    if let Class::Ddl { kind: DdlKind::Event } = &statement.class.class {
        return Ok(with_definer(statement, sql));
    }
    let refused = |why: &str| Err(Failure::new(FailureKind::Refused, why).remedy(BY_HAND));
    match &statement.class.class {
        Class::Ddl { kind } if kind.is_account() => {}
        Class::Dml { .. } | Class::Ddl { kind: DdlKind::AlterTable | DdlKind::CreateTable { select: true, .. } } => {
            return match engine::sql::named_user_function(sql, SqlMode::of(&statement.query.vars)) {
                Some(name) => {
                    refused(&format!("the statement depends on {name}, which is another account on the target"))
                }
                None => Ok(sql.into()),
            };
        }
        _ => return Ok(sql.into()),
    }
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
    let Some((user, host)) = &statement.query.vars.invoker else {
        return refused("the statement names CURRENT_USER, and the source did not log who that was");
    };
    let Some(account) = account(user, host) else {
        return refused("the statement names CURRENT_USER, whose name is not UTF-8");
    };
    let ignored = engine::sql::ignored_passwords_at(sql, mode);
    let mut edits: Vec<(Range<usize>, &str)> = places.into_iter().map(|place| (place, account.as_str())).collect();
    edits.extend(ignored.into_iter().map(|place| (place, "")));
    edits.sort_by_key(|(place, _)| place.start);
    Ok(replaced(sql, edits.into_iter()).into())
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
