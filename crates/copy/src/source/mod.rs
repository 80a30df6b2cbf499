//! The source of rows: its sessions, and between which places of the log a read lies. The log may be another server's.

mod log_server;
mod rows_server;
mod session;
mod windows;

pub use rows_server::CopySource;
pub use session::{connect, settings, source_failure, threads_running};
pub use windows::{LowSource, Windows, begin_snapshot, gtids_before};
