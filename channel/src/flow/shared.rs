//! What every thread of a run holds: handles on the same few things. Clones are the same things.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::budget::Budget;
use super::event_memory::EventMemory;
use super::measures::Measures;
use super::signals::Signals;
use super::spill::Spills;

#[derive(Clone, Debug)]
pub struct Shared {
    pub signals: Arc<Signals>,
    pub measures: Arc<Measures>,
    pub budget: Arc<Budget>,
    pub events: EventMemory,
    /// Transactions that are read again from the log.
    pub spilled: Spills,
    stop: Arc<AtomicBool>,
}

impl Shared {
    pub fn new(signals: Arc<Signals>, measures: Arc<Measures>, events: EventMemory, stop: Arc<AtomicBool>) -> Self {
        let spilled = Spills::inflating_at_most(events.event_bytes_max());
        Self { signals, measures, budget: Arc::new(Budget::of_events(events)), events, spilled, stop }
    }

    /// The run is to stop without gaps.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
