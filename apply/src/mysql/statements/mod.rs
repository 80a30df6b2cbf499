//! Statements of the source: one transaction at a time as barriers, or many that share a target transaction.

mod as_admin;
pub(in crate::mysql) mod barrier;
pub(in crate::mysql) mod context;
mod exactly_once;
mod fingerprint;
mod load_data;
pub(in crate::mysql) mod nontransactional;
mod outcome;
mod own_commit;
pub(in crate::mysql) mod pipeline;
mod routine_creator;
mod sequences;
mod statement;
mod text;
pub(in crate::mysql) mod unfinished;
