//! What every thread of a run holds: handles on the same few things. Clones are the same things.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::intake::Selection;

use super::measures::Measures;
use super::memory::budget::Budget;
use super::memory::event_memory::EventMemory;
use super::memory::spill::Spills;
use super::signals::Signals;

#[derive(Clone, Debug)]
pub struct RunHandles {
    pub signals: Arc<Signals>,
    pub measures: Arc<Measures>,
    pub budget: Arc<Budget>,
    pub events: EventMemory,
    /// Transactions that are read again from the log.
    pub spilled: Spills,
    stop: Arc<AtomicBool>,
}

impl RunHandles {
    pub fn new(
        signals: Arc<Signals>,
        measures: Arc<Measures>,
        events: EventMemory,
        selection: Selection,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let spilled = Spills::new(events.event_bytes_max(), selection);
        Self { signals, measures, budget: Arc::new(Budget::of_events(events)), events, spilled, stop }
    }

    /// The run is to stop without gaps.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
