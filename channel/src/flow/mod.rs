//! What the threads of a run share: whose thread does what, memory, numbers for observers.

pub mod budget;
pub mod desk;
pub(crate) mod prepared;
pub(crate) mod slow;
pub mod stats;
