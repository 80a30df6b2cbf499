//! Whether a replica can be rescued: facts in, findings out. Pure.
//!
//! `replica` the replica and its applier · `source` the source that answered · `account` what the account may do · `why` why the applier lags.

mod account;
mod findings;
mod replica;
mod source;
#[cfg(test)]
mod tests;
mod why;

pub use account::account;
pub use findings::Findings;
pub use replica::{applier, logged, replica};
pub use source::{order, source};
pub use why::{LogSample, Reason, reasons, verdict};
