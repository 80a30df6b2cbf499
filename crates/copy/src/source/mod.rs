//! The source of rows: its sessions, and between which places of its log a read lies.

mod session;
mod windows;

pub use session::{connect, settings, source_failure, threads_running};
pub use windows::{LowSource, Windows, begin_snapshot};
