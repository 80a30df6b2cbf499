//! Whether a replica can be rescued: facts in, findings out. Pure.
//!
//! `replica` the replica and its applier · `applier_state` what both ways refuse · `source` the source that answered · `account` what the account may do · `via_serve` both, for `--via serve` · `service` replicas that are steered by procedures · `why` why the applier lags.

mod account;
mod applier_state;
mod findings;
mod replica;
mod service;
mod source;
#[cfg(test)]
mod tests;
mod via_serve;
mod why;

pub use account::account;
pub use findings::Findings;
pub use replica::{applier, logged, replica};
pub use service::{CANNOT_HOLD, GivenPassword, procedures};
pub use source::{order, source};
pub use via_serve::{source_of_stream, via_serve};
pub use why::{LogSample, Reason, reasons, verdict};
