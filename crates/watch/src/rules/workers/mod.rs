//! Rules about workers, their number and what they are fed with. One file each.

pub mod coordinator;
pub mod fewer_workers;
pub mod more_workers;
pub mod queue;
