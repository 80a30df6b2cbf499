//! A world in virtual time: sources whose sessions work, wait for locks and commit in groups, as a server's do.
//!
//! [`workload`] makes transactions, with the rows that each changes and the order in which they commit; [`tags`] gives
//! them the logical clock that a MySQL server would write; [`mysql_log`] writes them as binary log files; [`state`] is
//! what the tables hold in the end, which is what any replica of that log must hold; [`replica`] lets replicas of several
//! kinds apply a stream, to see which is how fast.
//!
//! Time is a number here and randomness comes from a seed that is an argument: the same parameters give the same bytes
//! on every machine. Nothing here opens a file, reads a clock, starts a thread or looks at a real server.

pub mod mysql_log;
pub mod replica;
mod rng;
pub mod schema;
pub mod state;
pub mod tags;
pub mod value;
pub mod workload;

pub use mysql_log::{LogFile, LogParams};
pub use schema::Schema;
pub use state::State;
pub use workload::{Params, Workload};
