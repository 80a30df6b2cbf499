//! What follows from statements whose result may be another on the target: a warning, or the channel's end before them.

use std::collections::BTreeSet;

use engine::failure::{Failure, FailureKind};
use engine::sql::UnsafeKind;
use engine::transaction::Transaction;

use crate::flow::run_handles::RunHandles;
use crate::spec::UnsafeResponse;

pub struct UnsafeStatements {
    response: UnsafeResponse,
    /// Kinds that a warning has named.
    warned: BTreeSet<UnsafeKind>,
    shared: RunHandles,
}

impl UnsafeStatements {
    pub fn new(response: UnsafeResponse, shared: RunHandles) -> Self {
        Self { response, warned: BTreeSet::new(), shared }
    }

    /// Of a transaction that is about to be handed over.
    pub fn judge(&mut self, transaction: &Transaction) -> Result<(), Failure> {
        let Some(first) = transaction.unsafe_statements.first() else { return Ok(()) };
        if self.response == UnsafeResponse::Stop {
            return Err(Failure::new(
                FailureKind::Refused,
                format!("a statement may change other rows on the target than on the source ({})", first.found),
            )
            .at(format!("{}, statement: {}", transaction.place(), first.text))
            .remedy(
                "nothing of its transaction is applied. Set binlog_format=ROW (or MIXED) on the source. To go on: run the same command with \
                 --unsafe-statements warn, then compare the table; or make the change by hand and leave it out with heddle channel skip",
            )
            .of(transaction.culprit()));
        }
        self.shared.measures.unsafe_statement();
        for statement in &transaction.unsafe_statements {
            if self.warned.insert(statement.found.kind) {
                tracing::warn!(
                    "a statement may change other rows on the target than on the source ({}): {}, statement: {}. It is applied, and others of \
                     its kind are not named; --unsafe-statements stop ends the channel before such, binlog_format=ROW on the source avoids them",
                    statement.found,
                    transaction.place(),
                    statement.text
                );
            }
        }
        Ok(())
    }
}
