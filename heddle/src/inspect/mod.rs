//! Reads logs for `heddle inspect` and `heddle simulate`: files, live servers, threads.
//!
//! What is found is the engine's ([`engine::survey`]); here are only the hands. Never applies anything.

pub mod ahead;
pub mod feed;
pub mod live;
pub mod parquet;
mod pipe;
pub mod pipeline;
pub mod schema;

pub use feed::FileSeen;
pub use pipeline::Found;
