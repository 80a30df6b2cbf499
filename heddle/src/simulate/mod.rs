//! From a log to predictions: which replica would apply it how fast, with how many workers.
//!
//! The models are the crate `sim`'s; here a log becomes their input, and a server is measured for their costs.

pub mod calibrate;
pub mod past;
pub mod run;
pub mod trace;
pub mod what_if;
