//! What connects the threads of a run: handing work over, queues, signals, memory, and numbers for observers.

pub(crate) mod chores;
pub(crate) mod handoff;
pub(crate) mod measures;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod read_counts;
pub(crate) mod run_handles;
pub(crate) mod samples;
pub(crate) mod signals;
pub(crate) mod source_log;
pub(crate) mod source_silence;
pub(crate) mod work;
