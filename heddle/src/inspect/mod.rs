//! Reads logs for `heddle inspect` and `heddle simulate`: files, threads, a progress bar.
//!
//! What is found is the engine's ([`engine::survey`]); here are only the hands. Never applies anything.

pub mod feed;
pub mod pipeline;
pub mod schema;

pub use feed::FileSeen;
pub use pipeline::Found;
