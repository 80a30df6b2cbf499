//! What is seen while a channel runs.

pub mod http;
pub mod log;
pub mod metrics;
pub mod progress;
pub mod usage;
