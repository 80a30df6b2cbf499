//! Statements of the source: one transaction at a time as barriers, or many that share a target transaction.

pub(in crate::mysql) mod barrier;
pub(in crate::mysql) mod context;
mod exactly_once;
mod fingerprint;
pub(in crate::mysql) mod nontransactional;
mod own_commit;
pub(in crate::mysql) mod pipeline;
mod sequences;
mod statement;
mod text;
pub(in crate::mysql) mod unfinished;
