//! What observers see of the transactions themselves: the source's tags, what waits for what, what a group changes. Nothing is decided by it.

pub(crate) mod conflicts;
pub(crate) mod source_tags;
pub(crate) mod subject;
