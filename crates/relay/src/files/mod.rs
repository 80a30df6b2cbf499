//! Binary log files read in place: finding them, and reading them one after the other.
//!
//! It never writes, copies or locks them.

mod continuity;
pub(crate) mod cursor;
mod discover;
mod reader;

pub use discover::FileSource;
pub use reader::{FileOptions, FilesReader};
