//! New tags from exact write sets, in copies of binary log files or in what replicas are sent: names, sizes, positions and GTIDs stay.
//!
//! What a tag becomes is decided in `engine::retag`. Here are files: read, patched, written; and, in `stream/`, beside a mirror that grows.

mod error;
mod later;
mod measured;
mod output;
mod run;
pub mod stream;
pub(crate) mod value;

pub use error::RetagError;
pub use measured::{Measured, Parallelism};
pub use run::{Job, Summary, retag};
