//! Transactions that change MariaDB's sequences, where the source's GTIDs are kept.
//!
//! Such a transaction is one statement that commits by itself: the target logs a sequence's row with the others of the statement, under one
//! GTID. Between `BEGIN` and `COMMIT` it would be logged at once, and the rest under a second one.

use engine::compact::{Batch, whole_events};
use engine::failure::{Failure, FailureKind};
use engine::schema::BarrierReason;
use engine::transaction::{Item, Transaction};

use super::execute::at_transaction;
use crate::Range;
use crate::mysql::rows::sequences::CompletedRow;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::one_statement::{self, StatementCapacity};

/// Tables are known to be sequences only where GTIDs are kept.
pub fn are_changed(items: &[Item]) -> bool {
    let reason = |item: &Item| match item {
        Item::Rows(rows) => rows.table.as_ref().and_then(|table| table.barrier),
        Item::Statement(_) => None,
    };
    items.iter().any(|item| reason(item) == Some(BarrierReason::Sequence))
}

/// Writes and commits the transaction as one statement, with its progress.
pub fn commit(connection: &mut ChannelConnection, transaction: &Transaction, range: Range<'_>) -> Result<(), Failure> {
    let mut batches = whole_events(transaction.items());
    let completed = complete(connection, &batches)?;
    for (batch, completed) in batches.iter_mut().zip(&completed) {
        if let Some(completed) = completed {
            *batch = completed.batch(batch);
        }
    }
    let rolls_back =
        |item: &Item| matches!(item, Item::Rows(rows) if rows.table.as_ref().is_some_and(|table| table.transactional));
    let fits = batches.len() == transaction.items().len() && transaction.items().iter().all(rolls_back);
    let room = StatementCapacity::of_server(connection);
    if fits && one_statement::send_group(connection, transaction, &batches, range, room)? {
        return one_statement::answer(connection).map_err(|failure| at_transaction(failure, transaction));
    }
    Err(too_large(transaction))
}

/// The whole rows of those that lack columns: each is that of the one before with other values, which are all in the log.
fn complete(connection: &mut ChannelConnection, batches: &[Batch<'_>]) -> Result<Vec<Option<CompletedRow>>, Failure> {
    batches.iter().map(|batch| connection.complete_rows(batch)).collect()
}

pub fn too_large(transaction: &Transaction) -> Failure {
    Failure::new(
        FailureKind::Refused,
        "a transaction that changes a sequence can not be one statement (it is too large for that, or the sequence is in an engine without \
         transactions): the target would log it under two GTIDs",
    )
    .at(transaction.place())
    .remedy("use --gtids local; a transaction of up to 16 MiB also goes where max_allowed_packet is raised on the target")
}
