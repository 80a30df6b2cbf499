//! What is seen while a channel runs.

pub mod http;
pub mod http_get;
pub mod log;
pub mod metrics;
pub mod mirror_log;
pub mod progress;
pub mod usage;
pub mod view;
