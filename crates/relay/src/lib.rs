//! Logs on disk: the relay log, and binary log files read in place.
//!
//! Entry points: [`RelayLog::open`] gives the receiver a [`RelayWriter`] and everybody else a [`RelayHandle`], which
//! makes [`RelayReader`]s and purges; [`FileSource::discover`] and [`FilesReader`] read a server's files where they are.
//! Both readers are a [`LogReader`] and deliver [`LocatedEvent`] events; [`reread`] streams a large transaction again.
//!
//! The relay log keeps the source's events byte for byte, in segments of its own format, each record with where in the
//! source it comes from and a checksum. When an event is visible to readers is the owner's choice: once it is durable
//! ([`RelayWriter::sync`]), or once it is in the file ([`RelayWriter::publish`]). The writer and the readers share no lock.
//! A disk that fails is a test's business as well: all access goes through [`fs::Fs`].
//!
//! This crate never connects to a server, decides what to receive or apply, or alters an event. It has no threads and
//! no clock of its own, and never sleeps: its user knows when to look again.

mod active;
mod background_sync;
mod error;
mod files;
pub mod fs;
mod gtids;
mod log_state;
mod options;
pub mod packed;
mod place;
mod reader;
mod recover;
mod relay_cursor;
mod relay_handle;
mod relay_reader;
mod reread;
mod segment;
mod stream;
mod writer;

pub use background_sync::SegmentSync;
pub use error::{Error, Result};
pub use files::{FileOptions, FileSource, FilesReader};
pub use fs::{FaultyFs, RealFs};
pub use options::Options;
pub use place::{Place, RelayOffset};
pub use reader::{LocatedEvent, LogReader, Read, Start};
pub use recover::Recovery;
pub use relay_handle::RelayHandle;
pub use relay_reader::RelayReader;
pub use reread::{Reread, reread};
pub use writer::{DurableEnd, RelayLog, RelayWriter, ResumePoint};
