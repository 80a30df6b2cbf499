//! Locks of the target that the channel's sessions wait for: who waits for whom, who may be interrupted, who holds them.

pub mod holders;
pub mod waits;
