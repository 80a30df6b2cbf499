//! A worker: takes groups, applies them on its session, reports what became of them.
//!
//! It decides nothing about order: it commits when it is granted to, and rolls back when it is told to.

mod applier;
mod isolate;
mod orders;
mod task;

pub use applier::{Applier, Mode};
pub use task::{WorkerTask, run};
