//! The engine's intake (events → transactions → write sets) with what it needs here: where events stand, and the target's definitions.

use std::sync::Arc;

use binlog::{FormatDescription, LogPosition};
use engine::definition_change::DefinitionChange;
use engine::failure::Failure;
use engine::intake::Intake;
use engine::schema::Catalogue;
use engine::transaction::{Body, Transaction};
use relay::{LocatedEvent, Place};

use super::no_effect;
use crate::flow::memory::event_memory::EventMemory;
use crate::flow::memory::spill::Spill;
use crate::log_failures::{assemble_failure, keying_failure};

pub struct EventIntake {
    intake: Intake,
    catalogue: Box<dyn Catalogue + Send>,
    /// First event of the transaction that is being put together.
    first: Option<(Place, Arc<FormatDescription>)>,
    at: EventSpan,
    memory: EventMemory,
}

/// A transaction without a write set, and where its last event is.
#[derive(Debug)]
pub struct ReadTransaction {
    pub transaction: Transaction,
    pub last: Place,
}

/// Where the last event stands in the source's log.
#[derive(Debug)]
struct EventSpan {
    start: LogPosition,
    end: LogPosition,
}

impl Default for EventSpan {
    fn default() -> Self {
        let nowhere = LogPosition::new("", 0);
        Self { start: nowhere.clone(), end: nowhere }
    }
}

impl EventSpan {
    fn set(&mut self, located: &LocatedEvent) {
        // Nearly always the same file, whose name is shared.
        if !Arc::ptr_eq(&self.start.file, &located.position.file) {
            self.start = located.position.clone();
            self.end = self.start.clone();
        }
        self.start.offset = located.position.offset;
        self.end.offset = located.end;
    }
}

impl EventIntake {
    pub fn new(intake: Intake, catalogue: Box<dyn Catalogue + Send>, memory: EventMemory) -> Self {
        Self { intake, catalogue, first: None, at: EventSpan::default(), memory }
    }

    /// The transaction that the event ends, if it ends one.
    pub fn event(&mut self, located: &LocatedEvent) -> Result<Option<ReadTransaction>, Failure> {
        if located.restarted {
            self.intake.restart();
        }
        self.at.set(located);
        if self.intake.is_between_transactions() {
            self.first = Some((located.place.clone(), Arc::clone(&located.format)));
        }
        let EventSpan { start, end } = &self.at;
        let transaction = self.intake.event(&located.event, &located.format, start, end);
        let transaction = transaction.map_err(|error| assemble_failure(&error, self.memory))?;
        Ok(transaction.map(|transaction| ReadTransaction { transaction, last: located.place.clone() }))
    }

    pub fn is_between_transactions(&self) -> bool {
        self.intake.is_between_transactions()
    }

    /// The end of the last event.
    pub fn end(&self) -> &LogPosition {
        &self.at.end
    }

    /// Where to read the transaction again, which is the last that was put together, if it is too large to be held in memory.
    pub fn spill(&self, transaction: &Transaction, last: Place) -> Option<Spill> {
        match (&transaction.body, &self.first) {
            (Body::Spilled { .. }, Some((from, format))) => {
                Some(Spill { from: from.clone(), until: last, format: Arc::clone(format) })
            }
            _ => None,
        }
    }

    /// Whether all definitions that its rows need are known here, so that the target need not be asked.
    pub fn knows(&self, transaction: &Transaction) -> bool {
        self.intake.knows(transaction)
    }

    /// Gives it its write set.
    pub fn key(&mut self, transaction: &mut Transaction) -> Result<(), Failure> {
        self.intake.key(transaction, &mut *self.catalogue).map_err(|error| keying_failure(&error, transaction))
    }

    /// Whether it changes nothing on the target.
    pub fn has_no_effect(&mut self, transaction: &Transaction) -> bool {
        no_effect::has_no_effect(transaction, &mut *self.catalogue)
    }

    /// A DDL has been applied.
    pub fn invalidate(&mut self, redefined: &DefinitionChange) {
        self.catalogue.invalidate(redefined);
        self.intake.invalidate();
    }
}
