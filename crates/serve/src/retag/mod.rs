//! New tags from exact write sets, in copies of binary log files or in the stream for replicas. Names, sizes, positions and GTIDs stay.
//!
//! `engine::retag` decides the tags. The code here reads, patches and writes files; `stream/` does so beside a mirror that grows.

mod defined_tables;
mod error;
mod output;
mod run;
pub mod stream;
mod tag_measures;
pub(crate) mod value;

pub use error::RetagError;
pub use run::{Job, Summary, retag};
pub use tag_measures::{Parallelism, TagMeasures};
