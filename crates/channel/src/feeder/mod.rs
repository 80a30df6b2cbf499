//! The feeder: log → transactions → write sets → placements, in the log's order.
//!
//! Behind a DDL it goes on with what is not about its tables. At rows of these it waits until the DDL is applied, so that the definitions it then reads are those of the rows.
//! It stops at the end that the user asked for. It never dispatches anything.

mod event_intake;
mod extent;
mod no_effect;
mod output;
mod pending_definitions;
mod prepared_branches;
mod stage;
mod transactions;
mod unsafe_statements;

pub use event_intake::EventIntake;
pub use extent::{Extent, InitialProgress};
pub use output::Output;
pub use prepared_branches::PreparedBranches;
pub use stage::{FeederStage, run};
pub use transactions::Feeder;
pub use unsafe_statements::UnsafeStatements;
