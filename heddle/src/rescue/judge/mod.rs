//! Whether a replica can be rescued: facts in, findings out. Pure.
//!
//! `replica` the replica and its applier · `source` the source that answered · `account` what the account may do · `via_serve` both, for `--via serve` · `why` why the applier lags.

mod account;
mod findings;
mod replica;
mod source;
#[cfg(test)]
mod tests;
mod via_serve;
mod why;

pub use account::account;
pub use findings::Findings;
pub use replica::{applier, logged, replica};
pub use source::{order, source};
pub use via_serve::{source_of_stream, via_serve};
pub use why::{LogSample, Reason, reasons, verdict};
