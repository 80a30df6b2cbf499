//! What is seen of a running channel, a mirror, or watched replicas. From one snapshot come metrics, pages over HTTP, `top`, the progress line, status and summary.
//!
//! `view` the frame and its sentence, pure · `metrics` · `fleet` several processes in one place · `http` the port or socket, and the pages · `http_get` its client for a mirror · `top` the frame in a terminal ·
//! `progress` the progress line · `status`, `summary` a channel as text and JSON · `mirror` a mirror as text · `words`, `usage` what several of them need.
//!
//! It changes nothing that it shows.

pub mod fleet;
pub mod http;
pub mod http_get;
pub mod metrics;
pub mod mirror;
pub mod progress;
pub mod status;
pub mod summary;
#[cfg(feature = "top")]
pub mod top;
pub mod usage;
pub mod view;
pub mod words;
