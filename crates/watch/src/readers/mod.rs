//! Ask replicas and sources what [`crate::questions`] lists. Only reads.
//!
//! `replica_reader` asks a replica · `source_reader` asks its source and reads its log · `discovery` finds the replicas of a source.

pub mod discovery;
pub mod replica_reader;
pub mod source_reader;
