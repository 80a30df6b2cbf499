//! Executes one statement of the source, and says what its errors mean.

pub(super) mod branch_items;
pub(in crate::mysql) mod context;
pub(in crate::mysql) mod nontransactional;
pub(super) mod one_packet;
pub(super) mod outcome;
pub(super) mod routine_creator;
pub(super) mod text;
pub(super) mod user_locks;

mod administrator;
mod load_data;
mod statement_format;

use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, DdlKind};
use engine::transaction::{Item, StatementItem, Transaction};

use self::outcome::Ending;
use self::text::{
    CreateTable, commits_by_itself, idempotent, may_do_without_schema, text, with_default_schema, with_invoker,
    with_its_end,
};
use crate::mysql::Ddl;
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::server::errors::{code, failed, of_own_tables};
use crate::mysql::session::bookkeeping_guard;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::settings;
use crate::mysql::session::state::statement_state::SessionState;

/// One statement with its session state, which needs no GTID of its own; the connection has its own settings again afterwards.
pub fn execute(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<(), Failure> {
    execute_and(connection, statement, None, Afterwards::OwnSettings)
}

/// As [`execute`]: the connection keeps the statement's session state, for the next with the same one, or until the transaction begins in which that
/// is taken back. [`ChannelConnection::end_session_state`] has to come before anything else. After an error the connection has its own settings again.
pub fn execute_next(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<(), Failure> {
    execute_and(connection, statement, None, Afterwards::SessionState)
}

/// What a connection has behind a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    OwnSettings,
    /// If it can be kept.
    SessionState,
}

/// As [`execute`], or as [`execute_next`]. `set_gtid`: what gives a statement that commits by itself its GTID.
pub fn execute_and(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    set_gtid: Option<&str>,
    afterwards: Afterwards,
) -> Result<(), Failure> {
    if !matches!(statement.class.class, Class::Dml { .. })
        && let Some(guard) = connection.channel_context().bookkeeping_guard()
    {
        guard.forget_tables();
    }
    let fills_or_unknown = matches!(
        statement.class.class,
        Class::Unknown | Class::Ddl { kind: DdlKind::CreateTable { select: true, .. } }
    );
    if fills_or_unknown && !connection.is_open() {
        bookkeeping_guard::refuse_hidden_change(&mut connection.wire, statement)?;
    }
    let text = text(statement, CreateTable::BeforeItsRows);
    let logged = statement_format::begin(connection, statement)?;
    let outcome = execute_text(connection, statement, &text, set_gtid);
    // Also after an error that ends the attempt: the next statement must not run in this one's session state.
    let outcome = match outcome {
        Err(lost) if lost.kind == FailureKind::ConnectionLost => return Err(lost),
        Ok(()) if afterwards == Afterwards::SessionState && connection.session_state().is_some() => {
            return statement_format::end(connection, logged);
        }
        outcome => {
            let reset = reset_after(connection, statement).and_then(|()| statement_format::end(connection, logged));
            outcome.and(reset)
        }
    };
    match outcome {
        Err(refused) if administrator::may_help(connection.info(), statement, &refused) => {
            let sql = with_invoker(statement, &text, connection.info().flavour)?;
            set_gtid.map_or(Ok(()), |set_gtid| connection.execute(set_gtid))?;
            administrator::hand_on(connection, statement, &sql)?.ok_or(refused)
        }
        outcome => outcome,
    }
}

/// Of our own, around a statement of the source.
const SAVEPOINT: &str = "heddle_statement";

/// Leaves the connection with the statement's session state.
///
/// The GTID is set right before the statement: MySQL takes it away from a session in which anything fails, and some of what comes before may.
pub fn execute_text(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    sql: &[u8],
    set_gtid: Option<&str>,
) -> Result<(), Failure> {
    if !matches!(statement.class.class, Class::Dml { .. }) {
        connection.channel_context().quirks.sql_tables.forget(|_| true);
    }
    let ending = Ending::of(statement);
    let flavour = connection.info().flavour;
    let sql = with_its_end(statement, with_invoker(statement, sql, flavour)?, flavour);
    let sql = match connection.ddl() {
        Ddl::Idempotent if ending == Ending::Done => idempotent(statement, sql),
        _ => sql,
    };
    let frame = context::frame(statement, connection.info())?;
    let sql = match (set_session_state(connection, statement, &frame)?, &frame.schema) {
        (DefaultSchema::IsGone, Some(schema)) => with_default_schema(statement, sql, Some(schema)),
        _ => sql,
    };
    if let Some(file) = &statement.file {
        return load_data::run(connection, statement, file);
    }
    // What waited for a lock in vain was rolled back, as far as it could be.
    let takes_back = matches!(ending, Ending::GaveUp(_)) && !commits_by_itself(statement);
    if takes_back {
        connection.execute(format!("SAVEPOINT {SAVEPOINT}"))?;
    }
    set_gtid.map_or(Ok(()), |set_gtid| connection.execute(set_gtid))?;
    // It may answer with any number of rows, which nobody wants.
    let outcome = connection.wire.execute(sql.as_ref()).map(|_| ());
    nontransactional::notice(connection, &outcome)?;
    ending.judge(statement, outcome)?;
    if takes_back { connection.execute(format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}")) } else { Ok(()) }
}

/// Whether the session has the default schema that the source's had.
enum DefaultSchema {
    AsOnSource,
    /// Another one stands in for it.
    IsGone,
}

/// Where the statement's default schema is gone and the statement does not need it, in our own. Sends what waits in the script before it.
fn set_session_state(
    connection: &mut ChannelConnection,
    statement: &StatementItem,
    frame: &context::Frame,
) -> Result<DefaultSchema, Failure> {
    let own = &frame.own;
    let text = frame.text(None);
    if connection.session_state().is(&text) {
        return send_with(connection, std::slice::from_ref(own)).map(|()| DefaultSchema::AsOnSource);
    }
    if connection.session_state().is_some() {
        connection.send()?;
        connection.end_session_state()?;
    }
    let reset = settings::reset(connection.info(), statement.query.vars.default_table_encryption);
    let state = [vec![own.clone()], frame.statements(None)].concat();
    match send_with(connection, &state) {
        Err(failure) if failure.code == Some(code::BAD_DB) && may_do_without_schema(statement) => {
            let done = connection.wire.execute_repeatable(format!("{own};{}", frame.text(Some(SCHEMA.name()))));
            done.map(|_| DefaultSchema::IsGone).map_err(failed)
        }
        done => {
            done?;
            if frame.variables.is_empty() && user_locks::own_again(connection, statement).is_none() {
                connection.session_state().set(Some(SessionState::new(text, reset)));
            }
            Ok(DefaultSchema::AsOnSource)
        }
    }
}

/// Sends settings, in one packet with what waits in the script. By themselves they are repeated where somebody ends them.
fn send_with(connection: &mut ChannelConnection, settings: &[String]) -> Result<(), Failure> {
    if connection.script.is_empty() {
        return connection.wire.execute_repeatable(settings.join(";")).map(|_| ()).map_err(failed);
    }
    settings.iter().for_each(|setting| connection.script.statement(setting));
    connection.send()
}

/// Gives the connection its own settings again, after a statement with a session state.
pub fn reset_after(connection: &mut ChannelConnection, statement: &StatementItem) -> Result<(), Failure> {
    let reset = settings::reset(connection.info(), statement.query.vars.default_table_encryption);
    connection.session_state().set(None);
    connection.execute_despite_interruption(&reset)?;
    user_locks::own_again(connection, statement).map_or(Ok(()), |sql| connection.execute_despite_interruption(&sql))
}

/// Settings and progress that are sent with a statement, in bytes at most.
const BESIDE_STATEMENT_BYTES: usize = 64 << 10;

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
        Some(code::NO_SUCH_TABLE) if !of_own_tables(&failure.message) => failure.remedy(TABLE_OF_STATEMENT_GONE),
        Some(code::PACKET_TOO_LARGE) => failure.remedy(format!(
            "raise max_allowed_packet on the target to {} and more: this statement has {} bytes, and what goes with it comes on top",
            (statement.query.sql.len() + BESIDE_STATEMENT_BYTES).next_multiple_of(1024),
            statement.query.sql.len()
        )),
        _ => failure,
    };
    // An account statement can hold a password.
    let text = match &statement.class.class {
        Class::Ddl { kind } if kind.is_account() => "an account statement (text not shown)".to_owned(),
        _ => engine::sql::shown(&statement.query.sql, engine::sql::SqlMode::of(&statement.query.vars), 500),
    };
    failure.at(format!("{}, statement: {text}", transaction.place()))
}

pub fn at_transaction(failure: Failure, transaction: &Transaction) -> Failure {
    if failure.place.is_empty() { failure.at(transaction.place()) } else { failure }
}
