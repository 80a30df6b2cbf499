//! What is read from a log, made ready: events → transactions → selection → keys.
//!
//! ```text
//! event ─▶ Assembler (Boundary, Tables + Selection) ─▶ Transaction ─▶ Keying ─▶ with its write set
//! ```
//!
//! [`Intake`] is this way for a channel. What is read again of a large transaction goes through [`Pieces`], which assembles and
//! selects in the same way. The survey passes over what is damaged, so it puts no transactions together. It uses the same parts:
//! `binlog::Boundary`, [`Tables`] and [`Keying`].
//!
//! Nothing here places, schedules or applies a transaction.

mod assemble;
mod by_map;
mod keying;
mod pieces;
mod selection;
mod tables;

pub use assemble::{AssembleError, Assembler};
pub use by_map::TableMapCache;
pub use keying::{Keying, KeyingError};
pub use pieces::{Pieces, PlacedEvent};
pub use selection::{
    BOOKKEEPING_SCHEMA, Changes, Decision, Extent, Fate, Filter, ForeignObject, Pattern, PatternError, Refusal,
    Removal, Removals, Rename, RenameError, Renames, Rules, SchemaTarget, SelectedStatement, Selection, ServerRules,
    ServerTable, ServerWildcard, is_own_table,
};
pub use tables::{Lookup, MappedTable, Tables};

use binlog::{Event, FormatDescription, LogPosition};

use crate::schema::Catalogue;
use crate::transaction::Transaction;

/// Of one channel.
pub struct Intake {
    assembler: Assembler,
    keying: Keying,
}

impl Intake {
    /// A transaction with more than `spill_bytes` is not held in memory: see [`Pieces`].
    pub fn new(spill_bytes: u64, keying: Keying) -> Self {
        Self { assembler: Assembler::new(spill_bytes), keying }
    }

    /// What is compressed is taken in up to so many bytes at once: its size is not that of the log.
    #[must_use]
    pub fn inflating_at_most(mut self, event_bytes_max: u64) -> Self {
        self.assembler = self.assembler.inflating_at_most(event_bytes_max);
        self
    }

    /// Statements that are unsafe are noted in their transactions.
    #[must_use]
    pub fn finding_unsafe(mut self) -> Self {
        self.assembler = self.assembler.finding_unsafe();
        self
    }

    /// What of the log goes on; else as it is sent on.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.assembler = self.assembler.selecting(selection);
        self
    }

    /// Whether the events so far end between two transactions.
    pub fn is_between_transactions(&self) -> bool {
        self.assembler.is_between_transactions()
    }

    /// The stream was interrupted: what there is of a transaction comes again, whole.
    pub fn restart(&mut self) {
        self.assembler.restart();
    }

    /// The next event of the log, which stands from `start` to `end`. Returns the transaction that it completes, without a number and
    /// without keys.
    #[inline]
    pub fn event(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        start: &LogPosition,
        end: &LogPosition,
    ) -> Result<Option<Transaction>, AssembleError> {
        self.assembler.event(event, format, start, end)
    }

    /// Whether [`Intake::key`] has nothing to ask the catalogue.
    pub fn knows(&self, transaction: &Transaction) -> bool {
        self.keying.knows(transaction)
    }

    /// Resolves the tables of a transaction and fills in its write set.
    pub fn key(&mut self, transaction: &mut Transaction, catalogue: &mut dyn Catalogue) -> Result<(), KeyingError> {
        self.keying.key(transaction, catalogue)
    }

    /// Table definitions may have changed: forget what was derived from them.
    pub fn invalidate(&mut self) {
        self.keying.invalidate();
    }
}
