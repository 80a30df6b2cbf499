//! Moves applications from a channel's source to its target: the source becomes read-only, the target applies the rest, and the way back is prepared.
//!
//! `request` what is asked for · `run` one step after the other · `findings` what is found before, judged · `servers` both servers as they are, and what is changed there ·
//! `drain` waiting until the target has applied all · `record` how far a switch is, on the target · `report`.
//!
//! It never leaves the source read-only without a word: what it changed is set back when a step fails, and recorded for when it cannot be.

mod drain;
mod findings;
mod record;
pub mod report;
pub mod request;
pub mod run;
mod servers;
