//! Reads logs for `heddle inspect` and `heddle simulate`: files, live servers, threads.
//!
//! What is found is the engine's ([`engine::survey`]); here is what reads, and `report` with its words. Never applies anything.

pub mod feed;
pub mod live_server;
#[cfg(feature = "parquet")]
pub mod parquet;
mod pipe;
pub mod pipeline;
pub mod report;
pub mod schema;
pub mod search;

pub use feed::SurveyedFile;
pub use pipeline::LogSurvey;
