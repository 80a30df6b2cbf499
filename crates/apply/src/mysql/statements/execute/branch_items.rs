//! What is in an XA branch: rows and statements, on the branch's own connection.

use engine::failure::Failure;
use engine::sql::Class;
use engine::transaction::{Body, Item, Transaction};

use super::execute;
use crate::mysql::server::errors::code;
use crate::mysql::session::connection::ChannelConnection;

/// The items of a transaction, or of a piece of it, in the XA branch that has begun on this connection.
pub fn apply_in_branch(branch: &mut ChannelConnection, transaction: &Transaction) -> Result<(), Failure> {
    for item in transaction.items() {
        match item {
            Item::Rows(rows) => branch.write_event(rows)?,
            Item::Statement(statement) => match statement.class.class {
                Class::XaStart { .. } | Class::XaEnd => {}
                _ => {
                    // Its transaction is open already: no question in between.
                    branch.guard_bookkeeping(statement, false)?;
                    branch.send()?;
                    execute(branch, statement).map_err(explained_in_branch)?;
                }
            },
        }
    }
    branch.check_bookkeeping();
    branch.send()
}

/// Whether there is more in a branch than rows, as far as its items are held.
pub fn runs_statements(transaction: &Transaction) -> bool {
    let is_one = |item: &Item| matches!(item, Item::Statement(statement) if statement.class.may_run_programs());
    matches!(transaction.body, Body::Spilled { .. }) || transaction.items().iter().any(is_one)
}

/// Temporary tables are those of the connection for statements.
fn explained_in_branch(failure: Failure) -> Failure {
    if failure.code != Some(code::NO_SUCH_TABLE) {
        return failure;
    }
    failure.remedy(
        "the target lacks a table that a prepared XA transaction names; if it is a temporary table, such a transaction cannot read it here: set binlog_format \
         to ROW or MIXED on the source. Do by hand what the transaction does, and go on behind it with a new --channel and --start",
    )
}
