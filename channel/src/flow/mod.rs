//! What the threads of a run share: whose thread does what, memory, numbers for observers.

pub mod budget;
pub mod handoff;
pub mod messages;
pub(crate) mod prepared;
pub(crate) mod slow_groups;
pub(crate) mod spill;
pub mod stats;
