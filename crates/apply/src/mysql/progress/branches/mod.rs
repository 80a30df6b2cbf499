//! What is remembered of deferred XA branches, a module for each of the two tables: which one a channel uses depends on whose GTIDs the target logs.

pub mod kept_branches;
pub mod open_branches;
