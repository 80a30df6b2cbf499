//! Rescues a replica whose native applier is too slow: takes over from it, catches up, hands back.
//!
//! `look` what there is (asked through `replica`) · `judge` can it be done ·
//! `state` how far a rescue has come, on the replica · `takeover`, `handback` the two ends · `survey` (with `estimate`), `apply` what comes before and in
//! between · `relay_logs` what the source has purged · `via_serve` the other way: the replica's own applier, from a stream of groups · `goal` when to stop · `request` what is asked for · `run` one after the other · `report` what is said at the end.

mod apply;
mod estimate;
pub mod goal;
pub mod handback;
pub mod judge;
mod lock;
pub mod look;
mod relay_logs;
pub mod report;
pub mod request;
pub mod run;
pub mod state;
mod survey;
pub mod takeover;
mod via_serve;
