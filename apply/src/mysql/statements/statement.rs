//! Executes one statement of the source, and says what its errors mean.

use engine::failure::{Failure, FailureKind};
use engine::sql::Class;
use engine::transaction::{Item, StatementItem, Transaction};

use super::context;
use super::text::{CreateTable, is_half_drop, is_kill, load_data_text, needs_schema, text, with_invoker};
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::settings;

/// One statement with its session state; the connection has its own settings again afterwards.
pub fn execute(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<(), Failure> {
    let outcome = execute_text(connection, statement, text(statement, CreateTable::BeforeItsRows).as_ref());
    // Also after an error that ends the attempt: the next statement must not run in this one's session state.
    match outcome {
        Err(lost) if lost.kind == FailureKind::ConnectionLost => Err(lost),
        outcome => {
            let reset = reset_after(connection, statement);
            outcome.and(reset)
        }
    }
}

/// Leaves the connection with the statement's session state.
pub fn execute_text(connection: &mut ChannelConnection, statement: &StatementItem, sql: &[u8]) -> Result<(), Failure> {
    connection.send()?;
    let sql = with_invoker(statement, sql, connection.info().flavour)?;
    let frame = context::frame(statement, connection.info())?;
    set_session_state(connection, statement, &frame)?;
    let wire = &mut connection.wire;
    let outcome = match &statement.file {
        None => wire.query(sql.as_ref()).map(|_| ()),
        Some(file) => {
            let sql = load_data_text(statement, file);
            wire.query_with_local_infile(&sql, &mut file.data.as_slice()).map(|_| ())
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

/// Where the statement's default schema is gone and the statement does not need it, in our own.
fn set_session_state(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    frame: &context::Frame,
) -> Result<(), Failure> {
    let own = &frame.own;
    match connection.wire.query(format!("{own};{}", frame.text(None))) {
        Err(error) if error.code() == Some(code::BAD_DB) && !needs_schema(statement) => {
            connection.wire.query(format!("{own};{}", frame.text(Some(SCHEMA)))).map(|_| ()).map_err(failed)
        }
        done => done.map(|_| ()).map_err(failed),
    }
}

/// Gives the connection its own settings again, after a statement with a session state.
pub fn reset_after(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<(), Failure> {
    let reset = settings::reset(connection.info(), statement.query.vars.default_table_encryption);
    connection.execute(reset)
}

/// What to do about error 1146.
const TABLE_OF_STATEMENT_GONE: &str = "the target lacks a table that the statement names. Load the source's schema and data as of the \
    start position first; or, if it was a temporary table, it has ended with the connection or the heddle that made it: do by hand what the \
    statements on it would do, and go on behind them with a new --channel and --start";

pub fn at_statement(failure: Failure, transaction: &Transaction, item: &Item) -> Failure {
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

pub fn at_transaction(failure: Failure, transaction: &Transaction) -> Failure {
    if failure.place.is_empty() { failure.at(transaction.place()) } else { failure }
}
