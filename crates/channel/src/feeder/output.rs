//! Placed transactions on their way to the coordinator: in batches, and no more than memory allows.

use std::sync::Arc;

use binlog::LogPosition;
use crossbeam_channel::Sender;
use engine::Seq;
use engine::policy::Placement;
use engine::transaction::Transaction;

use crate::flow::handoff::{Amount, FEW, Wake};
use crate::flow::messages::FeederMessage;
use crate::flow::run_handles::RunHandles;

/// Transactions that are handed over together while more can be read: to wake the coordinator takes longer than to look at a transaction.
const BATCH_TRANSACTIONS: usize = 256;
const BATCH_BYTES: u64 = 256 << 10;

pub struct Output {
    queue: Sender<FeederMessage>,
    coordinator: Arc<dyn Wake>,
    shared: RunHandles,
    batch: Batch,
}

/// What is still to be handed over.
#[derive(Debug, Default)]
struct Batch {
    transactions: Vec<(Arc<Transaction>, Placement)>,
    bytes: u64,
    /// Up to where the log has been read, between two transactions.
    read_to: Option<LogPosition>,
}

/// The coordinator is gone.
pub struct Disconnected;

impl Output {
    pub fn new(queue: Sender<FeederMessage>, coordinator: Arc<dyn Wake>, shared: RunHandles) -> Self {
        Self { queue, coordinator, shared, batch: Batch::default() }
    }

    /// More than the coordinator is run inline for.
    pub fn has_many(&self) -> bool {
        self.batch.transactions.len() > FEW
    }

    /// As far as the log was read since the last batch.
    pub fn read_to(&self) -> Option<&LogPosition> {
        self.batch.read_to.as_ref()
    }

    /// The log has been read up to `end`, between two transactions.
    pub fn has_read_to(&mut self, end: &LogPosition) {
        match &mut self.batch.read_to {
            Some(read_to) if Arc::ptr_eq(&read_to.file, &end.file) => read_to.offset = end.offset,
            read_to => *read_to = Some(end.clone()),
        }
    }

    pub fn has_room(&self, bytes: u64) -> bool {
        self.shared.budget.has_room(bytes)
    }

    /// Waits for memory, if need be. `last`: the last transaction that was handed over or is being so.
    pub fn add(&mut self, transaction: Transaction, placement: Placement, last: Seq) -> Result<(), Disconnected> {
        let bytes = self.shared.budget.transaction_bytes(&transaction);
        if !self.shared.budget.try_acquire(bytes) {
            // Memory becomes free only after the coordinator has what uses it.
            self.hand_over(last)?;
            let _waiting = self.shared.measures.wait_for_memory();
            if !self.shared.budget.acquire(bytes) {
                return Err(Disconnected);
            }
        }
        self.batch.bytes += bytes;
        self.batch.transactions.push((Arc::new(transaction), placement));
        let is_full = self.batch.transactions.len() >= BATCH_TRANSACTIONS || self.batch.bytes >= BATCH_BYTES;
        if is_full && self.send(last)? {
            self.coordinator.wake();
        }
        Ok(())
    }

    /// Waits until an event of so many bytes may be read.
    pub fn wait_for_room(&mut self, bytes: u64, last: Seq) -> Result<(), Disconnected> {
        if self.shared.budget.has_room(bytes) {
            return Ok(());
        }
        self.hand_over(last)?;
        let _waiting = self.shared.measures.wait_for_memory();
        if self.shared.budget.wait_for(bytes) { Ok(()) } else { Err(Disconnected) }
    }

    /// Hands over what there is, with nothing else to do meanwhile.
    pub fn hand_over(&mut self, last: Seq) -> Result<(), Disconnected> {
        let amount = Amount::of_transactions(self.batch.transactions.len());
        if self.send(last)? {
            self.coordinator.hand_over(amount);
        }
        Ok(())
    }

    /// The last message. If the coordinator is gone, it does not need to know.
    pub fn end(&mut self, message: FeederMessage, last: Seq) {
        if self.hand_over(last).is_ok() {
            let _ = self.queue.send(message);
            self.coordinator.wake();
        }
    }

    /// False: there was nothing to send.
    fn send(&mut self, last: Seq) -> Result<bool, Disconnected> {
        let Batch { transactions, read_to, .. } = std::mem::take(&mut self.batch);
        let is_any = !transactions.is_empty();
        if is_any {
            self.queue.send(FeederMessage::Transactions(transactions)).map_err(|_| Disconnected)?;
        }
        if let Some(end) = read_to {
            self.shared.signals.has_read_to(end, last);
        }
        Ok(is_any)
    }
}
