//! Statements of the source: one transaction at a time as barriers, or many that share a target transaction.

pub(in crate::mysql) mod account_tables;
mod accounts;
pub(in crate::mysql) mod barrier;
pub(in crate::mysql) mod definitions;
pub(in crate::mysql) mod execute;
mod fingerprint;
mod once_statement;
mod own_commit;
mod piece_tables;
pub(in crate::mysql) mod pipeline;
mod sequences;
pub(in crate::mysql) mod unfinished_statements;
