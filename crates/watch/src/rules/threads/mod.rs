//! Rules about the replication threads and how far behind they are. One file each.

pub mod delayed;
pub mod held;
pub mod receiver;
pub mod rescue;
pub mod stopped;
