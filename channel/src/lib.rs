//! One channel: one source → one target. Threads and queues; all decisions are the engine's.
//!
//! ```text
//! source/live ─▶ relay log ─▶ feeder ─▶ coordinator ─▶ worker × N ─▶ apply::Session
//!  (receives)                  (engine: transactions, write sets, placements)
//!                                        (engine: scheduler)
//! ```
//!
//! - `run`: one run from start to end; `threads` starts all others and waits for them.
//! - `source`: where events come from; `feed` opens it; `start` says where a channel begins or goes on.
//! - `feeding` reads the log; `feeder` makes transactions and placements of its events; `until` says where to end.
//! - `coordinator`: the shell around the engine's scheduler. `worker`: one session on the target.
//! - `housekeeper`: lock waits, interruptions, checkpoints, purging: chores that must not hold up the others.
//! - `flow`: what threads share: handoff, memory budget, numbers for observers.
//!
//! It never decides about order, never builds SQL, never words a report.

mod coordinator;
pub mod errors;
mod feeder;
pub mod flow;
mod housekeeper;
mod reading;
pub mod run;
pub mod source;
pub mod spec;
pub mod start;
mod threads;
pub mod until;
mod worker;
