//! A group that has failed, run again in pieces, and one by one where a piece fails, so that a failure names its transaction and row.

use apply::Commit;
use engine::Seq;
use engine::compact::plan;
use engine::failure::{Directive, Failure, FailureKind};
use engine::group::Group;
use engine::transaction::{Item, Transaction};

use super::applier::Applier;

/// How often one transaction is tried that fails although each of its rows can be applied.
const TRIES_MAX: u32 = 3;

pub fn run(applier: &mut Applier, group: &Group, committed_to: &mut Seq) -> Result<Commit, Failure> {
    let together = if applier.shares_commit(group) { group.piece() } else { 1 };
    for piece in group.pieces(together) {
        if piece.transactions.len() > 1 && piece_commits(applier, &piece)? {
            *committed_to = piece.last();
            continue;
        }
        one_by_one(applier, &piece, committed_to)?;
    }
    Ok(Commit::Durable)
}

/// False: nothing of it is committed. Its transactions, one by one, will say why.
fn piece_commits(applier: &mut Applier, of: &Group) -> Result<bool, Failure> {
    match piece(applier, of) {
        Ok(()) => Ok(true),
        Err(lost) if lost.kind == FailureKind::ConnectionLost => Ok(applier.reconnect(of, &lost)? >= of.last()),
        Err(fenced) if fenced.kind == FailureKind::Fenced => applier.roll_back().and(Err(fenced)),
        Err(_) => applier.roll_back().map(|()| false),
    }
}

fn piece(applier: &mut Applier, piece: &Group) -> Result<(), Failure> {
    let Some(named_by) = piece.named_by() else { return Ok(()) };
    let plan = plan(piece, false);
    match applier.commit(piece, named_by, &plan.independent)? {
        Commit::Durable => Ok(()),
        Commit::Ordered => applier.session.wait_durable(),
    }
}

fn one_by_one(applier: &mut Applier, group: &Group, committed_to: &mut Seq) -> Result<(), Failure> {
    for (single, transaction) in group.singles().zip(&group.transactions) {
        let mut tries = 1;
        while let Err(failure) = single_across_losses(applier, transaction, &single) {
            applier.roll_back()?;
            let (failure, repeats) = name_the_row(applier, &single, failure);
            let is_answer = transaction.barrier.is_some() || failure.kind.directive() != Directive::Isolate;
            if repeats || is_answer || tries == TRIES_MAX {
                return Err(failure.of(transaction.culprit()));
            }
            // Such as MySQL's answer to a BINLOG statement that was killed: "unknown error".
            tracing::warn!(
                worker = applier.number,
                "retrying the group, since none of its transactions fails alone: {failure}"
            );
            tries += 1;
        }
        *committed_to = transaction.seq;
    }
    Ok(())
}

fn single_across_losses(applier: &mut Applier, transaction: &Transaction, of: &Group) -> Result<(), Failure> {
    match single(applier, transaction, of) {
        Err(lost) if lost.kind == FailureKind::ConnectionLost => match applier.reconnect(of, &lost)? {
            seq if seq >= transaction.seq => Ok(()),
            _ => single(applier, transaction, of),
        },
        done => done,
    }
}

fn single(applier: &mut Applier, transaction: &Transaction, single: &Group) -> Result<(), Failure> {
    if transaction.barrier.is_some() { applier.barrier(transaction, single) } else { piece(applier, single) }
}

/// Rows of tables without transactions would stay.
fn can_be_rolled_back(transaction: &Transaction) -> bool {
    let is_transactional = |item: &Item| match item {
        Item::Rows(rows) => rows.table.as_ref().is_none_or(|table| table.transactional),
        Item::Statement(_) => true,
    };
    transaction.items().iter().all(is_transactional)
}

/// Applies the rows one by one, then rolls back, to find the first that fails. True: there is one, and the failure names it.
fn name_the_row(applier: &mut Applier, single: &Group, failure: Failure) -> (Failure, bool) {
    let Some(transaction) = single.transactions.first() else { return (failure, false) };
    let mut place = transaction.place();
    let mut repeats = false;
    if !can_be_rolled_back(transaction) {
        return (if failure.place.is_empty() { failure.at(place) } else { failure }, repeats);
    }
    'search: for batch in &plan(single, false).independent {
        for row in &batch.rows {
            let one = batch.with_row(*row);
            if let Err(same) = applier.session.apply(transaction, std::slice::from_ref(&one)) {
                place = format!("{}, {}", apply::row_text::describe(&one), transaction.place());
                if same.kind == FailureKind::ConnectionLost {
                    return (same, true);
                }
                repeats = same.kind == failure.kind;
                break 'search;
            }
        }
    }
    match applier.roll_back() {
        Ok(()) if failure.place.is_empty() => (failure.at(place), repeats),
        Ok(()) => (failure, repeats),
        Err(lost) => (lost, true),
    }
}
