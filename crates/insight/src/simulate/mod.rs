//! From a log to predictions: which replica would apply it how fast, with how many workers.
//!
//! The models are the crate `sim`'s; here a log becomes their input, and a server is measured for their costs.

pub mod accuracy;
pub mod calibrate;
pub mod report;
pub mod run;
pub mod scenario;
pub mod trace;
