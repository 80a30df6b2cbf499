//! What is seen while a channel runs.

pub mod progress;
pub mod usage;
