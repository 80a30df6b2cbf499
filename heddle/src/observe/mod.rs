//! What is seen while a channel runs.

pub mod log;
pub mod progress;
pub mod usage;
