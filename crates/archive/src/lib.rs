//! An archive of a source's binary logs in an object store: S3, a folder, Google Cloud Storage, Azure.
//!
//! | File | Is |
//! |---|---|
//! | `store/` | from a URL and the environment to a store; the few things that are asked of it, each with a deadline |
//! | `record.rs`, `state.rs` (pure) | what the manifest says, and what follows from all of it |
//! | `manifest.rs` | the chain of records: each one is made by a conditional put, so two writers never tear it |
//! | `scan.rs` (pure) | where a log may be cut, its times and GTIDs |
//! | `segment.rs` (pure) | bytes of a log ⇄ an object |
//! | `writer.rs` | what comes next of a log goes into the archive |
//! | `reader.rs` | an archive as a folder of binary log files |
//! | `verify.rs`, `prune.rs` | whether everything is there and whole; what may go |
//!
//! An object is never changed: a segment has a name of its own, a record of the manifest has the next number. So a crash leaves a valid archive, and
//! at most an object that nobody names.
//!
//! It never decides what a mirror keeps, and it never reads a password from a command line.

pub mod manifest;
pub mod prune;
pub mod reader;
pub mod record;
pub mod scan;
mod segment;
pub mod state;
pub mod store;
pub mod verify;
pub mod writer;

pub use manifest::{ArchiveError, Manifest};
pub use reader::ArchiveFs;
pub use state::State;
pub use store::{Store, StoreError, is_url};
