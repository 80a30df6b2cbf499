//! Statements of the source: one transaction at a time as barriers, or many that share a target transaction.

mod accounts;
pub(in crate::mysql) mod barrier;
pub(in crate::mysql) mod definitions;
mod exactly_once;
pub(in crate::mysql) mod execute;
mod fingerprint;
mod own_commit;
pub(in crate::mysql) mod pipeline;
mod sequences;
pub(in crate::mysql) mod unfinished;
