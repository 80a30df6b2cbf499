//! Rows of a running source, through its log: read in chunks without locks and without writes on the source, and placed on a target.
//!
//! | Folder | Does |
//! |---|---|
//! | `source/` | sessions on the source; between which places of the log a read lies |
//! | `chunk/` | a table's columns and the key to read it by; statements that read a chunk; values as literals |
//! | `definitions/` | tables, foreign keys, views, triggers, routines, events: read, taken apart, made |
//! | `accounts/` | accounts, roles, grants: read, made |
//! | `bookkeeping/` | what the target remembers of a copy under way |
//! | `place/` | sessions on the target; rows on their way into its tables |
//! | `reading/` | workers that copy ranges of tables; tables in one consistent read |
//! | `limits.rs` | when a copy waits, for replicas that it must not put behind |
//! | `scan.rs` | what the log of a round says too little of |
//! | `rounds/` | a copy from its begin to its end |
//! | `compare/` | whether both servers have the same rows; repairs |
//!
//! Which rows are those of the read and which those of the log decides [`engine::windows`].

mod accounts;
mod bookkeeping;
pub mod chunk;
pub mod compare;
mod definitions;
mod limits;
mod measures;
mod place;
mod reading;
mod rounds;
mod scan;
pub mod source;

pub use bookkeeping::CopyPlace;
pub use definitions::CopyPart;
pub use limits::{CopyLimits, LagGate};
pub use measures::{CopySample, Measures};
pub use place::CopyTarget;
pub use rounds::{CopyChannel, CopyEnd, CopyRequest, LogPart, Plan, RunningChannel, copy, plan};
pub use source::CopySource;
