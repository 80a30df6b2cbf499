//! The hands: what is asked of replicas and sources. Only reads.
//!
//! `questions` the SQL by version (pure) · `ask` of a replica · `ask_source` of its source and its log · `discover` which replicas a source has.

pub mod ask;
pub mod ask_source;
pub mod discover;
pub mod questions;
