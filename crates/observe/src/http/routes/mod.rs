//! What is shown besides a channel, each with its page, its data and its metrics.

pub(super) mod comparison;
pub(super) mod copy;
pub(super) mod fleet;
pub(super) mod mirror;
pub(super) mod replicas;
