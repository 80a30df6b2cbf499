//! The coordinator: the shell around the engine's scheduler. Takes what the feeder, the workers and the housekeeper report, and carries out what
//! the scheduler answers. It decides nothing about order, and never waits.

mod lock_suspicion;
mod retried_groups;
mod slow_groups;
mod stage;
mod workers;

pub use stage::{Coordinator, Paces, Queues, run};
