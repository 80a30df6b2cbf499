//! New dependency tags for a log, from exact write sets: what a source could have said, had it known.
//!
//! ```text
//! events ─▶ Tagger (Intake, tables that are surely known) ─▶ Waits (exact predecessors) ─▶ LogicalClock ─▶ NewTag
//! ```
//!
//! A new tag is never above the source's, and where something is not known, it is the source's. So replicas never run less in parallel than before, and
//! never run side by side what both the source and the write sets would keep apart.
//!
//! Nothing here reads files or patches events.

mod awaited;
mod clock;
mod known;
mod options;
mod tagger;
#[cfg(test)]
mod tests;
mod waits;

pub use awaited::ReadDefinitions;
pub use known::KnownTables;
pub use options::Options;
pub use tagger::{NewTag, Tagger, TaggerError};
pub use waits::{Cause, Totals};
