//! Heddle as a replica: the engine's own policies say what a transaction waits for; here it gets its times.
//!
//! The engine's scheduler is not in it: a prediction wants each of a million transactions with nine numbers of workers, and the
//! scheduler takes 30 times as long for each. [`dispatch`] takes its place, in one pass over the stream. What
//! it leaves out it says itself, and a test compares the two, with every policy of the list, on random streams.

mod dispatch;
mod placements;
mod stream;
#[cfg(test)]
mod tests;
mod trace_history;

pub(super) use dispatch::{Replica, grouped, single};
pub(super) use placements::{Placements, place};
#[cfg(test)]
pub(super) use placements::{TransactionPlacement, WaitPoint};
