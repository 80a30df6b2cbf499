//! Changes to tables without transactions, where the source's GTIDs are kept.
//!
//! The target logs them, under the source's GTID, when their statement ends, and takes that GTID once. So all of them are one statement. Nothing
//! can be rolled back: of a statement that fails, what came before stays, and the GTID is used up. That is recorded, as the GTID alone
//! would say that all was executed.

use engine::compact::whole_events;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use engine::transaction::{BarrierCause, Item, Transaction};

use super::unfinished::Unfinished;
use crate::Range;
use crate::mysql::progress::executed;
use crate::mysql::progress::intent::Intent;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::gtids::GtidRules;
use crate::mysql::session::one_statement;

/// Whether the items have to be one statement. Items with statements among them do not: these are executed one by one.
pub fn is_one_statement(gtids: &GtidRules, items: &[Item]) -> bool {
    let is_rows = |item: &Item| matches!(item, Item::Rows(_));
    gtids.are_logged() && items.len() > 1 && items.iter().all(is_rows) && executed::may_be_logged_early(items)
}

/// Appends all rows as one statement, in a transaction that is open.
pub fn write(connection: &mut ChannelConnection, transaction: &Transaction, items: &[Item]) -> Result<(), Failure> {
    if one_statement::gather_whole(connection, transaction, &whole_events(items))? {
        Ok(())
    } else {
        Err(too_large(transaction))
    }
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

/// For a transaction whose GTID the target has: fails if an attempt of this run has executed a part of it only. (After such an attempt of an
/// earlier run none begins.)
pub fn check_whole(unfinished: &Unfinished, transaction: &Transaction) -> Result<(), Failure> {
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

/// After a failure on a connection that works: records what the failed transaction has left. Returns what to say of it.
pub fn after_failure(
    connection: &mut ChannelConnection,
    unfinished: &Unfinished,
    transaction: &Transaction,
    range: Range<'_>,
    failure: Failure,
) -> Result<(), Failure> {
    let may_leave_a_part =
        executed::may_be_logged_early(transaction.items()) && transaction.barrier != Some(BarrierCause::Xa);
    let Some(gtid) = transaction.gtid.as_ref().filter(|_| may_leave_a_part) else { return Err(failure) };
    connection.rollback()?;
    if !executed::is_executed(&mut connection.wire, gtid)? {
        return Err(failure);
    }
    let before = (!range.is_committed_range()).then_some(range.before);
    let record = connection.progress().intend(before, &Intent::partly(transaction.seq).to_text());
    connection.execute_unlogged(&record)?;
    unfinished.set_in_part(transaction.seq, &failure.message);
    Err(partly(&failure.message).at(transaction.place()))
}

fn partly(why: &str) -> Failure {
    let message = format!(
        "{why}; the target has executed a part of the transaction, on tables without transactions, and used up its GTID: the rest can not follow"
    );
    Failure::new(FailureKind::Refused, message).remedy(
        "make the tables of this transaction equal to the source's by hand, then go on behind it with a new --channel and --start; --gtids local, or \
         InnoDB, does not have this limit",
    )
}
