//! The target's side of a copy: its sessions, and rows on their way into its tables.

mod rows;
mod session;

pub use rows::{PlacedRows, RowPlacer};
pub use session::{CopyTarget, connect, execute_all};
