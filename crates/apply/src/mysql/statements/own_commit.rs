//! Statements that commit by themselves (DDL, account statements, the ends of XA branches): executed exactly once, and completed after a crash
//! that cut them.

use std::sync::Mutex;

use binlog::Flavour;
use engine::failure::Failure;
use engine::sql::{Class, DdlKind};
use engine::transaction::{Item, StatementItem, Transaction};

use super::accounts::{self, Tried};
use super::execute::routine_creator;
use super::execute::text::{CreateTable, text};
use super::execute::{Afterwards, execute_and, execute_text, reset_after};
use super::fingerprint::{self, Fingerprint};
use super::once_statement::OnceStatement;
use crate::mysql::progress::executed_gtids;
use crate::mysql::progress::intent::FingerprintScope;
use crate::mysql::server::errors::code;
use crate::mysql::server::gtids::set_next;
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::xa::connections::Branches;
use crate::mysql::xa::{end, prepare};

pub(super) type SharedBranches<'a> = &'a Mutex<Branches>;

pub fn run(
    connection: &mut ChannelConnection,
    branches: SharedBranches<'_>,
    once: &OnceStatement<'_>,
    statement: &StatementItem,
) -> Result<(), Failure> {
    let class = &statement.class;
    once.run_or_complete(
        connection,
        |connection, look| {
            if is_xa(&class.class) {
                prepare::fingerprint(&mut connection.wire, class)
            } else {
                take_fingerprint(connection, statement, look)
            }
        },
        |connection| {
            let tried = if once.done_before.is_some() { Tried::Perhaps } else { Tried::No };
            accounts::judge(execute_once(connection, branches, once.transaction, statement), statement, tried)
        },
        |connection| complete(connection, branches, once.transaction, statement),
    )
}

fn is_xa(class: &Class) -> bool {
    matches!(
        class,
        Class::XaStart { .. } | Class::XaEnd | Class::XaPrepare | Class::XaCommit { .. } | Class::XaRollback
    )
}

fn take_fingerprint(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    look: FingerprintScope,
) -> Result<u64, Failure> {
    fingerprint_of(connection, statement, look).map(|taken| taken.hash)
}

pub(super) fn fingerprint_of(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    look: FingerprintScope,
) -> Result<Fingerprint, Failure> {
    let channel = std::sync::Arc::clone(connection.channel_context());
    fingerprint::take(&mut connection.wire, channel.info(), statement, look)
}

pub(super) fn execute_once(
    connection: &mut ChannelConnection,
    branches: SharedBranches<'_>,
    transaction: &Transaction,
    statement: &StatementItem,
) -> Result<(), Failure> {
    if is_xa(&statement.class.class) {
        connection.send()?;
        return end::end(connection, branches, transaction, &statement.class);
    }
    let creator = routine_creator::of(connection, statement)?;
    let set_gtid = connection.gtids().statement(transaction.gtid.as_ref())?;
    execute_and(connection, statement, set_gtid.as_deref(), afterwards(connection, transaction, statement))?;
    use_up_gtid(connection, transaction)?;
    match creator {
        Some(creator) => {
            // It is committed, and its GTID used up.
            connection.after_own_commit()?;
            routine_creator::give_rights(connection, &creator)
        }
        None => Ok(()),
    }
}

/// Where nothing but the progress comes behind the statement, its session state is taken back with that.
fn afterwards(connection: &ChannelConnection, transaction: &Transaction, statement: &StatementItem) -> Afterwards {
    let is_alone = matches!(transaction.items(), [_]) && !connection.gtids().are_preserved();
    match &statement.class.class {
        Class::Ddl { kind } if is_alone && !kind.is_account() && *kind != DdlKind::Routine => Afterwards::SessionState,
        _ => Afterwards::OwnSettings,
    }
}

/// MySQL: a statement that was taken for done although it failed (nothing was there to drop, or it failed on the source as well) leaves its GTID unused.
fn use_up_gtid(connection: &mut ChannelConnection, transaction: &Transaction) -> Result<(), Failure> {
    let gtids = connection.gtids();
    let Some(gtid) = gtids.preserved(transaction.gtid.as_ref())?.filter(|_| gtids.use_gtid_next()) else {
        return Ok(());
    };
    if executed_gtids::is_executed(&mut connection.wire, gtid)? {
        return Ok(());
    }
    for statement in [&*set_next(gtid), "BEGIN", "COMMIT"] {
        connection.execute(statement)?;
    }
    Ok(())
}

/// Completes what a crash may have cut: it is there in part, or whole.
pub(super) fn complete(
    connection: &mut ChannelConnection,
    branches: SharedBranches<'_>,
    transaction: &Transaction,
    statement: &StatementItem,
) -> Result<(), Failure> {
    let again = |connection: &mut ChannelConnection| execute_once(connection, branches, transaction, statement);
    match &statement.class.class {
        // Servers other than MySQL 8 drop one after the other.
        Class::Ddl { kind: DdlKind::DropTable { .. } } if statement.class.tables.len() > 1 => {
            drop_the_rest(connection, &again)
        }
        Class::Ddl { kind: DdlKind::DropDatabase } => drop_the_rest(connection, &again),
        Class::Ddl { kind: DdlKind::Routine } => match routine_creator::of(connection, statement)? {
            Some(creator) => routine_creator::give_rights(connection, &creator),
            None => Ok(()),
        },
        // The table is there before its rows: MySQL before 8.0.21, MariaDB before 10.6.
        Class::Ddl { kind: DdlKind::CreateTable { select: true, temporary: false, .. } } => {
            fill_anew(connection, statement, &again)
        }
        // OR REPLACE drops before it makes: MariaDB before 10.6.
        Class::Ddl { kind: DdlKind::CreateTable { temporary: false, .. } }
            if !made_one_is_there(connection, statement)? =>
        {
            again(connection)?;
            connection.after_own_commit()
        }
        _ => Ok(()),
    }
}

/// Executes the statement.
type Again<'a> = &'a dyn Fn(&mut ChannelConnection) -> Result<(), Failure>;

fn drop_the_rest(connection: &mut ChannelConnection, again: Again<'_>) -> Result<(), Failure> {
    match again(connection) {
        Err(failure) if matches!(failure.code, Some(code::BAD_TABLE | code::DB_DROP_EXISTS)) => connection.rollback(),
        done => done.and_then(|()| connection.after_own_commit()),
    }
}

/// The table was not there before the statement, or not as it is now, and nothing else has changed it since: so it may go, whatever of its rows it has.
fn fill_anew(connection: &mut ChannelConnection, statement: &StatementItem, again: Again<'_>) -> Result<(), Failure> {
    let Some(table) = statement.class.tables.first() else { return Ok(()) };
    tracing::warn!("{}.{} may lack rows: it is dropped and filled once more", table.schema, table.name);
    // Logged where the statement may have been, for replicas of the target. With the source's GTIDs it was not, or would have been found executed.
    let drop = format!("DROP TABLE IF EXISTS {}.{}", identifier(&table.schema), identifier(&table.name));
    connection.execute_unlogged(&drop)?;
    again(connection)?;
    connection.after_own_commit()
}

fn made_one_is_there(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<bool, Failure> {
    let Some(table) = statement.class.tables.first() else { return Ok(true) };
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA={} AND TABLE_NAME={}",
        quote(&table.schema),
        quote(&table.name)
    );
    Ok(connection.scalar(sql)?.as_deref() != Some("0"))
}

/// The target knows `CREATE TABLE … START TRANSACTION`: MySQL from 8.0.21 on.
///
/// Behind such a statement it takes rows as `BINLOG` statements only (error 3863).
pub fn can_create_with_rows(connection: &ChannelConnection) -> bool {
    let info = connection.info();
    let writes_sql = connection.channel_context().quirks.writes_sql();
    info.flavour == Flavour::MySql && info.version >= (8, 0, 21) && !writes_sql
}

/// The table and its rows in one transaction. Nothing but rows and COMMIT may follow such a CREATE TABLE, so the progress comes
/// after it: that the table is there says that all is.
pub fn create_with_rows(
    connection: &mut ChannelConnection,
    once: &OnceStatement<'_>,
    statement: &StatementItem,
    rows: &[Item],
) -> Result<(), Failure> {
    once.run(
        connection,
        |connection, look| take_fingerprint(connection, statement, look),
        |connection| {
            let set_gtid = connection.gtids().statement(once.transaction.gtid.as_ref())?;
            let text = text(statement, CreateTable::WithItsRows);
            execute_text(connection, statement, &text, set_gtid.as_deref())?;
            for item in rows {
                if let Item::Rows(rows) = item {
                    connection.write_event(rows)?;
                }
            }
            connection.script.statement("COMMIT");
            connection.send()?;
            reset_after(connection, statement)
        },
    )
}
