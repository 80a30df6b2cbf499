//! Rules about the replica's disk and memory. One file each.

pub mod buffer_pool;
pub mod durability;
pub mod redo_log;
