//! Rules about what is being applied. One file each.

pub mod blocked;
pub mod ddl;
pub mod large;
pub mod no_key;
