//! The decisions of Heddle, and nothing else.
//!
//! Events come in as bytes that `binlog` understands; out come transactions, their write sets, their placements,
//! the groups to dispatch, when each may commit, and what is durable. Everything here is a state machine or a
//! function of its arguments: no clock, no threads, no files, no sockets, no globals. Shells feed it and obey it.
//!
//! The flow through the modules:
//!
//! ```text
//! binlog::Event ─▶ intake (assemble, keying: schema, keys) ─▶ policy ─▶ scheduler (progress) ─▶ compact ─▶ a target
//! ```

// For a file that tests of other crates include, too.
#[cfg(test)]
extern crate self as engine;

pub mod branches;
pub mod charsets;
pub mod compact;
pub mod definition_change;
pub mod failure;
pub mod group;
pub mod intake;
pub mod keys;
pub mod policy;
pub mod progress;
pub mod quality;
pub mod retag;
pub mod row_session;
pub mod schedule;
pub mod schema;
pub mod sql;
pub mod survey;
pub mod tags;
#[cfg(test)]
mod testing;
pub mod transaction;
pub mod wildcard;
pub mod windows;

/// Number of a transaction within a channel: contiguous, ours, starts at 1. Zero means "none".
pub type Seq = u64;
