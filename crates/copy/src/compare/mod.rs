//! Compares the rows of a source and of a target through the source's log: no lock, no write on either, whatever is applied meanwhile.
//!
//! ```text
//! tables/: definition ─▶ plan (canonical: one form of each value)   what is compared
//! chunks: source thread ─▶ target thread                            a digest of each chunk on both servers; equal: done
//!            └─────────▶ looks ◀───┘                                else its rows, each looked at until it is at rest
//!                          └─▶ log/: verdict (place, touches)       what the log touched between the reads is not a difference
//! ```
//!
//! [`log::verdict`] has the rule, why nothing false is reported, and its model. [`sql`] says why nothing that differs is taken for equal.
//!
//! [`state`] keeps how far a comparison is, for going on after an interruption.
//!
//! Only `repair` writes, where it is asked for. It never decides by time alone that a row differs.

mod chunks;
pub mod log;
mod looks;
mod repair;
pub mod report;
mod request;
mod results;
mod run;
mod server;
mod sql;
mod state;
mod tables;
pub mod watch;

pub use chunks::{Counters, Pace};
pub use repair::Repair;
pub use request::Request;
pub use run::compare;
pub use state::StateRequest;
pub use tables::definition::TableName;
pub use tables::plan::Choice;
