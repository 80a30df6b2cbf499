//! Replicas of several kinds applying one and the same stream in virtual time.
//!
//! What is modelled: who may start when, a limited number of workers and of processors, time
//! to apply, to read what is not cached, to commit, and syncs that commits share. What is not: lock waits within the
//! engine other than by row, purge, page flushing, the network, readers. [`Model::ASSUMPTIONS`] says it to the user.
//! Everything is a function of its arguments: the same trace and costs give the same numbers.
//!
//! Heddle's own policies are the engine's: [`heddle`] lets them place the trace's transactions. The native servers' appliers
//! have a rule each, in [`mysql`] and [`mariadb`]; tests compare these rules with the engine's policies of the same kind.
//!
//! Each transaction is taken in the order of the stream, and all that it has to wait for comes before it: so one pass
//! computes its times.

mod commit;
mod costs;
mod heddle;
mod knee;
mod mariadb;
mod model;
mod mysql;
mod outcome;
mod resources;
mod rounds;
mod trace;

pub use costs::Costs;
pub use knee::{Knee, knee};
pub use model::{Mode, Model, PreparedReplica, Tags};
pub use outcome::{Outcome, Waits};
pub use trace::{AppliedTransaction, Keys, Shape, Trace};

#[cfg(test)]
mod native_rules;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
