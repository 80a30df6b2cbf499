//! The feeder: log → transactions → write sets → placements, in the log's order.
//!
//! It waits at a DDL until that is applied, so that the definitions it then reads are those of the next event. It stops at the end that the
//! user asked for. It never dispatches anything.

mod event_intake;
mod extent;
pub(crate) mod failures;
mod no_effect;
mod output;
mod prepared;
mod reading;
mod transactions;

pub use event_intake::EventIntake;
pub use extent::{Extent, Known};
pub use output::Output;
pub use prepared::Prepared;
pub use reading::{Reading, run};
pub use transactions::Feeder;
