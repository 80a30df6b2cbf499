//! The source's GTIDs on the target that no transaction of the target's own has: of groups, and of rows that came as a copy.

pub mod adder;
pub mod copy_gtids;
pub mod grouping;
