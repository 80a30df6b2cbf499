//! What people and machines are shown at the end: pure functions of results.

pub mod demo;
pub mod inspect;
pub mod json_log;
pub mod mirror;
pub mod native;
pub mod numbers;
pub mod out;
pub mod retag;
pub mod shown;
pub mod simulate;
pub mod status;
pub mod summary;
pub mod words;
