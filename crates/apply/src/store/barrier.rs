//! Barriers, which run while nothing else does: DDL, savepoints, and transactions too large to hold in memory.
//!
//! However many changes there are, and whatever becomes of the tables: one write commits it all with the progress.

use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, SqlMode};
use engine::transaction::{Body, Item, StatementItem, Transaction};

use super::ddl;
use super::durable_writes::Ticket;
use super::rows::Changes;
use super::tables::Writes;
use crate::Range;
use crate::spilled_transactions::SpilledTransactions;

const ROW_FORMAT: &str = "the store holds rows and executes no statements: use binlog_format=ROW on the source";

pub fn run(
    changes: &mut Changes<'_>,
    transaction: &Transaction,
    spilled: &dyn SpilledTransactions,
    range: Range<'_>,
) -> Result<Ticket, Failure> {
    let before = changes.shared.tables().clone();
    changes.rows.pending.clear();
    changes.rows.records = Some(Writes::new());
    let outcome = apply(changes, transaction, spilled).and_then(|()| changes.rows.commit(changes.shared, range));
    changes.rows.records = None;
    // What sessions remember of tables may be out of date either way.
    changes.shared.forget_resolved();
    if outcome.is_err() {
        changes.shared.tables().restore(before);
        let staged = changes.rows.pending.is_staged();
        changes.rows.pending.clear();
        if staged {
            changes.shared.clear_staging()?;
        }
    }
    outcome.map_err(|failure| if failure.place.is_empty() { failure.at(transaction.place()) } else { failure })
}

fn apply(
    changes: &mut Changes<'_>,
    transaction: &Transaction,
    spilled: &dyn SpilledTransactions,
) -> Result<(), Failure> {
    match &transaction.body {
        Body::Items(items) => items_of(changes, transaction, items),
        Body::Spilled { .. } => spilled.pieces(transaction, &mut |piece| items_of(changes, transaction, piece.items())),
    }
}

fn items_of(changes: &mut Changes<'_>, transaction: &Transaction, items: &[Item]) -> Result<(), Failure> {
    for item in items {
        match item {
            Item::Rows(rows) => {
                changes.rows.event(changes.shared, rows)?;
                let staged = changes.rows.pending.stage_if_large(&changes.shared.files);
                staged.map_err(|error| changes.shared.failed(&error))?;
            }
            Item::Statement(statement) => {
                execute(changes, statement).map_err(|failure| place(failure, transaction, statement))?;
            }
        }
    }
    Ok(())
}

fn place(failure: Failure, transaction: &Transaction, statement: &StatementItem) -> Failure {
    if !failure.place.is_empty() {
        return failure;
    }
    // An account statement can hold a password.
    let text = match &statement.class.class {
        Class::Ddl { kind } if kind.is_account() => "an account statement (text not shown)".to_owned(),
        _ => engine::sql::shown(&statement.query.sql, SqlMode::of(&statement.query.vars), 500),
    };
    failure.at(format!("{}, statement: {text}", transaction.place()))
}

fn execute(changes: &mut Changes<'_>, statement: &StatementItem) -> Result<(), Failure> {
    let refused = |message: &str| Failure::new(FailureKind::Refused, message);
    match &statement.class.class {
        Class::Begin | Class::Commit | Class::SetStatement => Ok(()),
        Class::Savepoint => {
            changes.rows.pending.savepoint(&savepoint_name(statement)?);
            Ok(())
        }
        Class::Release => {
            changes.rows.pending.release(&savepoint_name(statement)?);
            Ok(())
        }
        Class::RollbackTo => {
            let name = savepoint_name(statement)?;
            changes.rows.pending.rollback_to(&name).map_err(|_| {
                refused("a huge transaction goes back to a savepoint: the store can not undo so many changes")
                    .remedy("go on after this transaction with a new store")
            })
        }
        Class::Rollback if changes.rows.pending.len() == 0 && !changes.rows.pending.is_staged() => Ok(()),
        // Only rows of tables without transactions stay, and nothing says which those are.
        Class::Rollback => Err(refused("a transaction with changed rows ends with ROLLBACK").remedy(ROW_FORMAT)),
        Class::Dml { .. } => Err(refused("a statement that changes rows").remedy(ROW_FORMAT)),
        Class::XaStart { .. } | Class::XaEnd | Class::XaPrepare | Class::XaCommit { .. } | Class::XaRollback => {
            Err(refused("XA transactions that are prepared and committed apart are not supported yet")
                .remedy("commit with ONE PHASE on the source; then go on after this transaction with a new store"))
        }
        Class::Unknown => Err(refused("a statement that is not understood").remedy(ROW_FORMAT)),
        Class::Ddl { kind } => ddl::execute(changes, statement, *kind),
    }
}

fn savepoint_name(statement: &StatementItem) -> Result<String, Failure> {
    let name = engine::sql::savepoint_name(&statement.query.sql, SqlMode::of(&statement.query.vars));
    name.ok_or_else(|| Failure::new(FailureKind::Refused, "a savepoint whose name is not understood"))
}
