//! The feeder: log → transactions → write sets → placements, in the log's order.
//!
//! Behind a DDL it goes on with what is not about its tables. At rows of these it waits until the DDL is applied, so that the definitions it then reads are those of the rows.
//! It stops at the end that the user asked for. It never dispatches anything.

mod event_intake;
mod extent;
pub(crate) mod failures;
mod no_effect;
mod output;
mod pending;
mod prepared;
mod reading;
mod transactions;

pub use event_intake::EventIntake;
pub use extent::{Extent, Known};
pub use output::Output;
pub use prepared::Prepared;
pub use reading::{Reading, run};
pub use transactions::Feeder;
