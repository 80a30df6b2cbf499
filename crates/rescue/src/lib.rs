//! Rescues a replica whose native applier is too slow: takes over from it, catches up, hands back.
//!
//! `request` what is asked for · `run` one step after the other · `server`, `backlog` the replica as it is and how far behind · `judge` whether it can be done · `survey` (with
//! `estimate`) what comes before · `handover` the two ends · `apply`, `goal` what comes in between, and when to stop · `relay_logs` what the source has purged · `state` how far a
//! rescue has come, on the replica · `via_serve` the other way: the replica's own applier, from a stream of groups · `report`.
//!
//! It never applies while the native applier can.

mod apply;
mod backlog;
mod filters;
mod goal;
mod handover;
mod judge;
mod relay_logs;
pub mod report;
pub mod request;
pub mod run;
mod server;
mod state;
mod survey;
mod via_serve;
