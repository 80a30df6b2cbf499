//! Who does what when: the state machine between placed transactions and workers, and what it goes by.

mod collisions;
mod config;
mod flight;
mod forming;
mod grants;
mod keys;
mod lanes;
mod limits;
mod output;
pub mod pace;
mod ready_set;
mod reports;
mod scheduler;
mod state;
#[cfg(test)]
mod tests;

pub use config::{Commits, Config, Origins, Signals};
pub use limits::{Grouping, Limits, PACKET_MAX, ROWS_MAX, TRANSACTIONS_MAX};
pub use output::{Counters, IdleCause, Output, Run, Worker};
pub use scheduler::Scheduler;
