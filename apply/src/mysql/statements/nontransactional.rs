//! Changes to tables without transactions, where GTIDs are kept.
//!
//! The target logs them, under the source's GTID, when their statement ends, and takes that GTID once: so all of them are one `BINLOG` statement. Nothing
//! can be rolled back: of a statement that fails, what came before stays, and the GTID is used up. That is noted, as the GTID alone
//! would say that all was executed.

use engine::compact::whole_events;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use engine::transaction::{BarrierCause, Item, Transaction};

use crate::mysql::Shared;
use crate::mysql::locked;
use crate::mysql::progress::executed;
use crate::mysql::session::MySqlSession;
use crate::mysql::session::one_statement;
use crate::mysql::statements::exactly_once::Intent;
use crate::{Range, Session};

/// Whether the items have to be one statement. Others among them (statements) are not rows, and go their own way.
pub fn is_one_statement(shared: &Shared, items: &[Item]) -> bool {
    let logs = shared.sets_gtid() && shared.info.log_bin;
    let is_rows = |item: &Item| matches!(item, Item::Rows(_));
    logs && items.len() > 1 && items.iter().all(is_rows) && executed::may_be_logged_early(items)
}

/// Appends them all to the session's script, in a transaction that is open.
pub fn push(session: &mut MySqlSession, transaction: &Transaction, items: &[Item]) -> Result<(), Failure> {
    if one_statement::gather_whole(session, transaction, &whole_events(items))? {
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

/// Of a transaction whose GTID the target has: whether an attempt of this run has failed, and left it so. (After that of an earlier one none begins.)
pub fn check_whole(session: &MySqlSession, transaction: &Transaction) -> Result<(), Failure> {
    match &*locked(&session.shared.left_by) {
        Some((seq, why)) if *seq == transaction.seq => Err(partly(why).at(transaction.place())),
        _ => Ok(()),
    }
}

/// By `seq`, which comes somewhere behind `mark`.
pub fn left_by_an_earlier_run(seq: u64, mark: Option<&Mark>) -> Failure {
    let position = mark.and_then(|mark| mark.position.as_ref());
    let behind = position.map_or(String::new(), |position| format!(", behind {position}"));
    partly(&format!("an earlier run has failed at transaction {seq} of the channel{behind}"))
}

/// What to say of a failure, with what it has left noted. `failure`: the session works.
pub fn after(
    session: &mut MySqlSession,
    transaction: &Transaction,
    range: Range<'_>,
    failure: Failure,
) -> Result<(), Failure> {
    let may_leave_a_part =
        executed::may_be_logged_early(transaction.items()) && transaction.barrier != Some(BarrierCause::Xa);
    let Some(gtid) = transaction.gtid.as_ref().filter(|_| may_leave_a_part) else { return Err(failure) };
    session.rollback()?;
    if !executed::is_executed(&mut session.connection, gtid)? {
        return Err(failure);
    }
    let before = (!range.is_committed_range()).then_some(range.before);
    let noted = session.shared.statements().intend(before, &Intent::partly(transaction.seq).to_text());
    session.bookkeeping(&noted)?;
    *locked(&session.shared.left_by) = Some((transaction.seq, failure.message.clone()));
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
