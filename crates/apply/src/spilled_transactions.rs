//! Transactions that are too large to hold in memory.
//!
//! A session gets such a transaction without its items, and reads them again piece by piece. It knows no log: who feeds it does.

use engine::failure::Failure;
use engine::transaction::Transaction;

/// Reads the items of spilled transactions again.
pub trait SpilledTransactions {
    /// Calls `apply` for each piece, in order. A piece is the transaction with some of its items and no write set.
    ///
    /// # Errors
    /// The first that `apply` returns; [`engine::failure::FailureKind::Refused`] if the events can not be read again.
    fn pieces(
        &self,
        transaction: &Transaction,
        apply: &mut dyn FnMut(&Transaction) -> Result<(), Failure>,
    ) -> Result<(), Failure>;
}
