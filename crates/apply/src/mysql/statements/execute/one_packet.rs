//! A statement that may be executed any number of times, its session state and the progress behind it: one packet in place of three.
//!
//! Whatever fails in it, the statement is executed once more step by step, which finds out what is wrong.

use engine::failure::{Failure, FailureKind};
use engine::transaction::{Item, StatementItem, Transaction};

use super::context;
use super::text::{CreateTable, text};
use crate::Range;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::settings;
use crate::mysql::session::state::statement_state::SessionState;
use crate::mysql::statements::account_tables;
use crate::mysql::statements::unfinished_statements::UnfinishedStatements;

/// Executes a transaction that is such a statement, with GTIDs of the target's own. False: it is none, or nothing of it is known to be executed.
pub fn run(
    connection: &mut ChannelConnection,
    unfinished: &UnfinishedStatements,
    transaction: &Transaction,
    range: Range<'_>,
) -> Result<bool, Failure> {
    let [Item::Statement(statement)] = transaction.items() else { return Ok(false) };
    if !may_be_sent(statement)
        || connection.gtids().are_preserved()
        || connection.is_open()
        || unfinished.intent_of(transaction.seq).is_some()
    {
        return Ok(false);
    }
    let Ok(frame) = context::frame(statement, connection.info()) else { return Ok(false) };
    let before = (!range.is_committed_range()).then_some(range.before);
    // Only the lease is compared: no intent is needed.
    let later = unfinished.later_than(transaction.seq).to_text();
    let fence = connection.progress().intend(before, &later);
    connection.script.statement(fence);
    connection.script.statement(&frame.own);
    frame.statements(None).iter().for_each(|setting| connection.script.statement(setting));
    connection.script.statement(text(statement, CreateTable::BeforeItsRows));
    let reset = settings::reset(connection.info(), statement.query.vars.default_table_encryption);
    connection.session_state().set(Some(SessionState::new(frame.text(None), reset)));
    let done = connection.begin(transaction).and_then(|()| connection.record_and_commit(range));
    match done {
        Ok(()) => Ok(true),
        Err(failure) if matches!(failure.kind, FailureKind::ConnectionLost | FailureKind::Fenced) => Err(failure),
        Err(failure) => {
            tracing::debug!(
                "step by step, since it has failed in one packet: {} ({})",
                failure.message,
                transaction.place()
            );
            connection.rollback().map(|()| false)
        }
    }
}

/// Nothing went wrong on the source, and the text ends where a semicolon ends it, in every character set.
fn may_be_sent(statement: &StatementItem) -> bool {
    let sql = &statement.query.sql;
    let ends_early = |part: &[u8]| matches!(part, [b';' | b'#', ..] | b"--" | b"/*");
    statement.is_idempotent()
        // What it does to Heddle's own account is taken back step by step.
        && !account_tables::may_change(statement)
        && statement.query.error_code == 0
        && statement.context.is_empty()
        && statement.file.is_none()
        && sql.is_ascii()
        && !sql.windows(2).any(ends_early)
        && !sql.ends_with(b";")
        && !sql.ends_with(b"#")
}
