//! New dependency tags for a log, from exact write sets: what a source could have said, had it known.
//!
//! ```text
//! events ─▶ Tagger (Intake, tables that are surely known) ─▶ Waits (exact predecessors) ─┬▶ LogicalClock (MySQL)   ─┬▶ NewTag
//!                                                                                        └▶ CommitGroups (MariaDB) ─┘
//! ```
//!
//! A new tag is never above the source's, there are never more groups than the source has, and where something is not known, it is the source's. So replicas never run less in parallel than before, and
//! never run side by side what both the source and the write sets would keep apart.
//!
//! Nothing here reads files or patches events.

mod awaited_definitions;
mod clock;
#[cfg(test)]
mod group_tests;
mod groups;
mod known_tables;
mod options;
mod tag;
mod tagger;
#[cfg(test)]
mod tests;
mod waits;

pub use awaited_definitions::ReadDefinitions;
pub use known_tables::KnownTables;
pub use options::Options;
pub use tag::{Marks, NewTag, Tag};
pub use tagger::{Tagger, TaggerError};
pub use waits::{Cause, Totals};
