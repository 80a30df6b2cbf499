//! What connects the threads of a run: handing work over, queues, signals, memory, and numbers for observers.

pub(crate) mod budget;
pub(crate) mod chores;
pub(crate) mod event_memory;
pub(crate) mod handoff;
pub(crate) mod measures;
pub(crate) mod messages;
pub(crate) mod seen;
pub(crate) mod shared;
pub(crate) mod signals;
pub(crate) mod spill;
pub(crate) mod work;
