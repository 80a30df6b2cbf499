//! One worker's view of the store: pending changes, and their commit as one write with the progress.

use std::sync::Arc;

use engine::Seq;
use engine::compact::Batch;
use engine::failure::Failure;
use engine::transaction::Transaction;

use super::durable_writes::{PendingWrite, Ticket};
use super::rows::{Changes, Rows};
use super::store_state::StoreState;
use crate::spilled_transactions::SpilledTransactions;
use crate::{Commit, Range, Session};

pub struct StoreSession {
    shared: Arc<StoreState>,
    rows: Rows,
    /// The last commit.
    ticket: Ticket,
    /// While it waits for its turn.
    coming: Option<PendingWrite>,
}

impl StoreSession {
    pub fn new(shared: Arc<StoreState>) -> Self {
        Self { shared, rows: Rows::new(), ticket: 0, coming: None }
    }

    fn push(&mut self, batches: &[Batch<'_>]) -> Result<(), Failure> {
        self.shared.check()?;
        batches.iter().try_for_each(|batch| self.rows.batch(&self.shared, batch))
    }
}

impl Session for StoreSession {
    fn apply(&mut self, _named_by: &Transaction, batches: &[Batch<'_>]) -> Result<(), Failure> {
        self.push(batches)
    }

    fn waits_for_grant(&mut self) {
        self.coming.get_or_insert_with(|| self.shared.coming());
    }

    fn commit(&mut self, _named_by: &Transaction, batches: &[Batch<'_>], range: Range<'_>) -> Result<Commit, Failure> {
        self.push(batches)?;
        self.ticket = self.rows.commit(&self.shared, range)?;
        self.coming = None;
        Ok(Commit::Ordered)
    }

    fn wait_durable(&mut self) -> Result<(), Failure> {
        self.shared.sync(self.ticket)
    }

    fn run_barrier(
        &mut self,
        transaction: &Transaction,
        spilled: &dyn SpilledTransactions,
        range: Range<'_>,
    ) -> Result<(), Failure> {
        self.shared.check()?;
        let mut changes = Changes { shared: &self.shared, rows: &mut self.rows };
        self.ticket = super::barrier::run(&mut changes, transaction, spilled, range)?;
        self.wait_durable()
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.coming = None;
        self.rows.pending.clear();
        Ok(())
    }

    fn recover(&mut self, _transactions: &[Arc<Transaction>], range: Range<'_>) -> Result<Seq, Failure> {
        self.coming = None;
        self.rows.pending.clear();
        self.shared.committed(range)
    }
}
