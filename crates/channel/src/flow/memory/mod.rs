//! Memory of a run: what it may hold, what it holds, and what it reads again from the log.

pub(crate) mod budget;
pub(crate) mod event_memory;
pub(crate) mod spill;
