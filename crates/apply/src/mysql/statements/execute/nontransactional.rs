//! Changes to tables without transactions.
//!
//! Nothing of them can be rolled back: of a transaction that fails, what came before stays. That is recorded, so that no attempt and no later run
//! executes it again. Where the source's GTIDs are kept the target logs such changes, under the source's GTID, when their statement ends, and takes
//! that GTID once: so all of them are one statement.

use std::collections::BTreeSet;

use engine::compact::whole_events;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use engine::transaction::{BarrierCause, Item, Transaction};

use super::text::is_temporary_ddl;
use crate::Range;
use crate::mysql::progress::executed_gtids;
use crate::mysql::progress::intent::Intent;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::gtids::GtidRules;
use crate::mysql::server::sql::identifier;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::one_statement;
use crate::mysql::statements::unfinished_statements::UnfinishedStatements;
use crate::retry::pause;

/// Whether the items have to be one statement. Items with statements among them do not: these are executed one by one.
pub fn is_one_statement(gtids: &GtidRules, items: &[Item]) -> bool {
    let is_rows = |item: &Item| matches!(item, Item::Rows(_));
    gtids.are_logged() && items.len() > 1 && items.iter().all(is_rows) && executed_gtids::may_be_logged_early(items)
}

/// Appends all rows as one statement, in a transaction that is open.
pub fn write(connection: &mut ChannelConnection, transaction: &Transaction, items: &[Item]) -> Result<(), Failure> {
    if one_statement::gather_whole(connection, transaction, &whole_events(items))? {
        Ok(())
    } else {
        Err(too_large(transaction))
    }
}

/// A table that the target lacks is noticed before anything is executed that would stay: as on a server, which opens all tables of a statement
/// first. Definitions that were read before do not say whether somebody has renamed it since.
pub fn check_tables(connection: &mut ChannelConnection, items: &[Item]) -> Result<(), Failure> {
    // A statement among them may make the table.
    if !executed_gtids::may_be_logged_early(items) || items.iter().any(|item| matches!(item, Item::Statement(_))) {
        return Ok(());
    }
    let name = |item: &Item| match item {
        Item::Rows(rows) => Some(format!("{}.{}", identifier(&rows.map.schema), identifier(&rows.map.table))),
        Item::Statement(_) => None,
    };
    let names: BTreeSet<String> = items.iter().filter_map(name).collect();
    if names.len() > 1 {
        for name in names {
            connection.scalar(format!("SELECT 1 FROM {name} LIMIT 0"))?;
        }
    }
    Ok(())
}

pub fn too_large(transaction: &Transaction) -> Failure {
    Failure::new(
        FailureKind::Refused,
        "a transaction that changes tables without transactions can not be one statement (it is too large for that, or its rows have to be looked for \
         one by one): the target would log it under several GTIDs",
    )
    .at(transaction.place())
    .remedy(
        "use --gtids local, or move the tables to InnoDB on the target; a transaction that is only too large also goes where max_allowed_packet is \
         raised on the target",
    )
}

/// Fails if an attempt of this run has executed a part of the transaction. (After such an attempt of an earlier run none begins.)
pub fn check_whole(unfinished: &UnfinishedStatements, transaction: &Transaction) -> Result<(), Failure> {
    match unfinished.in_part(transaction.seq) {
        Some(why) => Err(partly(&why).at(transaction.place())),
        None => Ok(()),
    }
}

/// An earlier run has executed a part of transaction `seq`, which comes somewhere behind `mark`.
pub fn left_by_an_earlier_run(seq: u64, mark: Option<&Mark>) -> Failure {
    let position = mark.and_then(|mark| mark.position.as_ref());
    let behind = position.map_or(String::new(), |position| format!(", behind {position}"));
    partly(&format!("an earlier run has failed at transaction {seq} of the channel{behind}"))
}

/// After a statement: an error may have rolled back the whole transaction, and the server says then whether something stays.
pub fn notice<T>(connection: &mut ChannelConnection, outcome: &Result<T, wire::Error>) -> Result<(), Failure> {
    if let Err(error) = outcome
        && matches!(error.code(), Some(code::LOCK_DEADLOCK | code::LOCK_WAIT_TIMEOUT))
        && connection.warns_of_a_rest()?
    {
        connection.has_left_a_part = true;
    }
    Ok(())
}

/// Rolls back. Whether something of the transaction stays.
fn leaves_a_part(connection: &mut ChannelConnection) -> Result<bool, Failure> {
    connection.script.clear();
    connection.use_own_server()?;
    let done = connection.wire.execute("ROLLBACK").map_err(failed)?;
    let left = std::mem::take(&mut connection.has_left_a_part) || done.warnings > 0 && connection.warns_of_a_rest()?;
    connection.rollback()?;
    Ok(left)
}

/// Temporary tables stay as well, with the same warning. They end with their session.
fn makes_temporary_tables(transaction: &Transaction) -> bool {
    let is_one = |item: &Item| matches!(item, Item::Statement(statement) if is_temporary_ddl(statement));
    transaction.items().iter().any(is_one)
}

/// After a failure on a connection that works: records what the failed transaction has left. Returns what to say of it.
pub fn after_failure(
    connection: &mut ChannelConnection,
    unfinished: &UnfinishedStatements,
    transaction: &Transaction,
    range: Range<'_>,
    failure: Failure,
) -> Result<(), Failure> {
    let left = leaves_a_part(connection)? && !makes_temporary_tables(transaction);
    if !left && !is_executed_early(connection, transaction)? {
        return Err(failure);
    }
    let before = (!range.is_committed_range()).then_some(range.before);
    let record = connection.progress().intend(before, &Intent::partly(transaction.seq).to_text());
    // First: no attempt of this run executes it again, even if the target does not take the record.
    unfinished.set_in_part(transaction.seq, &failure.message);
    while_closed(|| connection.execute_unlogged(&record).map(|_| ()))?;
    let place = if failure.place.is_empty() { transaction.place() } else { failure.place };
    Err(partly(&failure.message).at(place))
}

/// A target that takes no changes now would forget that a part was executed, so the record waits until it does.
fn while_closed(record: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let mut record = record;
    let mut attempt = 0_u32;
    loop {
        match record() {
            Err(closed) if closed.kind == FailureKind::Maintenance => {
                attempt = attempt.saturating_add(1);
                std::thread::sleep(pause(closed.kind, attempt));
            }
            done => return done,
        }
    }
}

/// Whether the target has the transaction's GTID, although it has failed.
fn is_executed_early(connection: &mut ChannelConnection, transaction: &Transaction) -> Result<bool, Failure> {
    let may_be =
        executed_gtids::may_be_logged_early(transaction.items()) && transaction.barrier != Some(BarrierCause::Xa);
    match transaction.gtid.as_ref().filter(|_| may_be && connection.gtids().are_preserved()) {
        Some(gtid) => executed_gtids::is_executed(&mut connection.wire, gtid),
        None => Ok(false),
    }
}

fn partly(why: &str) -> Failure {
    let message = format!(
        "{why}; the target has executed a part of the transaction, on tables without transactions: it can not be executed again, nor the rest of it follow"
    );
    Failure::new(FailureKind::Refused, message).remedy(
        "make the tables of this transaction equal to the source's by hand, then go on behind it with a new --channel and --start; InnoDB does not have \
         this limit",
    )
}
