//! Statements of the source: one by one as barriers, or many that share a target transaction.

pub(in crate::mysql) mod barrier;
pub(in crate::mysql) mod context;
pub(in crate::mysql) mod exactly_once;
pub(in crate::mysql) mod fingerprint;
pub(in crate::mysql) mod nontransactional;
pub(in crate::mysql) mod pipeline;
pub(in crate::mysql) mod statement;
