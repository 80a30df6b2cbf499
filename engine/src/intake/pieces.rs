//! The changes of a transaction that is read again from the log, in pieces: it is larger than the memory budget.
//!
//! Assembles and selects as [`Intake`](super::Intake) did the first time. The pieces get no keys: such a transaction runs as a barrier.

use binlog::{Event, FormatDescription, LogPosition};

use super::assemble::{AssembleError, Assembler};
use crate::transaction::{Body, Item, Transaction};

/// A piece ends once its events have so many bytes.
const PIECE_BYTES: u64 = 4 << 20;

/// Over the events of one transaction.
pub struct Pieces {
    assembler: Assembler,
    bytes: u64,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { assembler: Assembler::new(u64::MAX), bytes: 0 }
    }
}

impl Pieces {
    /// The next event, which stands from `start` to `end`. Returns the items of the piece that it completes.
    pub fn event(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        start: &LogPosition,
        end: &LogPosition,
    ) -> Result<Option<Vec<Item>>, AssembleError> {
        self.bytes += event.bytes().len() as u64;
        let items = match self.assembler.event(event, format, start, end)? {
            Some(Transaction { body: Body::Items(items), .. }) => items,
            Some(Transaction { body: Body::Spilled { .. }, .. }) => Vec::new(),
            None if self.bytes >= PIECE_BYTES => self.assembler.take_items(),
            None => return Ok(None),
        };
        self.bytes = 0;
        Ok(Some(items))
    }
}
