//! What operators ask of the channels on a target: how far they are, and what is done to one that does not run.

mod native_position;
pub mod nodes;
pub mod status;
pub mod stopped_channel;
