//! The changes of a transaction that is read again from the log, in pieces: it is larger than the memory budget.
//!
//! Assembles and selects as [`Intake`](super::Intake) did the first time. The pieces get no keys: such a transaction runs as a barrier.

use binlog::{Event, FormatDescription, Kind, LogPosition, TransactionPayload};

use super::assemble::{AssembleError, Assembler};
use super::selection::Selection;
use crate::transaction::{Body, Item, Transaction};

/// A piece ends once its events have so many bytes, uncompressed.
const PIECE_BYTES: u64 = 4 << 20;

/// Over the events of one transaction.
pub struct Pieces {
    assembler: Assembler,
    event_bytes_max: u64,
}

/// An event of the transaction, and where it is in its log.
#[derive(Clone, Copy)]
pub struct PlacedEvent<'a> {
    pub event: &'a Event,
    pub format: &'a FormatDescription,
    pub start: &'a LogPosition,
    pub end: &'a LogPosition,
}

impl Pieces {
    /// What is compressed is taken in up to so many bytes at once.
    pub fn inflating_at_most(event_bytes_max: u64) -> Self {
        Self { assembler: Assembler::new(u64::MAX).inflating_at_most(event_bytes_max), event_bytes_max }
    }

    /// What of the log goes on; else as it is sent on.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.assembler = self.assembler.selecting(selection);
        self
    }

    /// The next event. `apply` is given the items of each piece that it completes: a compressed transaction is one event, and may be many.
    ///
    /// # Errors
    /// The first that `apply` returns; what is wrong with the log, through `failed`.
    pub fn event<E>(
        &mut self,
        placed: PlacedEvent<'_>,
        failed: impl Fn(AssembleError) -> E,
        apply: &mut dyn FnMut(Vec<Item>) -> Result<(), E>,
    ) -> Result<(), E> {
        if placed.event.kind() != Kind::TRANSACTION_PAYLOAD {
            return self.one(placed, failed, apply);
        }
        let corrupt = |source| failed(AssembleError::corrupt(placed.event, placed.start, source));
        let payload = TransactionPayload::decode(placed.event, placed.format).map_err(corrupt)?;
        for inner in
            payload.events(self.event_bytes_max.saturating_sub(placed.event.bytes().len() as u64)).map_err(corrupt)?
        {
            let event = &inner.map_err(corrupt)?;
            self.one(PlacedEvent { event, ..placed }, &failed, apply)?;
        }
        Ok(())
    }

    fn one<E>(
        &mut self,
        PlacedEvent { event, format, start, end }: PlacedEvent<'_>,
        failed: impl Fn(AssembleError) -> E,
        apply: &mut dyn FnMut(Vec<Item>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.assembler.event(event, format, start, end).map_err(failed)? {
            Some(Transaction { body: Body::Items(items), .. }) => apply(items),
            Some(Transaction { body: Body::Spilled { .. }, .. }) => apply(Vec::new()),
            None if self.assembler.held_bytes() >= PIECE_BYTES => apply(self.assembler.take_items()),
            None => Ok(()),
        }
    }
}
